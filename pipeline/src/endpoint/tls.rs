//! TLS of the endpoint: a certificate and its key, from files that a renewal replaces.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::EndpointError;
use crate::bounded_file;

/// Time between two checks of the files. A new connection triggers a check.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// Accepts connections with the newest certificate.
pub(super) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    acceptor: TlsAcceptor,
    /// Modification times of the files at the last check.
    changed: Changed,
    looked: Instant,
}

/// Modification times of the certificate and its key; `None` for a file that cannot be inspected.
type Changed = [Option<SystemTime>; 2];

impl Tls {
    /// Loads the files; `None` if no certificate is configured.
    pub(super) fn new(certificate: &Path, key: &Path) -> Result<Option<Self>, EndpointError> {
        if certificate.as_os_str().is_empty() {
            return Ok(None);
        }
        // Read before the files themselves, so a file that changes meanwhile is read again.
        let changed = changed(certificate, key);
        let acceptor = acceptor(certificate, key)?;
        Ok(Some(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            acceptor,
            changed,
            looked: Instant::now(),
        }))
    }

    /// Reads the files again if they have changed. The current certificate stays if they are unusable.
    pub(super) fn acceptor(&mut self) -> TlsAcceptor {
        if self.looked.elapsed() >= LOOK_INTERVAL {
            self.looked = Instant::now();
            self.look();
        }
        self.acceptor.clone()
    }

    fn look(&mut self) {
        let changed = changed(&self.certificate, &self.key);
        if changed == self.changed {
            return;
        }
        self.changed = changed;
        match acceptor(&self.certificate, &self.key) {
            Ok(acceptor) => {
                self.acceptor = acceptor;
                tracing::info!(certificate = %self.certificate.display(), "the endpoint has a new certificate");
            }
            // The key is often written after its certificate, so this error may pass.
            Err(error) => tracing::warn!(%error, "the endpoint keeps its current certificate"),
        }
    }
}

fn changed(certificate: &Path, key: &Path) -> Changed {
    [certificate, key].map(|path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok())
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, EndpointError> {
    let wrong = |key, path: &Path, reason: String| EndpointError::Tls { key, path: path.to_owned(), reason };
    let open = |key, path: &Path| {
        let read = bounded_file::read(path, bounded_file::SETTINGS_BYTES_MAX);
        read.map(io::Cursor::new).map_err(|error| wrong(key, path, error.to_string()))
    };
    let chain = CertificateDer::pem_reader_iter(open("tls_certificate", certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong("tls_certificate", certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong("tls_certificate", certificate, "the file has no certificate".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_reader(open("tls_key", key)?)
        .map_err(|error| wrong("tls_key", key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the versions")
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong("tls_certificate", certificate, error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_new_certificate_is_taken_and_one_that_cannot_be_used_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str, at: u64| {
            std::fs::write(path(name), text).expect("a file");
            let file = File::options().write(true).open(path(name)).expect("a file");
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(at)).expect("a time");
        };
        let renew = |at| {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
            write("cert.pem", &made.cert.pem(), at);
            write("key.pem", &made.signing_key.serialize_pem(), at);
        };
        renew(1);
        let tls = Tls::new(&path("cert.pem"), &path("key.pem")).expect("a certificate");
        let mut tls = tls.expect("TLS is configured");
        let config = |tls: &Tls| Arc::clone(tls.acceptor.config());
        let first = config(&tls);
        tls.look();
        assert!(Arc::ptr_eq(&config(&tls), &first), "nothing has changed");
        renew(2);
        tls.look();
        let second = config(&tls);
        assert!(!Arc::ptr_eq(&second, &first), "a new certificate");
        write("key.pem", "no key", 3);
        tls.look();
        assert!(Arc::ptr_eq(&config(&tls), &second), "the key cannot be used");
        renew(4);
        tls.look();
        assert!(!Arc::ptr_eq(&config(&tls), &second), "it can again");
    }
}
