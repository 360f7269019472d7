//! The time-ordered table: made on demand, beside the keyed one.

use crate::support::World;
use lambda_inbox_store::{
    LayoutError, Partitions, Schema, TimeOrdered, create_time_ordered, migrate,
};
use lambda_inbox_testkit::postgres::TestDatabase;

#[tokio::test]
async fn both_tables_have_the_same_columns_but_that_a_send_time_is_never_null() {
    for partitions in [Partitions::None, Partitions::Daily] {
        let mut world = World::time_ordered(partitions).await;
        let columns = |table: &str| {
            format!(
                "SELECT concat_ws(' ', column_name, data_type, collation_name, column_default, \
                   CASE WHEN column_name = 'sent_at' THEN 'any' ELSE is_nullable END) \
                 FROM information_schema.columns \
                 WHERE table_schema = 'lambda_inbox' AND table_name = '{table}' ORDER BY 1"
            )
        };
        let keyed = world.texts(columns("inbox")).await;
        assert_eq!(world.texts(columns("inbox_by_time")).await, keyed);
        let nullable = "SELECT count(*) FROM information_schema.columns WHERE is_nullable = 'YES' \
                        AND table_name = 'inbox_by_time' AND column_name = 'sent_at'";
        assert_eq!(world.number(nullable).await, 0);
    }
}

/// What a claim writes is counted by the WAL, so there is no second index.
#[tokio::test]
async fn the_primary_key_is_led_by_the_send_time_and_is_the_only_index() {
    for partitions in [Partitions::None, Partitions::Daily] {
        let mut world = World::time_ordered(partitions).await;
        let indexes = world
            .texts(
                "SELECT DISTINCT substring(indexdef FROM '[(].*[)]') FROM pg_indexes \
                 WHERE schemaname = 'lambda_inbox' AND tablename LIKE 'inbox_by_time%'",
            )
            .await;
        assert_eq!(indexes, ["(sent_at, consumer, source, message_id)"]);
    }
}

/// E-11: also of the partitions, which are the tables that hold the rows.
#[tokio::test]
async fn every_table_that_holds_rows_has_its_own_autovacuum_settings() {
    for partitions in [Partitions::None, Partitions::Daily] {
        let mut world = World::time_ordered(partitions).await;
        let without = "SELECT relname::text FROM pg_class \
                       WHERE relnamespace = 'lambda_inbox'::regnamespace AND relkind = 'r' \
                       AND relname LIKE 'inbox%' AND (reloptions IS NULL \
                       OR NOT 'autovacuum_vacuum_scale_factor=0.02' = ANY (reloptions))";
        assert_eq!(world.texts(without).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn creating_it_again_does_nothing() {
    for (partitions, count) in [(Partitions::None, 0), (Partitions::Daily, 23)] {
        let mut world = World::new().await;
        let schema = Schema::default();
        let first = create_time_ordered(&mut world.connection, &schema, partitions).await;
        let first = first.unwrap();
        assert_eq!((first.created, first.partitions.len()), (true, count));
        let again = create_time_ordered(&mut world.connection, &schema, partitions).await;
        assert_eq!(again.unwrap(), TimeOrdered::default());
    }
}

/// C-17: as the migrations.
#[tokio::test]
async fn twenty_at_once_create_it_once() {
    for (partitions, count) in [(Partitions::None, 0), (Partitions::Daily, 23)] {
        let world = World::new().await;
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let mut connection = world.database.connect().await.unwrap();
            tasks.spawn(async move {
                let schema = Schema::default();
                migrate(&mut connection, &schema).await.unwrap();
                create_time_ordered(&mut connection, &schema, partitions)
                    .await
                    .unwrap()
            });
        }
        let done = tasks.join_all().await;
        let created = done.iter().filter(|done| done.created).count();
        let partitions: usize = done.iter().map(|done| done.partitions.len()).sum();
        assert_eq!((created, partitions), (1, count));
    }
}

/// Moving rows while claims go on would let duplicates pass.
#[tokio::test]
async fn partitions_are_never_added_to_a_table_or_taken_from_it() {
    for (found, wanted) in [
        (Partitions::None, Partitions::Daily),
        (Partitions::Daily, Partitions::None),
    ] {
        let mut world = World::time_ordered(found).await;
        let schema = Schema::default();
        let error = create_time_ordered(&mut world.connection, &schema, wanted)
            .await
            .unwrap_err();
        assert!(
            matches!(error, LayoutError::OtherPartitions { .. }),
            "{error}"
        );
        let text = error.to_string();
        assert!(
            text.contains(&format!("has partitions: {found}, wanted: {wanted}")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_schema_that_was_not_migrated_is_refused_with_the_remedy() {
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    let schema = Schema::new("inbox_x").unwrap();
    let error = create_time_ordered(&mut connection, &schema, Partitions::Daily)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("run the migrations first"),
        "{error}"
    );
}
