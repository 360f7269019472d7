//! IAM authentication: the password is a request to RDS, signed with the credentials of the function's role
//! and never sent. It is good for 15 minutes and needed at connect only, so each connection gets its own;
//! signing takes microseconds.
//!
//! <https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAMDBAuth.Connecting.html>

use crate::aws;
use crate::error::ConnectError;
use crate::login::Attempt;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign,
};
use aws_sigv4::sign::v4::SigningParams;
use lambda_inbox_store::SourceError;
use sqlx::postgres::PgConnectOptions;
use sqlx_core::percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, timeout_at};

/// The longest that RDS accepts.
const LIFETIME: Duration = Duration::from_secs(15 * 60);

/// Everything but RFC 3986's unreserved characters, as the signature demands.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// What a token is good for.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) region: String,
}

pub(crate) struct IamLogin {
    endpoint: Endpoint,
    name: String,
    provider: Mutex<Option<SharedCredentialsProvider>>,
    clock: fn() -> SystemTime,
}

impl IamLogin {
    pub(crate) fn new(endpoint: Endpoint, name: String) -> Self {
        Self {
            endpoint,
            name,
            provider: Mutex::default(),
            clock: SystemTime::now,
        }
    }

    pub(crate) async fn attempt(&self, until: Instant) -> Result<Attempt, SourceError> {
        let until = until.min(Instant::now() + aws::OPERATION);
        let credentials = timeout_at(until, self.credentials())
            .await
            .unwrap_or_else(|late| Err(late.into()))
            .map_err(|source| SourceError::unreachable(ConnectError::NoCredentials { source }))?;
        let token = token(&self.endpoint, credentials, (self.clock)())
            .map_err(|source| SourceError::setup(ConnectError::Signing { source }))?;
        let options = PgConnectOptions::new_without_pgpass()
            .host(&self.endpoint.host)
            .port(self.endpoint.port)
            .database(&self.name)
            .username(&self.endpoint.user)
            .password(&token);
        Ok(Attempt::new(options))
    }

    pub(crate) fn forget(&self) {
        *self.provider.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn credentials(&self) -> Result<Credentials, Box<dyn Error + Send + Sync>> {
        let provider = self
            .provider
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(aws::credentials)
            .clone();
        Ok(provider.provide_credentials().await?)
    }
}

/// The password for [`LIFETIME`] from `now`.
fn token(
    endpoint: &Endpoint,
    credentials: Credentials,
    now: SystemTime,
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let Endpoint {
        host,
        port,
        user,
        region,
    } = endpoint;
    let user = utf8_percent_encode(user, ESCAPED);
    let mut url = format!("https://{host}:{port}/?Action=connect&DBUser={user}");
    let mut settings = SigningSettings::default();
    settings.expires_in = Some(LIFETIME);
    settings.signature_location = SignatureLocation::QueryParams;
    let identity = credentials.into();
    let parameters = SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("rds-db")
        .time(now)
        .settings(settings)
        .build()?;
    let body = SignableBody::Bytes(&[]);
    let request = SignableRequest::new("GET", &url, std::iter::empty(), body)?;
    let (instructions, _signature) = sign(request, &parameters.into())?.into_parts();
    for (name, value) in instructions.params() {
        let value = utf8_percent_encode(value, ESCAPED);
        url.push_str(&format!("&{name}={value}"));
    }
    Ok(url.split_off("https://".len()))
}

#[cfg(test)]
#[path = "iam_tests.rs"]
mod tests;
