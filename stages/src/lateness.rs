//! Allowed lateness of ticks, by venue, and the resulting groups of symbols.
//!
//! A watermark closes the bars of a whole group, so all symbols of a group have one lateness. The groups of a partition
//! take the latenesses in turns: with two of them, even groups have the first and odd groups the second.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::StageConfig;

/// Seed of the group hash. No partitioner uses it, so that groups split a partition evenly.
const GROUP_SEED: u64 = 0x7761_7270_7461_7065;

/// The latenesses of a configuration, each a class of symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Latenesses by class, in nanoseconds. The first is that of all venues without one of their own.
    of_classes_ns: Vec<i64>,
    classes: BTreeMap<String, u32>,
}

impl Lateness {
    /// The latenesses of a configuration.
    pub fn of(config: &StageConfig) -> Self {
        let mut of_classes_ns = vec![config.allowed_lateness_ns];
        let mut class = |lateness_ns: i64| {
            let known = of_classes_ns.iter().position(|known| *known == lateness_ns);
            known.unwrap_or_else(|| {
                of_classes_ns.push(lateness_ns);
                of_classes_ns.len() - 1
            }) as u32
        };
        let by_venue = config.lateness_by_venue_ns.iter();
        let classes = by_venue.map(|(venue, lateness_ns)| (venue.clone(), class(*lateness_ns))).collect();
        Self { of_classes_ns, classes }
    }

    /// Number of classes.
    pub fn classes(&self) -> u32 {
        self.of_classes_ns.len() as u32
    }

    /// The lateness of a class, in nanoseconds.
    #[inline(always)]
    pub fn of_class_ns(&self, class: u32) -> i64 {
        self.of_classes_ns[class as usize]
    }

    /// The lateness of a symbol, in nanoseconds.
    pub fn of_symbol_ns(&self, symbol: &str) -> i64 {
        self.of_class_ns(self.class_of(symbol))
    }

    /// The greatest lateness, in nanoseconds.
    pub fn max_ns(&self) -> i64 {
        self.of_classes_ns.iter().copied().max().unwrap_or(0)
    }

    /// The smallest lateness, in nanoseconds.
    pub(crate) fn min_ns(&self) -> i64 {
        self.of_classes_ns.iter().copied().min().unwrap_or(0)
    }

    /// The class of a symbol.
    fn class_of(&self, symbol: &str) -> u32 {
        if self.classes.is_empty() {
            return 0;
        }
        symbol.split_once(':').and_then(|(venue, _)| self.classes.get(venue)).copied().unwrap_or(0)
    }

    /// The class of a group.
    #[inline(always)]
    pub(crate) fn class_of_group(&self, group: u32) -> u32 {
        group % self.classes()
    }

    /// The group of a symbol within its partition, among `groups`. There must be at least one group for each class.
    pub fn group_of(&self, symbol: &str, groups: u32) -> u32 {
        let (class, classes) = (self.class_of(symbol), self.classes());
        let groups_of_class = u64::from(groups.saturating_sub(class).div_ceil(classes).max(1));
        (hash(symbol) % groups_of_class) as u32 * classes + class
    }
}

/// The group of a symbol within its partition, if all venues have one lateness.
pub fn group_of(symbol: &str, groups: u32) -> u32 {
    (hash(symbol) % u64::from(groups)) as u32
}

fn hash(symbol: &str) -> u64 {
    xxh3_64_with_seed(symbol.as_bytes(), GROUP_SEED)
}
