//! The local runtime against a real bootstrap, built on `lambda_runtime`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lambda_inbox_testkit::consumer::{Consumer, Invocation};
use lambda_inbox_testkit::runtime::{Lines, LocalRuntime, LocalRuntimeBuilder, Sink, StartError};
use serde_json::{Value, json};

/// Far longer than any test: what must not be reached.
const LONG: Duration = Duration::from_secs(120);

fn echo() -> LocalRuntimeBuilder {
    LocalRuntime::builder(env!("CARGO_BIN_EXE_testkit-echo-bootstrap"))
        .timeout(LONG)
        .stdout(Sink::Null)
        .stderr(Sink::Null)
}

async fn started() -> LocalRuntime {
    echo().start().await.unwrap()
}

fn order(what: &str) -> Value {
    json!({ "do": what })
}

async fn answer_to(function: &mut LocalRuntime, event: &Value) -> Value {
    let invocation = function.invoke(event).await;
    let Invocation::Response(response) = invocation else {
        panic!("a response was expected, not {invocation:?}");
    };
    serde_json::from_slice(&response).unwrap()
}

#[tokio::test]
async fn one_process_answers_one_event_after_the_other() {
    let mut function = started().await;
    let pid = function.pid();
    for n in 0..3 {
        let event = json!({ "do": "echo", "n": n, "text": "grün" });
        assert_eq!(answer_to(&mut function, &event).await, event);
    }
    assert_eq!(function.starts(), 1);
    assert!(pid.is_some());
    assert_eq!(function.pid(), pid);
}

#[tokio::test]
async fn an_error_and_a_panic_are_function_errors_and_the_process_lives_on() {
    let mut function = started().await;
    for what in ["fail", "panic"] {
        let invocation = function.invoke(&order(what)).await;
        let Invocation::FunctionError(text) = invocation else {
            panic!("{what}: an error was expected, not {invocation:?}");
        };
        assert!(text.contains("as ordered"), "{what}: {text}");
    }
    assert_eq!(function.starts(), 1);
}

#[tokio::test]
async fn a_process_that_ends_in_an_invocation_has_crashed_and_the_next_event_starts_another() {
    let mut function = started().await;
    assert_eq!(function.invoke(&order("exit")).await, Invocation::Crashed);
    assert_eq!(
        answer_to(&mut function, &order("echo")).await,
        order("echo")
    );
    assert_eq!(function.starts(), 2);
}

#[tokio::test]
async fn a_process_that_runs_out_of_time_is_killed_and_the_next_event_starts_another() {
    let mut function = started().await;
    let first = function.pid();
    let invocation = function
        .invoke_within(&order("hang"), Duration::from_millis(50))
        .await;
    assert_eq!(invocation, Invocation::TimedOut);
    assert_eq!(function.pid(), None);
    assert_eq!(
        answer_to(&mut function, &order("echo")).await,
        order("echo")
    );
    assert_eq!(function.starts(), 2);
    assert_ne!(function.pid(), first);
}

#[tokio::test]
async fn a_killer_ends_the_process_in_the_middle_of_an_invocation() {
    let lines = Lines::default();
    let mut function = echo()
        .stdout(Sink::Lines(lines.clone()))
        .start()
        .await
        .unwrap();
    let killer = function.killer();
    let kill = tokio::spawn(async move {
        lines.line_with("hanging").await;
        killer.kill()
    });
    assert_eq!(function.invoke(&order("hang")).await, Invocation::Crashed);
    assert!(kill.await.unwrap());
    assert_eq!(
        answer_to(&mut function, &order("echo")).await,
        order("echo")
    );
    assert_eq!(function.starts(), 2);
}

#[tokio::test]
async fn a_process_killed_between_two_invocations_is_replaced_unnoticed() {
    let mut function = started().await;
    assert!(function.killer().kill());
    // The signal may take effect during the next invocation, which is then a crash like any other.
    while function.invoke(&order("echo")).await == Invocation::Crashed {}
    assert_eq!(function.starts(), 2);
}

#[tokio::test]
async fn the_killer_of_a_dropped_function_has_nothing_to_kill() {
    let function = started().await;
    let killer = function.killer();
    drop(function);
    assert!(!killer.kill());
}

#[tokio::test]
async fn a_dropped_function_leaves_no_process_behind() {
    let function = started().await;
    let pid = function.pid().unwrap().to_string();
    drop(function);
    let deadline = Instant::now() + LONG;
    while is_alive(&pid) {
        assert!(Instant::now() < deadline, "process {pid} still runs");
    }
}

/// A process that has ended but is not reaped yet is not alive.
fn is_alive(pid: &str) -> bool {
    let ps = Command::new("ps").args(["-o", "stat=", "-p", pid]).output();
    let state = String::from_utf8(ps.unwrap().stdout).unwrap();
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

#[tokio::test]
async fn an_abandoned_invocation_does_not_answer_the_next_one() {
    let lines = Lines::default();
    let mut function = echo()
        .stdout(Sink::Lines(lines.clone()))
        .start()
        .await
        .unwrap();
    tokio::select! {
        invocation = async { function.invoke(&order("hang")).await } => panic!("{invocation:?}"),
        _ = lines.line_with("hanging") => {}
    }
    assert_eq!(
        answer_to(&mut function, &order("echo")).await,
        order("echo")
    );
    assert_eq!(function.starts(), 2);
}

#[tokio::test]
async fn the_context_carries_the_deadline_and_the_identity_of_the_invocation() {
    let mut function = echo().function_name("payments").start().await.unwrap();
    let time_left = Duration::from_secs(77);
    let before = epoch_ms();
    let Invocation::Response(response) =
        Consumer::invoke(&mut function, order("context"), time_left).await
    else {
        panic!("a response was expected");
    };
    let after = epoch_ms();
    let context: Value = serde_json::from_slice(&response).unwrap();
    let deadline = u128::from(context["deadline"].as_u64().unwrap());
    let time_left = time_left.as_millis();
    assert!((before + time_left..=after + time_left).contains(&deadline));
    let again = answer_to(&mut function, &order("context")).await;
    assert_ne!(context["request_id"], again["request_id"]);
    let arn = context["arn"].as_str().unwrap();
    assert!(arn.ends_with(":function:payments"), "{arn}");
    let trace = context["trace"].as_str().unwrap();
    assert!(trace.starts_with("Root=1-"), "{trace}");
}

#[tokio::test]
async fn the_process_finds_what_lambda_sets_and_what_the_caller_adds_and_nothing_else() {
    let mut function = echo()
        .function_name("payments")
        .env("TABLE", "first")
        .env("TABLE", "last")
        .env("AWS_LAMBDA_LOG_FORMAT", "Text")
        .start()
        .await
        .unwrap();
    let environment = answer_to(&mut function, &order("environment")).await;
    for (name, value) in [
        ("AWS_LAMBDA_FUNCTION_NAME", "payments"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
        ("AWS_LAMBDA_LOG_FORMAT", "Text"),
        ("AWS_REGION", "eu-central-1"),
        ("TABLE", "last"),
    ] {
        assert_eq!(environment[name], value, "{name}");
    }
    // Cargo sets this one for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert_eq!(environment["CARGO_MANIFEST_DIR"], Value::Null);
}

#[tokio::test]
async fn an_answer_to_an_invocation_that_is_not_open_is_refused() {
    let mut function = started().await;
    let status = answer_to(&mut function, &order("answer for another")).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn events_and_responses_may_be_as_large_as_lambda_lets_them() {
    let mut function = started().await;
    let large = json!({ "do": "echo", "text": "x".repeat(6 * 1024 * 1024 - 100) });
    assert_eq!(answer_to(&mut function, &large).await, large);
    let too_large = json!({ "do": "size", "bytes": 6 * 1024 * 1024 });
    let invocation = function.invoke(&too_large).await;
    let Invocation::FunctionError(text) = invocation else {
        panic!("an error was expected");
    };
    assert!(text.starts_with("Function.ResponseSizeTooLarge"), "{text}");
    assert_eq!(
        answer_to(&mut function, &order("echo")).await,
        order("echo")
    );
}

#[tokio::test]
async fn output_is_kept_over_restarts_in_lines_and_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stdout");
    let lines = Lines::default();
    for sink in [Sink::Lines(lines.clone()), Sink::File(path.clone())] {
        let mut function = echo().stdout(sink).start().await.unwrap();
        for _ in 0..2 {
            assert_eq!(function.invoke(&order("exit")).await, Invocation::Crashed);
        }
    }
    let file = std::fs::read_to_string(path).unwrap();
    assert_eq!(file, "leaving\nleaving\n");
    while lines.all().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(lines.all(), ["leaving", "leaving"]);
}

#[tokio::test]
async fn a_function_that_does_not_come_up_says_why() {
    let missing = LocalRuntime::builder(Path::new("no/such/bootstrap"));
    let error = missing.start().await.unwrap_err();
    assert!(matches!(error, StartError::Binary { .. }), "{error:?}");

    let error = echo().env("ECHO_INIT", "exit").start().await.unwrap_err();
    let StartError::Ended { status } = error else {
        panic!("{error:?}");
    };
    assert_eq!(status.and_then(|status| status.code()), Some(3));

    let error = echo().env("ECHO_INIT", "error").start().await.unwrap_err();
    let StartError::Failed(text) = error else {
        panic!("{error:?}");
    };
    assert!(text.contains("no configuration"), "{text}");
}

fn epoch_ms() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis()
}
