//! The boundaries of several puts, improved together until all are stable, with any implementation of the integrals.

use std::convert::Infallible;

use super::endless;
use super::nodes::{CHEBYSHEV, NODES};
use super::points::{BY_VALUES, BY_VALUES_BELOW, Curve, Levels, NO_LEVEL, Premium, Put, improved, premium};
use crate::isa::{HotLoop, Isa};
use crate::math::{exp, ln_of_positive};

/// Greatest change of a level with which a boundary counts as stable.
const STILL: f64 = 1e-13;
/// Number of iterations after which a boundary counts as stable if no level changes by more than `NEARLY_STILL`.
const STEPS_MAX: usize = 96;
const NEARLY_STILL: f64 = 1e-7;
/// Greatest ratio of the boundary of an option without expiry to the boundary's limit at expiry.
const ENDLESS_MAX: f64 = 1.0 - 1e-12;
/// The least initial level.
const LEVEL_MIN: f64 = -600.0;

/// An implementation of the integrals.
pub trait Integrals {
    type Error;

    /// Improved levels, given curves through the present ones.
    fn improve(
        &mut self,
        puts: &[Put],
        curves: &[Curve],
        levels: &[Levels],
    ) -> Result<Vec<Levels>, Self::Error>;

    /// The value of early exercise, given curves as the boundaries.
    fn premiums(&mut self, puts: &[Put], curves: &[Curve]) -> Result<Vec<Premium>, Self::Error>;
}

/// The result for a put.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled {
    /// True if it is best to exercise now.
    pub is_exercised: bool,
    pub premium: Premium,
}

/// Finds the boundaries of puts, and their premiums; `None` if one does not converge. If one does not converge with its
/// first equation, all are computed by values, with the equation that avoids cancellation.
pub fn settle<I: Integrals>(puts: &[Put], integrals: &mut I) -> Result<Option<Vec<Settled>>, I::Error> {
    let found = settle_by_first_way(puts, integrals)?;
    if found.is_some() || puts[0].is_out_of_reach() {
        return Ok(found);
    }
    settle_by_first_way(&by_values(puts), integrals)
}

fn by_values(puts: &[Put]) -> Vec<Put> {
    let way = if puts[0].carry < 0.0 { BY_VALUES_BELOW } else { BY_VALUES };
    puts.iter().map(|put| Put { way, ..*put }).collect()
}

/// The boundary that [`settle`] finds for one put, as a curve, with its present level; `None` if it does not converge.
pub fn boundary<I: Integrals>(put: &Put, integrals: &mut I) -> Result<Option<(Curve, f64)>, I::Error> {
    let mut found = levels_of(std::slice::from_ref(put), integrals)?;
    if found.is_none() {
        found = levels_of(&by_values(std::slice::from_ref(put)), integrals)?;
    }
    Ok(found.map(|levels| (curve(&levels[0]), levels[0][0])))
}

/// The result for a put from its present level and its premium; adds the premium of the endless years.
pub fn settled(put: &Put, level: f64, premium: Premium) -> Settled {
    let ln_level = put.ln_limit + level;
    let premium = match put.endless_years > 0.0 {
        true => premium.and(&endless::premium(put, ln_level)),
        false => premium,
    };
    Settled { is_exercised: put.ln_spot <= ln_level, premium }
}

/// As [`settle`], but only with the first equation. All puts take as many iterations as the slowest one, so that
/// differences between two results depend only on their parameters.
pub fn settle_by_first_way<I: Integrals>(
    puts: &[Put],
    integrals: &mut I,
) -> Result<Option<Vec<Settled>>, I::Error> {
    if puts.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let Some(levels) = levels_of(puts, integrals)? else { return Ok(None) };
    let curves: Vec<Curve> = levels.iter().map(curve).collect();
    let premiums = integrals.premiums(puts, &curves)?;
    let found = puts.iter().zip(&levels).zip(premiums);
    Ok(Some(found.map(|((put, levels), premium)| settled(put, levels[0], premium)).collect()))
}

fn levels_of<I: Integrals>(puts: &[Put], integrals: &mut I) -> Result<Option<Vec<Levels>>, I::Error> {
    let mut levels: Vec<Levels> = puts.iter().map(seed).collect();
    let mut change = f64::INFINITY;
    for _ in 0..STEPS_MAX {
        let curves: Vec<Curve> = levels.iter().map(curve).collect();
        let better = integrals.improve(puts, &curves, &levels)?;
        if better.iter().flatten().any(|&level| level == NO_LEVEL) {
            return Ok(None);
        }
        let pairs = better.iter().flatten().zip(levels.iter().flatten());
        change = pairs.fold(0.0, |most, (new, old)| f64::max(most, (new - old).abs()));
        levels = better;
        if change <= STILL {
            break;
        }
    }
    Ok((change <= NEARLY_STILL).then_some(levels))
}

/// `√(τ/T)` of a node.
pub fn share(node: usize) -> f64 {
    0.5 * (1.0 + CHEBYSHEV[node])
}

/// The initial boundary (Barone-Adesi and Whaley, *Efficient Analytic Approximation of American Option Values*, 1987),
/// from that of an option without expiry.
fn seed(put: &Put) -> Levels {
    let Put { rate, carry, volatility, ln_limit, .. } = *put;
    let variance = volatility * volatility;
    let drift = put.drift();
    let root = (drift * drift + 2.0 * rate * variance).sqrt();
    // The negative root of ½σ²λ(λ − 1) + (r − q)λ − r.
    let power = if drift > 0.0 { (drift + root) / variance } else { 2.0 * rate / (root - drift) };
    let limit = exp(ln_limit);
    let endless = f64::min(power / (power + 1.0), limit * ENDLESS_MAX);
    std::array::from_fn(|node| {
        let years = put.years * (share(node) * share(node));
        let fall = ((rate - carry) * years - 2.0 * (volatility * years.sqrt())) * (limit / (limit - endless));
        let level = (endless + (limit - endless) * exp(f64::min(fall, 0.0))) / limit;
        let level = if level > 0.0 { ln_of_positive(f64::max(level, f64::MIN_POSITIVE)) } else { LEVEL_MIN };
        level.clamp(LEVEL_MIN, 0.0)
    })
}

/// The polynomial through the squares of levels, and 0 at expiry.
fn curve(levels: &Levels) -> Curve {
    let cosine = |number: usize| match number % (2 * NODES) {
        NODES => -1.0,
        before @ 0..NODES => CHEBYSHEV[before],
        behind => CHEBYSHEV[2 * NODES - behind],
    };
    std::array::from_fn(|degree| {
        let mut sum = 0.5 * (levels[0] * levels[0]);
        for (node, level) in levels.iter().enumerate().skip(1) {
            sum += level * level * cosine(node * degree);
        }
        let of_end = if degree == 0 || degree == NODES { 0.5 } else { 1.0 };
        2.0 / NODES as f64 * of_end * sum
    })
}

/// The processor, with an instruction set.
pub struct Host(pub Isa);

impl Integrals for Host {
    type Error = Infallible;

    fn improve(
        &mut self,
        puts: &[Put],
        curves: &[Curve],
        levels: &[Levels],
    ) -> Result<Vec<Levels>, Infallible> {
        let mut better = levels.to_vec();
        self.0.run(Improve { puts, curves, levels: &mut better });
        Ok(better)
    }

    fn premiums(&mut self, puts: &[Put], curves: &[Curve]) -> Result<Vec<Premium>, Infallible> {
        let mut premiums = vec![Premium::default(); puts.len()];
        self.0.run(Premiums { puts, curves, premiums: &mut premiums });
        Ok(premiums)
    }
}

struct Improve<'a> {
    puts: &'a [Put],
    curves: &'a [Curve],
    levels: &'a mut [Levels],
}

impl HotLoop for Improve<'_> {
    #[inline(always)]
    fn run(self) {
        for (levels, (put, curve)) in self.levels.iter_mut().zip(self.puts.iter().zip(self.curves)) {
            for (node, level) in levels.iter_mut().enumerate() {
                *level = improved(put, curve, share(node), *level);
            }
        }
    }
}

struct Premiums<'a> {
    puts: &'a [Put],
    curves: &'a [Curve],
    premiums: &'a mut [Premium],
}

impl HotLoop for Premiums<'_> {
    #[inline(always)]
    fn run(self) {
        for (found, (put, curve)) in self.premiums.iter_mut().zip(self.puts.iter().zip(self.curves)) {
            *found = premium(put, curve);
        }
    }
}
