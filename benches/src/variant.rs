//! What a way of consuming messages must say of itself to be measured.

use futures_util::future::BoxFuture;

use crate::delivery::Delivery;
use crate::error::BenchError;

/// One way of consuming messages in this process.
///
/// A scope of lambda-inbox is one file with a function that makes a
/// [`Function`](crate::variants::Function), and one line in [`contender`](crate::contender).
pub(crate) trait Variant {
    /// How many messages a delivery has.
    fn batch(&self) -> usize;

    /// Consumes all of them. Only this is timed.
    fn run(&mut self, delivery: Delivery) -> BoxFuture<'_, Result<(), BenchError>>;
}

/// What a variant is fed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feed {
    /// Messages that nobody has seen before.
    Fresh,
    /// Messages that the variant has processed before, untimed.
    Duplicates,
}

impl Feed {
    /// The name of the variant that its variants are compared with.
    pub(crate) fn baseline(self) -> &'static str {
        match self {
            Self::Fresh => "baseline",
            Self::Duplicates => "baseline_duplicates",
        }
    }
}
