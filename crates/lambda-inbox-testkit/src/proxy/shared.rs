//! What the test's side of the proxy sets and reads, and its connections obey and count.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::clock::Clock;
use super::rules::Rules;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) upstream_host: String,
    pub(super) upstream_port: u16,
    pub(super) round_trips: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) refuse: AtomicBool,
    pub(super) faults: watch::Sender<Faults>,
    pub(super) rules: Rules,
    pub(super) clock: Clock,
    delay_nanos: AtomicU64,
}

/// Faults of all connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) black_hole: bool,
    /// How often all connections have been cut; one that remembers another number is to close.
    pub(super) cuts: u64,
}

impl Shared {
    pub(super) fn new(upstream_host: String, upstream_port: u16) -> io::Result<Self> {
        Ok(Self {
            upstream_host,
            upstream_port,
            round_trips: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            refuse: AtomicBool::new(false),
            faults: watch::Sender::new(Faults::default()),
            rules: Rules::default(),
            clock: Clock::start()?,
            delay_nanos: AtomicU64::new(0),
        })
    }

    pub(super) fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay_nanos.load(Ordering::Relaxed))
    }

    pub(super) fn set_delay(&self, one_way: Duration) {
        let nanos = u64::try_from(one_way.as_nanos()).unwrap_or(u64::MAX);
        self.delay_nanos.store(nanos, Ordering::Relaxed);
    }
}
