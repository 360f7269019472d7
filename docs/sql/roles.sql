-- A database role for each function, with what its statements need and no more. For the template's names and
-- the default schema; run it as the tables' owner with CREATEROLE, after the migration and after every
-- upgrade that brings tables. Running it again changes nothing.
--
-- | role                    | function | may                                                        |
-- |-------------------------|----------|------------------------------------------------------------|
-- | the owner, who runs this | migrate | create and change tables                                   |
-- | lambda_inbox_consumer   | consumer | read, write and withdraw keys; add to the failure log      |
-- | lambda_inbox_prune      | prune    | read and delete keys and entries of the failure log        |
--
-- What the consumer may do to your own tables you grant it: see grants.sql of examples/payments.

DO $$
DECLARE
    role name;
BEGIN
    FOREACH role IN ARRAY ARRAY['lambda_inbox_consumer', 'lambda_inbox_prune']::name[] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        END IF;
        -- On RDS: logs in by an IAM token. Elsewhere give it a password.
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_iam') THEN
            EXECUTE format('GRANT rds_iam TO %I', role);
        END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
    -- PostgreSQL 14 lets everybody create tables in public.
    IF has_schema_privilege('public', 'public', 'CREATE') THEN
        REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    END IF;
END $$;

GRANT USAGE ON SCHEMA lambda_inbox TO lambda_inbox_consumer, lambda_inbox_prune;

GRANT SELECT, INSERT, DELETE ON lambda_inbox.inbox TO lambda_inbox_consumer;
GRANT INSERT ON lambda_inbox.inbox_failure TO lambda_inbox_consumer;

-- FOR UPDATE asks for UPDATE on one column at least; nothing is ever changed.
GRANT SELECT, UPDATE (processed_at), DELETE ON lambda_inbox.inbox TO lambda_inbox_prune;
GRANT SELECT, UPDATE (failed_at), DELETE ON lambda_inbox.inbox_failure TO lambda_inbox_prune;

-- The time-ordered layout, where there is one. With daily partitions the prune drops tables, so it must own
-- them: run ALTER TABLE lambda_inbox.inbox_by_time OWNER TO lambda_inbox_prune yourself, partitions included.
DO $$
BEGIN
    IF to_regclass('lambda_inbox.inbox_by_time') IS NOT NULL THEN
        GRANT SELECT, INSERT, DELETE ON lambda_inbox.inbox_by_time TO lambda_inbox_consumer;
        GRANT SELECT, UPDATE (processed_at), DELETE ON lambda_inbox.inbox_by_time TO lambda_inbox_prune;
    END IF;
END $$;

-- Behind a proxy the inbox cannot set these itself.
ALTER ROLE lambda_inbox_consumer SET statement_timeout = '30s';
ALTER ROLE lambda_inbox_consumer SET lock_timeout = '250ms';
ALTER ROLE lambda_inbox_consumer SET idle_in_transaction_session_timeout = '60s';
ALTER ROLE lambda_inbox_consumer SET client_connection_check_interval = '100ms';
ALTER ROLE lambda_inbox_consumer SET synchronous_commit = on;
ALTER ROLE lambda_inbox_consumer SET default_transaction_isolation = 'read committed';
ALTER ROLE lambda_inbox_consumer SET default_transaction_read_only = off;
