//! Configuration by environment variables, the way a deployed function gets it.

use crate::duration::parse;
use crate::migrate::Layout;
use crate::queues::{Address, DeadLetters, Queue, entries};
use lambda_inbox_store::{
    Consumer, KeyError, Partitions, Pruner, Retention, Role, RoleError, Schema, SchemaError,
};
use std::time::Duration;

pub(crate) const SCHEMA: &str = "LAMBDA_INBOX_SCHEMA";
pub(crate) const RETENTION: &str = "LAMBDA_INBOX_RETENTION";
pub(crate) const PER_CONSUMER: &str = "LAMBDA_INBOX_RETENTION_PER_CONSUMER";
pub(crate) const FAILURES: &str = "LAMBDA_INBOX_FAILURE_RETENTION";
pub(crate) const BATCH_ROWS: &str = "LAMBDA_INBOX_PRUNE_BATCH_ROWS";
pub(crate) const FORCE: &str = "LAMBDA_INBOX_PRUNE_FORCE";
pub(crate) const QUEUES: &str = "LAMBDA_INBOX_QUEUES";
pub(crate) const QUEUE_RETENTION: &str = "LAMBDA_INBOX_QUEUE_RETENTION";
pub(crate) const DEAD_LETTERS: &str = "LAMBDA_INBOX_DEAD_LETTERS";
pub(crate) const LAYOUT: &str = "LAMBDA_INBOX_LAYOUT";
pub(crate) const PARTITIONS: &str = "LAMBDA_INBOX_PARTITIONS";
pub(crate) const CONSUMER_ROLES: &str = "LAMBDA_INBOX_CONSUMER_ROLES";
pub(crate) const CONSUMER_POOLED: &str = "LAMBDA_INBOX_CONSUMER_POOLED";
pub(crate) const PRUNE_ROLE: &str = "LAMBDA_INBOX_PRUNE_ROLE";

const DURATION: &str = "a duration such as 14d or 36h";

/// What the functions of this crate are told by their environment.
///
/// | variable | default | meaning |
/// |---|---|---|
/// | `LAMBDA_INBOX_SCHEMA` | `lambda_inbox` | schema of the tables |
/// | `LAMBDA_INBOX_RETENTION` | `14d` | how long keys are kept, counted from when they were processed; 12 hours of grace are added |
/// | `LAMBDA_INBOX_RETENTION_PER_CONSUMER` | none | `edi-invoic=35d,payments=14d` |
/// | `LAMBDA_INBOX_FAILURE_RETENTION` | `30d` | how long rows of the failure log are kept |
/// | `LAMBDA_INBOX_PRUNE_BATCH_ROWS` | 5000 | rows a transaction deletes at most |
/// | `LAMBDA_INBOX_QUEUES` | none | `[consumer=]URL or ARN, ...`: asked how long they keep their messages |
/// | `LAMBDA_INBOX_QUEUE_RETENTION` | `14d` | `[consumer=]duration, ...`: how long messages can come back, where no queue is asked |
/// | `LAMBDA_INBOX_DEAD_LETTERS` | `stay` | or `come-back`: whether dead letters come back under their keys |
/// | `LAMBDA_INBOX_PRUNE_FORCE` | `off` | or `on`: prunes in spite of a retention that is too short |
/// | `LAMBDA_INBOX_LAYOUT` | `keyed` | or `time-ordered`: which tables are created |
/// | `LAMBDA_INBOX_PARTITIONS` | `none` | or `daily`: of the time-ordered table |
/// | `LAMBDA_INBOX_CONSUMER_ROLES` | none | `payments,edi_invoic`: database roles that the migration makes where they are not there, and grants what a consumer needs |
/// | `LAMBDA_INBOX_CONSUMER_POOLED` | `off` | or `on`: those roles connect through RDS Proxy or PgBouncer, and get the timeouts that the inbox cannot set there |
/// | `LAMBDA_INBOX_PRUNE_ROLE` | none | the same for the prune's role |
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) schema: Schema,
    pub(crate) retention: Retention,
    pub(crate) batch_rows: u32,
    pub(crate) force: bool,
    pub(crate) queues: Vec<Queue>,
    pub(crate) queue_retention: Vec<(Option<Consumer>, Duration)>,
    #[cfg_attr(
        not(any(feature = "sqs", test)),
        expect(dead_code, reason = "queues are not asked")
    )]
    pub(crate) dead_letters: DeadLetters,
    pub(crate) layout: Layout,
    pub(crate) consumer_roles: Vec<Role>,
    pub(crate) consumers_are_pooled: bool,
    pub(crate) prune_role: Option<Role>,
}

impl Settings {
    /// Reads the environment.
    ///
    /// # Errors
    /// [`SettingsError`] that names the variable and its rule.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::read(|name| std::env::var(name).ok())
    }

    pub(crate) fn read(read: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let read = |name: &'static str| {
            let value = read(name).map(|value| value.trim().to_owned());
            value.filter(|value| !value.is_empty())
        };
        let schema = read(SCHEMA).map(|name| Schema::new(name).map_err(SettingsError::Schema));
        let queues = list(QUEUES, &read, "URLs or ARNs of SQS queues", Address::parse)?;
        let queues = queues
            .into_iter()
            .map(|(consumer, address)| Queue { consumer, address });
        Ok(Self {
            schema: schema.transpose()?.unwrap_or_default(),
            retention: retention(&read)?,
            batch_rows: batch_rows(&read)?,
            force: word(FORCE, &read, "on or off", is_on)?.unwrap_or_default(),
            queues: queues.collect(),
            queue_retention: list(QUEUE_RETENTION, &read, DURATION, parse)?,
            dead_letters: word(DEAD_LETTERS, &read, "stay or come-back", dead_letters)?
                .unwrap_or_default(),
            layout: layout(&read)?,
            consumer_roles: roles(CONSUMER_ROLES, &read)?,
            consumers_are_pooled: word(CONSUMER_POOLED, &read, "on or off", is_on)?
                .unwrap_or_default(),
            prune_role: role(PRUNE_ROLE, &read)?,
        })
    }
}

fn retention(read: &impl Fn(&'static str) -> Option<String>) -> Result<Retention, SettingsError> {
    let keys = word(RETENTION, read, DURATION, parse)?.unwrap_or(Retention::KEYS_DEFAULT);
    let mut retention = Retention::new(keys);
    if let Some(failures) = word(FAILURES, read, DURATION, parse)? {
        retention = retention.failures(failures);
    }
    let rule = "consumers with durations, such as edi-invoic=35d,payments=14d";
    for (consumer, keys) in list(PER_CONSUMER, read, rule, parse)? {
        let value = || read(PER_CONSUMER).unwrap_or_default();
        let consumer = consumer.ok_or_else(|| invalid(PER_CONSUMER, value(), rule))?;
        retention = retention.consumer(consumer, keys);
    }
    Ok(retention)
}

fn batch_rows(read: &impl Fn(&'static str) -> Option<String>) -> Result<u32, SettingsError> {
    let number = |text: &str| {
        text.parse()
            .ok()
            .filter(|rows| (1..=Pruner::BATCH_ROWS_MAX).contains(rows))
    };
    let rows = word(BATCH_ROWS, read, "a number from 1 to 100000", number)?;
    Ok(rows.unwrap_or(Pruner::BATCH_ROWS_DEFAULT))
}

fn layout(read: &impl Fn(&'static str) -> Option<String>) -> Result<Layout, SettingsError> {
    let name = read(LAYOUT);
    let partitions = word(PARTITIONS, read, "daily or none", partitions)?;
    if let Some(layout) = Layout::new(name.as_deref(), partitions) {
        return Ok(layout);
    }
    Err(match name.as_deref() {
        None | Some("keyed") => {
            let value = read(PARTITIONS).unwrap_or_default();
            invalid(
                PARTITIONS,
                value,
                "none: only the layout time-ordered has partitions",
            )
        }
        Some(other) => invalid(LAYOUT, other.to_owned(), "keyed or time-ordered"),
    })
}

fn roles(
    name: &'static str,
    read: &impl Fn(&'static str) -> Option<String>,
) -> Result<Vec<Role>, SettingsError> {
    let text = read(name).unwrap_or_default();
    let roles = text
        .split(',')
        .map(str::trim)
        .filter(|role| !role.is_empty());
    roles
        .map(|role| Role::new(role).map_err(|source| SettingsError::Role { name, source }))
        .collect()
}

fn role(
    name: &'static str,
    read: &impl Fn(&'static str) -> Option<String>,
) -> Result<Option<Role>, SettingsError> {
    let role = read(name).map(Role::new).transpose();
    role.map_err(|source| SettingsError::Role { name, source })
}

pub(crate) fn partitions(word: &str) -> Option<Partitions> {
    match word {
        "daily" => Some(Partitions::Daily),
        "none" => Some(Partitions::None),
        _ => None,
    }
}

fn is_on(word: &str) -> Option<bool> {
    match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn dead_letters(word: &str) -> Option<DeadLetters> {
    match word {
        "stay" => Some(DeadLetters::Stay),
        "come-back" => Some(DeadLetters::ComeBack),
        _ => None,
    }
}

/// One value.
fn word<T>(
    name: &'static str,
    read: &impl Fn(&'static str) -> Option<String>,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, SettingsError> {
    read(name)
        .map(|value| parse(&value).ok_or_else(|| invalid(name, value, expected)))
        .transpose()
}

/// Values that may have a consumer each.
fn list<T>(
    name: &'static str,
    read: &impl Fn(&'static str) -> Option<String>,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<(Option<Consumer>, T)>, SettingsError> {
    let text = read(name).unwrap_or_default();
    entries(&text)
        .map_err(|source| SettingsError::Consumer { name, source })?
        .into_iter()
        .map(|(consumer, value)| match parse(value) {
            Some(value) => Ok((consumer, value)),
            None => Err(invalid(name, text.clone(), expected)),
        })
        .collect()
}

fn invalid(name: &'static str, value: String, expected: &'static str) -> SettingsError {
    SettingsError::Invalid {
        name,
        value,
        expected,
    }
}

/// The environment does not say what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A variable's value.
    #[error("{name} is {value:?}, expected {expected}")]
    Invalid {
        /// The variable.
        name: &'static str,
        /// What it says.
        value: String,
        /// What it may say.
        expected: &'static str,
    },
    /// A consumer's name in a variable.
    #[error("{name} names a consumer that cannot be")]
    Consumer {
        /// The variable.
        name: &'static str,
        /// The rule.
        source: KeyError,
    },
    /// A role's name in a variable.
    #[error("{name} names a role that cannot be")]
    Role {
        /// The variable.
        name: &'static str,
        /// The rule.
        source: RoleError,
    },
    /// The schema's name.
    #[error("{SCHEMA} cannot be used")]
    Schema(#[source] SchemaError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::chain;
    use std::collections::HashMap;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        Settings::read(|name| variables.get(name).map(|value| (*value).to_owned()))
    }

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn every_variable_is_read() {
        let settings = read(&[
            (SCHEMA, "other"),
            (RETENTION, "21d"),
            (PER_CONSUMER, "edi-invoic=35d, payments=14d 12h"),
            (FAILURES, "7d"),
            (BATCH_ROWS, "100"),
            (FORCE, "on"),
            (QUEUES, "arn:aws:sqs:eu-central-1:111122223333:orders"),
            (QUEUE_RETENTION, "4d,edi-invoic=28d"),
            (DEAD_LETTERS, "come-back"),
            (LAYOUT, "time-ordered"),
            (PARTITIONS, "daily"),
            (CONSUMER_ROLES, "payments, edi_invoic"),
            (CONSUMER_POOLED, "on"),
            (PRUNE_ROLE, "prune"),
        ])
        .unwrap();
        let edi = Consumer::new("edi-invoic").unwrap();
        assert_eq!(settings.schema.name(), "other");
        assert_eq!(settings.retention.of_others(), 21 * DAY);
        assert_eq!(settings.retention.of(&edi), 35 * DAY);
        assert_eq!(settings.retention.of_failures(), 7 * DAY);
        assert_eq!((settings.batch_rows, settings.force), (100, true));
        assert_eq!(settings.queues.len(), 1);
        let given = [(None, 4 * DAY), (Some(edi), 28 * DAY)];
        assert_eq!(settings.queue_retention, given);
        assert_eq!(settings.dead_letters, DeadLetters::ComeBack);
        assert_eq!(settings.layout, Layout::TimeOrdered(Partitions::Daily));
        let roles = settings.consumer_roles.iter().chain(&settings.prune_role);
        let roles: Vec<_> = roles.map(Role::name).collect();
        assert_eq!(roles, ["payments", "edi_invoic", "prune"]);
        assert!(settings.consumers_are_pooled);
    }

    #[test]
    fn nothing_said_is_fourteen_days_in_the_keyed_table() {
        let settings = read(&[(RETENTION, " ")]).unwrap();
        assert_eq!(settings.retention, Retention::default());
        assert_eq!((settings.batch_rows, settings.force), (5_000, false));
        assert_eq!(settings.layout, Layout::Keyed);
        assert_eq!(
            (settings.consumer_roles, settings.prune_role),
            (vec![], None)
        );
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_rule() {
        for (name, value, text) in [
            (SCHEMA, "a b", "letters, digits"),
            (RETENTION, "14", "14d or 36h"),
            (RETENTION, "soon", "14d or 36h"),
            (PER_CONSUMER, "35d", "edi-invoic=35d"),
            (PER_CONSUMER, "edi=35", "edi-invoic=35d"),
            (PER_CONSUMER, "e d i=35d", "names a consumer"),
            (FAILURES, "x", "14d or 36h"),
            (BATCH_ROWS, "0", "1 to 100000"),
            (BATCH_ROWS, "many", "1 to 100000"),
            (FORCE, "yes", "on or off"),
            (QUEUES, "orders", "URLs or ARNs"),
            (QUEUE_RETENTION, "14", "14d or 36h"),
            (DEAD_LETTERS, "perhaps", "come-back"),
            (LAYOUT, "columnar", "time-ordered"),
            (PARTITIONS, "hourly", "daily or none"),
            (PARTITIONS, "daily", "only the layout time-ordered"),
            (CONSUMER_ROLES, "payments,edi-invoic", "letters, digits"),
            (CONSUMER_POOLED, "yes", "on or off"),
            (PRUNE_ROLE, "pg_prune", "letters, digits"),
        ] {
            let error = chain(&read(&[(name, value)]).unwrap_err());
            assert!(
                error.contains(text) && error.contains(name),
                "{name}: {error}"
            );
        }
    }
}
