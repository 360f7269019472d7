//! What is sent to one account, and what is to become of it.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

const BURST_MAX: usize = 3;

/// The commands to one account, in sending order.
pub(crate) struct Script {
    pub(crate) account: String,
    pub(crate) bodies: Vec<String>,
    /// The numbers of those that are to be carried out.
    pub(crate) expected: Vec<i64>,
    /// Those that never can be.
    pub(crate) poison: Vec<String>,
    /// How many were sent.
    pub(crate) sent: usize,
    /// At the end, in cents.
    pub(crate) balance: i64,
    pub(crate) closed: bool,
}

impl Script {
    pub(crate) fn open(account: String) -> Self {
        let mut script = Self {
            account,
            bodies: Vec::new(),
            expected: Vec::new(),
            poison: Vec::new(),
            sent: 0,
            balance: 0,
            closed: false,
        };
        script.good("open", 0);
        script
    }

    /// A deposit, and a withdrawal of more than there was before it.
    pub(crate) fn in_and_out(&mut self, random: &mut ChaCha8Rng) {
        let amount = random.random_range(2..1000);
        let left = random.random_range(1..amount);
        self.good("deposit", amount);
        self.good("withdraw", self.balance + amount - left);
        self.balance = left;
    }

    /// Pays out what is left, and closes.
    pub(crate) fn close(&mut self) {
        let rest = std::mem::take(&mut self.balance);
        self.good("withdraw", rest);
        self.good("close", 0);
        self.closed = true;
    }

    /// A command that breaks a rule of the account, wherever it stands behind the opening.
    pub(crate) fn bad_command(&mut self) {
        let body = self.body("withdraw", i64::from(u32::MAX));
        self.bad_text(body);
    }

    /// A body that cannot be read.
    pub(crate) fn bad_text(&mut self, body: String) {
        self.bodies.push(body.clone());
        self.poison.push(body);
    }

    /// The next few commands, the last of which is the only one that may be poison: what is received
    /// together with that every time shares its fate.
    pub(crate) fn burst(&mut self, random: &mut ChaCha8Rng) -> Vec<String> {
        let mut burst = Vec::new();
        for _ in 0..random.random_range(1..=BURST_MAX) {
            let Some(body) = self.bodies.get(self.sent) else {
                break;
            };
            self.sent += 1;
            burst.push(body.clone());
            if self.poison.contains(body) {
                break;
            }
        }
        burst
    }

    fn good(&mut self, action: &str, amount: i64) {
        self.expected.push(self.next_number());
        self.bodies.push(self.body(action, amount));
    }

    fn body(&self, action: &str, amount: i64) -> String {
        let (account, number) = (&self.account, self.next_number());
        json!({ "account": account, "number": number, "action": action, "amount": amount })
            .to_string()
    }

    fn next_number(&self) -> i64 {
        1 + self.bodies.len() as i64
    }
}
