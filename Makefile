# Two commands matter: `make demo` shows the product at work, `make test` runs every test.
# Each finds or installs what it needs; CARGO_TARGET_DIR is honoured everywhere.

SHELL := /bin/bash
ARGS ?=

.PHONY: help demo test bench lint audit

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | sort | expand -t 10

demo: ## A thousand payments through crashes and duplicates, each booked once (ARGS=--no-inbox shows it without)
	@scripts/ensure-postgres
	@cargo build --quiet -p payments --bins --examples
	@cargo run --quiet -p payments --example demo -- $(ARGS)

test: ## Every test, on a real Postgres and real processes
	@scripts/ensure-postgres
	@scripts/test $(ARGS)

bench: ## Against a hand-written loop and pgbench, in one run (about three minutes after the build)
	@scripts/ensure-postgres
	@cargo run --quiet --profile release-bench -p lambda-inbox-benches -- $(ARGS)

lint: ## Format, clippy, docs, dependencies, spelling
	@scripts/lint

audit: ## Known vulnerabilities of the dependencies (needs the network)
	@scripts/tool cargo-deny check advisories
