-- The example's own table. Applied once by whoever deploys it, never at a cold start.

-- One row for each INVOIC message. Nothing here is unique, deliberately: an interchange that is booked
-- twice shows here, instead of being refused by this one table while another effect is doubled.
CREATE TABLE accounting_entry (
    number            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- As UNB has them: id, qualifier and internal routing, such as ACMESUPPLY:ZZ.
    sender            text        NOT NULL,
    receiver          text        NOT NULL,
    -- Text, not a number: 00000417 is not 417.
    control_reference text        NOT NULL,
    document_number   text        NOT NULL,
    -- BGM 1001: 380 is an invoice, 381 a credit note, and the amounts of both are positive.
    document_type     text,
    document_date     date,
    -- With as many decimals as the sender wrote.
    amount            numeric     NOT NULL,
    -- ISO 4217.
    currency          text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    booked_at         timestamptz NOT NULL DEFAULT now()
);
