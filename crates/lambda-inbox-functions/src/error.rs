//! Why an invocation failed. Everything of it reaches Lambda's log and the caller as one line.

use crate::chain::chain;
use crate::connect::ConnectError;
use crate::custom_resource::AnswerError;
use crate::guard::TooShort;
use crate::queues::QueueError;
use crate::settings::SettingsError;
use lambda_inbox_store::{
    BatchRowsError, GrantError, KeyError, LayoutError, MigrateError, PruneError,
};
use lambda_runtime::Diagnostic;

/// An invocation of one of the functions failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// The environment.
    #[error("the function is not set up")]
    Settings(#[from] SettingsError),
    /// The input is not what the function takes.
    #[error("the input cannot be read; see the guide for its fields")]
    Input(#[source] serde_json::Error),
    /// A duration in the input.
    #[error("{field} of the input is {value:?}, expected a duration such as 14d or 36h")]
    Duration {
        /// The field.
        field: &'static str,
        /// What it says.
        value: String,
    },
    /// A consumer's name in the input.
    #[error("the input names a consumer that cannot be")]
    Consumer(#[source] KeyError),
    /// A layout in the input.
    #[error(
        "the input asks for layout {layout:?} with partitions {partitions:?}; take keyed, or \
         time-ordered with partitions daily or none"
    )]
    Layout {
        /// As given.
        layout: Option<String>,
        /// As given.
        partitions: Option<String>,
    },
    /// A batch's size.
    #[error(transparent)]
    BatchRows(#[from] BatchRowsError),
    /// How long messages can come back is not known.
    #[error("nothing was pruned, because it is not known how long messages can come back")]
    Queue(#[from] QueueError),
    /// Keys would be forgotten before their messages.
    #[error("nothing was pruned")]
    TooShort(#[source] Box<TooShort>),
    /// No connection.
    #[error("the function cannot use the database")]
    Connect(#[from] ConnectError),
    /// The prune itself.
    #[error("the prune failed; what it had deleted stays deleted")]
    Prune(#[from] PruneError),
    /// The migrations.
    #[error("the migration failed; finished steps stay")]
    Migrate(#[from] MigrateError),
    /// The time-ordered table.
    #[error("the time-ordered layout failed")]
    TimeOrdered(#[from] LayoutError),
    /// A role.
    #[error("the tables are done, the roles are not")]
    Grant(#[from] GrantError),
    /// What [`migrate_with`](crate::migrate_with) was given.
    #[error("the inbox's tables and roles are done, your own are not")]
    Own(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The time was up.
    #[error(
        "it was not done within the function's time; what had been finished stays, and running it \
         again goes on from there: raise the function's timeout, or find out what holds its locks"
    )]
    OutOfTime,
    /// CloudFormation was not told.
    #[error("CloudFormation could not be answered")]
    Answer(#[from] AnswerError),
}

impl From<TooShort> for FunctionError {
    fn from(error: TooShort) -> Self {
        Self::TooShort(Box::new(error))
    }
}

impl From<FunctionError> for Diagnostic {
    fn from(error: FunctionError) -> Self {
        let error_type = match &error {
            FunctionError::Settings(_) => "LambdaInbox.Settings",
            FunctionError::Input(_)
            | FunctionError::Duration { .. }
            | FunctionError::Consumer(_)
            | FunctionError::Layout { .. }
            | FunctionError::BatchRows(_) => "LambdaInbox.Input",
            FunctionError::Queue(_) => "LambdaInbox.QueueUnknown",
            FunctionError::TooShort(_) => "LambdaInbox.RetentionTooShort",
            FunctionError::Connect(_) => "LambdaInbox.NoConnection",
            FunctionError::Prune(_) => "LambdaInbox.PruneFailed",
            FunctionError::Migrate(_)
            | FunctionError::TimeOrdered(_)
            | FunctionError::Grant(_)
            | FunctionError::Own(_) => "LambdaInbox.MigrationFailed",
            FunctionError::OutOfTime => "LambdaInbox.OutOfTime",
            FunctionError::Answer(_) => "LambdaInbox.CloudFormationNotAnswered",
        };
        Self {
            error_type: error_type.to_owned(),
            error_message: chain(&error),
        }
    }
}
