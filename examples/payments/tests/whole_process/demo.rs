//! The demo must show what it promises, in both directions.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::bank::BINARY;

#[test]
fn the_demo_ends_with_exactly_once_in_spite_of_kills_and_second_deliveries() {
    let output = demo(&["--messages", "60"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let line = last_line(&output);
    assert!(
        line.starts_with("exactly once: yes (60 messages, "),
        "{line}"
    );
    assert!(
        line.ends_with(" deliveries, 60 effects, ledger balanced)"),
        "{line}"
    );
}

#[test]
fn the_demo_without_an_inbox_shows_double_bookings_and_fails() {
    let output = demo(&["--messages", "60", "--no-inbox"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let line = last_line(&output);
    assert!(
        line.starts_with("exactly once: no (60 messages, "),
        "{line}"
    );
    assert!(
        line.contains(" payments booked more than once, ledger wrong "),
        "{line}"
    );
    assert!(!line.contains(" 0 payments booked more"), "{line}");
}

#[test]
fn a_demo_whose_function_is_not_built_says_how_to_build_it() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("demo");
    std::fs::copy(program(), &alone).unwrap();
    let output = Command::new(alone).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("cargo build -p payments --bins --examples"),
        "{text}"
    );
}

fn demo(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

fn last_line(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().last().unwrap_or_default().to_owned()
}

/// Test runs build the examples too, unless they are told to build a single target.
fn program() -> PathBuf {
    let programs = Path::new(BINARY).parent().unwrap();
    let examples = programs.join("examples");
    let all_there = ["demo", "naive"].map(|name| examples.join(name).is_file());
    if all_there != [true, true] {
        build_examples(programs);
    }
    examples.join("demo")
}

fn build_examples(programs: &Path) {
    let profile = match programs.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        profile => profile,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "-p",
            "payments",
            "--examples",
            "--profile",
            profile,
        ])
        .status()
        .unwrap();
    assert!(status.success(), "the examples cannot be built");
}
