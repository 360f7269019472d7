//! The JSON that RDS and Secrets Manager's rotation keep a password in.

use serde::Deserialize;
use std::fmt;

/// What a secret says. RDS's own has no more than user and password.
///
/// <https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_secret_json_structure.html>
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(not(feature = "secrets-manager"), allow(dead_code))]
pub(crate) struct Secret {
    pub(crate) username: Option<String>,
    pub(crate) password: String,
    pub(crate) host: Option<String>,
    port: Option<serde_json::Value>,
    // Three names of one thing, and a secret may have more than one of them.
    dbname: Option<String>,
    #[serde(rename = "dbName")]
    db_name: Option<String>,
    database: Option<String>,
}

#[cfg_attr(not(feature = "secrets-manager"), allow(dead_code))]
impl Secret {
    /// `None` where it is not such JSON. What is wrong is not said: the parser's message may quote the
    /// secret. What is empty counts as absent, as it does in the environment.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut secret: Self = serde_json::from_str(text).ok()?;
        let texts = [
            &mut secret.username,
            &mut secret.host,
            &mut secret.dbname,
            &mut secret.db_name,
            &mut secret.database,
        ];
        for text in texts {
            text.take_if(|text| text.is_empty());
        }
        secret.port.take_if(|port| *port == "" || port.is_null());
        let is_readable = secret.port.is_none() || secret.port().is_some();
        is_readable.then_some(secret)
    }

    /// A number, or a text with a number in it, as people write it by hand.
    pub(crate) fn port(&self) -> Option<u16> {
        let value = self.port.as_ref()?;
        match value.as_str() {
            Some(text) => text.trim().parse().ok(),
            None => value.as_u64().and_then(|number| u16::try_from(number).ok()),
        }
    }

    pub(crate) fn database(&self) -> Option<&String> {
        let names = self.dbname.as_ref().or(self.db_name.as_ref());
        names.or(self.database.as_ref())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-14.
    #[test]
    fn every_shape_of_secret_is_read_whatever_the_password_holds() {
        let cases = [
            (
                r#"{"username":"app","password":"p#w/x?y@z%1:!\"\\é"}"#,
                (Some("app"), "p#w/x?y@z%1:!\"\\é", None, None, None),
            ),
            (
                r#"{"dbClusterIdentifier":"c","password":"x","engine":"postgres","port":5433,"host":"h","username":"u","dbname":"d"}"#,
                (Some("u"), "x", Some("h"), Some(5433), Some("d")),
            ),
            (
                r#"{"username":"u","password":"x","port":"5432","dbName":"d"}"#,
                (Some("u"), "x", None, Some(5432), Some("d")),
            ),
            (r#"{"password":"x"}"#, (None, "x", None, None, None)),
            (
                r#"{"username":"","password":"x","host":"","port":"","dbname":"","database":"d"}"#,
                (None, "x", None, None, Some("d")),
            ),
            (
                r#"{"password":"x","port":null,"dbname":"d","dbName":"d","database":"d"}"#,
                (None, "x", None, None, Some("d")),
            ),
        ];
        for (text, expected) in cases {
            let secret = Secret::parse(text).unwrap();
            let found = (
                secret.username.as_deref(),
                secret.password.as_str(),
                secret.host.as_deref(),
                secret.port(),
                secret.database().map(String::as_str),
            );
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_such_a_secret_is_refused() {
        for text in [
            "hunter2",
            "\"hunter2\"",
            "{}",
            r#"{"username":"u"}"#,
            r#"{"password":"x","port":"x"}"#,
            r#"{"password":"x","port":70000}"#,
        ] {
            assert_eq!(Secret::parse(text), None, "{text}");
        }
    }

    #[test]
    fn its_debug_output_has_no_password() {
        let secret = Secret::parse(r#"{"password":"hunter2"}"#).unwrap();
        assert!(!format!("{secret:?}").contains("hunter2"));
    }
}
