//! The default scope: a transaction for each message, on up to so many connections.

use lambda_inbox::Inbox;

use crate::arena::Arena;
use crate::error::BenchError;
use crate::variants::{Function, credit};

/// As many as Lambda delivers at once by default.
const BATCH: usize = 10;

pub(crate) fn per_message(arena: &Arena, connections: usize) -> Result<Function, BenchError> {
    let inbox = Inbox::builder("bench", arena.options())
        .connections(connections)
        .build()?;
    Ok(Function::new(BATCH, inbox.handler(credit)))
}
