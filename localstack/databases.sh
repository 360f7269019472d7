#!/bin/sh
# A database for each example, with its own tables and something in them. The inbox's tables are made by the
# migrate function. PGHOST and so on say where; in the container of Postgres this runs at its first start.
set -eu

examples=${EXAMPLES:-/examples}

database() {
    psql -q -v ON_ERROR_STOP=1 -d postgres -c "CREATE DATABASE $1"
    psql -q -v ON_ERROR_STOP=1 -d "$1" -f "$examples/$2/schema.sql" -c "$3"
}

export PGUSER="${PGUSER:-${POSTGRES_USER:-postgres}}"
database payments payments \
    "INSERT INTO account VALUES ('till', 1000000); INSERT INTO account SELECT 'shop-' || n, 0 FROM generate_series(0, 9) n"
database invoic edi-invoic ""
database stock bulk "INSERT INTO stock VALUES ('bolt', 1000), ('nut', 1000)"
database commands fifo ""
