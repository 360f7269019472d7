//! Creates or upgrades the inbox's tables: `DATABASE_URL=... cargo run -p lambda-inbox-store --example
//! migrate`. `LAMBDA_INBOX_SCHEMA` names another schema than `lambda_inbox`.

use lambda_inbox_store::{Schema, migrate};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("migrate: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<String, Box<dyn Error>> {
    let url = std::env::var("DATABASE_URL").unwrap_or_default();
    let options = PgConnectOptions::from_str(&url).map_err(|_| {
        "DATABASE_URL is not set, or is no URL; it looks like \
         postgres://user:password@host:5432/database"
    })?;
    let schema = match std::env::var("LAMBDA_INBOX_SCHEMA") {
        Ok(name) => Schema::new(name)?,
        Err(_) => Schema::default(),
    };
    let mut connection = PgConnection::connect_with(&options).await?;
    let migrated = migrate(&mut connection, &schema).await?;
    Ok(format!(
        "schema {schema}: version {} (was {})",
        migrated.after, migrated.before
    ))
}
