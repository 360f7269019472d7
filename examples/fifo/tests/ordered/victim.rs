//! The function, struck in the middle of a batch now and then.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use lambda_inbox_testkit::consumer::{Consumer, Invocation};
use lambda_inbox_testkit::proxy::Proxy;
use lambda_inbox_testkit::runtime::LocalRuntime;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// The handler names the account in each of its statements, and nothing else does.
const STATEMENTS: usize = 3;

/// What happens to the function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Strike {
    /// SIGKILL.
    Kill,
    /// It loses its connections.
    Cut,
}

pub(crate) struct Victim {
    function: LocalRuntime,
    proxy: Arc<Proxy>,
    random: ChaCha8Rng,
    /// In the next invocation.
    pub(crate) strike: Option<Strike>,
    pub(crate) cuts: u64,
}

impl Victim {
    pub(crate) fn new(function: LocalRuntime, proxy: Arc<Proxy>, seed: u64) -> Self {
        Self {
            function,
            proxy,
            random: ChaCha8Rng::seed_from_u64(seed),
            strike: None,
            cuts: 0,
        }
    }

    /// The account of a command in the event, picked at random.
    fn account(&mut self, event: &Value) -> String {
        let records = event["Records"].as_array().unwrap();
        let record = &records[self.random.random_range(0..records.len())];
        let group = &record["attributes"]["MessageGroupId"];
        group.as_str().unwrap().to_owned()
    }
}

impl Consumer for Victim {
    /// A command that does not run, such as a duplicate, is never struck.
    async fn invoke(&mut self, event: Value, time_left: Duration) -> Invocation {
        let Some(strike) = self.strike.take() else {
            return self.function.invoke_within(&event, time_left).await;
        };
        let account = self.account(&event);
        let earlier = self.random.random_range(0..STATEMENTS);
        let (proxy, killer) = (&self.proxy, self.function.killer());
        let cuts = &mut self.cuts;
        let strike = async {
            let mut hold = proxy.hold_before(account.as_bytes());
            for _ in 0..earlier {
                hold.held().await;
                // Before the other is let go, so that nothing slips through between them.
                hold = proxy.hold_before(account.as_bytes());
            }
            hold.held().await;
            match strike {
                Strike::Kill => {
                    killer.kill();
                }
                Strike::Cut => {
                    proxy.cut();
                    *cuts += 1;
                }
            }
            pending().await
        };
        tokio::select! {
            () = strike => unreachable!("it is pending"),
            invocation = self.function.invoke_within(&event, time_left) => invocation,
        }
    }
}
