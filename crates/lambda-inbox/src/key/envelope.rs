//! Keys that the wrapping service gives.

use super::{KeyProblem, Keyed, Subject};

/// Stands between an event's id and the name of the replay that sent it.
const REPLAY: &str = ";replay=";

/// Keys by SNS's MessageId, in the topic's space. The body must be an SNS notification, which is taken
/// off: the handler gets its `Message`.
///
/// Catches what SNS delivers twice. A publisher that publishes twice makes two ids.
#[derive(Clone, Debug, Default)]
pub struct Sns {}

impl Sns {
    /// Keys by the outermost SNS envelope, or by the one that
    /// [`InboxBuilder::unwrap`](crate::InboxBuilder::unwrap) names.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn name(&self) -> String {
        "Sns".to_owned()
    }

    pub(super) fn find(&self, message: &Subject<'_>) -> Result<Keyed, KeyProblem> {
        let field = || "the SNS envelope's MessageId".to_owned();
        let sns = message.content.sns.as_ref();
        let sns = sns.ok_or_else(|| KeyProblem::Missing { field: field() })?;
        Keyed::new(sns.topic_arn.clone(), &sns.message_id, field)
    }
}

/// Keys by EventBridge's event id, in the space of the event's source. The body must be an EventBridge
/// event, which is taken off: the handler gets its `detail`.
///
/// Catches what EventBridge delivers twice, and replays of an archive. A producer that puts an event
/// twice makes two ids.
#[derive(Clone, Debug, Default)]
pub struct EventBridge {
    replays_run_again: bool,
}

impl EventBridge {
    /// A replayed event is a duplicate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Each replay has its own effect: the replay's name becomes part of the key.
    #[must_use]
    pub fn replays_run_again(mut self) -> Self {
        self.replays_run_again = true;
        self
    }

    pub(super) fn name(&self) -> String {
        "EventBridge".to_owned()
    }

    pub(super) fn find(&self, message: &Subject<'_>) -> Result<Keyed, KeyProblem> {
        let field = || "the EventBridge envelope's id".to_owned();
        let event = message.content.event_bridge.as_ref();
        let event = event.ok_or_else(|| KeyProblem::Missing { field: field() })?;
        // EventBridge's ids are UUIDs; this keeps one that is not from passing for a replay.
        if self.replays_run_again && event.id.contains(REPLAY) {
            let problem = "is not an id that EventBridge gives";
            return Err(KeyProblem::NotAnIdentity {
                field: field(),
                problem,
            });
        }
        match event
            .replay_name
            .as_deref()
            .filter(|_| self.replays_run_again)
        {
            Some(replay) => {
                let id = format!("{}{REPLAY}{replay}", event.id);
                Keyed::new(event.source.clone(), &id, field)
            }
            None => Keyed::new(event.source.clone(), &event.id, field),
        }
    }
}
