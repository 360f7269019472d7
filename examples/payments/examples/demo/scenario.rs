//! What is sent, and what is done to it; all of it drawn from the seed.

use std::collections::BTreeMap;
use std::fmt;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

const ACCOUNTS: usize = 50;
/// In cents.
const AMOUNT_MAX: i64 = 10_000;
/// Opened only after payments from it have failed.
pub(crate) const LATE_ACCOUNT: &str = "late";
/// One payment in so many comes from the late account.
const LATE_SHARE: usize = 50;
/// One payment in so many is delivered twice.
const TWICE_SHARE: usize = 10;
pub(crate) const KILLS: usize = 8;
/// The late account is opened when one of its payments has come back so often.
pub(crate) const LATE_FAILURES: u32 = 2;
/// A good message is received once more after every failure. Each of the kills hits it at most once,
/// and a payment from the late account fails a few times more; a second copy that the queue makes
/// starts from what the first one had. So with this bound nothing good is ever dead-lettered, while
/// poison, which fails for ever, always is.
pub(crate) const RECEIVES_MAX: u32 = KILLS as u32 + LATE_FAILURES + 2;

/// One message's content.
#[derive(Clone, Debug)]
pub(crate) struct Payment {
    pub(crate) id: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) amount: i64,
}

#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) payments: Vec<Payment>,
    /// Bodies that can never be processed.
    pub(crate) poison: Vec<String>,
    /// Which of the payments the queue delivers twice, by index.
    pub(crate) twice: Vec<usize>,
    /// How many payments are booked when the function is killed, in rising order.
    pub(crate) kills: Vec<usize>,
}

impl Scenario {
    pub(crate) fn new(messages: u32, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let count = messages as usize;
        let payments = (0..count).map(|n| payment(n, &mut random)).collect();
        let mut twice: Vec<usize> = (0..count).collect();
        twice.shuffle(&mut random);
        twice.truncate(count.div_ceil(TWICE_SHARE));
        // None in the last tenth, so that enough work is left to be interrupted.
        let mut kills: Vec<usize> = (0..KILLS)
            .map(|_| random.random_range(0..=count * 9 / 10))
            .collect();
        kills.sort_unstable();
        Self {
            seed,
            payments,
            poison: vec![
                "this is not JSON".to_owned(),
                json!({ "payment_id": "no-receiver", "from": account(0), "amount": 100 })
                    .to_string(),
                json!({ "payment_id": "nothing", "from": account(0), "to": account(1), "amount": 0 })
                    .to_string(),
            ],
            twice,
            kills,
        }
    }

    /// In cents. Enough to book every payment several times over, so that only the late account fails.
    pub(crate) fn opening_balance(&self) -> i64 {
        let payments = i64::try_from(self.payments.len()).unwrap_or(i64::MAX);
        payments.saturating_mul(10 * AMOUNT_MAX)
    }

    /// The accounts that are open from the start.
    pub(crate) fn accounts() -> Vec<String> {
        (0..ACCOUNTS).map(account).collect()
    }

    /// What every account must hold once each payment was booked exactly once.
    pub(crate) fn balances(&self) -> BTreeMap<String, i64> {
        let opening = self.opening_balance();
        let mut balances: BTreeMap<String, i64> = Self::accounts()
            .into_iter()
            .chain([LATE_ACCOUNT.to_owned()])
            .map(|account| (account, opening))
            .collect();
        for payment in &self.payments {
            *balances.entry(payment.from.clone()).or_default() -= payment.amount;
            *balances.entry(payment.to.clone()).or_default() += payment.amount;
        }
        balances
    }
}

impl Payment {
    pub(crate) fn body(&self) -> String {
        let Self {
            id,
            from,
            to,
            amount,
        } = self;
        json!({ "payment_id": id, "from": from, "to": to, "amount": amount }).to_string()
    }

    pub(crate) fn is_late(&self) -> bool {
        self.from == LATE_ACCOUNT
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = self.payments.iter().filter(|p| p.is_late()).count();
        write!(
            f,
            "{} payments, {} of them delivered twice and {late} too early to succeed, \
             {} poison messages, {} kills (seed {})",
            self.payments.len(),
            self.twice.len(),
            self.poison.len(),
            self.kills.len(),
            self.seed,
        )
    }
}

fn payment(n: usize, random: &mut ChaCha8Rng) -> Payment {
    let from = random.random_range(0..ACCOUNTS);
    let to = (from + random.random_range(1..ACCOUNTS)) % ACCOUNTS;
    let late = n.is_multiple_of(LATE_SHARE);
    Payment {
        id: format!("payment-{n}"),
        from: if late {
            LATE_ACCOUNT.to_owned()
        } else {
            account(from)
        },
        to: account(to),
        amount: random.random_range(1..=AMOUNT_MAX),
    }
}

fn account(n: usize) -> String {
    format!("account-{n:02}")
}
