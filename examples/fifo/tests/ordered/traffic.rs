//! A day of commands through a queue, with everything that can come between.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use lambda_inbox_testkit::queue::{Outgoing, QueueConfig, Simulator, Stats};
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::bank::Bank;
use crate::script::Script;
use crate::victim::{Strike, Victim};

const SEED: u64 = 1847;
/// Two and a half batches.
const ACCOUNTS: usize = 25;
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many visibility timeouts pass until the next commands are sent, which is also how many receives
/// a command that fails has ahead of the one behind it.
const LOOKS: usize = 5;
/// A command that always fails has used them up in the fourth round; no other comes near.
const RECEIVES_MAX: u32 = 16;
/// The rounds in which an account is put on hold; lifted in the next one.
const HOLDS: [usize; 3] = [1, 3, 6];
const POLLS_MAX: u64 = 500;

/// Some accounts get a command that breaks their rules or cannot be read, in the middle or at the end.
fn scripts(random: &mut ChaCha8Rng) -> Vec<Script> {
    let script = |n: usize| {
        let mut script = Script::open(format!("account-{n:02}"));
        for step in 0..6 {
            script.in_and_out(random);
            match (n % 5, step) {
                (1, 1) => script.bad_command(),
                (2, 2) => script.bad_text(format!("all that account {n} has")),
                _ => {}
            }
        }
        if n.is_multiple_of(2) {
            script.close();
        }
        if n % 5 == 3 {
            script.bad_command();
        }
        script
    };
    (0..ACCOUNTS).map(script).collect()
}

struct Day {
    bank: Bank,
    victim: Victim,
    queue: Simulator,
    random: ChaCha8Rng,
    /// The account of each MessageId.
    accounts: HashMap<String, String>,
    deleted: Vec<String>,
    on_hold: Option<String>,
    /// How often commands for accounts on hold came back.
    returned_on_hold: usize,
}

impl Day {
    async fn new(variables: &[(&str, &str)]) -> Self {
        let bank = Bank::open().await;
        let function = bank.function(variables).await;
        let config = QueueConfig::builder()
            .queue_name("account-commands")
            .fifo(true)
            .visibility_timeout(TIMEOUT)
            .function_timeout(TIMEOUT)
            .max_receive_count(RECEIVES_MAX)
            .duplicate_rate(0.05)
            .build()
            .unwrap();
        Self {
            victim: Victim::new(function, Arc::clone(&bank.proxy), SEED),
            bank,
            queue: Simulator::new(config, SEED),
            random: ChaCha8Rng::seed_from_u64(SEED),
            accounts: HashMap::new(),
            deleted: Vec::new(),
            on_hold: None,
            returned_on_hold: 0,
        }
    }

    async fn run(&mut self, scripts: &mut [Script]) -> Stats {
        let mut round = 0;
        while scripts.iter().any(|it| it.sent < it.bodies.len()) {
            self.change_hold(round, scripts).await;
            self.send(scripts);
            for strike in [Strike::Kill, Strike::Cut] {
                self.victim.strike = Some(strike);
                self.poll().await;
            }
            for _ in 0..LOOKS {
                while self.poll().await {}
                self.pass_time();
            }
            round += 1;
        }
        let summary = self
            .queue
            .run_until_drained(&mut self.victim, POLLS_MAX)
            .await;
        assert!(summary.drained, "{summary:?}");
        summary.stats
    }

    /// The next commands to each account.
    fn send(&mut self, scripts: &mut [Script]) {
        for script in scripts {
            for body in script.burst(&mut self.random) {
                let message = Outgoing::new(body).group(&script.account);
                let id = self.queue.send(message).unwrap();
                self.accounts.insert(id, script.account.clone());
            }
        }
    }

    /// Whether there was anything to deliver.
    async fn poll(&mut self) -> bool {
        let Some(report) = self.queue.poll_once(&mut self.victim).await else {
            return false;
        };
        let on_hold = |id: &&String| self.accounts.get(*id) == self.on_hold.as_ref();
        self.returned_on_hold += report.returned.iter().filter(on_hold).count();
        self.deleted.extend(report.deleted);
        true
    }

    /// One visibility timeout, in which a command that was done with long ago turns up again.
    fn pass_time(&mut self) {
        if let Some(id) = self.deleted.choose(&mut self.random) {
            self.queue.deliver_again(id);
        }
        self.queue.advance(TIMEOUT);
    }

    async fn change_hold(&mut self, round: usize, scripts: &[Script]) {
        if let Some(account) = self.on_hold.take() {
            self.bank.set_hold(&account, false).await;
        }
        if HOLDS.contains(&round) {
            let account = scripts.choose(&mut self.random).unwrap().account.clone();
            self.bank.set_hold(&account, true).await;
            self.on_hold = Some(account);
        }
    }
}

#[tokio::test]
async fn each_account_shows_its_commands_once_and_in_sending_order_whatever_goes_wrong() {
    for (scope, connections) in [("per-message", "4"), ("per-batch", "1")] {
        let mut scripts = scripts(&mut ChaCha8Rng::seed_from_u64(SEED));
        let mut day = Day::new(&[
            ("LAMBDA_INBOX_SCOPE", scope),
            ("LAMBDA_INBOX_CONNECTIONS", connections),
        ])
        .await;
        let stats = day.run(&mut scripts).await;

        for script in &scripts {
            let account = &script.account;
            let found = day.bank.entries(account).await;
            assert_eq!(found, script.expected, "{scope}: {account}");
            let found = day.bank.account(account).await;
            assert_eq!(found, (script.balance, script.closed), "{scope}: {account}");
        }
        let (keys, entries) = day.bank.keys_and_entries().await;
        assert_eq!(keys, entries, "{scope}");

        let poison: BTreeSet<&str> = scripts
            .iter()
            .flat_map(|script| script.poison.iter().map(String::as_str))
            .collect();
        let dead = day.queue.dead_letters();
        assert_eq!(dead.len(), poison.len(), "{scope}");
        let dead: BTreeSet<&str> = dead.iter().map(|message| message.body()).collect();
        assert_eq!(dead, poison, "{scope}");

        // All of it did go wrong.
        assert!(stats.crashes > 1, "{scope}: {stats:?}");
        assert!(day.victim.cuts > 1, "{scope}: {stats:?}");
        assert!(stats.duplicates_injected > 20, "{scope}: {stats:?}");
        assert!(day.returned_on_hold >= HOLDS.len(), "{scope}");
    }
}
