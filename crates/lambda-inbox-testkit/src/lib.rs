//! What a consumer of SQS can only be tested with on AWS, brought to your machine.
//!
//! | module | stands in for |
//! |---|---|
//! | [`event`] | the events that Lambda's poller delivers |
//! | [`queue`] | the poller and the queue themselves: receive counts, redelivery, dead letters, order |
//! | [`runtime`] | Lambda's runtime, for a function as a whole process |
//! | [`consumer`] | what the poller invokes |
//! | [`postgres`] | the database, a fresh one for every test |
//! | [`proxy`] | the network to it, with its delays and failures |
//! | [`tls`] | the certificate authority of a private network |
//!
//! Everything listens on 127.0.0.1 only, and nothing needs Docker or an AWS account.

pub mod consumer;
pub mod event;
pub mod postgres;
pub mod proxy;
pub mod queue;
pub mod runtime;
pub mod tls;
