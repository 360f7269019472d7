//! A snapshot of a process must hold no socket and no password: every copy that is started from it would
//! have the same ones.

use crate::inbox::Settings;
use futures_util::future::BoxFuture;
use lambda_runtime::{Error, SnapStartResource};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Which inboxes there are. Process-wide as a snapshot is: [`run`](crate::run) takes any service, and cannot
/// ask it.
static INBOXES: Mutex<Vec<Weak<Settings>>> = Mutex::new(Vec::new());

pub(crate) fn register(settings: &Arc<Settings>) {
    let mut inboxes = INBOXES.lock().unwrap_or_else(PoisonError::into_inner);
    inboxes.retain(|inbox| inbox.strong_count() > 0);
    inboxes.push(Arc::downgrade(settings));
}

/// Drops every inbox's connections before the snapshot. They are opened again when they are needed.
pub(crate) struct Inboxes;

impl SnapStartResource for Inboxes {
    fn before_snapshot(&self) -> BoxFuture<'_, Result<(), Error>> {
        let inboxes = INBOXES.lock().unwrap_or_else(PoisonError::into_inner);
        for inbox in inboxes.iter().filter_map(Weak::upgrade) {
            inbox.store.forget_connections();
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inbox;
    use lambda_inbox_testkit::postgres::TestDatabase;
    use lambda_inbox_testkit::proxy::Proxy;
    use std::time::Duration;
    use tokio::time::Instant;

    #[tokio::test]
    async fn a_snapshot_holds_no_connection_and_the_next_invocation_opens_one() {
        let database = TestDatabase::create().await.unwrap();
        let options = database.options();
        let proxy = Proxy::start(options.get_host(), options.get_port())
            .await
            .unwrap();
        let inbox = Inbox::builder("payments", proxy.options(&options))
            .build()
            .unwrap();
        let store = &inbox.settings.store;
        let until = || Instant::now() + Duration::from_secs(60);

        store.slot().await.connection(until()).await.unwrap().keep();
        store.slot().await.connection(until()).await.unwrap().keep();
        assert_eq!(proxy.connections(), 1);

        Inboxes.before_snapshot().await.unwrap();
        Inboxes.after_restore().await.unwrap();
        store.slot().await.connection(until()).await.unwrap().keep();
        assert_eq!(proxy.connections(), 2);
    }
}
