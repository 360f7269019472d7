//! Claims at a given size of the table, as a consumer of large batches makes them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lambda_inbox_store::{
    Claimed, Connection, Consumer, Entry, Fingerprint, Held, Key, Layout, Limits, Settled, Status,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::time::Instant;

use super::filled::Filled;
use crate::error::BenchError;
use crate::measured::median;

const BATCH: usize = 1_000;
const ROUNDS: usize = 5;
const LONG: Duration = Duration::from_secs(60);

/// At one size of one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claims {
    pub(crate) per_second: f64,
    /// Of the first batch after a checkpoint, when each page that it touches is logged as a whole.
    pub(crate) log_bytes: f64,
}

pub(super) async fn measure(
    server: &mut Filled,
    layout: Layout,
    window: Duration,
) -> Result<Claims, BenchError> {
    let mut claimer = Claimer::new(server, layout).await?;
    // The first batches plan the statement and fetch pages.
    for _ in 0..3 {
        claimer.batch().await?;
    }
    let (mut bytes, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        server.run("CHECKPOINT").await?;
        let before = server.log_position().await?;
        claimer.batch().await?;
        bytes.push((server.log_position().await? - before) / BATCH as f64);

        let mut claimed = 0;
        let mut time = Duration::ZERO;
        while time < window {
            let entries = claimer.entries(BATCH)?;
            let start = Instant::now();
            claimer.claim(&entries).await?;
            time += start.elapsed();
            claimed += BATCH;
        }
        rates.push(claimed as f64 / time.as_secs_f64());
    }
    Ok(Claims {
        per_second: median(&rates),
        log_bytes: median(&bytes),
    })
}

/// One consumer's connection.
pub(super) struct Claimer {
    connection: Option<Connection>,
    consumer: Consumer,
    ids: ChaCha8Rng,
}

impl Claimer {
    pub(super) async fn new(server: &Filled, layout: Layout) -> Result<Self, BenchError> {
        let (store, consumer) = server.store(layout)?;
        let slot = store.slot().await;
        let connection = slot.fresh_connection(Instant::now() + LONG).await?;
        Ok(Self {
            connection: Some(connection),
            consumer,
            ids: ChaCha8Rng::seed_from_u64(rand::random()),
        })
    }

    fn entries(&mut self, count: usize) -> Result<Vec<Arc<Entry>>, BenchError> {
        (0..count).map(|_| self.entry()).collect()
    }

    fn entry(&mut self) -> Result<Arc<Entry>, BenchError> {
        let random = uuid::Builder::from_random_bytes(self.ids.random());
        let id = random.into_uuid().to_string();
        Ok(Arc::new(Entry {
            consumer: self.consumer.clone(),
            fingerprint: Fingerprint::of_bytes(id.as_bytes()),
            key: Key::new("sqs", id.as_str())?,
            sent_at: Some(SystemTime::now()),
            status: Status::Processed,
            transport_message_id: id.into(),
        }))
    }

    async fn batch(&mut self) -> Result<(), BenchError> {
        let entries = self.entries(BATCH)?;
        self.claim(&entries).await
    }

    async fn claim(&mut self, entries: &[Arc<Entry>]) -> Result<(), BenchError> {
        let connection = self.connection.take().ok_or(BenchError::NotClaimed)?;
        let claimed = connection.claim_many(entries, &limits()).await;
        match claimed.map_err(|failure| failure.error)?.held {
            Held::Claim(claim) => self.settle(claim).await,
            Held::Nothing(_) => Err(BenchError::NotClaimed),
        }
    }

    /// Claims and commits one key; how long that took.
    pub(super) async fn one(&mut self) -> Result<Duration, BenchError> {
        let entry = self.entry()?;
        let connection = self.connection.take().ok_or(BenchError::NotClaimed)?;
        let start = Instant::now();
        let claimed = connection.claim(entry, &limits()).await;
        match claimed.map_err(|failure| failure.error)? {
            Claimed::Won(claim) => self.settle(claim).await?,
            Claimed::Existing(_) => return Err(BenchError::NotClaimed),
        }
        Ok(start.elapsed())
    }

    async fn settle(&mut self, claim: lambda_inbox_store::Claim) -> Result<(), BenchError> {
        match claim.settle(Instant::now() + LONG).await {
            Settled::Committed(connection) => {
                self.connection = Some(connection);
                Ok(())
            }
            Settled::Refused(_) | Settled::Violated { .. } | Settled::Unknown(_) => {
                Err(BenchError::NotClaimed)
            }
        }
    }
}

fn limits() -> Limits {
    Limits {
        claim: Duration::from_millis(250),
        statement: LONG,
        idle: LONG,
        until: Instant::now() + LONG,
    }
}
