//! What can be seen from outside: the hook, counters, spans and log lines.

use crate::support::{MINUTE, World, many, store_effect};
use lambda_inbox::sqlx::PgConnection;
use lambda_inbox::{HandlerError, Message, Outcome, metrics as names};
use lambda_inbox_testkit::event::{Record, event};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;

async fn by_body(
    message: &Message<String>,
    connection: &mut PgConnection,
) -> Result<(), HandlerError> {
    match message.body.as_str() {
        "permanent" => Err(HandlerError::permanent("no account of that number")),
        "retry" => Err("the account is locked".into()),
        _ => store_effect(message, connection).await,
    }
}

fn batch() -> serde_json::Value {
    let bodies = ["good", "permanent", "retry", "good"];
    let record = |(index, body): (usize, &&str)| {
        Record::new(*body)
            .message_id(format!("m-{index}"))
            .to_value()
    };
    let mut records: Vec<_> = bodies.iter().enumerate().map(record).collect();
    records[3] = records[0].clone();
    event(records)
}

#[tokio::test]
async fn the_hook_sees_every_record_with_its_key_and_reason() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(by_body);
    let _ = world.deliver(&service, MINUTE, batch()).await;
    let reports = world.reports();
    let seen: Vec<_> = reports.iter().map(|r| (r.position, r.outcome)).collect();
    assert_eq!(
        seen,
        [
            (0, Outcome::Processed),
            (1, Outcome::Poison),
            (2, Outcome::Failed),
            (3, Outcome::Duplicate)
        ]
    );
    assert!(reports.iter().all(|r| r.consumer.as_str() == "payments"));
    assert!(
        reports
            .iter()
            .all(|r| r.key.as_ref().map(|k| k.source()) == Some("sqs"))
    );
    assert_eq!(reports[2].reason.as_deref(), Some("the account is locked"));
}

#[tokio::test]
async fn a_hook_that_panics_changes_nothing() {
    let world = World::new().await;
    let inbox = world
        .inbox()
        .on_outcome(|_| panic!("on purpose"))
        .build()
        .unwrap();
    let service = inbox.text_handler(store_effect);
    assert_eq!(
        world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await,
        Ok(vec![])
    );
    assert_eq!(world.effects().await, 2);
}

#[tokio::test(flavor = "current_thread")]
async fn every_outcome_is_counted_under_its_own_name() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(by_body);
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    {
        let _here = metrics::set_default_local_recorder(&recorder);
        let _ = crate::support::invoke(&service, MINUTE, batch()).await;
    }
    let values = snapshotter.snapshot().into_vec();
    for name in [
        names::PROCESSED,
        names::POISON,
        names::FAILED,
        names::DUPLICATES,
    ] {
        let found = values
            .iter()
            .find(|(key, _, _, _)| key.key().name() == name);
        assert!(
            matches!(found, Some((_, _, _, DebugValue::Counter(1)))),
            "{name}: {found:?}"
        );
    }
    let durations = values
        .iter()
        .find(|(key, ..)| key.key().name() == names::PROCESS_DURATION);
    assert!(matches!(durations, Some((.., DebugValue::Histogram(values))) if values.len() == 4));
    let claims = values
        .iter()
        .find(|(key, ..)| key.key().name() == names::CLAIM_DURATION);
    assert!(matches!(claims, Some((.., DebugValue::Histogram(values))) if values.len() == 4));
}

/// The log, kept.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Lines {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// At the noisiest level, on every path: success, handler errors, poison, a wrong event.
#[tokio::test(flavor = "current_thread")]
async fn no_body_and_no_password_reaches_a_log_line() {
    #[derive(serde::Deserialize)]
    struct Typed {
        #[expect(dead_code, reason = "only its decoding matters")]
        amount: u64,
    }
    async fn typed(_: &Message<Typed>, _: &mut PgConnection) -> Result<(), HandlerError> {
        Ok(())
    }
    let world = World::new().await;
    let options = world
        .database
        .create_role(&[])
        .await
        .unwrap()
        .password("PASSWORD-4711");
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(lines.clone())
        .finish();
    {
        let _here = tracing::subscriber::set_default(subscriber);
        let text = world.inbox().build().unwrap().text_handler(store_effect);
        let typed = world.inbox_on(options).build().unwrap().handler(typed);
        for body in [
            "BODY-4711",
            r#"{"amount":"BODY-4711"}"#,
            r#"{"BODY-4711":1}"#,
        ] {
            let event = || event([Record::new(body).message_id("m-1").to_value()]);
            let _ = crate::support::invoke(&text, MINUTE, event()).await;
            let _ = crate::support::invoke(&typed, MINUTE, event()).await;
        }
        let wrong = serde_json::json!({"detail-type": "BODY-4711", "detail": "BODY-4711"});
        let _ = crate::support::invoke(&text, MINUTE, wrong).await;
    }
    let lines = lines.text();
    assert!(
        lines.contains("record goes back") && lines.contains("m-1"),
        "{lines}"
    );
    for secret in ["BODY-4711", "PASSWORD-4711"] {
        let line = lines.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_log_line_names_consumer_message_outcome_and_reason() {
    let world = World::new().await;
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_writer(lines.clone())
        .finish();
    {
        let _here = tracing::subscriber::set_default(subscriber);
        let service = world.inbox().build().unwrap().text_handler(by_body);
        let record = Record::new("retry").message_id("m-1").to_value();
        let _ = crate::support::invoke(&service, MINUTE, event([record])).await;
    }
    let text = lines.text();
    let line: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(line["level"], "WARN");
    for (field, value) in [
        ("consumer", "payments"),
        ("message_id", "m-1"),
        ("outcome", "failed"),
        ("reason", "the account is locked"),
    ] {
        assert_eq!(line["fields"][field], value, "{text}");
    }
}

/// One span for the batch, one below it for each message, with OpenTelemetry's names, and a link to
/// the producer's trace.
#[cfg(feature = "otel")]
#[tokio::test(flavor = "current_thread")]
async fn spans_carry_opentelemetrys_names_and_a_link_to_the_producer() {
    use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
    use tracing_subscriber::layer::SubscriberExt;

    let world = World::new().await;
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    let tracer = opentelemetry::trace::TracerProvider::tracer(&provider, "test");
    let subscriber =
        tracing_subscriber::registry().with(tracing_opentelemetry::layer().with_tracer(tracer));
    {
        let _here = tracing::subscriber::set_default(subscriber);
        let service = world.inbox().build().unwrap().text_handler(store_effect);
        let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        let record = Record::new("x")
            .message_id("m-1")
            .queue("orders")
            .trace_header(header);
        let _ = crate::support::invoke(&service, MINUTE, event([record.to_value()])).await;
    }
    let spans = exporter.get_finished_spans().unwrap();
    let named = |key: &str, span: &opentelemetry_sdk::trace::SpanData| {
        let found = span.attributes.iter().find(|kv| kv.key.as_str() == key);
        found.map(|kv| kv.value.to_string())
    };
    let message = spans
        .iter()
        .find(|s| named("messaging.message.id", s).is_some())
        .unwrap();
    let batch = spans
        .iter()
        .find(|s| named("messaging.batch.message_count", s).is_some())
        .unwrap();
    for span in [message, batch] {
        assert_eq!(span.name, "process orders");
        assert_eq!(span.span_kind, opentelemetry::trace::SpanKind::Consumer);
        for (key, value) in [
            ("messaging.system", "aws_sqs"),
            ("messaging.operation.name", "process"),
            ("messaging.operation.type", "process"),
            ("messaging.destination.name", "orders"),
            ("messaging.consumer.group.name", "payments"),
            ("faas.trigger", "pubsub"),
        ] {
            assert_eq!(named(key, span).as_deref(), Some(value), "{key}");
        }
    }
    assert_eq!(message.parent_span_id, batch.span_context.span_id());
    let link = message.links.iter().next().unwrap();
    assert_eq!(
        link.span_context.trace_id().to_string(),
        "5759e988bd862e3fe1be46a994272793"
    );
    assert_eq!(link.span_context.span_id().to_string(), "53995c3f42cd8ad8");
}
