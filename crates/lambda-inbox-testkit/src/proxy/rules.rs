//! Faults that wait for certain bytes, and the handles by which a test follows them.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// What to do about the bytes that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Cut,
    LoseReply,
    Hold,
}

/// How far a fault has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Armed,
    Fired,
    /// Of a hold only.
    Released,
}

/// A fault armed by one of [`Proxy`](super::Proxy)'s methods. It stays armed if this is dropped.
#[derive(Clone, Debug)]
pub struct Trigger {
    phase: Arc<watch::Sender<Phase>>,
}

impl Trigger {
    /// Whether the fault has happened.
    pub fn fired(&self) -> bool {
        *self.phase.borrow() != Phase::Armed
    }

    /// Waits until the fault has happened: for ever, if it never does. Dropping the future changes
    /// nothing.
    pub async fn wait(&self) {
        self.reach(|phase| phase != Phase::Armed).await;
    }

    pub(super) fn fire(&self) {
        self.phase.send_if_modified(|phase| {
            let armed = *phase == Phase::Armed;
            if armed {
                *phase = Phase::Fired;
            }
            armed
        });
    }

    pub(super) async fn released(&self) {
        self.reach(|phase| phase == Phase::Released).await;
    }

    fn is_released(&self) -> bool {
        *self.phase.borrow() == Phase::Released
    }

    async fn reach(&self, wanted: impl Fn(Phase) -> bool) {
        // It cannot fail: we hold the sender.
        let _ = self
            .phase
            .subscribe()
            .wait_for(|phase| wanted(*phase))
            .await;
    }
}

/// A client's bytes held back, or to be; dropping this releases them.
#[derive(Debug)]
#[must_use = "dropping a hold releases it"]
pub struct Hold {
    trigger: Trigger,
}

impl Hold {
    pub(super) fn new(trigger: Trigger) -> Self {
        Self { trigger }
    }

    /// Waits until bytes are being held back: for ever, if none come. Dropping the future changes
    /// nothing.
    pub async fn held(&self) {
        self.trigger.wait().await;
    }

    /// Lets the held bytes go, and whatever the client has sent since; if none are held yet, none
    /// will be.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.trigger.phase.send_replace(Phase::Released);
    }
}

/// A fault and the bytes it waits for.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) action: Action,
    pub(super) trigger: Trigger,
    pattern: Vec<u8>,
}

/// The faults still armed, in the order of arming.
#[derive(Debug, Default)]
pub(super) struct Rules(Mutex<Vec<Rule>>);

impl Rules {
    pub(super) fn arm(&self, pattern: &[u8], action: Action) -> Trigger {
        let trigger = Trigger {
            phase: Arc::new(watch::Sender::new(Phase::Armed)),
        };
        let rule = Rule {
            action,
            trigger: trigger.clone(),
            pattern: pattern.to_vec(),
        };
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(rule);
        trigger
    }

    /// Disarms and returns the first fault whose pattern ends within `chunk`; it may begin in
    /// `tail`, which came before.
    pub(super) fn take(&self, tail: &Tail, chunk: &[u8]) -> Option<Rule> {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rules.retain(|rule| !rule.trigger.is_released());
        let index = rules
            .iter()
            .position(|rule| tail.followed_by_contains(chunk, &rule.pattern))?;
        Some(rules.remove(index))
    }
}

/// The last bytes that a client sent before the current ones. A pattern longer than this is not
/// found in parts.
#[derive(Debug, Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    const BYTES_MAX: usize = 4096;

    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.0
            .extend_from_slice(&chunk[chunk.len().saturating_sub(Self::BYTES_MAX)..]);
        self.0.drain(..self.0.len().saturating_sub(Self::BYTES_MAX));
    }

    /// Whether `pattern` and `more` further bytes, whatever they are, came last.
    pub(super) fn ends_with(&self, pattern: &[u8], more: usize) -> bool {
        self.0.len() > more && self.0[..self.0.len() - more].ends_with(pattern)
    }

    fn followed_by_contains(&self, chunk: &[u8], pattern: &[u8]) -> bool {
        if pattern.is_empty() {
            return true;
        }
        // One byte less than the pattern, so that at least its last byte is in the chunk.
        let overlap = &self.0[self.0.len().saturating_sub(pattern.len() - 1)..];
        [overlap, chunk]
            .concat()
            .windows(pattern.len())
            .any(|window| window == pattern)
    }
}
