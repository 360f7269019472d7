//! SQS, its dead-letter queue and Lambda's poller, without AWS and without waiting: what a consumer has to survive
//! are redeliveries, and they come rarely and late on a real queue.
//!
//! A [`Simulator`] delivers to any [`Consumer`](crate::consumer::Consumer). It has a virtual clock, so that hours of
//! visibility timeouts pass at once, and a seed, so that the same seed and the same answers of the consumer give the
//! same history.
//!
//! ```
//! # use lambda_inbox_testkit::consumer::{from_fn, Invocation};
//! # use lambda_inbox_testkit::queue::{QueueConfig, Simulator};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = QueueConfig::builder().max_receive_count(3).build()?;
//! let mut queue = Simulator::new(config, 7);
//! queue.send(r#"{"order": 1}"#)?;
//! let mut broken = from_fn(|_event, _time_left| async { Invocation::Crashed });
//! let summary = queue.run_until_drained(&mut broken, 100).await;
//! assert_eq!(summary.stats.crashes, 3);
//! assert_eq!(queue.dead_letters().len(), 1);
//! # Ok(()) }
//! ```
//!
//! # The rules
//!
//! Each with the page that states it, of the Lambda Developer Guide (LDG) or the SQS Developer Guide (SDG).
//!
//! | subject | rule | page |
//! |---|---|---|
//! | response | the table at [`Verdict`] | LDG `services-sqs-errorhandling` |
//! | what is not deleted | comes back when its visibility timeout ends | LDG `with-sqs`, SDG `sqs-visibility-timeout` |
//! | receive count | rises with each receive, whether or not the function runs, so also when Lambda is throttled | LDG `with-sqs` |
//! | dead letters | once a message was received `max_receive_count` times, the *next* receive moves it instead: at most that many runs | SDG `sqs-dead-letter-queues` |
//! | move to the dead-letter queue | same MessageId; standard queues keep SentTimestamp, FIFO queues reset it; a FIFO deduplication id becomes the MessageId | SDG `setting-up-dead-letter-queue-retention`, `sqs-configure-dead-letter-queue-redrive` |
//! | redrive | new MessageId and SentTimestamp, receive count from zero, same body and attributes | SDG `sqs-configure-dead-letter-queue-redrive` |
//! | delivery | at least once, even after success | LDG `invocation-eventsourcemapping`, SDG `standard-queues-at-least-once-delivery` |
//! | FIFO order | a message in flight holds back its group; a batch may mix groups | SDG `FIFO-queues-understanding-logic`, LDG `services-sqs-scaling` |
//! | FIFO deduplication | five minutes from the send, also after the delete | SDG `FIFO-queues-exactly-once-processing` |
//! | group on a standard queue | fairness only: no order, nothing held back | SDG `using-messagegroupid-property` |
//! | batch | 10 messages on FIFO queues, 10,000 on standard ones, 6 MB | LDG `services-sqs-configure`, `with-sqs` |
//!
//! Not modelled: batching windows (a batch holds what is visible now), concurrent invocations, the poller's backoff,
//! event filters, delivery delays and quotas of messages in flight.

mod config;
mod message;
mod report;
mod response;
mod simulator;
mod store;

pub use config::{ConfigError, InvocationTime, QueueConfig, QueueConfigBuilder};
pub use message::{Outgoing, SendError, StoredMessage};
pub use report::{Delivery, PollReport, Redriven, Stats, Summary};
pub use response::{BatchFailure, Verdict};
pub use simulator::Simulator;
