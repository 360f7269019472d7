//! Each statement of the prune finds its rows by an index, on tables of a size at which Postgres has a
//! choice. A scan of the whole table would be right, and would stop the world at a hundred million keys.

use super::sql;
use crate::layout::{Partitions, create_time_ordered};
use crate::migrate::migrate;
use crate::schema::Schema;
use lambda_inbox_testkit::postgres::TestDatabase;
use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, PgConnection, Row};

const ROWS: i32 = 40_000;
const FOURTEEN_DAYS: f64 = 14.5 * 86_400.0;

/// Two months of two consumers, statistics included.
async fn database() -> (TestDatabase, PgConnection) {
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    let schema = Schema::default();
    migrate(&mut connection, &schema).await.unwrap();
    create_time_ordered(&mut connection, &schema, Partitions::None)
        .await
        .unwrap();
    for table in ["inbox", "inbox_by_time"] {
        let fill = format!(
            "INSERT INTO lambda_inbox.{table} \
             (consumer, source, message_id, sent_at, processed_at, fingerprint) \
             SELECT CASE n % 2 WHEN 0 THEN 'payments' ELSE 'refunds' END, 'sqs', n::text, \
               now() - interval '2 minutes' * n, now() - interval '2 minutes' * n, '\\x00' \
             FROM generate_series(1, {ROWS}) AS n; ANALYZE lambda_inbox.{table}"
        );
        sqlx::raw_sql(AssertSqlSafe(fill))
            .execute(&mut connection)
            .await
            .unwrap();
    }
    let fill = format!(
        "INSERT INTO lambda_inbox.inbox_failure (failed_at, consumer, outcome, error, receive_count) \
         SELECT now() - interval '2 minutes' * n, 'payments', 'failed', 'no', 1 \
         FROM generate_series(1, {ROWS}) AS n; ANALYZE lambda_inbox.inbox_failure"
    );
    sqlx::raw_sql(AssertSqlSafe(fill))
        .execute(&mut connection)
        .await
        .unwrap();
    (database, connection)
}

type Bound = Query<'static, Postgres, PgArguments>;

async fn plan(
    connection: &mut PgConnection,
    sql: &str,
    bind: impl FnOnce(Bound) -> Bound,
) -> String {
    let explain = AssertSqlSafe(format!("EXPLAIN {sql}"));
    let rows = bind(sqlx::query(explain))
        .fetch_all(connection)
        .await
        .unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    lines.join("\n")
}

fn assert_plan(plan: &str, index: &str) {
    let is_by_index = plan.contains(&format!("Index Scan using {index}"))
        || plan.contains(&format!("Index Only Scan using {index}"));
    assert!(is_by_index, "{index}:\n{plan}");
    assert!(!plan.contains("Seq Scan on inbox"), "{plan}");
}

#[tokio::test]
async fn each_statement_of_the_prune_finds_its_rows_by_an_index() {
    let (_database, mut connection) = database().await;
    let schema = Schema::default();
    let keys = |query: Bound| {
        query
            .bind("payments")
            .bind(FOURTEEN_DAYS)
            .bind(0_i64)
            .bind(250_i64)
    };
    let found = plan(&mut connection, &sql::delete_keys(&schema), keys).await;
    assert_plan(&found, "inbox_processed_at");
    assert!(found.contains("Tid Scan on inbox"), "{found}");

    let found = plan(&mut connection, &sql::consumers(&schema), |query| query).await;
    assert_plan(&found, "inbox_processed_at");

    let count = |query: Bound| query.bind("payments").bind(FOURTEEN_DAYS).bind(100_i64);
    let found = plan(&mut connection, &sql::count_keys(&schema), count).await;
    assert_plan(&found, "inbox_processed_at");

    let page = |query: Bound| {
        query
            .bind(vec!["edi-invoic"])
            .bind(vec![35.0 * 86_400.0])
            .bind(FOURTEEN_DAYS)
            .bind(FOURTEEN_DAYS)
            .bind(0_i64)
            .bind("payments")
            .bind("sqs")
            .bind("1")
            .bind(250_i64)
    };
    let found = plan(&mut connection, &sql::delete_page(&schema), page).await;
    assert_plan(&found, "inbox_by_time_pkey");
    assert!(found.contains("Tid Scan on inbox_by_time"), "{found}");
    // The page is read in the order of the index, so it ends with its last row.
    let page_part = found.split("CTE page").nth(1).unwrap();
    let scan = page_part.find("Index").unwrap();
    assert!(!page_part[..scan].contains("Sort"), "{found}");
    let found = plan(&mut connection, &sql::count_page(&schema), page).await;
    assert_plan(&found, "inbox_by_time_pkey");
    let found = plan(&mut connection, &sql::oldest_sent(&schema), |query| query).await;
    assert_plan(&found, "inbox_by_time_pkey");

    let log = |query: Bound| query.bind(FOURTEEN_DAYS).bind(0_i64).bind(250_i64);
    let found = plan(&mut connection, &sql::delete_failures(&schema), log).await;
    assert_plan(&found, "inbox_failure_pkey");
}
