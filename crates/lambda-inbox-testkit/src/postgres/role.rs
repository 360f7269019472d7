//! Deployed functions do not connect as a superuser, and some take their settings from the role:
//! tests need such roles.

use std::sync::PoisonError;

use sqlx::postgres::PgConnectOptions;

use super::database::{close, execute, has_code};
use super::sql::{identifier, literal};
use super::{PostgresError, TestDatabase, server};

impl TestDatabase {
    /// Creates a login role with a random name and password, which is dropped with the database,
    /// and returns how to connect to this database as it.
    ///
    /// It may do everything with the database but drop it, creating schemas and using `public`
    /// included. Each of `settings` becomes a default of its sessions (`ALTER ROLE .. SET name =
    /// 'value'`).
    ///
    /// # Errors
    /// [`PostgresError::Connect`], [`PostgresError::MayNotCreate`], and
    /// [`PostgresError::Statement`], as for a setting that does not exist or is not the creating
    /// role's to set.
    pub async fn create_role(
        &self,
        settings: &[(&str, &str)],
    ) -> Result<PgConnectOptions, PostgresError> {
        let name = format!("{}_{}", self.name, &random()[..8]);
        let password = random();
        let mut connection = server::connect(&self.options()).await?;
        let role = identifier(&name);

        let statement = format!("CREATE ROLE {role} LOGIN PASSWORD{}", literal(&password));
        execute(&mut connection, statement)
            .await
            .map_err(|source| {
                let admin = self.admin.get_username().to_owned();
                if has_code(&source, "42501") {
                    PostgresError::MayNotCreate {
                        role: admin,
                        source,
                    }
                } else {
                    PostgresError::Statement {
                        action: "create a test role",
                        source,
                    }
                }
            })?;
        self.roles
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(name.clone());

        let mut statement = format!(
            "GRANT ALL ON DATABASE {} TO {role}; GRANT ALL ON SCHEMA public TO {role};",
            identifier(&self.name)
        );
        for (setting, value) in settings {
            let (setting, value) = (identifier(setting), literal(value));
            statement.push_str(&format!("ALTER ROLE {role} SET {setting} ={value};"));
        }
        execute(&mut connection, statement)
            .await
            .map_err(PostgresError::statement("set up a test role"))?;
        close(connection).await;
        Ok(self.options().username(&name).password(&password))
    }
}

fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}
