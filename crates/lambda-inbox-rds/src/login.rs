//! How to log in. What is valid changes while the process lives, so it is asked for with each connection.

use lambda_inbox_store::SourceError;
use sqlx::postgres::PgConnectOptions;
use tokio::time::Instant;

#[cfg(feature = "aws")]
pub(crate) const PORT_DEFAULT: u16 = 5432;

/// What the environment says of the database.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "secrets-manager"), allow(dead_code))]
pub(crate) struct Place {
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) name: Option<String>,
    pub(crate) user: Option<String>,
}

pub(crate) enum Login {
    Fixed(Box<PgConnectOptions>),
    #[cfg(feature = "secrets-manager")]
    Secret(crate::secrets_manager::SecretLogin),
    #[cfg(feature = "iam")]
    Iam(crate::iam::IamLogin),
}

/// Options that are thought to be valid now.
pub(crate) struct Attempt {
    pub(crate) options: PgConnectOptions,
    /// What they were made from, to tell whether it has changed since.
    #[cfg(feature = "secrets-manager")]
    pub(crate) secret: Option<std::sync::Arc<crate::secret::Secret>>,
}

impl Attempt {
    pub(crate) fn new(options: PgConnectOptions) -> Self {
        Self {
            options,
            #[cfg(feature = "secrets-manager")]
            secret: None,
        }
    }
}

#[cfg_attr(not(feature = "secrets-manager"), allow(unused_variables))]
impl Login {
    pub(crate) async fn attempt(&self, until: Instant) -> Result<Attempt, SourceError> {
        match self {
            Self::Fixed(options) => Ok(Attempt::new((**options).clone())),
            #[cfg(feature = "secrets-manager")]
            Self::Secret(login) => login.attempt(until).await,
            #[cfg(feature = "iam")]
            Self::Iam(login) => login.attempt(until).await,
        }
    }

    /// Another attempt, where the server has refused the user or the password of the last one; `None`
    /// where it would be the same again.
    pub(crate) async fn another(
        &self,
        refused: &Attempt,
        until: Instant,
    ) -> Result<Option<Attempt>, SourceError> {
        match self {
            Self::Fixed(_) => Ok(None),
            #[cfg(feature = "secrets-manager")]
            Self::Secret(login) => login.another(refused, until).await,
            // Each attempt has a token of its own.
            #[cfg(feature = "iam")]
            Self::Iam(_) => Ok(None),
        }
    }

    pub(crate) fn forget(&self) {
        match self {
            Self::Fixed(_) => {}
            #[cfg(feature = "secrets-manager")]
            Self::Secret(login) => login.forget(),
            #[cfg(feature = "iam")]
            Self::Iam(login) => login.forget(),
        }
    }
}
