//! Behind a pooler nothing is set in a session, so the timeouts are the role's own. One that is missing
//! does no harm until something hangs; it is named in the log before that.

use sqlx::{PgConnection, Row};

/// What a role needs that speaks through a pooler: the setting, and a value that suits most functions.
const WANTED: [(&str, &str); 4] = [
    ("lock_timeout", "250ms"),
    ("statement_timeout", "30s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("client_connection_check_interval", "100ms"),
];

/// Warns of what the session's role lacks. One round trip, once a process.
pub(crate) async fn warn_of_missing_timeouts(pg: &mut PgConnection) -> Result<(), sqlx::Error> {
    let sql = "SELECT current_user::text, current_setting('lock_timeout'), \
               current_setting('statement_timeout'), \
               current_setting('idle_in_transaction_session_timeout'), \
               current_setting('client_connection_check_interval'), \
               current_setting('synchronous_commit')";
    let row = sqlx::raw_sql(sql).fetch_one(pg).await?;
    let role: String = row.try_get(0)?;
    let mut settings = Vec::new();
    for (place, (name, value)) in WANTED.iter().enumerate() {
        let current: String = row.try_get(place + 1)?;
        // Every one of them is off at zero, with or without a unit.
        if current.starts_with('0') {
            settings.push(alter(&role, name, value));
        }
    }
    let durable: String = row.try_get(WANTED.len() + 1)?;
    if durable == "off" {
        settings.push(alter(&role, "synchronous_commit", "on"));
    }
    if !settings.is_empty() {
        tracing::warn!(
            fix = settings.join(" "),
            "behind a pooler the role's own settings hold, and some are missing"
        );
    }
    Ok(())
}

fn alter(role: &str, name: &str, value: &str) -> String {
    let role = role.replace('"', "\"\"");
    format!("ALTER ROLE \"{role}\" SET {name} = '{value}';")
}
