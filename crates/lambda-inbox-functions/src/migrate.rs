//! Creating and upgrading the tables, for a plain invocation or as a custom resource of CloudFormation.

use crate::connect::connect;
use crate::custom_resource::{CustomResource, Request};
use crate::error::FunctionError;
use crate::settings::{Settings, partitions};
use crate::time_left::{work_until, work_until_with_answer};
use lambda_inbox_store::{Duty, Partitions, create_time_ordered, grant};
use lambda_runtime::LambdaEvent;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgConnection;
use std::error::Error;
use std::pin::Pin;
use tokio::time::{Instant, timeout_at};

/// Which tables there are to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The keyed table alone.
    #[default]
    Keyed,
    /// The time-ordered table beside it.
    TimeOrdered(Partitions),
}

impl Layout {
    /// `None` where the name is not known, or the keyed layout is to have partitions.
    pub(crate) fn new(name: Option<&str>, partitions: Option<Partitions>) -> Option<Self> {
        match (name.unwrap_or("keyed"), partitions) {
            ("keyed", None | Some(Partitions::None)) => Some(Self::Keyed),
            ("time-ordered", partitions) => {
                Some(Self::TimeOrdered(partitions.unwrap_or(Partitions::None)))
            }
            _ => None,
        }
    }
}

/// What the function answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrateAnswer {
    /// The schema.
    pub schema: String,
    /// Its version before, 0 where there was none.
    pub before: i64,
    /// Its version now.
    pub after: i64,
    /// `keyed` or `time-ordered`.
    pub layout: &'static str,
    /// Partitions that were created.
    pub partitions_created: Vec<String>,
    /// Database roles that have what they need.
    pub roles: Vec<String>,
}

/// What [`migrate_with`] is given answers with.
pub type OwnTables<'c> =
    Pin<Box<dyn Future<Output = Result<(), Box<dyn Error + Send + Sync>>> + Send + 'c>>;

type Own = Box<dyn for<'c> FnOnce(&'c mut PgConnection) -> OwnTables<'c> + Send>;

/// Creates or upgrades the tables, then makes and equips the database roles that the environment names. The
/// event is an object with `layout` (`"keyed"` or `"time-ordered"`) and `partitions` (`"daily"` or `"none"`),
/// which take the place of the environment's, or a request of CloudFormation's, which is answered where it
/// wants to be.
///
/// Safe when many run at once: they wait for each other.
///
/// # Errors
/// [`FunctionError`]. Where CloudFormation was told of a failure, that is none.
pub async fn migrate(event: LambdaEvent<Value>) -> Result<Value, FunctionError> {
    migrate_with(event, |_| Box::pin(std::future::ready(Ok(())))).await
}

/// As [`migrate`], and then `own`, for the tables of the consumer and what its role may do to them, as the
/// owner. It is run every time, so it must change nothing where nothing is to be changed, as the migrations of
/// sqlx do. Where it fails, so does the deployment; the inbox's tables and roles stay. It is dropped where it
/// stands when the function's time is nearly over, so that CloudFormation still gets an answer.
///
/// # Errors
/// As [`migrate`], and [`FunctionError::Own`].
pub async fn migrate_with<F>(event: LambdaEvent<Value>, own: F) -> Result<Value, FunctionError>
where
    F: for<'c> FnOnce(&'c mut PgConnection) -> OwnTables<'c> + Send + 'static,
{
    let own: Own = Box::new(own);
    let context = event.context;
    match CustomResource::read(&event.payload) {
        None => {
            let wanted: Wanted = read(event.payload)?;
            let answer = run(&wanted, own, work_until(&context)).await?;
            serde_json::to_value(answer).map_err(FunctionError::Input)
        }
        Some(resource) => {
            let until = work_until_with_answer(&context);
            let result = match resource.request() {
                // The data outlives the stack: whoever wants it gone drops the schema.
                Request::Delete => Ok(None),
                Request::CreateOrUpdate => change(&resource, own, until).await.map(Some),
                Request::Unknown => Err(FunctionError::Input(serde::de::Error::custom(
                    "RequestType is none of Create, Update and Delete",
                ))),
            };
            if let Err(error) = &result {
                tracing::error!(reason = crate::chain::chain(error), "the migration failed");
            }
            resource.answer(&result, work_until(&context)).await?;
            Ok(Value::Null)
        }
    }
}

async fn change(
    resource: &CustomResource,
    own: Own,
    until: Instant,
) -> Result<MigrateAnswer, FunctionError> {
    let wanted = read(resource.properties())?;
    run(&wanted, own, until).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wanted {
    #[serde(alias = "Layout")]
    layout: Option<String>,
    #[serde(alias = "Partitions")]
    partitions: Option<String>,
}

fn read(input: Value) -> Result<Wanted, FunctionError> {
    match input {
        Value::Object(_) => serde_json::from_value(input).map_err(FunctionError::Input),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Ok(Wanted::default())
        }
    }
}

impl Wanted {
    fn layout(&self, settings: &Settings) -> Result<Layout, FunctionError> {
        if self.layout.is_none() && self.partitions.is_none() {
            return Ok(settings.layout);
        }
        let known = self.partitions.as_deref().map(partitions);
        let layout = match known {
            Some(None) => None,
            None => Layout::new(self.layout.as_deref(), None),
            Some(partitions) => Layout::new(self.layout.as_deref(), partitions),
        };
        layout.ok_or_else(|| FunctionError::Layout {
            layout: self.layout.clone(),
            partitions: self.partitions.clone(),
        })
    }
}

async fn run(wanted: &Wanted, own: Own, until: Instant) -> Result<MigrateAnswer, FunctionError> {
    let settings = Settings::from_env()?;
    let layout = wanted.layout(&settings)?;
    let work = async {
        let mut connection = connect(until).await?;
        let answer = create(&mut connection, &settings, layout).await?;
        own(&mut connection).await.map_err(FunctionError::Own)?;
        Ok::<_, FunctionError>(answer)
    };
    let answer = timeout_at(until, work)
        .await
        .map_err(|_| FunctionError::OutOfTime)??;
    tracing::info!(before = answer.before, after = answer.after, "migrated");
    Ok(answer)
}

async fn create(
    connection: &mut PgConnection,
    settings: &Settings,
    layout: Layout,
) -> Result<MigrateAnswer, FunctionError> {
    let schema = &settings.schema;
    let migrated = lambda_inbox_store::migrate(connection, schema).await?;
    let mut answer = MigrateAnswer {
        schema: schema.name().to_owned(),
        before: migrated.before,
        after: migrated.after,
        layout: "keyed",
        partitions_created: Vec::new(),
        roles: Vec::new(),
    };
    if let Layout::TimeOrdered(partitions) = layout {
        let made = create_time_ordered(connection, schema, partitions).await?;
        answer.layout = "time-ordered";
        answer.partitions_created = made.partitions;
    }
    let consumer = match settings.consumers_are_pooled {
        true => Duty::PooledConsumer,
        false => Duty::Consumer,
    };
    let consumers = settings.consumer_roles.iter();
    let roles = consumers
        .map(|role| (role, consumer))
        .chain(settings.prune_role.iter().map(|role| (role, Duty::Prune)));
    for (role, duty) in roles {
        grant(connection, schema, role, duty).await?;
        answer.roles.push(role.name().to_owned());
    }
    Ok(answer)
}
