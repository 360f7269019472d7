//! The rules of an account. Every one of them depends on what was carried out before, which is why the
//! commands come through a FIFO queue.

use serde::Deserialize;
use std::num::NonZeroU32;

/// The body of a message.
#[derive(Debug, Deserialize)]
pub(crate) struct Command {
    pub(crate) account: String,
    /// Rises within the account.
    pub(crate) number: i64,
    #[serde(flatten)]
    pub(crate) action: Action,
}

/// Amounts are in cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum Action {
    Open,
    Deposit { amount: NonZeroU32 },
    Withdraw { amount: NonZeroU32 },
    Close,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// In cents.
    pub(crate) balance: i64,
    pub(crate) last_number: i64,
    pub(crate) closed: bool,
    pub(crate) on_hold: bool,
}

/// Why a command is not carried out.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// For now.
    #[error("the account is on hold")]
    OnHold,
    /// For good: with the order kept, nothing that could mend it comes before.
    #[error(transparent)]
    Rule(#[from] Rule),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rule {
    #[error("the account was never opened")]
    NeverOpened,
    #[error("the account is open already")]
    OpenAlready,
    #[error("the account is closed")]
    Closed,
    #[error("a later command has been carried out already: {last}, and this one is {number}")]
    Order { last: i64, number: i64 },
    #[error("the account does not hold enough")]
    Cover,
    #[error("the account still holds money")]
    NotEmpty,
}

/// The account after the command.
pub(crate) fn after(command: &Command, before: Option<Account>) -> Result<Account, Refusal> {
    let account = match (before, command.action == Action::Open) {
        (None, true) => Account::default(),
        (None, false) => return Err(Rule::NeverOpened.into()),
        (Some(account), _) if account.on_hold => return Err(Refusal::OnHold),
        (Some(_), true) => return Err(Rule::OpenAlready.into()),
        (Some(account), false) => account,
    };
    if account.closed {
        return Err(Rule::Closed.into());
    }
    let (last, number) = (account.last_number, command.number);
    if number <= last {
        return Err(Rule::Order { last, number }.into());
    }
    let balance = match command.action {
        Action::Open => 0,
        Action::Deposit { amount } => account.balance + i64::from(amount.get()),
        Action::Withdraw { amount } => account.balance - i64::from(amount.get()),
        Action::Close => account.balance,
    };
    let closed = command.action == Action::Close;
    if balance < 0 {
        return Err(Rule::Cover.into());
    }
    if closed && balance > 0 {
        return Err(Rule::NotEmpty.into());
    }
    Ok(Account {
        balance,
        last_number: number,
        closed,
        on_hold: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(number: i64, action: Action) -> Command {
        Command {
            account: "a".to_owned(),
            number,
            action,
        }
    }

    fn amount(cents: u32) -> NonZeroU32 {
        NonZeroU32::new(cents).unwrap()
    }

    fn open(balance: i64) -> Account {
        Account {
            balance,
            last_number: 5,
            ..Account::default()
        }
    }

    #[test]
    fn a_command_is_carried_out_where_the_account_stands_as_it_expects() {
        let deposit = Action::Deposit {
            amount: amount(100),
        };
        let withdraw = Action::Withdraw {
            amount: amount(100),
        };
        for (before, number, action, balance, closed) in [
            (None, 1, Action::Open, 0, false),
            (Some(open(0)), 6, deposit, 100, false),
            (Some(open(50)), 9, deposit, 150, false),
            (Some(open(100)), 6, withdraw, 0, false),
            (Some(open(0)), 6, Action::Close, 0, true),
        ] {
            let expected = Account {
                balance,
                last_number: number,
                closed,
                on_hold: false,
            };
            let found = after(&command(number, action), before);
            assert_eq!(found, Ok(expected), "{action:?} after {before:?}");
        }
    }

    #[test]
    fn a_command_that_comes_at_the_wrong_time_is_refused_with_the_rule_that_it_breaks() {
        let withdraw = Action::Withdraw {
            amount: amount(100),
        };
        let closed = Account {
            closed: true,
            ..open(0)
        };
        let on_hold = Account {
            on_hold: true,
            ..open(100)
        };
        let order = |number| Rule::Order { last: 5, number };
        for (before, number, action, refusal) in [
            (None, 1, withdraw, Rule::NeverOpened.into()),
            (None, 1, Action::Close, Rule::NeverOpened.into()),
            (Some(open(0)), 6, Action::Open, Rule::OpenAlready.into()),
            (Some(closed), 6, Action::Open, Rule::OpenAlready.into()),
            (Some(closed), 6, withdraw, Rule::Closed.into()),
            (Some(closed), 6, Action::Close, Rule::Closed.into()),
            (Some(open(100)), 5, withdraw, order(5).into()),
            (Some(open(100)), 4, withdraw, order(4).into()),
            (Some(open(99)), 6, withdraw, Rule::Cover.into()),
            (Some(open(1)), 6, Action::Close, Rule::NotEmpty.into()),
            (Some(on_hold), 6, withdraw, Refusal::OnHold),
            (Some(on_hold), 4, withdraw, Refusal::OnHold),
        ] {
            let found = after(&command(number, action), before);
            assert_eq!(found, Err(refusal), "{action:?} after {before:?}");
        }
    }
}
