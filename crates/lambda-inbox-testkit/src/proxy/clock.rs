//! Alarms that are exact to some microseconds.
//!
//! A runtime's timer counts whole milliseconds, too coarse to simulate a network of half a
//! millisecond. A thread asleep is woken by the kernel some 50 microseconds late (Linux's default
//! timer slack). So one thread asks to be woken that much too early, and spins if that was right to
//! the point: briefly, because on a small machine the processor it spins on is one that the
//! database is waiting for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// The kernel's usual lateness, by which to ask early.
const LATENESS: Duration = Duration::from_micros(50);
/// What is not worth sleeping for: an error of this size is the price of not spinning longer.
const SPIN_MAX: Duration = Duration::from_micros(25);

#[derive(Debug)]
pub(super) struct Clock {
    alarms: Arc<Alarms>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Alarms {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pending: BinaryHeap<Reverse<Alarm>>,
    /// Tells equal instants apart, first come first.
    next_number: u64,
    stopped: bool,
}

#[derive(Debug)]
struct Alarm {
    due: Instant,
    number: u64,
    wake: oneshot::Sender<()>,
}

impl Clock {
    pub(super) fn start() -> io::Result<Self> {
        let alarms = Arc::<Alarms>::default();
        let for_thread = Arc::clone(&alarms);
        let thread = std::thread::Builder::new()
            .name("proxy-clock".into())
            .spawn(move || while for_thread.ring_next() {})?;
        Ok(Self {
            alarms,
            thread: Some(thread),
        })
    }

    pub(super) async fn wait_until(&self, due: Instant) {
        if due <= Instant::now() {
            return;
        }
        let (wake, woken) = oneshot::channel();
        self.alarms.add(due, wake);
        // An error is a stopped clock, and then the proxy is on its way out.
        let _ = woken.await;
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.alarms.lock().stopped = true;
        self.alarms.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Alarms {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, due: Instant, wake: oneshot::Sender<()>) {
        let mut state = self.lock();
        let number = state.next_number;
        state.next_number += 1;
        state.pending.push(Reverse(Alarm { due, number, wake }));
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for the next alarm and rings it; false once the clock is stopped.
    fn ring_next(&self) -> bool {
        let Some(alarm) = self.sleep_until_next() else {
            return false;
        };
        while Instant::now() < alarm.due {
            std::hint::spin_loop();
        }
        // Nobody may be waiting any more.
        let _ = alarm.wake.send(());
        true
    }

    fn sleep_until_next(&self) -> Option<Alarm> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let Some(Reverse(next)) = state.pending.peek() else {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = next.due.saturating_duration_since(Instant::now());
            if left <= SPIN_MAX {
                return state.pending.pop().map(|Reverse(alarm)| alarm);
            }
            (state, _) = self
                .changed
                .wait_timeout(state, left.saturating_sub(LATENESS))
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Alarm {}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}
