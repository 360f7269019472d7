//! The ways of consuming messages, one file each.

mod baseline;
mod bulk;
mod credit;
mod function;
mod per_batch;
mod per_message;
mod statement;

pub(crate) use baseline::Loop;
pub(crate) use bulk::bulk;
pub(crate) use credit::{Credit, credit};
pub(crate) use function::{Function, context};
pub(crate) use per_batch::per_batch;
pub(crate) use per_message::per_message;
pub(crate) use statement::statement;
