-- The example's own tables. Applied once by whoever deploys it, never at a cold start.

CREATE TABLE account (
    id          text    PRIMARY KEY,
    -- Cents.
    balance     bigint  NOT NULL CHECK (balance >= 0),
    -- The number of the last command that was carried out.
    last_number bigint  NOT NULL,
    closed      boolean NOT NULL,
    -- Set and cleared by a clerk. Meanwhile the account's commands wait in the queue, in order.
    on_hold     boolean NOT NULL DEFAULT false
);

-- One row for each command that was carried out; seq is the order in which they committed. number is
-- deliberately not unique: a command that is carried out twice shows here, instead of being refused by
-- this one table while another effect is doubled.
CREATE TABLE account_entry (
    account   text        NOT NULL REFERENCES account,
    seq       bigint      NOT NULL,
    number    bigint      NOT NULL,
    -- Cents; negative for a withdrawal.
    change    bigint      NOT NULL,
    booked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account, seq)
);
