//! The response is made from the outcomes: every id starts as failed and leaves the list on proof.

use crate::outcome::Verdict;
use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse};
use lambda_inbox_store::{Fingerprint, Key};
use std::collections::HashSet;

/// What the response needs to know of a record.
pub(crate) struct Answer<'a> {
    pub(crate) message_id: Option<&'a str>,
    pub(crate) key: Option<&'a Key>,
    pub(crate) fingerprint: Option<&'a Fingerprint>,
    pub(crate) verdict: &'a Verdict,
}

/// Lists each id that SQS must keep, once, in the order of arrival.
///
/// Where one message stands twice in a batch, a committed one speaks for the other: reporting the id
/// would bring back a message that is done. It speaks only for records of the same key and body.
pub(crate) fn response(answers: &[Answer<'_>]) -> SqsBatchResponse {
    if !answers.iter().any(|answer| answer.verdict.is_reported()) {
        return SqsBatchResponse::default();
    }
    let committed: HashSet<_> = answers
        .iter()
        .filter(|answer| answer.verdict.outcome.is_committed())
        .filter_map(Answer::message)
        .collect();
    let mut seen = HashSet::new();
    let failures = answers
        .iter()
        .filter(|answer| answer.verdict.is_reported())
        .filter(|answer| {
            answer
                .message()
                .is_none_or(|message| !committed.contains(&message))
        })
        .filter_map(|answer| answer.message_id)
        .filter(|id| seen.insert(*id))
        .map(|id| {
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = id.to_owned();
            failure
        })
        .collect();
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = failures;
    response
}

impl<'a> Answer<'a> {
    /// What makes two records of a batch copies of one message.
    fn message(&self) -> Option<(&'a str, &'a Key, &'a Fingerprint)> {
        Some((self.message_id?, self.key?, self.fingerprint?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    /// Message id, key, body, outcome.
    type Row = (&'static str, &'static str, &'static str, Outcome);

    fn json(records: &[Row]) -> String {
        let records: Vec<_> = records
            .iter()
            .map(|(id, key, body, outcome)| {
                (
                    *id,
                    Key::new("sqs", *key).unwrap(),
                    Fingerprint::of_body(body),
                    Verdict::new(*outcome, "why"),
                )
            })
            .collect();
        let answers: Vec<_> = records
            .iter()
            .map(|(id, key, fingerprint, verdict)| Answer {
                message_id: Some(id),
                key: Some(key),
                fingerprint: Some(fingerprint),
                verdict,
            })
            .collect();
        serde_json::to_string(&response(&answers)).unwrap()
    }

    /// A-03: one wrong letter in the keys would fail the whole batch.
    #[test]
    fn the_bytes_are_exactly_what_lambda_reads() {
        assert_eq!(
            json(&[("a", "a", "x", Outcome::Processed)]),
            r#"{"batchItemFailures":[]}"#
        );
        assert_eq!(
            json(&[
                ("a", "a", "x", Outcome::Failed),
                ("b", "b", "x", Outcome::Processed)
            ]),
            r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#
        );
    }

    #[test]
    fn only_what_is_proven_to_have_committed_leaves_the_list() {
        let listed = |outcome| json(&[("a", "a", "x", outcome)]).contains("itemIdentifier");
        for outcome in [Outcome::Processed, Outcome::Ignored, Outcome::Duplicate] {
            assert!(!listed(outcome), "{outcome}");
        }
        for outcome in [
            Outcome::Mismatch,
            Outcome::Busy,
            Outcome::NotStarted,
            Outcome::Failed,
            Outcome::Poison,
            Outcome::Unknown,
        ] {
            assert!(listed(outcome), "{outcome}");
        }
    }

    #[test]
    fn an_id_that_stands_twice_is_listed_once_at_most_and_only_if_nothing_committed() {
        use Outcome::{Duplicate, Failed, Mismatch, NotStarted, Processed};
        let cases: [(&[Row], usize); 6] = [
            (&[("a", "a", "x", Failed), ("a", "a", "x", Failed)], 1),
            (&[("a", "a", "x", Failed), ("a", "a", "x", Processed)], 0),
            (&[("a", "a", "x", Processed), ("a", "a", "x", Duplicate)], 0),
            // The same id with another key, or another body, is another message after all.
            (&[("a", "k1", "x", Processed), ("a", "k2", "x", Failed)], 1),
            (&[("a", "a", "x", Processed), ("a", "a", "y", Mismatch)], 1),
            (
                &[("a", "a", "x", Processed), ("a", "a", "y", NotStarted)],
                1,
            ),
        ];
        for (records, listed) in cases {
            let json = json(records);
            assert_eq!(
                json.matches("itemIdentifier").count(),
                listed,
                "{records:?}"
            );
        }
    }
}
