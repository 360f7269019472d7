//! The example that lends a command a server, ended in every way: the server must never be left
//! behind.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

/// Far longer than it takes, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Says where its server is, then lives until its stdin ends or it is signalled.
const LINGER: &str = "echo $DATABASE_URL; exec cat";

#[test]
fn the_exit_code_is_the_commands() {
    for (command, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 128 + 9)] {
        let status = with_postgres()
            .args(["sh", "-c", command])
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(code), "{command}");
    }
}

#[test]
fn a_command_that_cannot_be_run_is_named() {
    let output = with_postgres().arg("no-such-command").output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("no-such-command"), "{message}");
}

#[test]
fn a_given_database_url_is_handed_on() {
    let url = "postgres://somebody@somewhere/database";
    let output = with_postgres()
        .env("DATABASE_URL", url)
        .args(["sh", "-c", "echo $DATABASE_URL"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), url);
}

#[tokio::test]
async fn the_server_is_gone_when_the_command_has_ended() {
    let mut lingering = Lingering::start().await;
    drop(lingering.stdin.take());
    assert_eq!(lingering.child.wait().unwrap().code(), Some(0));
    assert!(!lingering.folder.exists());
    assert!(!alive(lingering.postmaster));
}

#[tokio::test]
async fn a_signal_reaches_the_command_and_the_server_is_gone_afterwards() {
    for (name, number) in [("TERM", 15), ("INT", 2)] {
        let mut lingering = Lingering::start().await;
        signal(name, lingering.child.id());
        assert_eq!(
            lingering.child.wait().unwrap().code(),
            Some(128 + number),
            "{name}"
        );
        assert!(!lingering.folder.exists(), "{name}");
        assert!(!alive(lingering.postmaster), "{name}");
    }
}

#[tokio::test]
async fn the_server_and_its_files_go_even_when_the_process_is_killed() {
    let mut lingering = Lingering::start().await;
    lingering.child.kill().unwrap();
    assert_eq!(lingering.child.wait().unwrap().signal(), Some(9));
    let began = Instant::now();
    while lingering.folder.exists() || alive(lingering.postmaster) {
        assert!(
            began.elapsed() < PATIENCE,
            "{} is still there",
            lingering.folder.display()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The example at work, with its server found out.
struct Lingering {
    child: Child,
    /// Not left in `child`, which would close it before waiting.
    stdin: Option<ChildStdin>,
    folder: PathBuf,
    postmaster: u32,
}

impl Lingering {
    async fn start() -> Self {
        let mut child = with_postgres()
            .args(["sh", "-c", LINGER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        let options: PgConnectOptions = url.trim().parse().unwrap();
        let mut connection = PgConnection::connect_with(&options).await.unwrap();
        let data: String = sqlx::query_scalar("SELECT current_setting('data_directory')")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        // As a superuser, because we may not be the user that owns the file.
        let pid_file: String = sqlx::query_scalar("SELECT pg_read_file('postmaster.pid')")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        let postmaster = pid_file.lines().next().unwrap().parse().unwrap();
        let folder = PathBuf::from(data).parent().unwrap().to_owned();
        assert!(folder.exists() && alive(postmaster));
        Self {
            child,
            stdin,
            folder,
            postmaster,
        }
    }
}

fn with_postgres() -> Command {
    let test = std::env::current_exe().unwrap();
    let example = test
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/with_postgres");
    assert!(
        example.exists(),
        "first: cargo build -p lambda-inbox-testkit --examples"
    );
    let mut command = Command::new(example);
    command.env_remove("DATABASE_URL").stdin(Stdio::null());
    command
}

fn alive(pid: u32) -> bool {
    signal("0", pid)
}

fn signal(name: &str, pid: u32) -> bool {
    let kill = format!("kill -s {name} {pid} 2>/dev/null");
    Command::new("/bin/sh")
        .args(["-c", &kill])
        .status()
        .unwrap()
        .success()
}
