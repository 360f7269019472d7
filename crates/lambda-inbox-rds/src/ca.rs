//! RDS signs its servers' certificates with authorities of its own, which no list of public ones has.

use crate::settings::SettingsError;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Authorities to trust besides the public ones.
#[derive(Debug)]
pub(crate) enum Ca {
    /// What a file said.
    Pem(Vec<u8>),
    /// The ones in the binary.
    #[cfg(feature = "rds-ca-bundle")]
    Rds,
}

impl Ca {
    /// Those of the file at `path`, else those in the binary, if they are.
    pub(crate) fn load(path: Option<String>) -> Result<Option<Self>, SettingsError> {
        let Some(path) = path else {
            return Ok(Self::embedded());
        };
        let pem = match std::fs::read(&path) {
            Ok(pem) => pem,
            Err(source) => return Err(SettingsError::CaUnreadable { path, source }),
        };
        if !is_usable(&pem) {
            return Err(SettingsError::CaEmpty { path });
        }
        Ok(Some(Self::Pem(pem)))
    }

    #[cfg(feature = "rds-ca-bundle")]
    fn embedded() -> Option<Self> {
        Some(Self::Rds)
    }

    #[cfg(not(feature = "rds-ca-bundle"))]
    fn embedded() -> Option<Self> {
        None
    }

    /// The certificates that may be needed for `host`, in PEM.
    #[cfg_attr(not(feature = "rds-ca-bundle"), allow(unused_variables))]
    pub(crate) fn pem(&self, host: &str) -> Vec<u8> {
        match self {
            Self::Pem(pem) => pem.clone(),
            #[cfg(feature = "rds-ca-bundle")]
            Self::Rds => rds::of_region(host).unwrap_or_else(|| rds::BUNDLE.into()),
        }
    }
}

/// Whether there are certificates, and each can be an authority. Else every connection would find out.
fn is_usable(pem: &[u8]) -> bool {
    let mut roots = RootCertStore::empty();
    let mut certificates = CertificateDer::pem_slice_iter(pem);
    certificates.all(|found| found.is_ok_and(|found| roots.add(found).is_ok())) && !roots.is_empty()
}

#[cfg(feature = "rds-ca-bundle")]
mod rds {
    pub(super) const BUNDLE: &str = include_str!("../certs/rds-ca-bundle.pem");

    /// The three of the region that `host` is in. Every connection parses them anew, and all 81 take 0.3 ms
    /// of a whole processor, of which a small function has a fraction.
    pub(super) fn of_region(host: &str) -> Option<Vec<u8>> {
        let (_, region) = host.strip_suffix(".rds.amazonaws.com")?.rsplit_once('.')?;
        let title = format!("# Amazon RDS {region} Root CA ");
        let certificates: Vec<&str> = BUNDLE
            .split("\n\n")
            .filter(|certificate| certificate.starts_with(&title))
            .collect();
        (!certificates.is_empty()).then(|| certificates.join("\n").into())
    }
}

#[cfg(test)]
#[cfg(feature = "rds-ca-bundle")]
mod tests {
    use super::*;

    /// The subjects of what is trusted for `host`.
    fn trusted(host: &str) -> Vec<String> {
        let pem = Ca::Rds.pem(host);
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let subjects = roots.roots.iter().map(|root| &root.subject);
        subjects
            .map(|subject| String::from_utf8_lossy(subject).into_owned())
            .collect()
    }

    #[test]
    fn the_bundle_has_three_usable_authorities_for_each_of_27_regions() {
        let all = trusted("db.example");
        assert_eq!(all.len(), 3 * 27);
        assert!(all.iter().all(|subject| subject.contains("Amazon RDS")));
    }

    #[test]
    fn an_endpoint_of_rds_is_trusted_by_the_authorities_of_its_region() {
        let hosts = [
            "shop.abcdefghijkl.eu-west-1.rds.amazonaws.com",
            "shop.cluster-abcdefghijkl.eu-west-1.rds.amazonaws.com",
        ];
        for host in hosts {
            let trusted = trusted(host);
            assert_eq!(trusted.len(), 3, "{host}");
            assert!(
                trusted
                    .iter()
                    .all(|subject| subject.contains("eu-west-1 Root CA")),
                "{trusted:?}"
            );
        }
        assert_eq!(
            trusted("shop.abcdefghijkl.xx-new-1.rds.amazonaws.com").len(),
            3 * 27
        );
    }
}
