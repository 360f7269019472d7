//! The child process, reachable from two sides at once: the runtime waits for it while a [`Killer`] may end it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::process::Child;

/// A place for the current child, shared by the runtime and its killers.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    child: Arc<Mutex<Option<Child>>>,
}

impl Slot {
    pub(super) fn set(&self, child: Child) {
        *self.lock() = Some(child);
    }

    /// Kills the child, if any, and leaves it to Tokio to reap it.
    pub(super) fn clear(&self) {
        // Spawned to be killed on drop.
        drop(self.lock().take());
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.lock().as_ref().and_then(Child::id)
    }

    /// Whether a child is there and has not ended.
    pub(super) fn is_running(&self) -> bool {
        match self.lock().as_mut().map(Child::try_wait) {
            Some(Ok(status)) => status.is_none(),
            Some(Err(_)) | None => false,
        }
    }

    /// Sends SIGKILL, if there is a child that has not ended.
    pub(super) fn kill(&self) -> bool {
        match self.lock().as_mut() {
            Some(child) => child.start_kill().is_ok(),
            None => false,
        }
    }

    /// Waits until the child has ended and is reaped; at once if there is none.
    ///
    /// The lock is held for a poll at a time, so that a killer gets in between. Cancelling it loses nothing.
    pub(super) async fn ended(&self) -> Option<ExitStatus> {
        poll_fn(|cx| match self.lock().as_mut() {
            Some(child) => pin!(child.wait()).poll(cx).map(Result::ok),
            None => std::task::Poll::Ready(None),
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the function's current process from anywhere, such as another task in the middle of an invocation.
#[derive(Clone, Debug)]
pub struct Killer {
    slot: Slot,
}

impl Killer {
    pub(super) fn new(slot: Slot) -> Self {
        Self { slot }
    }

    /// Sends SIGKILL to the process that runs now; `false` if none does.
    ///
    /// The open invocation, if any, is [`Crashed`](crate::consumer::Invocation::Crashed), and the next one starts a
    /// new process.
    pub fn kill(&self) -> bool {
        self.slot.kill()
    }
}
