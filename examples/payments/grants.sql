-- What the function's statements need of the example's own tables, and no more. After schema.sql and
-- docs/sql/roles.sql.

-- UPDATE .. WHERE id = .. AND balance .. reads what it compares.
GRANT SELECT (id, balance), UPDATE (balance) ON account TO lambda_inbox_consumer;
GRANT INSERT (payment_id, from_account, to_account, amount) ON payment TO lambda_inbox_consumer;
