//! A server with the roles that the migrate function makes. A server of its own, because roles belong to all
//! databases of one.

use lambda_inbox::{Schema, migrate};
use lambda_inbox_store::{Duty, Role, grant};
use lambda_inbox_testkit::postgres::Cluster;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

pub(crate) const GRANTS: &str = include_str!("../../examples/payments/grants.sql");

pub(crate) const CONSUMER: &str = "lambda_inbox_consumer";
pub(crate) const PRUNE: &str = "lambda_inbox_prune";
const PASSWORD: &str = "a-test's";

pub(crate) struct Database {
    cluster: Cluster,
}

impl Database {
    /// With the inbox, the tables of examples/payments, and an account with money.
    pub(crate) async fn start() -> Self {
        let cluster = Cluster::start().await.unwrap();
        let database = Self { cluster };
        let mut owner = database.owner().await;
        migrate(&mut owner, &Schema::default()).await.unwrap();
        database
            .apply(include_str!("../../examples/payments/schema.sql"))
            .await;
        database
            .apply("INSERT INTO account VALUES ('till', 1000), ('shop', 0)")
            .await;
        database.grant_all().await;
        database.apply(GRANTS).await;
        database
            .apply(
                "ALTER ROLE lambda_inbox_consumer PASSWORD 'a-test''s';
                 ALTER ROLE lambda_inbox_prune PASSWORD 'a-test''s'",
            )
            .await;
        database
    }

    pub(crate) async fn owner(&self) -> PgConnection {
        PgConnection::connect_with(&self.cluster.options())
            .await
            .unwrap()
    }

    pub(crate) async fn grant_all(&self) {
        let mut owner = self.owner().await;
        for duty in [Duty::PooledConsumer, Duty::Prune] {
            let role = Role::new(duty.default_role()).unwrap();
            grant(&mut owner, &Schema::default(), &role, duty)
                .await
                .unwrap();
        }
    }

    pub(crate) fn options(&self, role: &str) -> PgConnectOptions {
        self.cluster.options().username(role).password(PASSWORD)
    }

    pub(crate) async fn connect(&self, role: &str) -> PgConnection {
        PgConnection::connect_with(&self.options(role))
            .await
            .unwrap()
    }

    /// Another database of the server, as its owner.
    pub(crate) async fn database(&self, name: &str) -> PgConnection {
        let sql = format!("CREATE DATABASE {name}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut self.owner().await)
            .await
            .unwrap();
        PgConnection::connect_with(&self.cluster.options().database(name))
            .await
            .unwrap()
    }

    pub(crate) async fn apply(&self, script: &'static str) {
        let mut owner = self.owner().await;
        sqlx::raw_sql(script).execute(&mut owner).await.unwrap();
    }
}
