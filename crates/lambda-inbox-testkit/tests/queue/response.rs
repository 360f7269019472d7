//! What the function answers, and what becomes of the batch.

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::queue::{BatchFailure, Verdict};
use serde_json::{Value, json};

use crate::{VISIBILITY, always, delivered, send_all, simulator, standard, succeeding};

/// Lets the function answer a batch of three messages, and holds the poller to the verdict made of their ids.
async fn expect(
    name: &str,
    answer: impl Fn(&[String]) -> Invocation,
    verdict: impl Fn(&[String]) -> Verdict,
) {
    let mut queue = simulator(standard());
    let ids = send_all(&mut queue, ["1", "2", "3"]);
    let verdict = verdict(&ids);
    let returned = match &verdict {
        Verdict::Complete => vec![],
        Verdict::Partial(failed) => failed.clone(),
        Verdict::Failed(_) => ids.clone(),
    };
    let report = queue.poll_once(&mut always(answer(&ids))).await.unwrap();
    assert_eq!(delivered(&report), ids, "{name}");
    assert_eq!(report.verdict, verdict, "{name}");
    assert_eq!(report.returned, returned, "{name}");
    let deleted: Vec<_> = ids.iter().filter(|id| !returned.contains(id)).collect();
    assert_eq!(report.deleted.iter().collect::<Vec<_>>(), deleted, "{name}");

    assert!(queue.poll_once(&mut succeeding()).await.is_none(), "{name}");
    queue.advance(VISIBILITY);
    let again = queue.poll_once(&mut succeeding()).await;
    let again = again.as_ref().map(delivered).unwrap_or_default();
    assert_eq!(again, returned, "{name}");
}

#[tokio::test]
async fn a_response_without_failures_deletes_the_batch() {
    for response in [
        json!({ "batchItemFailures": [] }),
        json!({ "batchItemFailures": null }),
        json!({}),
        json!(null),
    ] {
        let name = response.to_string();
        expect(
            &name,
            |_| Invocation::json(&response),
            |_| Verdict::Complete,
        )
        .await;
    }
}

#[tokio::test]
async fn a_reported_message_comes_back_alone_after_its_visibility_timeout() {
    type Answer = fn(&[String]) -> Value;
    let table: [(&str, Answer); 3] = [
        (
            "once",
            |ids| json!({ "batchItemFailures": [{ "itemIdentifier": ids[1] }] }),
        ),
        ("twice", |ids| {
            let failure = json!({ "itemIdentifier": ids[1] });
            json!({ "batchItemFailures": [failure, failure] })
        }),
        (
            "among other keys",
            |ids| json!({ "a": 1, "batchItemFailures": [{ "b": 2, "itemIdentifier": ids[1] }] }),
        ),
    ];
    for (name, answer) in table {
        let answer = |ids: &[String]| Invocation::json(&answer(ids));
        expect(name, answer, |ids| Verdict::Partial(vec![ids[1].clone()])).await;
    }
    let all = |ids: &[String]| Invocation::failures(ids);
    expect("all", all, |ids| Verdict::Partial(ids.to_vec())).await;
}

/// Case A-03 among others: the keys of the response are case-sensitive.
#[tokio::test]
async fn a_malformed_response_brings_the_whole_batch_back() {
    type Answer = fn(&str) -> Value;
    let malformed = BatchFailure::Malformed;
    let unknown = |id: &str| BatchFailure::UnknownIdentifier(id.to_owned());
    let table: [(Answer, BatchFailure); 10] = [
        (
            |id| json!({ "batchItemFailures": [{ "itemIdentifier": id }, { "itemIdentifier": "x" }] }),
            unknown("x"),
        ),
        (
            |_| json!({ "batchItemFailures": [{ "itemIdentifier": "" }] }),
            unknown(""),
        ),
        (
            |_| json!({ "batchItemFailures": [{ "itemIdentifier": null }] }),
            malformed("itemIdentifier is no text"),
        ),
        (
            |_| json!({ "batchItemFailures": [{ "itemIdentifier": 1 }] }),
            malformed("itemIdentifier is no text"),
        ),
        (
            |_| json!({ "batchItemFailures": [{}] }),
            malformed("entry without itemIdentifier"),
        ),
        (
            |id| json!({ "batchItemFailures": [{ "ItemIdentifier": id }] }),
            malformed("entry without itemIdentifier"),
        ),
        (
            |id| json!({ "batchItemFailures": [id] }),
            malformed("entry without itemIdentifier"),
        ),
        (
            |id| json!({ "BatchItemFailures": [{ "itemIdentifier": id }] }),
            malformed("no batchItemFailures"),
        ),
        (
            |id| json!({ "batchItemFailures": id }),
            malformed("batchItemFailures is no list"),
        ),
        (|_| json!([]), malformed("response is no object")),
    ];
    for (answer, failure) in table {
        let name = answer("id").to_string();
        let answer = |ids: &[String]| Invocation::json(&answer(&ids[1]));
        expect(&name, answer, |_| Verdict::Failed(failure.clone())).await;
    }
    for response in ["{", "", "\u{feff}{}"] {
        let answer = |_: &[String]| Invocation::Response(response.into());
        let failed = |_: &[String]| Verdict::Failed(BatchFailure::InvalidJson);
        expect(response, answer, failed).await;
    }
}

#[tokio::test]
async fn a_failed_invocation_brings_the_whole_batch_back() {
    for (invocation, failure) in [
        (
            Invocation::FunctionError("no database".to_owned()),
            BatchFailure::FunctionError("no database".to_owned()),
        ),
        (Invocation::TimedOut, BatchFailure::TimedOut),
        (Invocation::Crashed, BatchFailure::Crashed),
    ] {
        let name = format!("{failure:?}");
        let failed = |_: &[String]| Verdict::Failed(failure.clone());
        expect(&name, |_| invocation.clone(), failed).await;
    }
}

/// Case A-01.
#[tokio::test]
async fn a_mapping_that_does_not_read_responses_deletes_whatever_the_function_returned() {
    for (invocation, left) in [
        (Invocation::failures(["unknown"]), 0),
        (Invocation::Response(b"{".to_vec()), 0),
        (Invocation::FunctionError("no database".to_owned()), 1),
        (Invocation::TimedOut, 1),
        (Invocation::Crashed, 1),
    ] {
        let mut queue = simulator(standard().report_batch_item_failures(false));
        send_all(&mut queue, ["1"]);
        let name = format!("{invocation:?}");
        queue.poll_once(&mut always(invocation)).await.unwrap();
        assert_eq!(queue.in_queue().len(), left, "{name}");
    }
}
