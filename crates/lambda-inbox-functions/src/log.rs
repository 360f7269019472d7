//! The log of a function's process.

use tracing::level_filters::LevelFilter;

/// Installs a subscriber that writes JSON lines, unless one is installed already. Its level is
/// `AWS_LAMBDA_LOG_LEVEL`, else `info`.
///
/// Each line has its time: Lambda takes one without for INFO, and drops it where the function's level is
/// above that. Source: AWS Lambda Developer Guide, "Log-level filtering".
pub fn install_log() {
    let level = std::env::var("AWS_LAMBDA_LOG_LEVEL").unwrap_or_default();
    // Where another subscriber is installed, that is what the user wants.
    let _ = tracing_subscriber::fmt()
        .json()
        // The list of spans has it already.
        .with_current_span(false)
        .with_max_level(filter(&level))
        .try_init();
}

/// Not beyond DEBUG: lambda_runtime writes whole events at TRACE, and CloudFormation's has a signed URL.
fn filter(level: &str) -> LevelFilter {
    let level = match level.to_ascii_lowercase().as_str() {
        "" => LevelFilter::INFO,
        "fatal" => LevelFilter::ERROR,
        known => known.parse().unwrap_or(LevelFilter::INFO),
    };
    level.min(LevelFilter::DEBUG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambdas_levels_are_taken_and_events_never_written() {
        for (level, expected) in [
            ("", LevelFilter::INFO),
            ("WARN", LevelFilter::WARN),
            ("FATAL", LevelFilter::ERROR),
            ("debug", LevelFilter::DEBUG),
            ("TRACE", LevelFilter::DEBUG),
        ] {
            assert_eq!(filter(level), expected, "{level}");
        }
    }
}
