//! Partners resend, and SQS knows nothing of it: the interchange's own identity is the key.

use crate::bank::database;
use lambda_inbox_tests::{Emulator, Function, Queue, QueueSettings, eventually};

fn interchange(control: &str, amount: &str, line_end: &str) -> String {
    [
        &format!("UNB+UNOC:3+4012345000009:14+4098765000007:14+260105:1030+{control}'"),
        "UNH+1+INVOIC:D:96A:UN:EAN008'",
        "BGM+380+R-1+9'",
        "DTM+137:20260105:102'",
        "CUX+2:EUR:4'",
        "UNS+S'",
        &format!("MOA+77:{amount}'"),
        "UNT+7+1'",
        &format!("UNZ+1+{control}'"),
    ]
    .join(line_end)
}

#[tokio::test]
async fn an_interchange_is_booked_once_however_often_and_in_whatever_form_it_is_sent() {
    let emulator = Emulator::from_env();
    let (database, mut connection) =
        database(include_str!("../../examples/edi-invoic/schema.sql")).await;
    let queue = Queue::create(&emulator, "invoic", QueueSettings::default()).await;
    let function = Function::builder(&emulator, "edi-invoic")
        .env("DATABASE_URL", database.url())
        .deploy()
        .await;
    for line_end in ["", "\n", "\r\n", "\n", ""] {
        queue.send(&interchange("417", "119.00", line_end)).await;
    }
    queue.send(&interchange("00417", "20.50", "\n")).await;
    function.map(&queue, 10).await;

    let mut look = async || -> Vec<(String, String)> {
        sqlx::query_as(
            "SELECT control_reference, amount::text FROM accounting_entry ORDER BY control_reference",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap()
    };
    let row = |control: &str, amount: &str| (control.to_owned(), amount.to_owned());
    let expected = vec![row("00417", "20.50"), row("417", "119.00")];
    eventually("entries", expected.clone(), &mut look).await;

    // B-08: the number again, for something else.
    let other = interchange("417", "999.00", "\n");
    queue.send(&other).await;
    queue.assert_dead_letters([other]).await;
    queue.wait_until_empty().await;
    assert_eq!(look().await, expected);
    function.assert_counted("invoic-hub", 2).await;
}
