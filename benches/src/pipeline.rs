//! What the pipeline costs by itself: everything between the event's bytes and the response's, without a
//! database.
//!
//! With 50 ms left until Lambda's deadline no record may start. So an invocation decodes, finds keys, takes
//! fingerprints and answers for every record, and opens no connection. Decoding bodies for the handler and
//! the handler itself are not in it.

use std::fmt;
use std::time::{Duration, Instant};

use alloc_tracker::Session;
use lambda_inbox::lambda_runtime::LambdaEvent;
use lambda_inbox::sqlx::postgres::PgConnectOptions;
use lambda_inbox::{Inbox, InboxEvent, InboxService};
use lambda_inbox_testkit::event::{Record, event};
use tower::{Service, ServiceExt};

use crate::error::BenchError;
use crate::measured::median;
use crate::variants::{context, credit};

/// On the command line.
pub(crate) const NAME: &str = "pipeline";

/// Lambda's default, and the largest there is.
pub(crate) const BATCHES: [usize; 2] = [10, 10_000];

const TIME_LEFT: Duration = Duration::from_millis(50);

const WARM_UPS: usize = 3;

/// The cost per message in batches of a size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) batch: usize,
    pub(crate) nanoseconds: f64,
    /// A buffer that grows counts once more each time.
    pub(crate) allocations: f64,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pipeline without a database, batches of {}: {:.0} ns and {:.1} allocations per message",
            self.batch, self.nanoseconds, self.allocations
        )
    }
}

/// Invokes for at least `length`.
pub(crate) async fn measure(batch: usize, length: Duration) -> Result<Cost, BenchError> {
    // Nobody listens there, and nobody is asked.
    let nowhere = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(1);
    let mut service = Inbox::builder("bench", nowhere).build()?.handler(credit);
    let records = (0..batch).map(|account| Record::new(format!(r#"{{"account":{account}}}"#)));
    let text = event(records).to_string();
    let mut times = Vec::new();
    for _ in 0..WARM_UPS {
        invoke(&mut service, &text, batch).await?;
    }
    let session = Session::new().no_stdout().no_file();
    let operation = session.operation(NAME);
    let begin = Instant::now();
    while begin.elapsed() < length {
        let span = operation.measure_thread().iterations(1);
        let start = Instant::now();
        invoke(&mut service, &text, batch).await?;
        times.push(start.elapsed().as_secs_f64());
        drop(span);
    }
    let report = session.to_report();
    let allocations = report
        .operations()
        .find_map(|(_, operation)| operation.allocations())
        .unwrap_or(f64::NAN);
    let messages = batch as f64;
    Ok(Cost {
        batch,
        nanoseconds: median(&times) * 1e9 / messages,
        allocations: allocations / messages,
    })
}

/// From bytes to bytes, as under Lambda's runtime.
async fn invoke(service: &mut InboxService, text: &str, batch: usize) -> Result<(), BenchError> {
    let event: InboxEvent = serde_json::from_str(text)?;
    let event = LambdaEvent::new(event, context(TIME_LEFT));
    let response = service.ready().await?.call(event).await?;
    std::hint::black_box(serde_json::to_vec(&response)?);
    // All of them must have gone the whole way and come back.
    match response.batch_item_failures.len() {
        reported if reported == batch => Ok(()),
        reported => Err(BenchError::Reported {
            sent: batch,
            reported,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_cost_of_a_message_is_measured_without_a_database() {
        let cost = measure(10, Duration::from_millis(1)).await.unwrap();
        assert!(cost.nanoseconds > 0.0, "{cost}");
        assert!(cost.allocations > 1.0, "{cost}");
    }
}
