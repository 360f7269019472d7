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
    pub(crate) port: Option<Port>,
    #[serde(alias = "dbName", alias = "database")]
    pub(crate) dbname: Option<String>,
}

/// A number, or a text with a number in it, as people write it by hand.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub(crate) struct Port(pub(crate) u16);

impl TryFrom<serde_json::Value> for Port {
    type Error = &'static str;

    fn try_from(value: serde_json::Value) -> Result<Self, Self::Error> {
        let text = value.as_str().map(str::trim);
        let number = match text {
            Some(text) => text.parse().ok(),
            None => value.as_u64().and_then(|number| u16::try_from(number).ok()),
        };
        number.map(Self).ok_or("port is not a port number")
    }
}

#[cfg_attr(not(feature = "secrets-manager"), allow(dead_code))]
impl Secret {
    /// `None` where it is not such JSON. What is wrong is not said: the parser's message may quote the
    /// secret.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
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
        ];
        for (text, expected) in cases {
            let secret = Secret::parse(text).unwrap();
            let found = (
                secret.username.as_deref(),
                secret.password.as_str(),
                secret.host.as_deref(),
                secret.port.map(|port| port.0),
                secret.dbname.as_deref(),
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
