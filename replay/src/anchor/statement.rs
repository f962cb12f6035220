//! The statement of an anchor: one line of text that any tool can extract, sign and compare.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use warptape_eventlog::Record;
use warptape_schemas::hex::Digits;

use super::Told;
use super::key::{PublicKey, SIGNATURE_BYTES, SigningKey};

/// Name of the journal record header that holds the anchor of its commit.
pub const HEADER: &str = "warptape-anchor";

/// First word of a statement, with the format version. No other signed text begins with it.
const BEGIN: &str = "warptape-anchor-1";

/// A statement of a journal's newest entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Topic of the journal.
    pub topic: String,
    /// Partition of the journal: the ordinal of the process.
    pub partition: i32,
    /// Sequence of the newest entry.
    pub sequence: i64,
    /// Hash of the newest entry, which covers all entries before it.
    pub hash: Digits<64>,
    /// Time of the commit, ns since the epoch, by the clock of the process.
    pub at_ns: i64,
    /// Lifecycle records of the process life so far.
    pub told: Told,
}

/// A statement with its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The statement.
    pub statement: Statement,
    /// Id of the key, as given by [`PublicKey::id`].
    pub key: String,
    /// Ed25519 signature of the statement's text.
    pub signature: [u8; SIGNATURE_BYTES],
}

/// The error for a text that is not an anchor.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("no anchor: {what}")]
pub struct Unreadable {
    /// Description of the fault.
    what: &'static str,
}

impl Statement {
    /// Signs the statement.
    pub fn sign(self, key: &SigningKey) -> Anchor {
        let signature = key.sign(self.to_string().as_bytes());
        Anchor { key: key.public().id(), signature, statement: self }
    }
}

impl Anchor {
    /// Returns the anchor in a journal record; `None` if the record has none.
    pub fn of(record: &Record) -> Option<Result<Self, Unreadable>> {
        let (_, value) = record.headers.iter().find(|(name, _)| name == HEADER)?;
        let text = std::str::from_utf8(value).map_err(|_| Unreadable { what: "it is not UTF-8" });
        Some(text.and_then(str::parse))
    }

    /// True if the key signed the anchor.
    pub fn is_by(&self, key: &PublicKey) -> bool {
        key.verifies(self.statement.to_string().as_bytes(), &self.signature)
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, partition, sequence, hash, at_ns, told } = self;
        let Told { life, count, hash: told } = told;
        write!(
            formatter,
            "{BEGIN} journal={topic}/{partition} sequence={sequence} hash={} at_ns={at_ns} life={life} told={count} told_hash={}",
            &**hash, &**told
        )
    }
}

/// Writes the whole line: the statement, the key and the signature.
impl fmt::Display for Anchor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { statement, key, signature } = self;
        write!(formatter, "{statement} key={key} signature={}", BASE64.encode(signature))
    }
}

impl FromStr for Anchor {
    type Err = Unreadable;

    fn from_str(line: &str) -> Result<Self, Unreadable> {
        let mut words = line.split(' ');
        if words.next() != Some(BEGIN) {
            return Err(Unreadable { what: "it does not begin with warptape-anchor-1" });
        }
        let mut field = |name: &'static str| {
            let value = words.next().and_then(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.ok_or(Unreadable { what: name })
        };
        let unreadable = |what: &'static str| move |_| Unreadable { what };
        let (topic, partition) = field("journal")?.rsplit_once('/').ok_or(Unreadable { what: "journal" })?;
        let statement = Statement {
            topic: topic.to_owned(),
            partition: partition.parse().map_err(unreadable("journal"))?,
            sequence: field("sequence")?.parse().map_err(unreadable("sequence"))?,
            hash: digits(field("hash")?, "hash")?,
            at_ns: field("at_ns")?.parse().map_err(unreadable("at_ns"))?,
            told: Told {
                life: field("life")?.parse().map_err(unreadable("life"))?,
                count: field("told")?.parse().map_err(unreadable("told"))?,
                hash: digits(field("told_hash")?, "told_hash")?,
            },
        };
        let key = field("key")?.to_owned();
        let signature = BASE64.decode(field("signature")?).map_err(|_| Unreadable { what: "signature" })?;
        let signature = signature.try_into().map_err(|_| Unreadable { what: "signature" })?;
        let anchor = Self { statement, key, signature };
        // A number can be written in several ways, but only the signed form is accepted.
        match anchor.to_string() == line {
            true => Ok(anchor),
            false => Err(Unreadable { what: "it has extra text, or numbers in another form" }),
        }
    }
}

fn digits(text: &str, what: &'static str) -> Result<Digits<64>, Unreadable> {
    let digits = Digits::try_from(text.to_owned()).map_err(|_| Unreadable { what })?;
    if digits.are_hex() { Ok(digits) } else { Err(Unreadable { what }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor() -> Anchor {
        let told = Told { life: 0, count: 2, hash: Digits::zeros() };
        let (topic, hash) = ("eu.journal".to_owned(), Digits::of(&[7; 32]));
        let statement = Statement { topic, partition: 3, sequence: 41, hash, at_ns: 1_700, told };
        statement.sign(&SigningKey::from_seed([5; 32]))
    }

    #[test]
    fn an_anchor_is_a_line_that_says_it_whole() {
        let line = anchor().to_string();
        assert!(line.starts_with("warptape-anchor-1 journal=eu.journal/3 sequence=41 hash=0707"), "{line}");
        assert_eq!(line.parse(), Ok(anchor()));
        for wrong in [
            line.replace("sequence=41", "sequence=+41"),
            line.replace("anchor-1", "anchor-2"),
            line.replace("told=2 ", ""),
            line.replace("hash=07", "hash=0G"),
            format!("{line} more"),
            line[..line.len() - 4].to_owned(),
            String::new(),
        ] {
            assert!(wrong.parse::<Anchor>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_signature_is_of_its_statement_and_key() {
        let key = SigningKey::from_seed([5; 32]);
        assert!(anchor().is_by(key.public()));
        assert_eq!(anchor().key, key.public().id());
        assert!(!anchor().is_by(SigningKey::from_seed([6; 32]).public()));
        let mut other = anchor();
        other.statement.sequence += 1;
        assert!(!other.is_by(key.public()));
    }
}
