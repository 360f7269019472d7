-- The failure log: what went wrong with a message, written after its roll-back in a transaction of its
-- own. It is off unless asked for, holds no body and no DETAIL of the server's (both may quote personal
-- data), and nothing ever reads it to decide anything.
--
-- This file is complete SQL for the default schema. For another schema the migrator replaces the
-- schema's name, which for that reason appears nowhere but as a qualifier.

CREATE TABLE lambda_inbox.inbox_failure (
    -- The database's clock, which is also the one that prunes.
    failed_at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Not a sequence: a sequence's state is one of the things that pin a session behind RDS Proxy.
    id                   uuid        NOT NULL DEFAULT gen_random_uuid(),
    consumer             text        COLLATE "C" NOT NULL,
    -- The key; both null where the record has none.
    source               text        COLLATE "C",
    message_id           text        COLLATE "C",
    -- The SQS MessageId of the delivery that failed; null where the record has none.
    transport_message_id text        COLLATE "C",
    -- The outcome's word: failed, poison, mismatch and so on.
    outcome              text        COLLATE "C" NOT NULL,
    -- The server's code, where a statement failed.
    sqlstate             text        COLLATE "C",
    error                text        NOT NULL,
    -- How often SQS had handed the message out.
    receive_count        integer     NOT NULL,

    -- Led by the time, so that the prune has its index; an identity, so that logical replication works.
    CONSTRAINT inbox_failure_pkey PRIMARY KEY (failed_at, id)
) WITH (
    autovacuum_vacuum_scale_factor        = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor       = 0.02
);
