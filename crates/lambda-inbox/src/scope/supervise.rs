//! A handler may fail, panic or never return; each is told apart, and none takes the batch with it.

use crate::deadline::Deadline;
use futures_util::FutureExt;
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use tokio::time::timeout_at;

/// How a handler ended.
pub(super) enum Handled<E> {
    Done,
    Failed(E),
    Panicked(String),
    TimedOut,
}

/// Runs a handler until it ends or the deadline comes near; it is then dropped.
pub(super) async fn supervise<E>(
    deadline: &Deadline,
    work: impl Future<Output = Result<(), E>>,
) -> Handled<E> {
    let work = AssertUnwindSafe(work).catch_unwind();
    let ended = match deadline.handler() {
        Some(deadline) => timeout_at(deadline, work).await,
        None => Ok(work.await),
    };
    match ended {
        Ok(Ok(Ok(()))) => Handled::Done,
        Ok(Ok(Err(error))) => Handled::Failed(error),
        Ok(Err(panic)) => Handled::Panicked(panic_text(&*panic)),
        Err(_) => Handled::TimedOut,
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no text)".to_owned())
}
