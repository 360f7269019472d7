//! One batch: what runs, in which order, and what goes back.

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::event::{Record, event};
use lambda_inbox_testkit::runtime::LocalRuntime;
use serde_json::{Value, json};
use sqlx::Connection;

use crate::bank::Bank;

const NONE: [&str; 0] = [];

/// A command, in the group of its account. Its id is account and number.
fn command(account: &str, number: i64, action: &str, amount: u32) -> Record {
    let body = json!({ "account": account, "number": number, "action": action, "amount": amount });
    raw(account, number, &body.to_string())
}

fn raw(account: &str, number: i64, body: &str) -> Record {
    Record::new(body)
        .queue("account-commands.fifo")
        .message_id(format!("{account}{number}"))
        .group(account)
        .deduplication_id(format!("{account}{number}"))
}

fn deposit(account: &str, number: i64) -> Record {
    command(account, number, "deposit", 100)
}

fn withdraw(account: &str, number: i64) -> Record {
    command(account, number, "withdraw", 100)
}

fn close(account: &str, number: i64) -> Record {
    command(account, number, "close", 0)
}

/// Delivers the records and returns the ids that go back.
async fn deliver(function: &mut LocalRuntime, records: Vec<Record>) -> Vec<String> {
    failures(&function.invoke(&event(records)).await)
}

fn failures(invocation: &Invocation) -> Vec<String> {
    let Invocation::Response(response) = invocation else {
        panic!("a response was expected, not {invocation:?}");
    };
    let response: Value = serde_json::from_slice(response).unwrap();
    let failures = response["batchItemFailures"].as_array().unwrap();
    failures
        .iter()
        .map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned())
        .collect()
}

/// Account "a" is the one that something is wrong with; "b" goes on in every case.
#[tokio::test]
async fn a_command_that_fails_stops_its_own_group_and_no_other() {
    let cases: [(&str, Vec<Record>, &[&str]); 9] = [
        (
            "nothing is wrong",
            vec![deposit("a", 2), withdraw("a", 3), close("a", 4)],
            &[],
        ),
        (
            "a gap in the numbers is no fault",
            vec![deposit("a", 5), withdraw("a", 9)],
            &[],
        ),
        (
            "a withdrawal before its deposit",
            vec![withdraw("a", 2), deposit("a", 3)],
            &["a2", "a3"],
        ),
        (
            "a command that was overtaken",
            vec![deposit("a", 3), deposit("a", 2), withdraw("a", 4)],
            &["a2", "a4"],
        ),
        (
            "a command after the close",
            vec![close("a", 2), deposit("a", 3), deposit("a", 4)],
            &["a3", "a4"],
        ),
        (
            "an account that was never opened",
            vec![deposit("z", 2), deposit("z", 3)],
            &["z2", "z3"],
        ),
        (
            "a body that cannot be read",
            vec![deposit("a", 2), raw("a", 3, "deposit 100"), close("a", 4)],
            &["a3", "a4"],
        ),
        (
            "a deposit of nothing",
            vec![command("a", 2, "deposit", 0), deposit("a", 3)],
            &["a2", "a3"],
        ),
        (
            "a group that is not the account",
            vec![deposit("a", 2).group("c"), deposit("a", 3)],
            &["a2"],
        ),
    ];
    for scope in ["per-message", "per-batch"] {
        let mut bank = Bank::open().await;
        let mut function = bank.function(&[("LAMBDA_INBOX_SCOPE", scope)]).await;
        for (case, records, reported) in &cases {
            bank.clear().await;
            bank.with_account("a", 0).await;
            bank.with_account("b", 0).await;
            let others = [deposit("b", 2), withdraw("b", 3), deposit("b", 4)];
            let both = interleave(records.clone(), others.to_vec());
            let found = deliver(&mut function, both).await;
            assert_eq!(found, *reported, "{scope}: {case}");
            assert_eq!(bank.entries("b").await, [2, 3, 4], "{scope}: {case}");
            let expected = (records.len() + others.len() - reported.len()) as i64;
            let found = bank.keys_and_entries().await;
            assert_eq!(found, (expected, expected), "{scope}: {case}");
        }
    }
}

#[tokio::test]
async fn commands_for_an_account_on_hold_wait_and_are_carried_out_in_order_once_it_is_lifted() {
    let mut bank = Bank::open().await;
    bank.with_account("a", 0).await;
    bank.with_account("b", 0).await;
    bank.set_hold("a", true).await;
    let mut function = bank.function(&[]).await;
    let batch = || {
        let (a, b) = ([deposit("a", 2), withdraw("a", 3)], [deposit("b", 2)]);
        interleave(a.to_vec(), b.to_vec())
    };
    for _ in 0..2 {
        assert_eq!(deliver(&mut function, batch()).await, ["a2", "a3"]);
        assert_eq!(bank.entries("a").await, [0; 0]);
        assert_eq!(bank.entries("b").await, [2]);
    }

    bank.set_hold("a", false).await;
    assert_eq!(deliver(&mut function, batch()).await, NONE);
    assert_eq!(bank.entries("a").await, [2, 3]);
    assert_eq!(bank.entries("b").await, [2]);
}

#[tokio::test]
async fn a_group_that_waits_for_a_lock_holds_up_no_other() {
    let mut bank = Bank::open().await;
    bank.with_account("a", 0).await;
    bank.with_account("b", 0).await;
    let mut function = bank.function(&[("LAMBDA_INBOX_CONNECTIONS", "2")]).await;
    let mut other = bank.database.connect().await.unwrap();
    let mut lock = other.begin().await.unwrap();
    sqlx::query("SELECT FROM account WHERE id = 'a' FOR UPDATE")
        .execute(&mut *lock)
        .await
        .unwrap();

    let a = vec![deposit("a", 2), withdraw("a", 3)];
    let b = vec![deposit("b", 2), withdraw("b", 3), close("b", 4)];
    let unlock = async {
        bank.wait_for_entries("b", 3).await;
        assert_eq!(bank.entries("a").await, [0; 0]);
        lock.rollback().await.unwrap();
    };
    let (reported, ()) = tokio::join!(deliver(&mut function, interleave(a, b)), unlock);
    assert_eq!(reported, NONE);
    assert_eq!(bank.entries("a").await, [2, 3]);
    assert_eq!(bank.entries("b").await, [2, 3, 4]);
}

fn interleave(left: Vec<Record>, right: Vec<Record>) -> Vec<Record> {
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let mut both = Vec::new();
    loop {
        let pair = [left.next(), right.next()];
        if pair.iter().all(Option::is_none) {
            return both;
        }
        both.extend(pair.into_iter().flatten());
    }
}
