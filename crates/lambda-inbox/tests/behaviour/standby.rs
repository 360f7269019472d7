//! After a failover a name may still lead to the old primary, which has become a reader.

use crate::scopes::SCOPES;
use crate::support::{MINUTE, invoke};
use lambda_inbox::sqlx::{self, Connection, PgConnection};
use lambda_inbox::{Inbox, Schema, Source, migrate};
use lambda_inbox_testkit::event::{Record, event};
use lambda_inbox_testkit::postgres::Cluster;
use std::sync::{Arc, Mutex};

/// Nothing is known to be wrong with a message, so it is no message that fails: the poller must back off
/// instead of using up the receive counts.
#[tokio::test]
async fn a_reader_is_an_outage_in_every_scope_and_no_message_fails() {
    let primary = Cluster::start().await.unwrap();
    let mut admin = PgConnection::connect_with(&primary.options())
        .await
        .unwrap();
    migrate(&mut admin, &Schema::default()).await.unwrap();
    sqlx::raw_sql("CREATE TABLE effect (message_id text)")
        .execute(&mut admin)
        .await
        .unwrap();
    let standby = primary.standby().await.unwrap();

    for (scope, serve) in SCOPES {
        for is_pooled in [false, true] {
            let source = Source::from(standby.options());
            let source = if is_pooled { source.pooled() } else { source };
            let reports = Arc::new(Mutex::new(Vec::new()));
            let kept = Arc::clone(&reports);
            let inbox = Inbox::builder_with_source("payments", source)
                .on_outcome(move |report| kept.lock().unwrap().push(report.clone()));
            let batch =
                event((1..3).map(|n| Record::new(n.to_string()).message_id(format!("m-{n}"))));
            let answer = invoke(&serve(inbox), MINUTE, batch).await;
            let seen = reports.lock().unwrap().clone();
            assert!(
                answer.is_err(),
                "{scope}, pooled: {is_pooled}: {answer:?}, {seen:?}"
            );
        }
    }
}
