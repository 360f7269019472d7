-- The timeouts of a consumer's database role behind RDS Proxy or PgBouncer, where the inbox cannot set them in its
-- session, and warns where one is missing. Not for a direct connection: there the inbox sets what it needs, and
-- lock_timeout would end the handlers' own waits.
--
-- For the template's name. The migrate function runs this after consumer.sql where LAMBDA_INBOX_CONSUMER_POOLED is
-- on. Running it again changes nothing.

DO $$
DECLARE
    setting record;
BEGIN
    -- Two at once would fail on each other's rows of the catalogue.
    PERFORM pg_advisory_xact_lock(hashtextextended('lambda-inbox roles', 0));
    -- What somebody has set stays, and so does a role that is not ours to change.
    FOR setting IN
        SELECT wanted.* FROM (VALUES
            ('statement_timeout', '30s'),
            ('lock_timeout', '250ms'),
            ('idle_in_transaction_session_timeout', '60s'),
            ('client_connection_check_interval', '100ms'),
            ('synchronous_commit', 'on'),
            ('default_transaction_isolation', 'read committed'),
            ('default_transaction_read_only', 'off')
        ) AS wanted (name, value)
        WHERE NOT EXISTS (
            SELECT FROM pg_db_role_setting CROSS JOIN unnest(setconfig) AS known
            WHERE setrole = (SELECT oid FROM pg_roles WHERE rolname = 'lambda_inbox_consumer')
              AND split_part(known, '=', 1) = wanted.name
        )
    LOOP
        BEGIN
            EXECUTE format('ALTER ROLE "lambda_inbox_consumer" SET %I = %L', setting.name, setting.value);
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE WARNING 'behind a proxy lambda_inbox_consumer needs: ALTER ROLE "lambda_inbox_consumer" SET % = %',
                setting.name, quote_literal(setting.value);
        END;
    END LOOP;
END $$;
