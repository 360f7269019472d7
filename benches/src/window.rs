//! One variant's turn: warm up, run for a while, count the rows.

use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::delivery::Delivery;
use crate::error::BenchError;
use crate::variant::{Feed, Variant};

/// Messages in a delivery that only warms up.
const WARM_UP: usize = 10;

/// One is enough before a window: emptying the tables made the connections plan their statements anew.
const BEFORE_WINDOW: usize = 1;

/// Until all connections of a variant have been opened and know their statements.
const BEFORE_COUNTING: usize = 5;

/// Where duplicates are measured, so many deliveries come again and again.
const DUPLICATED: usize = 10;

/// Round trips are counted over so many messages, or one delivery: they do not vary.
const COUNTED: usize = 50;

/// What was done in a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) messages: usize,
    pub(crate) time: Duration,
}

impl Rate {
    pub(crate) fn per_second(self) -> f64 {
        self.messages as f64 / self.time.as_secs_f64()
    }
}

/// Runs `variant` for at least `length`. Making the deliveries is not timed.
pub(crate) async fn run(
    variant: &mut dyn Variant,
    arena: &mut Arena,
    feed: Feed,
    length: Duration,
) -> Result<Rate, BenchError> {
    let mut source = Source::open(variant, arena, feed, BEFORE_WINDOW).await?;
    let mut rate = Rate {
        messages: 0,
        time: Duration::ZERO,
    };
    while rate.time < length {
        let delivery = source.next(arena)?;
        rate.messages += delivery.messages.len();
        let start = Instant::now();
        variant.run(delivery).await?;
        rate.time += start.elapsed();
    }
    arena.expect(source.sent).await?;
    Ok(rate)
}

/// Counts the round trips on the wire per message, of deliveries as they are in a window.
pub(crate) async fn round_trips(
    variant: &mut dyn Variant,
    arena: &mut Arena,
    feed: Feed,
) -> Result<f64, BenchError> {
    let mut source = Source::open(variant, arena, feed, BEFORE_COUNTING).await?;
    variant.run(source.next(arena)?).await?;
    arena.proxy.reset_round_trips();
    let mut messages = 0;
    while messages < COUNTED {
        let delivery = source.next(arena)?;
        messages += delivery.messages.len();
        variant.run(delivery).await?;
    }
    let round_trips = arena.proxy.round_trips();
    arena.expect(source.sent).await?;
    Ok(round_trips as f64 / messages as f64)
}

/// Where a variant's deliveries come from.
struct Source {
    batch: usize,
    /// Different messages so far, each of which must have left one row and one effect.
    sent: usize,
    /// The deliveries that come again; none where all are fresh.
    again: Vec<Delivery>,
    next: usize,
}

impl Source {
    /// Empties the tables and warms the variant up.
    async fn open(
        variant: &mut dyn Variant,
        arena: &mut Arena,
        feed: Feed,
        warm_ups: usize,
    ) -> Result<Self, BenchError> {
        arena.clear().await?;
        let mut source = Self {
            batch: variant.batch(),
            sent: 0,
            again: Vec::new(),
            next: 0,
        };
        let (deliveries, size) = match feed {
            Feed::Fresh => (warm_ups, source.batch.min(WARM_UP)),
            Feed::Duplicates => (DUPLICATED, source.batch),
        };
        for _ in 0..deliveries {
            let delivery = source.fresh(arena, size)?;
            if feed == Feed::Duplicates {
                source.again.push(delivery.clone());
            }
            variant.run(delivery).await?;
        }
        Ok(source)
    }

    fn next(&mut self, arena: &mut Arena) -> Result<Delivery, BenchError> {
        match self.again.get(self.next) {
            Some(delivery) => {
                self.next = (self.next + 1) % self.again.len();
                Ok(delivery.clone())
            }
            None => self.fresh(arena, self.batch),
        }
    }

    fn fresh(&mut self, arena: &mut Arena, size: usize) -> Result<Delivery, BenchError> {
        self.sent += size;
        arena.traffic.delivery(size)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;

    use super::*;
    use crate::variants::Loop;

    /// The loop, but the last message of each full delivery is forgotten.
    struct Forgetful(Loop);

    impl Variant for Forgetful {
        fn batch(&self) -> usize {
            self.0.batch()
        }

        fn run(&mut self, mut delivery: Delivery) -> BoxFuture<'_, Result<(), BenchError>> {
            delivery.messages.pop();
            self.0.run(delivery)
        }
    }

    /// The loop, but every delivery is done twice with new ids, as a retry without an inbox does.
    struct Hasty(Loop);

    impl Variant for Hasty {
        fn batch(&self) -> usize {
            self.0.batch()
        }

        fn run(&mut self, delivery: Delivery) -> BoxFuture<'_, Result<(), BenchError>> {
            async move {
                let mut again = delivery.clone();
                for message in &mut again.messages {
                    message.id.push_str("-again");
                }
                self.0.run(delivery).await?;
                self.0.run(again).await
            }
            .boxed()
        }
    }

    #[tokio::test]
    async fn a_variant_that_loses_or_doubles_an_effect_is_found_out() {
        let mut arena = Arena::open().await.unwrap();
        let feed = Feed::Fresh;
        let length = Duration::from_millis(1);
        let mut honest = Loop::new(&arena);
        run(&mut honest, &mut arena, feed, length).await.unwrap();
        let wrong: [Box<dyn Variant>; 2] = [
            Box::new(Forgetful(Loop::new(&arena))),
            Box::new(Hasty(Loop::new(&arena))),
        ];
        for mut variant in wrong {
            let result = run(&mut *variant, &mut arena, feed, length).await;
            assert!(
                matches!(result, Err(BenchError::Mismatch { .. })),
                "{result:?}"
            );
        }
    }
}
