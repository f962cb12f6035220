//! Compares the journal's accounts with results and requests: the number of results of each transaction, and the first
//! request without a result.

use warptape_eventlog::TopicPartition;

use crate::SealedDivergence;
use crate::accounts::SealedResults;
use crate::difference::Difference;

/// Returns the first transaction whose account differs. `seals` are in the order of the journals. `answered` has the
/// offsets of requests in the order of their results. `requests` has the offsets of all requests; their topic ends
/// before `end`.
pub(super) fn check(
    source: &TopicPartition,
    seals: &[SealedResults],
    answered: &[i64],
    requests: &[i64],
    end: i64,
) -> Option<SealedDivergence> {
    let is_one_journal = seals.windows(2).all(|pair| pair[0].journal == pair[1].journal);
    if !is_one_journal || seals.iter().any(|seal| seal.may_be_void) {
        return check_sum(source, seals, answered);
    }
    let mut answers = answered.iter();
    let mut is_answered = vec![false; requests.len()];
    let (mut open, mut before) = (0, 0);
    // The last request that the partition's owner answered. The owner has certainly read up to this one, but perhaps no
    // further.
    let mut read = -1;
    for seal in seals {
        let left = answers.len() as i64;
        if seal.is_first {
            read = -1;
        }
        for request in answers.by_ref().take(seal.results.max(0) as usize) {
            if let Ok(index) = requests.binary_search(request) {
                is_answered[index] = true;
            }
            read = read.max(*request);
        }
        while is_answered.get(open) == Some(&true) {
            open += 1;
        }
        // Requests after the last one read were answered by an earlier process.
        let last_answered = open.checked_sub(1).map_or(-1, |last| requests[last].min(read));
        let first_open = requests.get(open).copied().unwrap_or(end);
        let next = seal.next_request.unwrap_or(before);
        // An account names the next request if there are results, or if it has changed.
        let is_said = seal.next_request.is_some() && (seal.results > 0 || next > before);
        let least = before.max(last_answered + 1);
        let is_right = is_said && (least..=first_open).contains(&next);
        let found = |name: &str, expected: i64, found: i64| {
            let differences = vec![Difference::new(name, expected, found)];
            Some(divergence(source, before, next, differences))
        };
        if !(0..=left).contains(&seal.results) {
            return found("risk_results", left, seal.results);
        }
        if !is_right {
            return found("next_request", least, next);
        }
        before = next;
    }
    let left = answers.len() as i64;
    let last = seals.last().map_or(0, |last| last.results);
    let differences = vec![Difference::new("risk_results", last.saturating_add(left), last)];
    (left > 0).then(|| divergence(source, before, before, differences))
}

/// Compares only the sums, if the order of transactions is unknown or some may have excluded the partition.
fn check_sum(source: &TopicPartition, seals: &[SealedResults], answered: &[i64]) -> Option<SealedDivergence> {
    let sum = |counts: fn(&&SealedResults) -> bool| -> i64 {
        seals.iter().filter(counts).map(|seal| seal.results).fold(0, i64::saturating_add)
    };
    let (least, most) = (sum(|seal| !seal.may_be_void), sum(|_| true));
    let found = answered.len() as i64;
    let next = seals.iter().filter_map(|seal| seal.next_request).max().unwrap_or(0);
    let differences = vec![Difference::new("risk_results", found, most)];
    (!(least..=most).contains(&found)).then(|| divergence(source, 0, next, differences))
}

fn divergence(
    source: &TopicPartition,
    first_offset: i64,
    next_offset: i64,
    differences: Vec<Difference>,
) -> SealedDivergence {
    let TopicPartition { topic, partition } = source.clone();
    SealedDivergence { topic, partition, first_offset, next_offset, differences }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(results: i64, next_request: i64) -> SealedResults {
        let next_request = Some(next_request);
        SealedResults { journal: 0, is_first: false, results, next_request, may_be_void: false }
    }

    /// True for requests at offsets 0, 1 and 4, the second of which was answered first.
    fn is_right(seals: &[SealedResults]) -> bool {
        let source = TopicPartition { topic: "risk.requests".to_owned(), partition: 0 };
        check(&source, seals, &[1, 0, 4], &[0, 1, 4], 9).is_none()
    }

    #[test]
    fn transactions_have_their_results_and_the_first_request_without_one() {
        assert!(is_right(&[seal(1, 0), seal(1, 2), seal(1, 5)]));
        // Offsets between them are not requests.
        assert!(is_right(&[seal(1, 0), seal(1, 4), seal(1, 9)]));
        assert!(is_right(&[seal(3, 5)]));
        for wrong in [
            [seal(1, 1), seal(1, 2), seal(1, 5)],
            [seal(1, 0), seal(1, 5), seal(1, 5)],
            [seal(1, 0), seal(1, 1), seal(1, 5)],
            [seal(1, 0), seal(1, 2), seal(1, 4)],
            [seal(1, 0), seal(2, 5), seal(1, 5)],
            [seal(1, 0), seal(1, 2), seal(0, 5)],
            [seal(1, 0), seal(1, 2), seal(1, 10)],
            [seal(1, 0), seal(0, 0), seal(2, 5)],
            [seal(1, 0), seal(-1, 2), seal(1, 5)],
        ] {
            assert!(!is_right(&wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_process_that_goes_on_reads_what_was_answered_before_it_says_so() {
        let source = TopicPartition { topic: "risk.requests".to_owned(), partition: 0 };
        let first = |results, next| SealedResults { is_first: true, ..seal(results, next) };
        // The second and third request were answered before the first one, whose process is gone.
        let is_right =
            |seals: &[SealedResults]| check(&source, seals, &[1, 4, 0, 5], &[0, 1, 4, 5], 9).is_none();
        for next in [1, 2, 5] {
            assert!(is_right(&[first(2, 0), first(1, next), seal(1, 6)]), "{next}");
        }
        assert!(is_right(&[first(2, 0), first(1, 1), seal(0, 5), seal(1, 6)]));
        assert!(!is_right(&[first(2, 0), first(1, 0), seal(1, 6)]), "it answered the first one");
        assert!(!is_right(&[first(2, 0), first(1, 6), seal(1, 6)]), "the fourth is open");
        assert!(!is_right(&[first(2, 0), seal(1, 1), seal(1, 6)]), "it had read further");
        assert!(!is_right(&[first(2, 0), first(1, 5), first(1, 4)]), "it went on from there");
    }

    #[test]
    fn what_may_have_been_left_out_may_be_missing() {
        let void = SealedResults { may_be_void: true, ..seal(1, 2) };
        let other = SealedResults { journal: 1, ..seal(2, 5) };
        assert!(is_right(&[seal(1, 0), void, other]));
        assert!(is_right(&[seal(1, 0), SealedResults { journal: 1, ..seal(2, 5) }]));
        assert!(!is_right(&[seal(1, 0), other, other]));
    }
}
