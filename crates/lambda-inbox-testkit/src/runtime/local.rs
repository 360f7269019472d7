//! One function, one process at a time: start, hand out, wait, and start again after an end.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::api::{Answer, Api, Init, Job};
use super::builder::LocalRuntimeBuilder;
use super::environment;
use super::process::{Killer, Slot};
use crate::consumer::{Consumer, Invocation};

/// How long a process may take until it asks for an event (page `lambda-runtime-environment`).
const INIT_MAX: Duration = Duration::from_secs(10);

/// Why a process did not come to ask for its first event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The file is missing, or is no program.
    #[error("cannot run {}", path.display())]
    Binary {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An output file cannot be opened.
    #[error("cannot open an output file")]
    Sink(#[source] io::Error),
    /// No loopback port to listen on.
    #[error("cannot listen on the loopback interface")]
    Listen(#[source] io::Error),
    /// The process reported an initialisation error.
    #[error("initialisation failed: {0}")]
    Failed(String),
    /// The process ended.
    #[error("process ended during initialisation ({})", status.map_or_else(|| "status unknown".to_owned(), |s| s.to_string()))]
    Ended {
        /// How it ended, if the system said so.
        status: Option<ExitStatus>,
    },
    /// Ten seconds were not enough.
    #[error("initialisation took more than {} s", INIT_MAX.as_secs())]
    TimedOut,
}

/// A bootstrap binary under a Runtime API on 127.0.0.1. See the [module docs](super).
///
/// One process handles invocation after invocation until it ends or is stopped; the invocation after that starts a new
/// one. Dropping this kills the process and closes the server. It needs a Tokio runtime with time and I/O for as long
/// as it lives.
#[derive(Debug)]
pub struct LocalRuntime {
    settings: LocalRuntimeBuilder,
    slot: Slot,
    api: Option<Api>,
    starts: u64,
    /// Set while an invocation is under way; still set at the next one if its future was dropped.
    busy: bool,
}

impl LocalRuntime {
    /// Begins to describe a function; `binary` is a program that speaks the Runtime API.
    pub fn builder(binary: impl AsRef<Path>) -> LocalRuntimeBuilder {
        LocalRuntimeBuilder::new(binary.as_ref())
    }

    pub(super) async fn start(mut settings: LocalRuntimeBuilder) -> Result<Self, StartError> {
        settings.binary = match std::fs::canonicalize(&settings.binary) {
            Ok(path) => path,
            Err(source) => {
                return Err(StartError::Binary {
                    path: settings.binary,
                    source,
                });
            }
        };
        let mut runtime = Self {
            settings,
            slot: Slot::default(),
            api: None,
            starts: 0,
            busy: false,
        };
        let api = runtime.spawn().await?;
        runtime.initialised(&api).await?;
        runtime.api = Some(api);
        Ok(runtime)
    }

    /// Invokes the function with the timeout it was built with; see [`invoke_within`](Self::invoke_within).
    pub async fn invoke(&mut self, event: &Value) -> Invocation {
        self.invoke_within(event, self.settings.timeout).await
    }

    /// Hands the event to the process, starting one if none runs, and waits for what comes of it.
    ///
    /// The time runs from the moment the process takes the event; when it is up, the process is killed and the result
    /// is [`Invocation::TimedOut`]. So it is when the process does not ask for the event within ten seconds. A process
    /// that cannot be started is an [`Invocation::FunctionError`], as Lambda's `Runtime.InvalidEntrypoint`.
    ///
    /// If this future is dropped, the process keeps the event until the next invocation, which starts a new one.
    pub async fn invoke_within(&mut self, event: &Value, time_left: Duration) -> Invocation {
        if self.busy {
            self.stop().await;
        }
        self.busy = true;
        let (invocation, reusable) = match self.running_api().await {
            Ok(api) => {
                let outcome = self.run(&api, event, time_left).await;
                self.api = Some(api);
                outcome
            }
            Err(error) => (not_started(&error), false),
        };
        if !reusable {
            self.stop().await;
        }
        self.busy = false;
        invocation
    }

    /// A handle that kills the current process from another task.
    pub fn killer(&self) -> Killer {
        Killer::new(self.slot.clone())
    }

    /// How often a process was started, the first one included.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// The current process's id; `None` if it was stopped or is known to have ended.
    pub fn pid(&self) -> Option<u32> {
        self.slot.pid()
    }

    async fn running_api(&mut self) -> Result<Api, StartError> {
        match self.api.take().filter(|_| self.slot.is_running()) {
            Some(api) => Ok(api),
            None => self.spawn().await,
        }
    }

    async fn spawn(&mut self) -> Result<Api, StartError> {
        let api = Api::open().await.map_err(StartError::Listen)?;
        let settings = &self.settings;
        let task_root = settings.binary.parent().unwrap_or(Path::new("/"));
        let mut child = Command::new(&settings.binary)
            .current_dir(task_root)
            .env_clear()
            .envs(environment::variables(
                &settings.function_name,
                api.address(),
                task_root,
            ))
            .envs(settings.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(settings.stdout.stdio().map_err(StartError::Sink)?)
            .stderr(settings.stderr.stdio().map_err(StartError::Sink)?)
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| StartError::Binary {
                path: settings.binary.clone(),
                source,
            })?;
        settings.stdout.collect(child.stdout.take());
        settings.stderr.collect(child.stderr.take());
        self.slot.set(child);
        self.starts += 1;
        Ok(api)
    }

    /// Waits for the first request for an event.
    async fn initialised(&self, api: &Api) -> Result<(), StartError> {
        let mut init = api.init();
        let settled = async {
            // Copied out: the guard must not live across an await.
            let init = init.wait_for(|init| *init != Init::Running).await;
            init.map_or(Init::Running, |init| init.clone())
        };
        let settled = tokio::select! {
            biased;
            settled = settled => settled,
            status = self.slot.ended() => return Err(StartError::Ended { status }),
            () = tokio::time::sleep(INIT_MAX) => return Err(StartError::TimedOut),
        };
        match settled {
            Init::Done => Ok(()),
            Init::Failed(error) => Err(StartError::Failed(error)),
            Init::Running => Err(StartError::Ended { status: None }),
        }
    }

    /// One invocation on a process that was running a moment ago; whether that process can take another one.
    async fn run(&self, api: &Api, event: &Value, time_left: Duration) -> (Invocation, bool) {
        if let Err(error) = self.initialised(api).await {
            return (not_started(&error), false);
        }
        let (taken, is_taken) = oneshot::channel();
        let (answer, mut answered) = oneshot::channel();
        api.hand_out(Job {
            request_id: Uuid::new_v4().to_string(),
            event: event.to_string().into_bytes(),
            time_left,
            function_arn: environment::function_arn(&self.settings.function_name),
            taken,
            answer,
        });
        let in_time = async {
            match tokio::time::timeout(INIT_MAX, is_taken).await {
                Ok(_) => tokio::time::timeout(time_left, &mut answered).await.ok(),
                Err(_elapsed) => None,
            }
        };
        let answer = tokio::select! {
            biased;
            answer = in_time => match answer {
                Some(answer) => answer.ok(),
                None => return (Invocation::TimedOut, false),
            },
            // A process may answer and end; the answer has been taken in by then.
            _ = self.slot.ended() => answered.try_recv().ok(),
        };
        match answer {
            Some(Answer::Response(response)) => (Invocation::Response(response), true),
            Some(Answer::Error(error)) => (Invocation::FunctionError(error), true),
            None => (Invocation::Crashed, false),
        }
    }

    async fn stop(&mut self) {
        self.api = None;
        self.slot.kill();
        self.slot.ended().await;
    }
}

impl Consumer for LocalRuntime {
    async fn invoke(&mut self, event: Value, time_left: Duration) -> Invocation {
        self.invoke_within(&event, time_left).await
    }
}

impl Drop for LocalRuntime {
    fn drop(&mut self) {
        // A killer may outlive us, so the slot itself is no owner that goes now.
        self.slot.clear();
    }
}

fn not_started(error: &StartError) -> Invocation {
    let source = std::error::Error::source(error).map_or_else(String::new, |s| format!(": {s}"));
    match error {
        StartError::Ended { .. } => Invocation::Crashed,
        StartError::TimedOut => Invocation::TimedOut,
        StartError::Failed(text) => Invocation::FunctionError(text.clone()),
        StartError::Binary { .. } | StartError::Sink(_) | StartError::Listen(_) => {
            Invocation::FunctionError(format!("Runtime.InvalidEntrypoint: {error}{source}"))
        }
    }
}
