//! One transaction for a batch, on one connection; the handler still takes one message at a time.

use lambda_inbox::{Inbox, Scope};

use crate::arena::Arena;
use crate::error::BenchError;
use crate::variants::{Function, credit};

pub(crate) fn per_batch(arena: &Arena, batch: usize) -> Result<Function, BenchError> {
    let inbox = Inbox::builder("bench", arena.options())
        .scope(Scope::PerBatch)
        .build()?;
    Ok(Function::new(batch, inbox.handler(credit)))
}
