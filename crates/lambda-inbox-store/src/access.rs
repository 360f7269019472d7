//! A database role for each function, with what its statements need and no more.

use crate::schema::{NAME_BYTES_MAX, NotOrdinary, Schema, ordinary};
use sqlx::{AssertSqlSafe, PgConnection};
use std::fmt;

/// Roles belong to all databases of a server, and the lock in the script to one.
const ATTEMPTS_MAX: u32 = 3;

/// What a function does, and with it what its database role may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Handles messages: reads, writes and withdraws keys, adds to the failure log.
    Consumer,
    /// The same through RDS Proxy, or PgBouncer in transaction mode: the role has its timeouts itself.
    PooledConsumer,
    /// Forgets old keys: reads and deletes keys and entries of the failure log.
    Prune,
}

impl Duty {
    /// The name that the template uses, and that stands in the script.
    pub const fn default_role(self) -> &'static str {
        match self {
            Self::Consumer | Self::PooledConsumer => "lambda_inbox_consumer",
            Self::Prune => "lambda_inbox_prune",
        }
    }

    fn scripts(self) -> &'static [&'static str] {
        const CONSUMER: &str = include_str!("../roles/consumer.sql");
        match self {
            Self::Consumer => &[CONSUMER],
            Self::PooledConsumer => &[CONSUMER, include_str!("../roles/pooled.sql")],
            Self::Prune => &[include_str!("../roles/prune.sql")],
        }
    }
}

/// A database role's name: a letter or underscore, then letters, digits, underscores or dollar signs, at
/// most 63 bytes. Case is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role(String);

impl Role {
    /// Takes a name.
    ///
    /// # Errors
    /// [`RoleError`] for anything else, and for names that Postgres keeps for itself (`pg_...`).
    pub fn new(name: impl Into<String>) -> Result<Self, RoleError> {
        ordinary(name.into()).map(Self).map_err(RoleError)
    }

    /// The name as given.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Creates the role where it is not there, and grants it what its duty needs in `schema`, whose tables
/// must be there. All of it or nothing; running it again changes nothing. What somebody has set for the role
/// stays, and a role that was there keeps the way in which it logs in. On RDS a new one logs in by IAM.
///
/// The scripts are in `roles/` of this crate. On RDS with PostgreSQL 16 or later, making a role takes its master
/// user, because `GRANT rds_iam` does.
///
/// # Errors
/// [`GrantError`]; nothing is changed then.
pub async fn grant(
    connection: &mut PgConnection,
    schema: &Schema,
    role: &Role,
    duty: Duty,
) -> Result<(), GrantError> {
    let sql = script(schema, role, duty);
    let mut attempt = 1;
    loop {
        let script = sqlx::raw_sql(AssertSqlSafe(sql.as_str()));
        match script.execute(&mut *connection).await {
            Ok(_) => return Ok(()),
            Err(error) if attempt < ATTEMPTS_MAX && is_race(&error) => attempt += 1,
            Err(source) => {
                let role = role.clone();
                return Err(GrantError { role, source });
            }
        }
    }
}

/// Both names are checked, so the text is safe.
fn script(schema: &Schema, role: &Role, duty: Duty) -> String {
    let default_schema = Schema::DEFAULT;
    let schema = schema.quoted();
    // Names may have dollar signs in them, but none is as long as this quote.
    let quote = format!("${}$", "_".repeat(NAME_BYTES_MAX));
    duty.scripts()
        .join("\n")
        .replace("$$", &quote)
        .replace(&format!("{default_schema}."), &format!("{schema}."))
        .replace(
            &format!("SCHEMA {default_schema} "),
            &format!("SCHEMA {schema} "),
        )
        .replace(duty.default_role(), role.name())
}

/// Somebody made the same role, or changed it, in the same moment: `unique_violation`, `duplicate_object`,
/// and what the server calls an internal error, "tuple concurrently updated".
fn is_race(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("23505" | "42710" | "XX000"))
}

/// A role did not get what it needs.
#[derive(Debug, thiserror::Error)]
#[error(
    "role {role} cannot be created or granted what it needs; connect as the tables' owner, who needs \
     CREATEROLE for a role that is not there (on RDS with PostgreSQL 16 and later, connect as the master user, \
     or create the role and GRANT rds_iam to it before)"
)]
pub struct GrantError {
    role: Role,
    source: sqlx::Error,
}

/// A role name that is not an ordinary identifier.
#[derive(Debug, thiserror::Error)]
#[error("role name {0}")]
pub struct RoleError(NotOrdinary);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_and_role_are_the_configured_ones_throughout() {
        let schema = Schema::new("Other").unwrap();
        let role = Role::new("Mine").unwrap();
        for duty in [Duty::Consumer, Duty::PooledConsumer, Duty::Prune] {
            let sql = script(&schema, &role, duty);
            let statements: String = sql.lines().filter(|line| !line.starts_with("--")).collect();
            assert!(statements.contains("CREATE ROLE \"Mine\" LOGIN"), "{sql}");
            assert!(statements.contains("ON SCHEMA \"Other\" TO"), "{sql}");
            assert!(!statements.contains("lambda_inbox"), "{sql}");
        }
    }

    #[test]
    fn a_role_that_needs_quotes_is_refused_with_the_rule() {
        for name in ["", "my-role", "a'b", "a\"b", "pg_monitor"] {
            let error = Role::new(name).unwrap_err().to_string();
            assert!(error.contains("letters, digits"), "{name}: {error}");
        }
    }
}
