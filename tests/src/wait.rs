//! An emulator takes its time, and tells nobody when it is done.

use std::time::{Duration, Instant};

/// For an emulator on a busy machine that has to redeliver, several times.
const PATIENCE: Duration = Duration::from_secs(150);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Returns as soon as `look` sees what is expected.
///
/// # Panics
/// Where it does not within two and a half minutes; tells what was seen instead.
pub async fn eventually<T>(what: &str, expected: T, mut look: impl AsyncFnMut() -> T)
where
    T: PartialEq + std::fmt::Debug,
{
    let until = Instant::now() + PATIENCE;
    loop {
        let seen = look().await;
        if seen == expected {
            return;
        }
        assert!(
            Instant::now() < until,
            "{what}: expected {expected:?}, and it stays at {seen:?}"
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
