//! What is sent: every message has a new id and adds 1 to the balance of one random account.

use lambda_inbox::InboxEvent;
use lambda_inbox_testkit::event::{Record, event};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::arena::ACCOUNTS;
use crate::error::BenchError;

/// The same accounts in every run.
const SEED: u64 = 1;

/// One invocation's worth of messages, in the two forms that variants take: the loop wants ids and
/// accounts, a function wants the event.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) messages: Vec<Message>,
    pub(crate) event: InboxEvent,
}

#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) account: i64,
}

pub(crate) struct Traffic {
    accounts: ChaCha8Rng,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Self {
            accounts: ChaCha8Rng::seed_from_u64(SEED),
        }
    }

    pub(crate) fn delivery(&mut self, size: usize) -> Result<Delivery, BenchError> {
        let (messages, records): (Vec<Message>, Vec<Record>) =
            std::iter::repeat_with(|| self.message()).take(size).unzip();
        let event = InboxEvent::from_json(event(records).to_string())?;
        Ok(Delivery { messages, event })
    }

    fn message(&mut self) -> (Message, Record) {
        let account = self.accounts.random_range(1..=ACCOUNTS);
        let record = Record::new(format!(r#"{{"account":{account}}}"#));
        let message = Message {
            id: record.id().to_owned(),
            account,
        };
        (message, record)
    }
}
