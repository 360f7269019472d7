-- The example's own tables. Applied by the deployment, never at a cold start.

CREATE TABLE IF NOT EXISTS account (
    id      text   PRIMARY KEY,
    -- Cents.
    balance bigint NOT NULL CHECK (balance >= 0)
);

-- One row for each run of the handler. payment_id is deliberately not unique: a payment that is booked
-- twice shows here, instead of being refused by this one table while another effect is doubled.
CREATE TABLE IF NOT EXISTS payment (
    number       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payment_id   text        NOT NULL,
    from_account text        NOT NULL REFERENCES account,
    to_account   text        NOT NULL REFERENCES account,
    -- Cents.
    amount       bigint      NOT NULL CHECK (amount > 0),
    booked_at    timestamptz NOT NULL DEFAULT now()
);
