-- The database role of a consumer, with what its statements need of the inbox's tables and no more: it reads,
-- writes and withdraws keys, and adds to the failure log. What it may do to your own tables you grant it.
--
-- For the default schema and the template's name. The migrate function runs this where
-- LAMBDA_INBOX_CONSUMER_ROLES asks for it; without that function run it as the tables' owner, who needs
-- CREATEROLE, after the migration and after every upgrade that brings tables. Running it again changes nothing.

DO $$
BEGIN
    -- Two at once would fail on each other's rows of the catalogue.
    PERFORM pg_advisory_xact_lock(hashtextextended('lambda-inbox roles', 0));
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lambda_inbox_consumer') THEN
        CREATE ROLE "lambda_inbox_consumer" LOGIN;
        -- On RDS a new role logs in by an IAM token. Elsewhere give it a password. A role that was there keeps
        -- its way: with rds_iam, passwords are refused.
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_iam') THEN
            GRANT rds_iam TO "lambda_inbox_consumer";
        END IF;
    END IF;
    IF NOT has_database_privilege('lambda_inbox_consumer', current_database(), 'CONNECT') THEN
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO "lambda_inbox_consumer"', current_database());
    END IF;

    GRANT USAGE ON SCHEMA lambda_inbox TO "lambda_inbox_consumer";
    GRANT SELECT, INSERT, DELETE ON lambda_inbox.inbox TO "lambda_inbox_consumer";
    GRANT INSERT ON lambda_inbox.inbox_failure TO "lambda_inbox_consumer";
    IF to_regclass('lambda_inbox.inbox_by_time') IS NOT NULL THEN
        GRANT SELECT, INSERT, DELETE ON lambda_inbox.inbox_by_time TO "lambda_inbox_consumer";
    END IF;

    -- PostgreSQL 14 lets everybody create tables there. Other programs may need it, so it is only said.
    IF EXISTS (
        SELECT FROM pg_namespace
        WHERE nspname = 'public' AND has_schema_privilege('lambda_inbox_consumer', oid, 'CREATE')
    ) THEN
        RAISE WARNING 'lambda_inbox_consumer may create tables in schema public; where no other program needs that: REVOKE CREATE ON SCHEMA public FROM PUBLIC';
    END IF;
END $$;
