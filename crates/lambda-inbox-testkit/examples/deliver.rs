//! Delivers Lambda events from files to an echo consumer, and prints what the inbox makes of them.
//!
//! For looking at an event of one's own: which key each record has, what is reported, and why.

use std::collections::HashSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use clap::{Parser, ValueEnum};
use lambda_inbox::aws_lambda_events::sqs::SqsMessage;
use lambda_inbox::key::{
    Attribute, DeduplicationId, Edi, EventBridge, JsonPointer, MessageId, Sns,
};
use lambda_inbox::lambda_runtime::{Context, Diagnostic, LambdaEvent};
use lambda_inbox::sqlx::PgConnection;
use lambda_inbox::{
    Handler, HandlerError, Inbox, InboxEvent, InboxService, KeyStrategy, Message, Report, Schema,
    migrate,
};
use lambda_inbox_testkit::postgres::TestDatabase;
use serde_json::{Value, json};
use tower::ServiceExt;

/// Far enough away that no file is cut short.
const TIME_LEFT: Duration = Duration::from_secs(300);

/// Delivers Lambda event FILEs, in order, to a consumer that takes any body and has no effect, and
/// prints one line of JSON for each: the file, the function's response or error, and every record with
/// its outcome, key and reason.
///
/// All files share one inbox, in a fresh database that is dropped at the end: a record that stands in
/// two files is a duplicate in the second. The server is the one of DATABASE_URL, or a private one.
#[derive(Parser)]
#[command(name = "deliver")]
struct Arguments {
    /// How a record's key is found.
    #[arg(long, value_enum, default_value = "message-id")]
    strategy: Strategy,
    /// The message attribute of the attribute strategy.
    #[arg(long, value_name = "ATTRIBUTE")]
    name: Option<String>,
    /// The JSON pointer of the json-pointer strategy, or where the edi strategy finds its text.
    #[arg(long, value_name = "POINTER")]
    pointer: Option<String>,
    /// The scope of a key by attribute or pointer; by default the attribute's name or the pointer.
    #[arg(long, value_name = "NAME")]
    scope: Option<String>,
    /// Envelopes that the messages come in, outermost first.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ENVELOPES")]
    unwrap: Vec<Envelope>,
    /// A message id for which the handler fails; may be given more than once.
    #[arg(long = "fail", value_name = "ID")]
    fail: Vec<String>,
    /// Files that each hold one Lambda event.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Strategy {
    /// The SQS MessageId, or the redrive stamp.
    MessageId,
    /// A message attribute; needs --name.
    Attribute,
    /// The id of the SNS envelope.
    Sns,
    /// The id of the EventBridge envelope.
    EventBridge,
    /// The deduplication id of a FIFO queue.
    DeduplicationId,
    /// A value in the JSON body; needs --pointer.
    JsonPointer,
    /// The header of an X12 or EDIFACT interchange.
    Edi,
}

#[derive(Clone, Copy, ValueEnum)]
enum Envelope {
    Sns,
    EventBridge,
}

impl From<Envelope> for lambda_inbox::Envelope {
    fn from(envelope: Envelope) -> Self {
        match envelope {
            Envelope::Sns => Self::Sns,
            Envelope::EventBridge => Self::EventBridge,
        }
    }
}

impl Arguments {
    /// The strategy with its options; an option that it does not have is an error, not a shrug.
    fn key(&self) -> Result<KeyStrategy, Box<dyn Error>> {
        let needs = |option: &Option<String>, name: &str| {
            option
                .clone()
                .ok_or_else(|| format!("this --strategy needs {name}"))
        };
        let scoped = matches!(self.strategy, Strategy::Attribute | Strategy::JsonPointer);
        let pointed = matches!(self.strategy, Strategy::JsonPointer | Strategy::Edi);
        if self.name.is_some() && self.strategy != Strategy::Attribute {
            return Err("--name goes with --strategy attribute".into());
        }
        if self.pointer.is_some() && !pointed {
            return Err("--pointer goes with --strategy json-pointer or edi".into());
        }
        if self.scope.is_some() && !scoped {
            return Err("--scope goes with --strategy attribute or json-pointer".into());
        }
        Ok(match self.strategy {
            Strategy::MessageId => MessageId::new().into(),
            Strategy::Attribute => {
                let name = needs(&self.name, "--name")?;
                let scope = self.scope.clone().unwrap_or_else(|| name.clone());
                Attribute::new(name).scope(scope).into()
            }
            Strategy::Sns => Sns::new().into(),
            Strategy::EventBridge => EventBridge::new().into(),
            Strategy::DeduplicationId => DeduplicationId::new().into(),
            Strategy::JsonPointer => {
                let pointer = needs(&self.pointer, "--pointer")?;
                let scope = self.scope.clone().unwrap_or_else(|| pointer.clone());
                JsonPointer::new(pointer).scope(scope).into()
            }
            Strategy::Edi => match &self.pointer {
                Some(pointer) => Edi::new().within(pointer).into(),
                None => Edi::new().into(),
            },
        })
    }
}

#[derive(Clone)]
struct Echo {
    fail: Arc<HashSet<String>>,
}

impl Handler<SqsMessage> for Echo {
    async fn handle(
        &self,
        message: &Message<SqsMessage>,
        _: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        if self.fail.contains(message.message_id()) {
            return Err("told to fail by --fail".into());
        }
        Ok(())
    }
}

type Reports = Arc<Mutex<Vec<Report>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let sources =
                std::iter::successors(Some(&*error as &(dyn Error + 'static)), |e| (**e).source());
            let chain: Vec<_> = sources.map(ToString::to_string).collect();
            eprintln!("deliver: {}", chain.join(": "));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let key = arguments.key()?;
    let database = TestDatabase::create().await?;
    migrate(&mut database.connect().await?, &Schema::default()).await?;
    let reports = Reports::default();
    let hook = Arc::clone(&reports);
    let inbox = Inbox::builder("deliver", database.options())
        .key(key)
        .unwrap(arguments.unwrap.iter().copied().map(Into::into))
        .on_outcome(move |report| {
            if let Ok(mut reports) = hook.lock() {
                reports.push(report.clone());
            }
        })
        .build()?;
    let fail = Arc::new(arguments.fail.into_iter().collect());
    let service = inbox.record_handler(Echo { fail });
    for file in &arguments.files {
        println!("{}", deliver(&service, &reports, file).await?);
    }
    database.drop_now().await?;
    Ok(())
}

async fn deliver(
    service: &InboxService,
    reports: &Reports,
    file: &Path,
) -> Result<Value, Box<dyn Error>> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let answer = match InboxEvent::from_json(text) {
        Ok(event) => {
            let event = LambdaEvent::new(event, context());
            let answer = service.clone().oneshot(event).await;
            answer.map_err(|error| Diagnostic::from(error).error_message)
        }
        Err(error) => Err(format!("the event is not JSON: {error}")),
    };
    let (response, error) = match answer {
        Ok(response) => (serde_json::to_value(response)?, Value::Null),
        Err(error) => (Value::Null, Value::String(error)),
    };
    let mut reports = reports.lock().map_err(|error| error.to_string())?;
    let mut reports = std::mem::take(&mut *reports);
    reports.sort_by_key(|report| report.position);
    let records: Vec<Value> = reports.iter().map(record).collect();
    Ok(json!({
        "file": file.display().to_string(),
        "response": response,
        "error": error,
        "records": records,
    }))
}

fn record(report: &Report) -> Value {
    json!({
        "id": report.message_id,
        "outcome": report.outcome.as_str(),
        "key": report.key.as_ref().map(|key| {
            json!({"source": key.source(), "message_id": key.message_id()})
        }),
        "reason": report.reason,
    })
}

fn context() -> Context {
    let deadline = (SystemTime::now() + TIME_LEFT)
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut context = Context::default();
    context.deadline = u64::try_from(deadline.as_millis()).unwrap_or_default();
    context
}
