//! Ed25519 keys in the file formats of openssl: PKCS#8 and SubjectPublicKeyInfo, in PEM.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use warptape_schemas::hex;

/// Length of a signature, in bytes.
pub(super) const SIGNATURE_BYTES: usize = 64;
/// Length of a key of either kind, in bytes.
const KEY_BYTES: usize = 32;
/// Largest key file, in bytes. A PEM file with one key has about 120.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The DER prefix of a private key of RFC 8410, version 1, up to the key itself. It is the same for all keys.
const PRIVATE_BEGIN: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// The DER prefix of a public key of RFC 8410, up to the key itself.
const PUBLIC_BEGIN: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Number of leading bytes of the SHA-256 of a public key's DER that identify the key.
const ID_BYTES: usize = 8;

/// Signs anchors.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    seed: [u8; KEY_BYTES],
    public: PublicKey,
}

/// Verifies anchors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; KEY_BYTES]);

/// Reasons why a file cannot be used as a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The file contains something else.
    #[error("{}: {found}; expected {expected}, as written by `warptape journal keygen` or `openssl genpkey -algorithm ed25519`", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// Description of its contents.
        found: &'static str,
        /// Description of the expected contents.
        expected: &'static str,
    },
    /// Other users may read or write the private key.
    #[error("{}: users other than the owner and the group can access the private key (mode {mode:03o}); run chmod 600 on the file", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// The file's permissions.
        mode: u32,
    },
}

impl SigningKey {
    /// Makes the key from these random bytes.
    pub fn from_seed(seed: [u8; KEY_BYTES]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("every 32 bytes are a private key");
        let public = pair.public_key().as_ref().try_into().expect("a public key has 32 bytes");
        Self { pair, seed, public: PublicKey(public) }
    }

    /// Reads a private key. Nobody except its owner and group may have the right to read the file, and nobody except
    /// its owner to write it.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let text = read_text(path)?;
        refuse_exposed(path)?;
        let expected = "one unencrypted Ed25519 private key in PEM (PKCS#8)";
        let no_key = |found| KeyError::NoKey { path: path.to_owned(), found, expected };
        let der = pem(&text, "PRIVATE KEY").map_err(no_key)?;
        match der.strip_prefix(&PRIVATE_BEGIN).map(<[u8; KEY_BYTES]>::try_from) {
            Some(Ok(seed)) => Ok(Self::from_seed(seed)),
            _ => Err(no_key("its private key is of another kind")),
        }
    }

    /// Returns the PEM file of the key.
    pub fn pem(&self) -> String {
        let der = [&PRIVATE_BEGIN[..], &self.seed].concat();
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", BASE64.encode(der))
    }

    /// Returns the public key, which verifies this key's signatures.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(super) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.pair.sign(message).as_ref().try_into().expect("an Ed25519 signature has 64 bytes")
    }
}

/// Never prints the key.
impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({})", self.public.id())
    }
}

impl PublicKey {
    /// Reads a public key.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let text = read_text(path)?;
        let expected = "one Ed25519 public key in PEM";
        let no_key = |found| KeyError::NoKey { path: path.to_owned(), found, expected };
        let der = pem(&text, "PUBLIC KEY").map_err(no_key)?;
        match der.strip_prefix(&PUBLIC_BEGIN).map(<[u8; KEY_BYTES]>::try_from) {
            Some(Ok(key)) => Ok(Self(key)),
            _ => Err(no_key("its public key is of another kind")),
        }
    }

    /// Returns the PEM file of the key.
    pub fn pem(&self) -> String {
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", BASE64.encode(self.der()))
    }

    /// Returns the first 16 hex digits of the SHA-256 of the key's DER: `openssl pkey -pubin -outform DER | sha256sum`.
    pub fn id(&self) -> String {
        hex::text(&digest(&SHA256, &self.der()).as_ref()[..ID_BYTES])
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature).is_ok()
    }

    fn der(&self) -> Vec<u8> {
        [&PUBLIC_BEGIN[..], &self.0].concat()
    }
}

fn read_text(path: &Path) -> Result<String, KeyError> {
    let unreadable = |source| KeyError::Unreadable { path: path.to_owned(), source };
    let length = fs::metadata(path).map_err(unreadable)?.len();
    if length > FILE_BYTES_MAX {
        return Err(unreadable(io::Error::other(format!("it has {length} bytes, too many for a key"))));
    }
    fs::read_to_string(path).map_err(unreadable)
}

/// Refuses a file that others can access. Its group may read the key, because Kubernetes gives secrets to a group; the
/// caller warns about that.
#[cfg(unix)]
fn refuse_exposed(path: &Path) -> Result<(), KeyError> {
    use std::os::unix::fs::PermissionsExt as _;

    let metadata = fs::metadata(path);
    let metadata = metadata.map_err(|source| KeyError::Unreadable { path: path.to_owned(), source })?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o027 != 0 {
        return Err(KeyError::Exposed { path: path.to_owned(), mode });
    }
    if mode & 0o040 != 0 {
        tracing::warn!(path = %path.display(), "the group of the file can read the private key that signs \
                                                the journal");
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_exposed(_: &Path) -> Result<(), KeyError> {
    Ok(())
}

/// Returns the bytes of the only block in a PEM file, which must have this label.
fn pem(text: &str, label: &str) -> Result<Vec<u8>, &'static str> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with("-----BEGIN "));
    let Some(begin) = lines.next() else { return Err("it is not a PEM file") };
    match begin.trim_start_matches("-----BEGIN ").trim_end_matches("-----") {
        found if found == label => {}
        "ENCRYPTED PRIVATE KEY" => return Err("its private key is encrypted"),
        "PRIVATE KEY" => return Err("it holds a private key"),
        "PUBLIC KEY" => return Err("it holds a public key"),
        _ => return Err("it holds something other than a key"),
    }
    let body: String = lines.by_ref().take_while(|line| !line.starts_with("-----END ")).collect();
    if lines.any(|line| line.starts_with("-----BEGIN ")) {
        return Err("it holds several keys");
    }
    BASE64.decode(body).map_err(|_| "its PEM is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first test vector of RFC 8032, with its key in the form of RFC 8410.
    #[test]
    fn keys_and_signatures_are_those_of_the_standard() {
        let seed = [
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
            0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
        ];
        let key = SigningKey::from_seed(seed);
        assert_eq!(
            hex::text(&key.public().0),
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
        );
        assert!(hex::text(&key.sign(b"")).starts_with("e5564300c360ac729086e2cc806e828a84877f1e"));
        assert!(key.public().verifies(b"", &key.sign(b"")));
    }

    #[test]
    fn files_are_read_back_and_others_are_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        let key = SigningKey::from_seed([3; KEY_BYTES]);
        let write = |text: &str, mode: u32| {
            fs::write(&path, text).expect("it is written");
            set_mode(&path, mode);
        };
        write(&key.pem(), 0o600);
        assert_eq!(SigningKey::read(&path).expect("a key").public(), key.public());
        write(&key.pem(), 0o640);
        assert_eq!(SigningKey::read(&path).expect("a key of a group").public(), key.public());
        for exposed in [0o644, 0o660, 0o606] {
            write(&key.pem(), exposed);
            assert!(matches!(SigningKey::read(&path), Err(KeyError::Exposed { .. })), "{exposed:o}");
        }
        write(&key.public().pem(), 0o644);
        assert_eq!(PublicKey::read(&path).expect("a key"), *key.public());
        set_mode(&path, 0o600);
        let said = |error: KeyError| error.to_string();
        assert!(said(SigningKey::read(&path).expect_err("a public key")).contains("it holds a public key"));
        for (text, found) in [
            ("", "not a PEM file"),
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "encrypted"),
            ("-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n", "another kind"),
            ("-----BEGIN PRIVATE KEY-----\n?\n-----END PRIVATE KEY-----\n", "damaged"),
            (&format!("{0}{0}", key.pem()), "several keys"),
        ] {
            write(text, 0o600);
            let error = said(SigningKey::read(&path).expect_err(text));
            assert!(error.contains(found) && error.contains("journal keygen"), "{error}");
        }
        assert!(
            said(PublicKey::read(&folder.path().join("none")).expect_err("no file"))
                .contains("cannot be read")
        );
    }

    #[cfg(unix)]
    fn set_mode(path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is ours");
    }
}
