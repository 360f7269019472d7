//! Spans with OpenTelemetry's messaging names: one for the batch, one below it for each message.

use crate::record::queue_name;
use aws_lambda_events::sqs::SqsMessage;
use lambda_inbox_store::Consumer;
use tracing::Span;
use tracing::field::Empty;

pub(crate) fn batch(consumer: &Consumer, queue_arn: Option<&str>, count: usize) -> Span {
    let span = process(consumer, queue_arn);
    span.record("messaging.batch.message_count", count);
    span
}

pub(crate) fn message(consumer: &Consumer, record: &SqsMessage) -> Span {
    let span = process(consumer, record.event_source_arn.as_deref());
    span.record(
        "messaging.message.id",
        record.message_id.as_deref().unwrap_or_default(),
    );
    let header = record.attributes.get("AWSTraceHeader");
    if let Some(producer) = header.and_then(|header| TraceHeader::parse(header)) {
        span.record("link.trace_id", &producer.root);
        link(&span, &producer);
    }
    span
}

fn process(consumer: &Consumer, queue_arn: Option<&str>) -> Span {
    let queue = queue_name(queue_arn);
    tracing::info_span!(
        "process",
        otel.name = format!("process {queue}"),
        otel.kind = "consumer",
        faas.trigger = "pubsub",
        messaging.system = "aws_sqs",
        messaging.operation.name = "process",
        messaging.operation.type = "process",
        messaging.destination.name = queue,
        messaging.consumer.group.name = consumer.as_str(),
        messaging.batch.message_count = Empty,
        messaging.message.id = Empty,
        link.trace_id = Empty,
        lambda_inbox.outcome = Empty,
        error.type = Empty,
    )
}

/// `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1`
///
/// Source: X-Ray Developer Guide, "Tracing header".
struct TraceHeader {
    root: String,
    #[cfg_attr(
        not(feature = "otel"),
        expect(dead_code, reason = "needed for a link only")
    )]
    parent: Option<String>,
    #[cfg_attr(
        not(feature = "otel"),
        expect(dead_code, reason = "needed for a link only")
    )]
    sampled: bool,
}

impl TraceHeader {
    fn parse(header: &str) -> Option<Self> {
        let field = |name: &str| {
            header
                .split(';')
                .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))
        };
        let root = field("Root")?;
        let hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        (root.len() == 35 && root.starts_with("1-") && hex(root)).then(|| Self {
            root: root.to_owned(),
            parent: field("Parent").map(str::to_owned),
            sampled: field("Sampled") == Some("1"),
        })
    }
}

#[cfg(not(feature = "otel"))]
fn link(_span: &Span, _producer: &TraceHeader) {}

/// A link, not a parent: one batch has many producers.
#[cfg(feature = "otel")]
fn link(span: &Span, producer: &TraceHeader) {
    use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    let trace_id: String = producer
        .root
        .chars()
        .skip(2)
        .filter(|c| *c != '-')
        .collect();
    let parent = producer.parent.as_deref();
    let (Ok(trace_id), Some(Ok(span_id))) =
        (TraceId::from_hex(&trace_id), parent.map(SpanId::from_hex))
    else {
        return;
    };
    let flags = if producer.sampled {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::NOT_SAMPLED
    };
    span.add_link(SpanContext::new(
        trace_id,
        span_id,
        flags,
        true,
        TraceState::NONE,
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_header_that_is_not_one_links_nothing() {
        let good = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        assert!(TraceHeader::parse(good).is_some());
        for header in [
            "",
            "Root=",
            "Root=2-5759e988-bd862e3fe1be46a994272793",
            "Parent=x",
            "é",
        ] {
            assert!(TraceHeader::parse(header).is_none(), "{header}");
        }
    }
}
