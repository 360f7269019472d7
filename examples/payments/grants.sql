-- What the consumer's statements need of the example's own tables, and no more. After schema.sql, where the
-- consumer has a role of its own.

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'lambda_inbox_consumer') THEN
        -- UPDATE .. WHERE id = .. AND balance .. reads what it compares.
        GRANT SELECT (id, balance), UPDATE (balance) ON account TO lambda_inbox_consumer;
        GRANT INSERT (payment_id, from_account, to_account, amount) ON payment TO lambda_inbox_consumer;
    END IF;
END $$;
