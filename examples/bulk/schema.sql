-- The example's own tables, for both functions. Applied once by whoever deploys it, never at a cold
-- start. stock-statement needs trigger.sql as well.

CREATE TABLE stock (
    item     text   PRIMARY KEY,
    -- May fall below zero: a sale has happened, whether or not the delivery before it was booked.
    quantity bigint NOT NULL
);

-- sale_id is deliberately not unique: a sale that is booked twice shows here, instead of being refused by
-- this one table while the stock is decremented twice.
CREATE TABLE sale (
    number    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sale_id   text        NOT NULL,
    item      text        NOT NULL REFERENCES stock,
    quantity  bigint      NOT NULL CHECK (quantity > 0),
    booked_at timestamptz NOT NULL DEFAULT now()
);
