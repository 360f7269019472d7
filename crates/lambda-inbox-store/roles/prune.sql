-- The database role of the prune function, with what its statements need of the inbox's tables and no more: it
-- reads and deletes keys and entries of the failure log, and sees no table of yours.
--
-- For the default schema and the template's name. The migrate function runs this where LAMBDA_INBOX_PRUNE_ROLE
-- asks for it; without that function run it as the tables' owner, who needs CREATEROLE, after the migration and
-- after every upgrade that brings tables. Running it again changes nothing.
--
-- With daily partitions the prune drops tables, so it must own them: run ALTER TABLE lambda_inbox.inbox_by_time
-- OWNER TO "lambda_inbox_prune" yourself, partitions included.

DO $$
BEGIN
    -- Two at once would fail on each other's rows of the catalogue.
    PERFORM pg_advisory_xact_lock(hashtextextended('lambda-inbox roles', 0));
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lambda_inbox_prune') THEN
        CREATE ROLE "lambda_inbox_prune" LOGIN;
        -- On RDS a new role logs in by an IAM token. Elsewhere give it a password. A role that was there keeps
        -- its way: with rds_iam, passwords are refused.
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_iam') THEN
            GRANT rds_iam TO "lambda_inbox_prune";
        END IF;
    END IF;
    IF NOT has_database_privilege('lambda_inbox_prune', current_database(), 'CONNECT') THEN
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO "lambda_inbox_prune"', current_database());
    END IF;

    GRANT USAGE ON SCHEMA lambda_inbox TO "lambda_inbox_prune";
    -- FOR UPDATE asks for UPDATE on one column at least; nothing is ever changed.
    GRANT SELECT, UPDATE (processed_at), DELETE ON lambda_inbox.inbox TO "lambda_inbox_prune";
    GRANT SELECT, UPDATE (failed_at), DELETE ON lambda_inbox.inbox_failure TO "lambda_inbox_prune";
    IF to_regclass('lambda_inbox.inbox_by_time') IS NOT NULL THEN
        GRANT SELECT, UPDATE (processed_at), DELETE ON lambda_inbox.inbox_by_time TO "lambda_inbox_prune";
    END IF;
END $$;
