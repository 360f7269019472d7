//! What a deployment runs before the consumer: the inbox's tables and roles, then the example's own tables.
//! A consumer of your own would run its migrations here, with `sqlx::migrate!` or what you are used to.

use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox_functions::{install_log, migrate_with};
use lambda_runtime::service_fn;

/// Each of them changes nothing where it has been run before.
const OWN: [&str; 3] = [
    include_str!("../../schema.sql"),
    include_str!("../../grants.sql"),
    include_str!("../../accounts.sql"),
];

async fn own_tables(
    owner: &mut PgConnection,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    for script in OWN {
        sqlx::raw_sql(script).execute(&mut *owner).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    install_log();
    let migrate = |event| migrate_with(event, |owner| Box::pin(own_tables(owner)));
    lambda_runtime::run(service_fn(migrate)).await
}
