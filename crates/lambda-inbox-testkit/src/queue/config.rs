//! The settings of a queue and its event source mapping, held to the limits that AWS holds them to: a scenario that
//! AWS would refuse to set up proves nothing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const FIFO_SUFFIX: &str = ".fifo";

const BATCH_SIZE_MAX_FIFO: usize = 10;
const BATCH_SIZE_MAX_STANDARD: usize = 10_000;
const VISIBILITY_TIMEOUT_MAX: Duration = Duration::from_secs(12 * 60 * 60);
const FUNCTION_TIMEOUT_MAX: Duration = Duration::from_secs(900);
const MAX_RECEIVE_COUNT_MAX: u32 = 1_000;
const RETENTION_MIN: Duration = Duration::from_secs(60);
const RETENTION_MAX: Duration = Duration::from_secs(14 * DAY_SECS);
const DAY_SECS: u64 = 24 * 60 * 60;

/// Where the virtual clock starts unless told otherwise: 2026-01-05, 08:00 UTC.
const CLOCK_START: Duration = Duration::from_secs(1_767_600_000);

/// How an invocation moves the virtual clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvocationTime {
    /// Not at all.
    Zero,
    /// By what it took on the real clock; the history then depends on the machine.
    Measured,
    /// By this much.
    Fixed(Duration),
}

/// A queue, its dead-letter queue and its event source mapping; see [`QueueConfig::builder`].
#[derive(Clone, Debug)]
pub struct QueueConfig {
    pub(super) queue_name: String,
    pub(super) fifo: bool,
    pub(super) content_based_deduplication: bool,
    pub(super) visibility_timeout: Duration,
    pub(super) max_receive_count: Option<u32>,
    pub(super) retention: Duration,
    pub(super) dead_letter_retention: Duration,
    pub(super) batch_size: usize,
    pub(super) report_batch_item_failures: bool,
    pub(super) function_timeout: Duration,
    pub(super) invocation_time: InvocationTime,
    pub(super) duplicate_rate: f64,
    pub(super) shuffle: bool,
    pub(super) clock_start: SystemTime,
}

/// A setting that AWS would refuse.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// 1 to 10 on a FIFO queue, 1 to 10,000 on a standard queue.
    #[error("batch size {batch_size} is not in 1 to {max}")]
    BatchSize {
        /// As given.
        batch_size: usize,
        /// The most that this kind of queue allows.
        max: usize,
    },
    /// More than zero, at most 900 seconds.
    #[error("function timeout {0:?} is not in 0 (exclusive) to 900 s")]
    FunctionTimeout(Duration),
    /// From the function's timeout to 12 hours; Lambda refuses a mapping whose function may outlive it.
    #[error(
        "visibility timeout {visibility_timeout:?} is not in {function_timeout:?} (the function's) to 12 h"
    )]
    VisibilityTimeout {
        /// As given.
        visibility_timeout: Duration,
        /// The function's timeout, the least allowed.
        function_timeout: Duration,
    },
    /// 1 to 1,000.
    #[error("maximum receive count {0} is not in 1 to 1000")]
    MaxReceiveCount(u32),
    /// 60 seconds to 14 days.
    #[error("retention {0:?} is not in 60 s to 14 days")]
    Retention(Duration),
    /// A probability.
    #[error("duplicate rate {0} is not in 0 to 1")]
    DuplicateRate(f64),
}

impl QueueConfig {
    /// Starts from a standard queue with the defaults that each setting names.
    pub fn builder() -> QueueConfigBuilder {
        QueueConfigBuilder::default()
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            queue_name: "orders-in".to_owned(),
            fifo: false,
            content_based_deduplication: true,
            visibility_timeout: Duration::from_secs(30),
            max_receive_count: Some(5),
            retention: Duration::from_secs(4 * DAY_SECS),
            dead_letter_retention: RETENTION_MAX,
            batch_size: 10,
            report_batch_item_failures: true,
            function_timeout: Duration::from_secs(5),
            invocation_time: InvocationTime::Zero,
            duplicate_rate: 0.0,
            shuffle: false,
            clock_start: UNIX_EPOCH + CLOCK_START,
        }
    }
}

/// Collects the settings of a [`QueueConfig`]; nothing is checked before [`build`](Self::build).
#[derive(Clone, Debug, Default)]
#[must_use = "settings take effect with `build`"]
pub struct QueueConfigBuilder {
    config: QueueConfig,
}

impl QueueConfigBuilder {
    /// The queue's name, `orders-in` by default. One that ends in `.fifo` makes it a FIFO queue.
    pub fn queue_name(mut self, name: impl Into<String>) -> Self {
        self.config.queue_name = name.into();
        self
    }

    /// Whether it is a FIFO queue; its name then gets the suffix `.fifo`. Off by default.
    pub fn fifo(mut self, fifo: bool) -> Self {
        self.config.fifo = fifo;
        self
    }

    /// Whether a FIFO queue makes the deduplication id of the body where none is given. On by default.
    pub fn content_based_deduplication(mut self, on: bool) -> Self {
        self.config.content_based_deduplication = on;
        self
    }

    /// How long a received message stays invisible; 30 seconds by default.
    pub fn visibility_timeout(mut self, timeout: Duration) -> Self {
        self.config.visibility_timeout = timeout;
        self
    }

    /// After how many receives the next one moves a message to the dead-letter queue; 5 by default, `None` for a queue
    /// without one.
    pub fn max_receive_count(mut self, count: impl Into<Option<u32>>) -> Self {
        self.config.max_receive_count = count.into();
        self
    }

    /// How long after its SentTimestamp the queue drops a message; 4 days by default.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.config.retention = retention;
        self
    }

    /// How long after its SentTimestamp the dead-letter queue drops a message; 14 days by default.
    pub fn dead_letter_retention(mut self, retention: Duration) -> Self {
        self.config.dead_letter_retention = retention;
        self
    }

    /// The most messages in a batch; 10 by default.
    pub fn batch_size(mut self, size: usize) -> Self {
        self.config.batch_size = size;
        self
    }

    /// Whether the mapping has `ReportBatchItemFailures` among its `FunctionResponseTypes`; on by default. Without it
    /// the response is ignored and a function that returned has succeeded.
    pub fn report_batch_item_failures(mut self, on: bool) -> Self {
        self.config.report_batch_item_failures = on;
        self
    }

    /// The function's timeout, which consumers get as the time left; 5 seconds by default.
    pub fn function_timeout(mut self, timeout: Duration) -> Self {
        self.config.function_timeout = timeout;
        self
    }

    /// How an invocation moves the clock; [`InvocationTime::Zero`] by default.
    pub fn invocation_time(mut self, time: InvocationTime) -> Self {
        self.config.invocation_time = time;
        self
    }

    /// The probability that a delete does not take, so that the message is delivered again; 0 by default.
    ///
    /// On a standard queue a copy survives on one of its servers: it turns up within a visibility timeout, with the
    /// receive count that this server had seen, so that these deliveries alone never fill the count. On a FIFO queue
    /// the request to delete is lost: the message stays in flight to the end of its visibility timeout and holds back
    /// its group.
    pub fn duplicate_rate(mut self, rate: f64) -> Self {
        self.config.duplicate_rate = rate;
        self
    }

    /// Whether a standard queue delivers in random order; off by default, which is sending order.
    pub fn shuffle(mut self, on: bool) -> Self {
        self.config.shuffle = on;
        self
    }

    /// Where the virtual clock starts; 2026-01-05, 08:00 UTC by default, so that histories repeat.
    pub fn clock_start(mut self, start: SystemTime) -> Self {
        self.config.clock_start = start;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`ConfigError`] for the first setting that AWS would refuse.
    pub fn build(self) -> Result<QueueConfig, ConfigError> {
        let mut config = self.config;
        config.fifo |= config.queue_name.ends_with(FIFO_SUFFIX);
        if config.fifo && !config.queue_name.ends_with(FIFO_SUFFIX) {
            config.queue_name.push_str(FIFO_SUFFIX);
        }
        config.check()?;
        Ok(config)
    }
}

impl QueueConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let max = if self.fifo {
            BATCH_SIZE_MAX_FIFO
        } else {
            BATCH_SIZE_MAX_STANDARD
        };
        let batch_size = self.batch_size;
        if !(1..=max).contains(&batch_size) {
            return Err(ConfigError::BatchSize { batch_size, max });
        }
        let function_timeout = self.function_timeout;
        if function_timeout.is_zero() || function_timeout > FUNCTION_TIMEOUT_MAX {
            return Err(ConfigError::FunctionTimeout(function_timeout));
        }
        let visibility_timeout = self.visibility_timeout;
        if !(function_timeout..=VISIBILITY_TIMEOUT_MAX).contains(&visibility_timeout) {
            return Err(ConfigError::VisibilityTimeout {
                visibility_timeout,
                function_timeout,
            });
        }
        if let Some(count) = self.max_receive_count
            && !(1..=MAX_RECEIVE_COUNT_MAX).contains(&count)
        {
            return Err(ConfigError::MaxReceiveCount(count));
        }
        for retention in [self.retention, self.dead_letter_retention] {
            if !(RETENTION_MIN..=RETENTION_MAX).contains(&retention) {
                return Err(ConfigError::Retention(retention));
            }
        }
        if !(0.0..=1.0).contains(&self.duplicate_rate) {
            return Err(ConfigError::DuplicateRate(self.duplicate_rate));
        }
        Ok(())
    }
}
