//! DQN: a network scores each lane for the task, and the lane with the best score gets it.
//!
//! The policy names the network by its hash, `dqn:HASH`, so that a journal identifies it. If that network is missing,
//! the lane with the earliest predicted completion is chosen. Networks are trained elsewhere; here they only decide, in
//! integers.

use crate::policy::named;

/// Prefix of the policy's name.
const PREFIX: &str = "dqn:";
/// Hex digits of a network's hash.
const HASH_DIGITS: usize = 64;
/// Least number of digits in a shortened hash.
const PREFIX_DIGITS_MIN: usize = 8;

/// True if a text is a full hash of a network.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(is_digit)
}

/// The hash of the network that a policy names, `dqn:HASH` or `dqn:HASH@VERSION`; `None` for other policies.
pub(crate) fn hash_of(policy: &str) -> Option<&str> {
    named_hash(policy).filter(|hash| is_hash(hash))
}

/// The hash that a policy names, in full or shortened to at least eight digits; `None` for other policies.
pub fn prefix_of(policy: &str) -> Option<&str> {
    let long_enough = PREFIX_DIGITS_MIN..=HASH_DIGITS;
    named_hash(policy).filter(|hash| long_enough.contains(&hash.len()) && hash.bytes().all(is_digit))
}

/// The name of the policy of a network.
pub fn name(hash: &str) -> String {
    format!("{PREFIX}{hash}")
}

/// The text after `dqn:` in a policy: a hash or, on a command line, the path of a network's file. `None` for other
/// policies.
pub fn rest_of(policy: &str) -> Option<&str> {
    policy.strip_prefix(PREFIX)
}

fn named_hash(policy: &str) -> Option<&str> {
    named(policy).filter(|(_, version)| *version == 1)?.0.strip_prefix(PREFIX)
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_a_whole_hash_or_a_part_of_one() {
        let hash = "0f".repeat(32);
        let check = |policy: &str, whole: Option<&str>, part: Option<&str>| {
            assert_eq!((hash_of(policy), prefix_of(policy)), (whole, part), "{policy}");
        };
        check(&name(&hash), Some(&hash), Some(&hash));
        check(&format!("dqn:{hash}@1"), Some(&hash), Some(&hash));
        check("dqn:0f0f0f0f", None, Some("0f0f0f0f"));
        check("dqn:0f0f0f0", None, None);
        check(&format!("dqn:{hash}0"), None, None);
        check(&format!("dqn:{hash}@2"), None, None);
        check(&format!("dqn:{}", hash.to_uppercase()), None, None);
        check("fair", None, None);
        assert_eq!((rest_of("dqn:a/b@2.network"), rest_of("fair")), (Some("a/b@2.network"), None));
    }
}
