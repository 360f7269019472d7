//! What is measured, and under which name it is written down.

/// Of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Metric {
    /// Milliseconds from the start of the process until it asks for an event.
    Next,
    /// Milliseconds from the start of the process until the response to its first event, of one message.
    Commit,
    /// Bytes of the binary, stripped.
    Binary,
    /// Bytes of the zip with that binary alone.
    Zip,
    /// Resident bytes of a process that waits for its first event.
    IdleMemory,
    /// Resident bytes after 10,000 messages in batches of 10.
    MemoryAfter10000,
}

impl Metric {
    /// In the order of the table.
    pub(super) const ALL: [Self; 6] = [
        Self::Next,
        Self::Commit,
        Self::Binary,
        Self::Zip,
        Self::IdleMemory,
        Self::MemoryAfter10000,
    ];

    /// Of the absolute values; a function's name follows.
    pub(super) fn value_name(self) -> &'static str {
        match self {
            Self::Next => "cold_next_ms",
            Self::Commit => "cold_commit_ms",
            Self::Binary => "binary_size_bytes",
            Self::Zip => "zip_size_bytes",
            Self::IdleMemory => "idle_memory_bytes",
            Self::MemoryAfter10000 => "memory_after_10000_bytes",
        }
    }

    /// Of the function without the AWS SDK, by the one written by hand.
    pub(super) fn ratio_name(self) -> &'static str {
        match self {
            Self::Next => "cold_next_ratio",
            Self::Commit => "cold_commit_ratio",
            Self::Binary => "binary_size_ratio",
            Self::Zip => "zip_size_ratio",
            Self::IdleMemory => "idle_memory_ratio",
            Self::MemoryAfter10000 => "memory_after_10000_ratio",
        }
    }

    /// For people.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Next => "to first /next\nms",
            Self::Commit => "to first commit\nms",
            Self::Binary => "binary\nMB",
            Self::Zip => "zip\nMB",
            Self::IdleMemory => "memory idle\nMB",
            Self::MemoryAfter10000 => "after 10,000\nMB",
        }
    }

    /// In the unit of the heading.
    pub(super) fn display(self, value: f64) -> String {
        match self {
            Self::Next | Self::Commit => format!("{value:.1}"),
            Self::Binary | Self::Zip | Self::IdleMemory | Self::MemoryAfter10000 => {
                format!("{:.2}", value / 1e6)
            }
        }
    }
}
