//! Partners resend. A batch job is restarted, an AS2 receipt gets lost, a VAN delivers twice, and the
//! same interchange arrives as a new message with a new MessageId, perhaps with other line ends. An
//! accounting table must show it once.
//!
//! This hub takes raw EDIFACT interchanges from an SQS queue and books one row of `accounting_entry`
//! for each INVOIC in them. Its key is the identity that the standard gives an interchange: sender,
//! receiver, control reference (UNB note 2), and whether it is a test. So
//!
//! - a resend is a duplicate, in whatever message and with whatever line ends it comes;
//! - another sender, receiver or reference is another interchange (0020 is text: `00000417` is not
//!   `417`), and so is other internal routing;
//! - a reference that comes back with other content is reported as a mismatch, never dropped.
//!
//! # What is booked
//!
//! | column | from |
//! |---|---|
//! | `sender`, `receiver`, `control_reference` | UNB S002, S003, 0020 |
//! | `document_number`, `document_type` | BGM 1004, 1001 |
//! | `document_date` | the header's DTM 137 |
//! | `amount` | the summary's MOA 77, else 9, else 86, with exactly the digits that were sent |
//! | `currency` | that MOA, else the header's CUX |
//!
//! All invoices of an interchange are booked by one statement, in the transaction that also stores its
//! key: all of them or none.
//!
//! # What is refused
//!
//! For good, with a reason that names message and segment and quotes no content. The message is
//! reported until the queue moves it to its dead-letter queue. Nothing is kept of it: a mended resend
//! under the same reference is booked.
//!
//! - A body that is not one interchange, or is X12.
//! - An interchange without an INVOIC.
//! - An interchange or message that is not whole. The trailers' counts must be right: a truncated
//!   interchange that was booked would make a mismatch of the whole one.
//! - An INVOIC without document number, summary, total or currency, or with an amount or a date that
//!   cannot be read.
//! - A test interchange (UNB 0035), unless `INVOIC_ACCEPT_TEST` is `1`.
//!
//! # Running it
//!
//! The environment is that of every consumer (`DATABASE_URL`, `LAMBDA_INBOX_...`), and
//! `INVOIC_ACCEPT_TEST`. Before the first message, migrate the inbox and apply `schema.sql`. The
//! queue's mapping needs `ReportBatchItemFailures`, and the queue a dead-letter queue.

mod amount;
mod interchange;
mod invoice;
mod refusal;
mod segment;

use invoice::Invoice;
use lambda_inbox::emf::Emf;
use lambda_inbox::key::Edi;
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{Handler, HandlerError, Inbox, Message};
use lambda_inbox_edi::{Interchange, Party, Standard, Usage, first_header};
use lambda_runtime::tower::Layer;
use refusal::Refusal;

struct Hub {
    accept_test: bool,
}

impl Handler<String> for Hub {
    async fn handle(
        &self,
        message: &Message<String>,
        conn: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        let (header, invoices) = self.read(&message.body).map_err(HandlerError::permanent)?;
        book(&header, &invoices, conn).await?;
        Ok(())
    }
}

impl Hub {
    fn read(&self, body: &str) -> Result<(Interchange, Vec<Invoice>), Refusal> {
        // That nothing follows this interchange was settled when it got its key.
        let header = first_header(body.as_bytes())?;
        match (header.standard(), header.usage()) {
            (Standard::X12, _) => return Err(Refusal::X12),
            (Standard::Edifact, Usage::Production) => {}
            (Standard::Edifact, _) if self.accept_test => {}
            (Standard::Edifact, _) => return Err(Refusal::Test),
        }
        Ok((header, interchange::invoices(body)?))
    }
}

async fn book(
    header: &Interchange,
    invoices: &[Invoice],
    conn: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    let texts = |field: fn(&Invoice) -> &str| -> Vec<&str> { invoices.iter().map(field).collect() };
    let dates: Vec<Option<String>> = invoices
        .iter()
        .map(|invoice| invoice.date.map(|date| date.to_string()))
        .collect();
    sqlx::query(
        "INSERT INTO accounting_entry (sender, receiver, control_reference, document_number, \
         document_type, document_date, amount, currency) \
         SELECT $1, $2, $3, number, nullif(type, ''), date::date, amount::numeric, currency \
         FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) \
         AS invoice (number, type, date, amount, currency)",
    )
    .bind(party(header.sender()))
    .bind(party(header.receiver()))
    .bind(header.control())
    .bind(texts(|invoice| &invoice.number))
    .bind(texts(|invoice| &invoice.kind))
    .bind(dates)
    .bind(texts(|invoice| &invoice.amount))
    .bind(texts(|invoice| &invoice.currency))
    .execute(conn)
    .await?;
    Ok(())
}

/// A party in the order of S002 and S003, such as `ACMESUPPLY:ZZ:DEPT7`.
fn party(party: &Party) -> String {
    let (internal, sub) = (party.internal(), party.internal_sub());
    let parts = [
        party.id(),
        party.qualifier(),
        internal.unwrap_or_default(),
        sub.unwrap_or_default(),
    ];
    parts.join(":").trim_end_matches(':').to_owned()
}

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let inbox = Inbox::builder_from_env("invoic-hub")?
        .key(Edi::new())
        .build()?;
    let accept_test = std::env::var("INVOIC_ACCEPT_TEST").is_ok_and(|value| value == "1");
    let metrics = Emf::install()?;
    lambda_inbox::run(metrics.layer(inbox.text_handler(Hub { accept_test }))).await
}
