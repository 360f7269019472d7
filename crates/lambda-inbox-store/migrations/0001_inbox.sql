-- The inbox: one row for each message whose effect has committed. A row's presence is the whole
-- protocol: it is written in the transaction of the effect, so there is no "in progress" state, no
-- attempt counter and no body here.
--
-- This file is complete SQL for the default schema. For another schema the migrator replaces the
-- schema's name, which for that reason appears nowhere but as a qualifier.

CREATE TABLE lambda_inbox.inbox (
    -- Byte order (COLLATE "C"): a C library upgrade must never change what the unique index
    -- considers equal, and ids that differ in one byte are different ids.
    consumer             text        COLLATE "C" NOT NULL,
    source               text        COLLATE "C" NOT NULL,
    message_id           text        COLLATE "C" NOT NULL,
    -- SQS SentTimestamp; null where the record carried none.
    sent_at              timestamptz,
    -- The database's clock, which is also the one that prunes.
    processed_at         timestamptz NOT NULL DEFAULT now(),
    -- A committed verdict, never a state of progress.
    status               text        COLLATE "C" NOT NULL DEFAULT 'processed',
    -- One version byte, then a hash of the body.
    fingerprint          bytea       NOT NULL,
    -- The SQS MessageId of the delivery that won; null where that is message_id itself.
    transport_message_id text        COLLATE "C",

    CONSTRAINT inbox_pkey PRIMARY KEY (consumer, source, message_id),
    CONSTRAINT inbox_key_not_empty CHECK (consumer <> '' AND source <> '' AND message_id <> ''),
    CONSTRAINT inbox_status CHECK (status IN ('processed', 'ignored'))
) WITH (
    -- Inserts all day, deletes in one prune: the defaults, which wait for a fifth of the table to
    -- change, would let a large inbox bloat for weeks and freeze late.
    autovacuum_vacuum_scale_factor        = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor       = 0.02
);

-- Serves the prune, which deletes one consumer's oldest keys at a time.
CREATE INDEX inbox_processed_at ON lambda_inbox.inbox (consumer, processed_at);
