//! Encryption that does not verify the server hands the password to whoever answers, so verifying is the
//! default and anything less has to be asked for.

use crate::ca::Ca;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Tls {
    pub(crate) mode: Option<PgSslMode>,
    pub(crate) ca: Option<Ca>,
    /// Whether a server on the loopback must prove who it is too, where nothing was asked for.
    pub(crate) verify_local: bool,
    warned: AtomicBool,
}

impl Tls {
    pub(crate) fn new(mode: Option<PgSslMode>, ca: Option<Ca>) -> Self {
        Self {
            mode,
            ca,
            verify_local: false,
            warned: AtomicBool::new(false),
        }
    }

    #[cfg(any(test, feature = "iam"))]
    pub(crate) fn verify_local(self) -> Self {
        Self {
            verify_local: true,
            ..self
        }
    }

    /// The options with encryption as it was asked for, or verified.
    pub(crate) fn apply(&self, mut options: PgConnectOptions) -> PgConnectOptions {
        if let Some(ca) = &self.ca {
            let pem = ca.pem(options.get_host());
            options = options.ssl_root_cert_from_pem(pem);
        }
        match self.mode {
            Some(mode) => options.ssl_mode(mode),
            None if is_local(&options) && !self.verify_local => options,
            None => options.ssl_mode(PgSslMode::VerifyFull),
        }
    }

    /// Says once that the connection is less than verified. When the first one is opened, because there
    /// may be nobody to hear it while the settings are read.
    pub(crate) fn warn_if_weak(&self, options: &PgConnectOptions) {
        let consequence = match options.get_ssl_mode() {
            PgSslMode::VerifyFull => return,
            _ if is_local(options) => return,
            PgSslMode::VerifyCa => {
                "any server with a certificate of a trusted authority is believed"
            }
            PgSslMode::Require => {
                "whoever answers at this address is believed, whatever certificate it shows"
            }
            PgSslMode::Prefer | PgSslMode::Allow => {
                "whoever answers at this address is believed, and may do without encryption"
            }
            PgSslMode::Disable => "everything, the password included, may be read on the way",
        };
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                host = options.get_host(),
                mode = ?options.get_ssl_mode(),
                consequence,
                "the database connection is not verified, as was asked for; verify-full is the default"
            );
        }
    }
}

/// Whether the server is on this machine, where nobody listens in between.
pub(crate) fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    options.get_socket().is_some()
        || host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::fmt::MakeWriter;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Log {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    fn warnings(host: &str, asked: Option<PgSslMode>) -> usize {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
        let tls = Tls::new(asked, None);
        let options = tls.apply(PgConnectOptions::new_without_pgpass().host(host));
        tracing::subscriber::with_default(subscriber, || {
            tls.warn_if_weak(&options);
            tls.warn_if_weak(&options);
        });
        let log = log.0.lock().unwrap();
        String::from_utf8_lossy(&log).matches("WARN").count()
    }

    #[test]
    fn less_than_verified_is_logged_once() {
        use PgSslMode::{Disable, Prefer, Require, VerifyCa, VerifyFull};
        for mode in [VerifyCa, Require, Prefer, Disable] {
            assert_eq!(warnings("db.example", Some(mode)), 1, "{mode:?}");
            assert_eq!(warnings("localhost", Some(mode)), 0, "{mode:?}");
        }
        assert_eq!(warnings("db.example", Some(VerifyFull)), 0);
        assert_eq!(warnings("db.example", None), 0);
    }

    #[test]
    fn a_token_is_given_to_no_server_that_does_not_prove_who_it_is() {
        let options = PgConnectOptions::new_without_pgpass().host("localhost");
        let options = Tls::new(None, None).verify_local().apply(options);
        assert!(matches!(options.get_ssl_mode(), PgSslMode::VerifyFull));
    }

    #[test]
    fn anything_but_this_machine_is_verified_unless_something_else_is_asked_for() {
        use PgSslMode::{Disable, Prefer, Require, VerifyFull};
        let cases = [
            ("db.example", None, VerifyFull),
            ("10.0.0.7", None, VerifyFull),
            ("localhost.example", None, VerifyFull),
            ("db.example", Some(Require), Require),
            ("localhost", None, Prefer),
            ("127.0.0.2", None, Prefer),
            ("::1", None, Prefer),
            ("/var/run/postgresql", None, Prefer),
            ("localhost", Some(Disable), Disable),
            ("localhost", Some(VerifyFull), VerifyFull),
        ];
        for (host, asked, expected) in cases {
            let options = PgConnectOptions::new_without_pgpass()
                .host(host)
                .ssl_mode(Prefer);
            let options = Tls::new(asked, None).apply(options);
            let (found, expected) = (options.get_ssl_mode(), expected);
            assert_eq!(
                format!("{found:?}"),
                format!("{expected:?}"),
                "{host} {asked:?}"
            );
        }
    }
}
