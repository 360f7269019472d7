//! The function, with a killer that strikes while a batch is half done.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use lambda_inbox_testkit::consumer::{Consumer, Invocation};
use lambda_inbox_testkit::runtime::{Killer, LocalRuntime};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use sqlx::PgConnection;

use crate::bank::count_bookings;
use crate::scenario::Scenario;

/// The killer waits for up to so many bookings of the batch that it strikes.
const BOOKINGS_MAX: usize = 4;
/// And then looks up to so often again, about one payment's time, so that it strikes at any point of
/// the next one. A timer is too coarse for that.
const MORE_LOOKS_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct Victim {
    function: LocalRuntime,
    observer: PgConnection,
    random: ChaCha8Rng,
    /// The kills still to come: each is due once so many payments are booked.
    kills: VecDeque<usize>,
    pub(crate) bookings: usize,
    error: Option<sqlx::Error>,
}

impl Victim {
    pub(crate) fn new(function: LocalRuntime, observer: PgConnection, scenario: &Scenario) -> Self {
        Self {
            function,
            observer,
            random: ChaCha8Rng::seed_from_u64(scenario.seed),
            kills: scenario.kills.clone().into(),
            bookings: 0,
            error: None,
        }
    }

    /// Fails if the progress could not be read from Postgres since the last call.
    pub(crate) fn check(&mut self) -> Result<(), sqlx::Error> {
        self.error.take().map_or(Ok(()), Err)
    }

    async fn run(&mut self, event: &Value, time_left: Duration) -> Result<Invocation, sqlx::Error> {
        let before = count_bookings(&mut self.observer).await?;
        let due = self.kills.front().is_some_and(|kill| before >= *kill);
        let invocation = if due {
            let strike = Strike {
                killer: self.function.killer(),
                bookings: before + self.random.random_range(1..=BOOKINGS_MAX),
                more_looks: self.random.random_range(0..=MORE_LOOKS_MAX),
            };
            // A batch with too little left to book ends before the strike, and the next one is due.
            tokio::select! {
                error = strike.when_half_done(&mut self.observer) => return Err(error),
                invocation = self.function.invoke_within(event, time_left) => invocation,
            }
        } else {
            self.function.invoke_within(event, time_left).await
        };
        if invocation == Invocation::Crashed {
            self.kills.pop_front();
        }
        self.bookings = count_bookings(&mut self.observer).await?;
        Ok(invocation)
    }
}

impl Consumer for Victim {
    async fn invoke(&mut self, event: Value, time_left: Duration) -> Invocation {
        match self.run(&event, time_left).await {
            Ok(invocation) => invocation,
            Err(error) => {
                let text = error.to_string();
                self.error = Some(error);
                Invocation::FunctionError(text)
            }
        }
    }
}

struct Strike {
    killer: Killer,
    bookings: usize,
    more_looks: usize,
}

impl Strike {
    /// Kills once Postgres shows that a part of the batch has committed; goes on for ever, unless
    /// Postgres cannot be asked.
    async fn when_half_done(self, observer: &mut PgConnection) -> sqlx::Error {
        match self.wait(observer).await {
            Ok(()) => {
                self.killer.kill();
                pending().await
            }
            Err(error) => error,
        }
    }

    async fn wait(&self, observer: &mut PgConnection) -> Result<(), sqlx::Error> {
        while count_bookings(observer).await? < self.bookings {}
        for _ in 0..self.more_looks {
            count_bookings(observer).await?;
        }
        Ok(())
    }
}
