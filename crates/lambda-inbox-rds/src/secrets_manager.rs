//! A password in AWS Secrets Manager. It is read once, and again when the server no longer takes it: that
//! is how a warm function survives a rotation.

use crate::aws;
use crate::error::ConnectError;
use crate::login::{Attempt, PORT_DEFAULT, Place};
use crate::secret::Secret;
use crate::settings::{HOST, NAME, USER};
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_secretsmanager::config::retry::RetryConfig;
use aws_sdk_secretsmanager::config::timeout::TimeoutConfig;
use aws_sdk_secretsmanager::config::{BehaviorVersion, Region};
use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueError;
use aws_sdk_secretsmanager::{Client, Config};
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use lambda_inbox_store::SourceError;
use sqlx::postgres::PgConnectOptions;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// For one try.
const ATTEMPT: Duration = Duration::from_millis(1900);
const TRIES: u32 = 2;
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct SecretLogin {
    place: Place,
    arn: String,
    region: String,
    state: Mutex<State>,
    /// One reads, the others wait for what it has read.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    client: Option<Client>,
    secret: Option<Arc<Secret>>,
}

impl SecretLogin {
    /// `None` where `arn` is not a secret's.
    pub(crate) fn new(place: Place, arn: &str) -> Option<Self> {
        let mut parts = arn.splitn(7, ':');
        let (scheme, _partition, service, region) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let (_account, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
        let is_secret = scheme == "arn" && service == "secretsmanager" && kind == "secret";
        (is_secret && !region.is_empty() && !name.is_empty()).then(|| Self {
            place,
            arn: arn.to_owned(),
            region: region.to_owned(),
            state: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) async fn attempt(&self, until: Instant) -> Result<Attempt, SourceError> {
        let secret = self.secret(None, until).await?;
        self.attempt_with(secret)
    }

    /// Reads the secret again, unless somebody has done so since `refused` was made.
    pub(crate) async fn another(
        &self,
        refused: &Attempt,
        until: Instant,
    ) -> Result<Option<Attempt>, SourceError> {
        let Some(old) = &refused.secret else {
            return Ok(None);
        };
        let secret = self.secret(Some(old), until).await?;
        if secret == *old {
            return Ok(None);
        }
        self.attempt_with(secret).map(Some)
    }

    pub(crate) fn forget(&self) {
        *self.state() = State::default();
    }

    fn attempt_with(&self, secret: Arc<Secret>) -> Result<Attempt, SourceError> {
        let options = self.options(&secret).map_err(SourceError::setup)?;
        Ok(Attempt {
            options,
            secret: Some(secret),
        })
    }

    fn options(&self, secret: &Secret) -> Result<PgConnectOptions, ConnectError> {
        let missing = |variable| ConnectError::SecretIncomplete {
            variable,
            arn: self.arn.clone(),
        };
        let Place {
            host,
            port,
            name,
            user,
        } = &self.place;
        let host = host
            .as_ref()
            .or(secret.host.as_ref())
            .ok_or_else(|| missing(HOST))?;
        let name = name
            .as_ref()
            .or(secret.database())
            .ok_or_else(|| missing(NAME))?;
        let user = match (user, &secret.username) {
            (Some(expected), Some(found)) if expected != found => {
                return Err(ConnectError::SecretOfAnotherUser {
                    expected: expected.clone(),
                    found: found.clone(),
                    arn: self.arn.clone(),
                });
            }
            (user, username) => username
                .as_ref()
                .or(user.as_ref())
                .ok_or_else(|| missing(USER))?,
        };
        let port = port.or(secret.port()).unwrap_or(PORT_DEFAULT);
        Ok(PgConnectOptions::new_without_pgpass()
            .host(host)
            .port(port)
            .database(name)
            .username(user)
            .password(&secret.password))
    }

    /// The secret, but not `stale`.
    async fn secret(
        &self,
        stale: Option<&Arc<Secret>>,
        until: Instant,
    ) -> Result<Arc<Secret>, SourceError> {
        let until = until.min(Instant::now() + aws::OPERATION);
        let reading = async {
            let _turn = self.reading.lock().await;
            let known = self.state().secret.clone();
            match known {
                Some(secret) if !stale.is_some_and(|stale| Arc::ptr_eq(stale, &secret)) => {
                    Ok(secret)
                }
                _ => self.read().await,
            }
        };
        timeout_at(until, reading)
            .await
            .unwrap_or_else(|late| Err(SourceError::unreachable(self.unreachable(late))))
    }

    async fn read(&self) -> Result<Arc<Secret>, SourceError> {
        let client = self.client();
        let answer = client.get_secret_value().secret_id(&self.arn).send().await;
        let answer = answer.map_err(|error| self.explain(error))?;
        let malformed = || {
            SourceError::setup(ConnectError::SecretMalformed {
                arn: self.arn.clone(),
            })
        };
        let secret = answer
            .secret_string()
            .and_then(Secret::parse)
            .ok_or_else(malformed)?;
        let secret = Arc::new(secret);
        self.state().secret = Some(Arc::clone(&secret));
        Ok(secret)
    }

    fn client(&self) -> Client {
        self.state()
            .client
            .get_or_insert_with(|| Client::from_conf(self.config()))
            .clone()
    }

    fn config(&self) -> Config {
        // The cryptography that the database connection uses already.
        let http_client = aws_smithy_http_client::Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .build_https();
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(aws::CONNECT)
            .operation_attempt_timeout(ATTEMPT)
            .operation_timeout(aws::OPERATION)
            .build();
        let retries = RetryConfig::standard()
            .with_max_attempts(TRIES)
            .with_initial_backoff(PAUSE);
        let mut config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .credentials_provider(aws::credentials())
            .http_client(http_client)
            .timeout_config(timeouts)
            .retry_config(retries);
        config.set_endpoint_url(endpoint_from_env());
        config.build()
    }

    /// Of the SDK's error only texts are taken: it may hold the whole response.
    fn explain(&self, error: SdkError<GetSecretValueError>) -> SourceError {
        if let SdkError::ServiceError(answer) = &error {
            let code = answer.err().code().unwrap_or("no code");
            let text = answer.err().message().unwrap_or("no message");
            let arn = self.arn.clone();
            let source = format!("{code}: {text}").into();
            let refused = ConnectError::SecretRefused { arn, source };
            return if answer.raw().status().is_server_error() || code.contains("Throttl") {
                SourceError::unreachable(refused)
            } else {
                SourceError::setup(refused)
            };
        }
        SourceError::unreachable(if matches!(error, SdkError::ResponseError(_)) {
            self.unreachable("its answer was not understood")
        } else if has_no_credentials(&error) {
            let source = texts(&error).into();
            ConnectError::NoCredentials { source }
        } else {
            self.unreachable(texts(&error))
        })
    }

    fn unreachable(&self, source: impl Into<Box<dyn Error + Send + Sync>>) -> ConnectError {
        ConnectError::SecretsManagerUnreachable {
            endpoint: self.endpoint(),
            source: source.into(),
        }
    }

    fn endpoint(&self) -> String {
        endpoint_from_env()
            .unwrap_or_else(|| format!("https://secretsmanager.{}.amazonaws.com", self.region))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The variables that every SDK of AWS reads.
fn endpoint_from_env() -> Option<String> {
    ["AWS_ENDPOINT_URL_SECRETS_MANAGER", "AWS_ENDPOINT_URL"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|url| !url.is_empty())
}

fn has_no_credentials(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<CredentialsError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn texts(error: &dyn Error) -> String {
    let mut texts = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push_str(": ");
        texts.push_str(&error.to_string());
        cause = error.source();
    }
    texts
}

#[cfg(test)]
#[path = "secrets_manager_tests.rs"]
mod tests;
