//! Commands to bank accounts, carried out in the order in which they were sent: a withdrawal needs the
//! deposit before it, and nothing may come after the close.
//!
//! The queue is a FIFO queue, and its message group is the account. A batch mixes groups. Within one of
//! them the inbox runs the commands one after the other; groups run side by side, on up to
//! `LAMBDA_INBOX_CONNECTIONS` connections. A command that fails stops its own group and no other: what
//! stands behind it is reported unrun, so SQS delivers all of it again, in order.
//!
//! | the command | here | then |
//! |---|---|---|
//! | is for an account on hold | fails, and stops its group | waits in the queue until the hold is lifted |
//! | breaks a rule of the account, or cannot be read | is refused for good, and stops its group | goes to the dead-letter queue; the group goes on |
//! | is delivered again | is a duplicate | is acknowledged; the handler does not run |
//!
//! Each command has a number, which rises within its account. It has nothing to do with duplicates:
//! those never reach the handler. It shows that order was lost before the queue, such as by a producer
//! with two threads, or after it, such as by a redrive of a command that others have overtaken. A gap
//! is no fault: a command in the dead-letter queue leaves one.
//!
//! # Running it
//!
//! The environment is that of every consumer (`DATABASE_URL`, `LAMBDA_INBOX_...`). Before the first
//! message, migrate the inbox and apply `schema.sql`. The queue's mapping needs
//! `ReportBatchItemFailures`, and the queue a dead-letter queue, also a FIFO one.
//!
//! `maxReceiveCount` deserves thought. SQS counts a receive for every message of a batch, also for
//! those that stood behind a failed one and did not run. A command that was received together with a
//! hopeless one every time has used up its receives when that one has, and follows it to the
//! dead-letter queue untouched. A mapping with a batch size of 1 rules that out; a larger batch size
//! asks for a `maxReceiveCount` well above the usual five, and for a redrive in order.

mod account;

use account::{Account, Command, Refusal};
use lambda_inbox::emf::Emf;
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{HandlerError, Inbox, Message};
use lambda_runtime::tower::Layer;

/// All of it commits together with the message's key, or none of it does.
async fn carry_out(
    message: &Message<Command>,
    conn: &mut PgConnection,
) -> Result<(), HandlerError> {
    let command = &message.body;
    if message.group_id() != Some(&command.account) {
        let refusal = "the message group is not the account, so nothing keeps its order";
        return Err(HandlerError::permanent(refusal));
    }
    let before = find(&command.account, conn).await?;
    let after = account::after(command, before).map_err(|refusal| match refusal {
        Refusal::OnHold => HandlerError::retry(refusal),
        Refusal::Rule(rule) => HandlerError::permanent(rule),
    })?;
    store(&command.account, after, conn).await?;
    log(
        command,
        after.balance - before.map_or(0, |it| it.balance),
        conn,
    )
    .await?;
    Ok(())
}

async fn find(id: &str, conn: &mut PgConnection) -> Result<Option<Account>, sqlx::Error> {
    let row: Option<(i64, i64, bool, bool)> = sqlx::query_as(
        "SELECT balance, last_number, closed, on_hold FROM account WHERE id = $1 FOR UPDATE",
    )
    .bind(id)
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|(balance, last_number, closed, on_hold)| Account {
        balance,
        last_number,
        closed,
        on_hold,
    }))
}

async fn store(id: &str, account: Account, conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO account (id, balance, last_number, closed) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (id) DO UPDATE SET balance = excluded.balance, \
         last_number = excluded.last_number, closed = excluded.closed",
    )
    .bind(id)
    .bind(account.balance)
    .bind(account.last_number)
    .bind(account.closed)
    .execute(conn)
    .await?;
    Ok(())
}

async fn log(command: &Command, change: i64, conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO account_entry (account, seq, number, change) \
         SELECT $1, coalesce(max(seq), 0) + 1, $2, $3 FROM account_entry WHERE account = $1",
    )
    .bind(&command.account)
    .bind(command.number)
    .bind(change)
    .execute(conn)
    .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let inbox = Inbox::from_env("account-commands")?;
    let metrics = Emf::install()?;
    lambda_inbox::run(metrics.layer(inbox.handler(carry_out))).await
}
