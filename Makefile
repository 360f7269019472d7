# Two commands matter: `make demo` shows the product at work, `make test` runs every test.
# Each finds or installs what it needs; CARGO_TARGET_DIR is honoured everywhere.

SHELL := /bin/bash
ARGS ?=

.PHONY: help demo test test-localstack localstack package bench lint audit

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | sort | expand -t 17

demo: ## A thousand payments through crashes and duplicates, each booked once (ARGS=--no-inbox shows it without)
	@scripts/ensure-postgres
	@cargo build --quiet -p payments --bins --examples
	@cargo run --quiet -p payments --example demo -- $(ARGS)

test: ## Every test, on a real Postgres and real processes
	@scripts/ensure-postgres
	@scripts/ensure-pgbouncer
	@scripts/test $(ARGS)

test-localstack: ## The real binaries on LocalStack: queues, mappings, the template (no Docker, no account)
	@scripts/ensure-postgres
	@scripts/test-localstack $(ARGS)

localstack: ## The examples on a LocalStack of your own, until Ctrl-C (no Docker; LOCALSTACK_PORT=4566 chooses the port)
	@scripts/localstack

package: ## Release builds as zips for `sam deploy`, checked against the template (ARGS="--arch arm64")
	@scripts/package $(ARGS)

bench: ## Against what one writes by hand, and pgbench, in one run (about four minutes; the first time, release builds take several more)
	@scripts/ensure-postgres
	@cargo run --quiet --profile release-bench -p lambda-inbox-benches -- $(ARGS)

lint: ## Format, clippy, docs, dependencies, spelling
	@scripts/lint

audit: ## Known vulnerabilities of the dependencies (needs the network)
	@scripts/tool cargo-deny check advisories
