//! A connection, opened with what is valid now, in a bounded time, or an error that names the fix.

use crate::error::ConnectError;
use crate::login::{Attempt, Login};
use crate::relay;
use crate::settings::{self, SettingsError};
use crate::tls::{Tls, is_local};
use lambda_inbox_store::{Connecting, ConnectionSource, Opened, SourceError, sqlstate};
use rustls::CertificateError;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{Connection as _, PgConnection};
use std::fmt;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The most time that one call may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Opens connections to one database.
pub struct Source {
    login: Login,
    tls: Tls,
    pooled: bool,
}

impl Source {
    pub(crate) fn new(login: Login, tls: Tls) -> Self {
        Self {
            login,
            tls,
            pooled: false,
        }
    }

    /// As the environment says; see the [crate's documentation](crate). Never connects, but reads the file
    /// of certificates.
    ///
    /// # Errors
    /// [`SettingsError`] that names the variable and the fix.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// As [`Source::from_env`], with variables from elsewhere.
    ///
    /// # Errors
    /// [`SettingsError`] that names the variable and the fix.
    pub fn from_variables(
        read: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        settings::source(read)
    }

    /// For a connection through RDS Proxy, or PgBouncer in transaction mode: nothing is sent at start-up
    /// that they refuse.
    #[must_use]
    pub fn pooled(self) -> Self {
        Self {
            pooled: true,
            ..self
        }
    }

    /// Whether it is for a connection through a pooler.
    pub fn is_pooled(&self) -> bool {
        self.pooled
    }

    pub(crate) fn has_options(&self) -> bool {
        match &self.login {
            Login::Fixed(options) => options.get_options().is_some(),
            #[cfg(feature = "secrets-manager")]
            Login::Secret(_) => PgConnectOptions::new_without_pgpass()
                .get_options()
                .is_some(),
            #[cfg(feature = "iam")]
            Login::Iam(_) => PgConnectOptions::new_without_pgpass()
                .get_options()
                .is_some(),
        }
    }

    /// Opens a connection, in at most five seconds and not beyond `until`. Where the server refuses a
    /// password, the secret is read once more, and what it says then is tried once.
    ///
    /// Cancel safe: a dropped attempt closes its socket.
    ///
    /// # Errors
    /// [`SourceError`]; its cause is a [`ConnectError`], or the driver's error where there is nothing to
    /// add to that.
    pub async fn connect(&self, until: Instant) -> Result<Opened, SourceError> {
        let until = until.min(Instant::now() + CONNECT_MAX);
        let mut attempt = self.login.attempt(until).await?;
        let mut is_first = true;
        loop {
            let options = self.options(&attempt);
            self.tls.warn_if_weak(&options);
            let refusal = match open(&options, until).await {
                Ok(opened) => return Ok(opened),
                Err(Failure::Driver(error)) if is_login_refused(&error) => error,
                Err(failure) => return Err(failure.explain(&options, self.pooled)),
            };
            let another = if is_first {
                self.login.another(&attempt, until).await?
            } else {
                None
            };
            let Some(another) = another else {
                return Err(self.explain_refusal(refusal, &options));
            };
            attempt = another;
            is_first = false;
        }
    }

    fn options(&self, attempt: &Attempt) -> PgConnectOptions {
        let options = self.tls.apply(attempt.options.clone());
        if self.pooled {
            options.extra_float_digits(None)
        } else {
            options
        }
    }

    #[cfg_attr(not(feature = "iam"), allow(clippy::unused_self, unused_variables))]
    fn explain_refusal(&self, error: sqlx::Error, options: &PgConnectOptions) -> SourceError {
        match &self.login {
            #[cfg(feature = "iam")]
            Login::Iam(_) => {
                let user = options.get_username().to_owned();
                SourceError::unreachable(ConnectError::TokenRefused {
                    user,
                    source: error,
                })
            }
            Login::Fixed(_) => SourceError::database(error),
            #[cfg(feature = "secrets-manager")]
            Login::Secret(_) => SourceError::database(error),
        }
    }
}

impl ConnectionSource for Source {
    fn connect(&self, until: Instant) -> Connecting<'_> {
        Box::pin(self.connect(until))
    }

    fn forget(&self) {
        self.login.forget();
    }

    fn is_pooled(&self) -> bool {
        self.pooled
    }
}

/// The options as they are: who wrote them has decided about TLS. But sqlx's default, `Prefer`, is no decision: a
/// server that is not on this machine must prove who it is then.
impl From<PgConnectOptions> for Source {
    fn from(options: PgConnectOptions) -> Self {
        let mode = Some(options.get_ssl_mode()).filter(|mode| !matches!(mode, PgSslMode::Prefer));
        Self::new(Login::Fixed(Box::new(options)), Tls::new(mode, None))
    }
}

impl fmt::Debug for Source {
    // Written by hand: there is a password somewhere in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("pooled", &self.pooled)
            .finish_non_exhaustive()
    }
}

enum Failure {
    Late,
    Driver(sqlx::Error),
}

async fn open(options: &PgConnectOptions, until: Instant) -> Result<Opened, Failure> {
    let opening = async {
        let relay = if needs_relay(options) {
            relay::start(options).await?
        } else {
            None
        };
        // In one place, because it is large code.
        let way = relay.as_ref().map_or(options, |(inside, _)| inside);
        let connection = PgConnection::connect_with(way).await?;
        Ok(match relay {
            Some((_, relay)) => Opened::guarded(connection, relay),
            None => Opened::new(connection),
        })
    };
    match timeout_at(until, opening).await {
        Ok(opened) => opened.map_err(Failure::Driver),
        Err(_) => Err(Failure::Late),
    }
}

/// Whether the connection will be encrypted. On this machine it usually is not where it need not be.
fn needs_relay(options: &PgConnectOptions) -> bool {
    if options.get_socket().is_some() || options.get_host().starts_with('/') {
        return false;
    }
    match options.get_ssl_mode() {
        PgSslMode::Disable | PgSslMode::Allow => false,
        PgSslMode::Prefer => !is_local(options),
        PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull => true,
    }
}

/// 28P01 is a wrong password; 28000 is what RDS says to a token, and Postgres to an unknown user.
fn is_login_refused(error: &sqlx::Error) -> bool {
    matches!(sqlstate(error).as_deref(), Some("28P01" | "28000"))
}

impl Failure {
    fn explain(self, options: &PgConnectOptions, is_pooled: bool) -> SourceError {
        let host = options.get_host().to_owned();
        let address = format!("{host}:{}", options.get_port());
        let source = match self {
            Self::Late => {
                return SourceError::unreachable(ConnectError::NoAnswer { address });
            }
            Self::Driver(error) => error,
        };
        if let Some(error) = certificate_error(&source) {
            return SourceError::setup(if is_unknown_issuer(error) {
                ConnectError::UnknownIssuer { host, source }
            } else if is_other_name(error) {
                ConnectError::OtherName { host, source }
            } else {
                ConnectError::Certificate { host, source }
            });
        }
        if matches!(source, sqlx::Error::Tls(_)) {
            return SourceError::setup(ConnectError::NoTls { host, source });
        }
        // RDS Proxy answers with the first, PgBouncer with the second, and not to options alone.
        let code = sqlstate(&source);
        if !is_pooled && matches!(code.as_deref(), Some("0A000" | "08P01")) {
            return SourceError::setup(ConnectError::StartUpRefused { source });
        }
        if matches!(source, sqlx::Error::Io(_)) {
            return SourceError::unreachable(ConnectError::Unreachable { address, source });
        }
        SourceError::database(source)
    }
}

fn certificate_error(error: &sqlx::Error) -> Option<&CertificateError> {
    let sqlx::Error::Io(error) = error else {
        return None;
    };
    let error: &rustls::Error = error.get_ref()?.downcast_ref()?;
    if let rustls::Error::InvalidCertificate(error) = error {
        Some(error)
    } else {
        None
    }
}

fn is_unknown_issuer(error: &CertificateError) -> bool {
    *error == CertificateError::UnknownIssuer
}

fn is_other_name(error: &CertificateError) -> bool {
    matches!(
        error,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_options_leave_to_the_driver_is_verified_unless_it_is_on_this_machine() {
        use PgSslMode::{Disable, Prefer, Require, VerifyFull};
        for (host, mode, expected) in [
            ("db.example", Prefer, VerifyFull),
            ("db.example", Require, Require),
            ("db.example", Disable, Disable),
            ("127.0.0.1", Prefer, Prefer),
        ] {
            let options = PgConnectOptions::new_without_pgpass().host(host);
            let options = options.ssl_mode(mode);
            let source = Source::from(options.clone());
            let found = source.tls.apply(options).get_ssl_mode();
            assert_eq!(
                format!("{found:?}"),
                format!("{expected:?}"),
                "{host}, {mode:?}"
            );
        }
    }
}
