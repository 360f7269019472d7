//! Runs a command with a PostgreSQL server to test on.
//!
//! Test runners that give every test a process of its own would start a server per test; this
//! starts one for all.

use std::error::Error;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use clap::Parser;
use lambda_inbox_testkit::postgres::Cluster;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs COMMAND with DATABASE_URL set to a PostgreSQL server, and exits with its code.
///
/// If DATABASE_URL is set already, that server is used. Otherwise a private one is started from the
/// installed PostgreSQL binaries; it is stopped, and its files are removed, when COMMAND has ended
/// or when this process dies. Interrupts and terminations are passed on to COMMAND.
#[derive(Parser)]
#[command(name = "with_postgres")]
struct Arguments {
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// What shells report for a command that cannot be run.
const EXIT_NOT_RUN: u8 = 127;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments.command).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprint!("with_postgres: {error}");
            let mut source = error.source();
            while let Some(error) = source {
                eprint!(": {error}");
                source = error.source();
            }
            eprintln!();
            ExitCode::from(EXIT_NOT_RUN)
        }
    }
}

async fn run(command: &[OsString]) -> Result<u8, Box<dyn Error>> {
    // Before the server is started, so that from here on nothing but SIGKILL skips its stop.
    let mut signals = Signals::new()?;
    let given = std::env::var("DATABASE_URL").is_ok_and(|url| !url.is_empty());
    let cluster = if given {
        None
    } else {
        Some(Cluster::start().await?)
    };

    let [program, arguments @ ..] = command else {
        return Err("no command".into());
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(cluster) = &cluster {
        command.env("DATABASE_URL", cluster.url());
    }
    let mut child = command
        .spawn()
        .map_err(|error| format!("{}: {error}", program.to_string_lossy()))?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            name = signals.next() => pass_on(name, &child),
        }
    };
    Ok(code(status))
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "INT",
            _ = self.terminate.recv() => "TERM",
        }
    }
}

fn pass_on(name: &str, child: &Child) {
    // A terminal's Ctrl-C has reached the command already; many take a second one for "give up
    // cleaning up".
    if name == "INT" && std::io::stdin().is_terminal() {
        return;
    }
    if let Some(pid) = child.id() {
        // The shell's own kill, because a program of that name is not installed everywhere.
        let _ = std::process::Command::new("/bin/sh")
            .args([
                "-c",
                "kill -s \"$1\" \"$2\"",
                "kill",
                name,
                &pid.to_string(),
            ])
            .status();
    }
}

/// As shells do: 128 and the signal's number for a command that was killed.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
