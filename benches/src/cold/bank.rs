//! What the functions are fed with and book into: payments from a till to a hundred shops.

use lambda_inbox::Schema;
use lambda_inbox_testkit::event::{Record, event};
use lambda_inbox_testkit::postgres::Cluster;
use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::postgres::PgConnection;

use crate::arena::Rows;
use crate::error::BenchError;

const SHOPS: usize = 100;

/// The payments example's own tables, and the inbox of the function written by hand.
const TABLES: [&str; 2] = [
    include_str!("../../../examples/payments/schema.sql"),
    "CREATE TABLE inbox (
        consumer text NOT NULL,
        message_id text NOT NULL,
        processed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (message_id, consumer)
    );
    INSERT INTO account (id, balance) SELECT 'till', 1000000000
        UNION ALL SELECT 'shop-' || n, 0 FROM generate_series(0, 99) AS n;",
];

/// The server stops when this is dropped.
pub(super) struct Bank {
    cluster: Cluster,
    admin: PgConnection,
    sent: usize,
}

impl Bank {
    pub(super) async fn open() -> Result<Self, BenchError> {
        let cluster = Cluster::start().await?;
        let mut admin = PgConnection::connect_with(&cluster.options()).await?;
        for statements in TABLES {
            sqlx::raw_sql(statements).execute(&mut admin).await?;
        }
        lambda_inbox::migrate(&mut admin, &Schema::default()).await?;
        Ok(Self {
            cluster,
            admin,
            sent: 0,
        })
    }

    /// For the functions.
    pub(super) fn url(&self) -> String {
        self.cluster.url()
    }

    /// An event of payments that nobody has seen before.
    pub(super) fn payments(&mut self, count: usize) -> Value {
        let from = self.sent;
        self.sent += count;
        event((from..self.sent).map(payment))
    }

    /// # Errors
    /// [`BenchError::Mismatch`] unless there is one key and one booking for each payment.
    pub(super) async fn expect_all(&mut self) -> Result<(), BenchError> {
        let sql = "SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM lambda_inbox.inbox), \
                   (SELECT count(DISTINCT payment_id) FROM payment \
                    HAVING count(*) = count(DISTINCT payment_id))";
        let (inbox, effects): (i64, Option<i64>) =
            sqlx::query_as(sql).fetch_one(&mut self.admin).await?;
        let rows = Rows {
            inbox,
            effects: effects.unwrap_or_default(),
        };
        let expected = i64::try_from(self.sent).unwrap_or(i64::MAX);
        match rows.inbox == expected && rows.effects == expected {
            true => Ok(()),
            false => Err(BenchError::Mismatch {
                sent: self.sent,
                rows,
            }),
        }
    }
}

fn payment(number: usize) -> Record {
    let body = json!({
        "payment_id": format!("payment-{number}"),
        "from": "till",
        "to": format!("shop-{}", number % SHOPS),
        "amount": 1,
    });
    Record::new(body.to_string())
}
