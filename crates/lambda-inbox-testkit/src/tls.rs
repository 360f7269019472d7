//! Certificates of an authority that nobody has heard of, as a database's in a private network are.
//!
//! ```no_run
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! use lambda_inbox_testkit::postgres::Cluster;
//! use lambda_inbox_testkit::tls::Authority;
//!
//! let authority = Authority::new("private")?;
//! let server = authority.issue(["localhost"])?;
//! let cluster = Cluster::builder().tls(&server).start().await?;
//! let options = cluster.options().host("localhost")
//!     .ssl_mode(sqlx::postgres::PgSslMode::VerifyFull)
//!     .ssl_root_cert_from_pem(authority.certificate().as_bytes().to_vec());
//! # Ok(())
//! # }
//! ```

use std::fmt;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// An authority with a certificate that it has signed itself.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its private key.
#[derive(Clone)]
pub struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A certificate could not be made, as for a name that no certificate may have.
#[derive(Debug, thiserror::Error)]
#[error("the certificate could not be made")]
pub struct TlsError(#[from] rcgen::Error);

impl Authority {
    /// A new one, with a fresh key.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(name: &str) -> Result<Self, TlsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    /// Its certificate in PEM, for those who are to trust it.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A certificate for a server with these names; addresses are names too.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn issue<N: Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Identity, TlsError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = common_name("server");
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

impl Identity {
    /// The certificate in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The private key in PEM.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
