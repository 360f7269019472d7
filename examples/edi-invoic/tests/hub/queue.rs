//! A day of a partner's traffic through a queue, compared with what was sent.

use crate::hub::{Hub, Row};
use crate::refused::refused;
use crate::sample::{Sample, message, samples, with_messages};
use lambda_inbox_testkit::queue::{QueueConfig, Simulator};
use std::collections::BTreeSet;
use std::time::Duration;

const SEED: u64 = 417;
const ROUNDS: usize = 10;
/// Every tenth interchange is sent again by its partner.
const RESENT_EVERY: usize = 10;
const TIMEOUT: Duration = Duration::from_secs(60);
const POLLS_MAX: u64 = 500;

/// A production sample with a reference of its own and two invoices, and the rows it is to make.
fn interchange(sample: &Sample, round: usize) -> (String, [Row; 2]) {
    let written = sample.control().replace('\'', "?'");
    let header = sample.raw.replace(&written, &format!("{round}-{written}"));
    let invoices = [1, 2].map(|n| {
        (
            format!("{}-{round}-{n}", sample.id),
            format!("{round}.{n}0"),
        )
    });
    let messages: Vec<String> = (1..)
        .zip(&invoices)
        .map(|(n, (number, amount))| message(n, number, amount))
        .collect();
    let rows = invoices.map(|(number, amount)| {
        let control = format!("{round}-{}", sample.control());
        let (sender, receiver) = (sample.sender(), sample.receiver());
        (sender, receiver, control, number, amount, "EUR".to_owned())
    });
    (with_messages(&header, &messages), rows)
}

#[tokio::test]
async fn what_was_sent_is_booked_once_and_what_cannot_be_ends_in_the_dead_letter_queue() {
    let mut hub = Hub::open().await;
    let config = QueueConfig::builder()
        .function_timeout(TIMEOUT)
        .visibility_timeout(TIMEOUT)
        .max_receive_count(3)
        .duplicate_rate(0.1)
        .shuffle(true)
        .build()
        .unwrap();
    let mut queue = Simulator::new(config, SEED);
    let samples: Vec<Sample> = samples()
        .into_iter()
        .filter(|sample| sample.is_edifact() && !sample.is_test())
        .collect();
    let mut expected = Vec::new();
    for round in 0..ROUNDS {
        for (n, sample) in samples.iter().enumerate() {
            let (body, rows) = interchange(sample, round);
            if (n + round) % RESENT_EVERY == 0 {
                queue
                    .send(body.replace('\'', "'\r\n").replace("?'\r\n", "?'"))
                    .unwrap();
            }
            queue.send(body).unwrap();
            expected.extend(rows);
        }
    }
    let poison: BTreeSet<String> = refused().into_iter().map(|(body, _)| body).collect();
    for body in &poison {
        queue.send(body.as_str()).unwrap();
    }

    let summary = queue.run_until_drained(&mut hub.function, POLLS_MAX).await;

    assert!(summary.drained, "{summary:?}");
    assert_eq!(summary.stats.sent as usize, 100 + 10 + poison.len());
    assert!(summary.stats.duplicates_injected > 0, "{summary:?}");
    let mut booked = hub.rows().await;
    booked.sort();
    expected.sort();
    assert_eq!(booked, expected);
    let dead: BTreeSet<String> = queue
        .dead_letters()
        .iter()
        .map(|it| it.body().to_owned())
        .collect();
    assert_eq!(dead, poison);
    assert_eq!(queue.dead_letters().len(), poison.len());
}
