//! One convention for every binary: which variables name a database, and which go together.

use crate::ca::Ca;
use crate::login::{Login, Place};
use crate::source::Source;
use crate::tls::Tls;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx_core::Url;
use std::io;

const DATABASE_URL: &str = "DATABASE_URL";
pub(crate) const HOST: &str = "LAMBDA_INBOX_DB_HOST";
const PORT: &str = "LAMBDA_INBOX_DB_PORT";
pub(crate) const NAME: &str = "LAMBDA_INBOX_DB_NAME";
pub(crate) const USER: &str = "LAMBDA_INBOX_DB_USER";
pub(crate) const SECRET_ARN: &str = "LAMBDA_INBOX_DB_SECRET_ARN";
const AUTH: &str = "LAMBDA_INBOX_DB_AUTH";
const REGION: &str = "LAMBDA_INBOX_DB_REGION";
const AWS_REGION: &str = "AWS_REGION";
const TLS: &str = "LAMBDA_INBOX_DB_TLS";
const CA: &str = "LAMBDA_INBOX_DB_CA";
const POOLED: &str = "LAMBDA_INBOX_DB_POOLED";

/// What names a database without `DATABASE_URL`.
const PARTS: [&str; 7] = [HOST, PORT, NAME, USER, SECRET_ARN, AUTH, REGION];

/// What of a URL's query decides about TLS, as sqlx spells it.
const SSL_MODE: [&str; 2] = ["sslmode", "ssl-mode"];
const SSL_ROOT_CERT: [&str; 3] = ["sslrootcert", "ssl-root-cert", "ssl-ca"];

/// The variables as `read` finds them; empty ones count as absent.
pub(crate) fn source(
    read: impl Fn(&'static str) -> Option<String>,
) -> Result<Source, SettingsError> {
    let read = |name: &'static str| read(name).filter(|value| !value.is_empty());
    let part = PARTS.into_iter().find(|name| read(name).is_some());
    let source = match (read(DATABASE_URL), part) {
        (Some(_), Some(part)) => {
            return Err(SettingsError::Conflict {
                one: DATABASE_URL,
                other: part,
            });
        }
        (Some(url), None) => from_url(&url, &read)?,
        (None, Some(_)) => from_parts(&read)?,
        (None, None) => return Err(SettingsError::NoDatabase),
    };
    match read(POOLED).as_deref() {
        None | Some("off") => Ok(source),
        Some("on") if source.has_options() => Err(SettingsError::PooledOptions),
        Some("on") => Ok(source.pooled()),
        Some(value) => Err(invalid(POOLED, value, "on or off")),
    }
}

fn from_url(
    text: &str,
    read: &impl Fn(&'static str) -> Option<String>,
) -> Result<Source, SettingsError> {
    // The parsers' errors do not quote the URL, but what they say of the part after a password with a "#"
    // or "/" in it is misleading.
    let url = Url::parse(text).map_err(|_| SettingsError::DatabaseUrl)?;
    if !matches!(url.scheme(), "postgres" | "postgresql") {
        return Err(SettingsError::DatabaseUrl);
    }
    // A password with one of these in it may still make a URL, of another place: "app:12/hunter2@host" is the
    // host "app". The driver would log what it does not know, with its value.
    let is_cut = url.fragment().is_some() || url.path().contains('@');
    if is_cut || url.query().is_some_and(|query| query.contains('@')) {
        return Err(SettingsError::DatabaseUrl);
    }
    let mut parameters = url.query_pairs().map(|(name, _)| name);
    if let Some(name) = parameters.find(|name| !is_parameter(name)) {
        return Err(SettingsError::UrlParameter {
            name: name.into_owned(),
        });
    }
    let mut options = PgConnectOptions::from_url(&url).map_err(|_| SettingsError::DatabaseUrl)?;
    if let Some(address) = in_brackets(options.get_host()) {
        options = options.host(&address);
    }
    let parameter = |names: &[&str]| {
        let mut pairs = url.query_pairs();
        let pair = pairs.find(|(name, _)| names.contains(&name.as_ref()))?;
        Some(pair.1.into_owned())
    };
    let in_url = parameter(&SSL_MODE).map(|_| options.get_ssl_mode());
    let mode = match (in_url, mode(read)?) {
        (Some(_), Some(_)) => return Err(twice(TLS, "sslmode")),
        (in_url, mode) => in_url.or(mode),
    };
    let ca = match (parameter(&SSL_ROOT_CERT), read(CA)) {
        (Some(_), Some(_)) => return Err(twice(CA, "sslrootcert")),
        (in_url, ca) => Ca::load(in_url.or(ca))?,
    };
    Ok(Source::new(
        Login::Fixed(Box::new(options)),
        Tls::new(mode, ca),
    ))
}

fn from_parts(read: &impl Fn(&'static str) -> Option<String>) -> Result<Source, SettingsError> {
    let port = match read(PORT) {
        Some(value) => match value.parse() {
            Ok(port) => Some(port),
            Err(_) => return Err(invalid(PORT, &value, "a port number")),
        },
        None => None,
    };
    let place = Place {
        host: read(HOST),
        port,
        name: read(NAME),
        user: read(USER),
    };
    let tls = Tls::new(mode(read)?, Ca::load(read(CA))?);
    match (read(AUTH).as_deref(), read(SECRET_ARN)) {
        (Some("iam"), Some(_)) => Err(SettingsError::Conflict {
            one: "LAMBDA_INBOX_DB_AUTH=iam",
            other: SECRET_ARN,
        }),
        (Some("iam"), None) => iam(place, read(REGION).or_else(|| read(AWS_REGION)), tls),
        (Some(value), _) => Err(invalid(AUTH, value, "iam, or to be absent")),
        (None, Some(arn)) => secret(place, &arn, tls),
        (None, None) => Err(SettingsError::NoLogin),
    }
}

#[cfg(feature = "secrets-manager")]
fn secret(place: Place, arn: &str, tls: Tls) -> Result<Source, SettingsError> {
    let login = crate::secrets_manager::SecretLogin::new(place, arn).ok_or_else(|| {
        let expected =
            "an ARN like arn:aws:secretsmanager:eu-west-1:123456789012:secret:name-AbCdEf";
        invalid(SECRET_ARN, arn, expected)
    })?;
    Ok(Source::new(Login::Secret(login), tls))
}

#[cfg(not(feature = "secrets-manager"))]
fn secret(_: Place, _: &str, _: Tls) -> Result<Source, SettingsError> {
    Err(SettingsError::NotBuiltIn {
        variable: SECRET_ARN,
        feature: "secrets-manager",
    })
}

#[cfg(feature = "iam")]
fn iam(place: Place, region: Option<String>, tls: Tls) -> Result<Source, SettingsError> {
    let needed = |value: Option<String>, name| {
        value.ok_or(SettingsError::Missing {
            name,
            why: "a token is made for one user, host and region",
        })
    };
    let endpoint = crate::iam::Endpoint {
        host: needed(place.host, HOST)?,
        port: place.port.unwrap_or(crate::login::PORT_DEFAULT),
        user: needed(place.user, USER)?,
        region: needed(region, "LAMBDA_INBOX_DB_REGION (or AWS_REGION)")?,
    };
    let name = needed(place.name, NAME)?;
    if tls.mode.is_some_and(|mode| {
        matches!(
            mode,
            PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer
        )
    }) {
        return Err(SettingsError::TokenInTheOpen);
    }
    let login = crate::iam::IamLogin::new(endpoint, name);
    Ok(Source::new(Login::Iam(login), tls.verify_local()))
}

#[cfg(not(feature = "iam"))]
fn iam(_: Place, _: Option<String>, _: Tls) -> Result<Source, SettingsError> {
    Err(SettingsError::NotBuiltIn {
        variable: AUTH,
        feature: "iam",
    })
}

fn mode(
    read: &impl Fn(&'static str) -> Option<String>,
) -> Result<Option<PgSslMode>, SettingsError> {
    let Some(value) = read(TLS) else {
        return Ok(None);
    };
    Ok(Some(match value.as_str() {
        "verify-full" => PgSslMode::VerifyFull,
        "verify-ca" => PgSslMode::VerifyCa,
        "require" => PgSslMode::Require,
        "prefer" => PgSslMode::Prefer,
        "disable" => PgSslMode::Disable,
        _ => {
            let expected = "verify-full, verify-ca, require, prefer or disable";
            return Err(invalid(TLS, &value, expected));
        }
    }))
}

/// What sqlx makes use of in a URL's query.
fn is_parameter(name: &str) -> bool {
    const OTHERS: [&str; 12] = [
        "sslcert",
        "ssl-cert",
        "sslkey",
        "ssl-key",
        "statement-cache-capacity",
        "host",
        "hostaddr",
        "port",
        "dbname",
        "user",
        "password",
        "application_name",
    ];
    let is_option = name == "options" || (name.starts_with("options[") && name.ends_with(']'));
    is_option
        || [&SSL_MODE[..], &SSL_ROOT_CERT, &OTHERS]
            .concat()
            .contains(&name)
}

/// The address of `[::1]`, as a URL spells it and nothing else does.
fn in_brackets(host: &str) -> Option<String> {
    let address = host.strip_prefix('[')?.strip_suffix(']')?;
    Some(address.to_owned())
}

fn twice(variable: &'static str, parameter: &'static str) -> SettingsError {
    SettingsError::SaidTwice {
        variable,
        parameter,
    }
}

fn invalid(name: &'static str, value: &str, expected: &'static str) -> SettingsError {
    SettingsError::Invalid {
        name,
        value: value.to_owned(),
        expected,
    }
}

/// The environment does not name a database. No text has any part of a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// Nothing does.
    #[error(
        "DATABASE_URL is not set; it looks like postgres://user:password@host:5432/database; instead \
         {HOST} and {NAME} can be set, with {SECRET_ARN} or LAMBDA_INBOX_DB_AUTH=iam and {USER}"
    )]
    NoDatabase,
    /// The database's URL cannot be read. Its text is not repeated: it holds the password.
    #[error(
        "DATABASE_URL is not a URL like postgres://user:password@host:5432/database; write # / ? @ \
         and % of the password as %23 %2F %3F %40 and %25"
    )]
    DatabaseUrl,
    /// A parameter in the URL's query. Its value is not repeated: it may be a part of the password.
    #[error(
        "DATABASE_URL has the parameter {name:?}, which is not known; take it out, and write ? of the password \
         as %3F"
    )]
    UrlParameter {
        /// The parameter.
        name: String,
    },
    /// Two variables of which one is enough.
    #[error("{one} and {other} are both set; unset one of them")]
    Conflict {
        /// One of them.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A variable says what `DATABASE_URL` says too.
    #[error("{variable} is set, and DATABASE_URL has {parameter}; unset one of them")]
    SaidTwice {
        /// The variable.
        variable: &'static str,
        /// The parameter of the URL.
        parameter: &'static str,
    },
    /// A database without a password.
    #[error(
        "a database is named, but not how to log in; set {SECRET_ARN}, or {AUTH}=iam, or DATABASE_URL \
         instead"
    )]
    NoLogin,
    /// A variable is needed.
    #[error("{name} is not set; {why}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// What for.
        why: &'static str,
    },
    /// A variable's value.
    #[error("{name} is {value:?}, expected {expected}")]
    Invalid {
        /// The variable.
        name: &'static str,
        /// What it says.
        value: String,
        /// What it may say.
        expected: &'static str,
    },
    /// The binary cannot do it.
    #[error("{variable} is set, but the binary cannot use it; build it with the feature {feature}")]
    NotBuiltIn {
        /// The variable.
        variable: &'static str,
        /// The feature of the crate.
        feature: &'static str,
    },
    /// A token without encryption is anybody's.
    #[error(
        "{TLS} lets the IAM token travel unencrypted; unset it, or use verify-full, verify-ca or require"
    )]
    TokenInTheOpen,
    /// Proxies refuse options.
    #[error(
        "{POOLED} is on, but DATABASE_URL or PGOPTIONS has options, which RDS Proxy and PgBouncer refuse; \
         set them with ALTER ROLE .. SET instead"
    )]
    PooledOptions,
    /// The file of certificates.
    #[error("the certificates at {path:?} ({CA} or sslrootcert) cannot be read")]
    CaUnreadable {
        /// Where it should be.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file of certificates has none, or one that is broken.
    #[error(
        "there is no certificate in {path:?} ({CA} or sslrootcert), or one that cannot be read; it must be in \
         PEM format"
    )]
    CaEmpty {
        /// Where it is.
        path: String,
    },
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
