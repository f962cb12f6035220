//! Files that describe fleets.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::Deserialize;
use warptape_events::journal::{LaneKind, Link};

use super::{AutoscaleFile, FileError, number};
use crate::fleet::{Class, Failure, Fleet, Outage, Throttling};
use crate::ticks::TickSpeed;

const LANES_MAX: usize = 64;
const MEMORY_GIB_MAX: f64 = 65_536.0;
const GIB: f64 = (1u64 << 30) as f64;

/// A fleet as written in a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetFile {
    /// Time that a slice takes in addition to its units, in microseconds.
    #[serde(default)]
    pub slice_overhead_us: f64,
    /// Classes of lanes.
    pub classes: Vec<ClassFile>,
    /// Losses of lanes.
    #[serde(default)]
    pub failures: Vec<FailureFile>,
    /// Periods in which lanes are slower.
    #[serde(default)]
    pub throttling: Vec<ThrottlingFile>,
    /// How lanes are started and stopped; by default all lanes are always on.
    pub autoscale: Option<AutoscaleFile>,
}

/// A class of lanes as written in a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassFile {
    /// The class's name.
    pub name: String,
    /// Number of lanes.
    pub lanes: usize,
    /// Speed at each kind of tasks. At speed 1 a lane needs a task's size in seconds.
    pub speeds: BTreeMap<String, f64>,
    /// Ticks per second of a lane. Required in every class if the workload has ticks.
    pub ticks_per_s: Option<f64>,
    /// Time that a batch of ticks takes in addition to its rows, in microseconds.
    #[serde(default)]
    pub batch_overhead_us: f64,
    /// `gpu` or `cpu`; `gpu` by default.
    pub device: Option<String>,
    /// Memory of each lane's device, in GiB; `None` if not known.
    pub memory_gib: Option<f64>,
    /// Link between the devices of the class, `nvlink` or `pcie`; `None` if not known.
    pub link: Option<String>,
    /// NUMA node of the host to which the devices are attached; `None` if not known.
    pub numa_node: Option<i32>,
}

/// A loss of lanes as written in a file: at a fixed time (`at_s`, `back_after_s`), or at random times (`mtbf_s`,
/// `mttr_s`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureFile {
    /// The class whose lanes are lost.
    pub class: String,
    /// The lost lane of the class, from 0; `None` for all lanes of the class.
    pub lane: Option<usize>,
    /// Time of the loss, in seconds.
    pub at_s: Option<f64>,
    /// Time from the loss to the return, in seconds; `None` if they never return.
    pub back_after_s: Option<f64>,
    /// Mean time between failures of each lane, exponentially distributed, in seconds.
    pub mtbf_s: Option<f64>,
    /// Mean time to repair, exponentially distributed, in seconds.
    pub mttr_s: Option<f64>,
}

/// A period of lower speed as written in a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThrottlingFile {
    /// The class whose lanes are slower.
    pub class: String,
    /// The slower lane of the class, from 0; `None` for all lanes of the class.
    pub lane: Option<usize>,
    /// Start, in seconds.
    pub from_s: f64,
    /// End, in seconds.
    pub until_s: f64,
    /// Speed in the period, as a share of the normal speed.
    pub factor: f64,
}

impl FleetFile {
    /// Checks the file, and returns the fleet with speeds for these kinds, in their order.
    pub fn fleet<'a>(&self, kinds: impl Iterator<Item = &'a str> + Clone) -> Result<Fleet, FileError> {
        let lanes: usize = self.classes.iter().map(|class| class.lanes).sum();
        number("lanes of all classes", lanes as f64, (1..=LANES_MAX).contains(&lanes), "from 1 to 64")?;
        let overhead_us = self.slice_overhead_us;
        number("slice_overhead_us", overhead_us, (0.0..=1e6).contains(&overhead_us), "from 0 to 1,000,000")?;
        for class in &self.classes {
            for (kind, speed) in &class.speeds {
                let field = format!("the speed of {} for {kind}", class.name);
                number(field, *speed, (1e-3..=1e3).contains(speed), "from 0.001 to 1000")?;
            }
        }
        for kind in kinds.clone() {
            let is_known = |class: &ClassFile| class.lanes == 0 || class.speeds.contains_key(kind);
            if !self.classes.iter().all(is_known) {
                let known = self.classes.iter().flat_map(|class| class.speeds.keys());
                let known: BTreeSet<_> = known.map(String::as_str).collect();
                let known = known.into_iter().collect::<Vec<_>>().join(", ");
                return Err(FileError::Kind { kind: kind.to_owned(), known });
            }
        }
        let classes = self.classes.iter().filter(|class| class.lanes > 0);
        let classes = classes.map(|class| class.class(kinds.clone())).collect::<Result<Vec<_>, _>>()?;
        let autoscale = self.autoscale.as_ref().map(|file| file.autoscale(&classes)).transpose()?;
        let fleet = Fleet {
            classes,
            autoscale,
            slice_overhead_ns: (overhead_us * 1e3) as i64,
            failures: self.failures.iter().map(|failure| self.failure(failure)).collect::<Result<_, _>>()?,
            throttling: self.throttling.iter().map(|one| self.throttling(one)).collect::<Result<_, _>>()?,
        };
        match (0..fleet.lanes()).all(|lane| fleet.is_lost_for_ever(lane)) {
            true => Err(FileError::AllLost),
            false => Ok(fleet),
        }
    }

    /// Returns the numbers that a class's lanes have in the fleet; only one number if a lane is given.
    fn lanes(&self, field: &str, name: &str, lane: Option<usize>) -> Result<Range<usize>, FileError> {
        let mut first = 0;
        for class in &self.classes {
            if class.name == name {
                let Some(lane) = lane else { return Ok(first..first + class.lanes) };
                let field = format!("lane of {field}");
                number(field, lane as f64, lane < class.lanes, "below the number of the class's lanes")?;
                return Ok(first + lane..first + lane + 1);
            }
            first += class.lanes;
        }
        let known = self.classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>().join(", ");
        Err(FileError::Class { field: field.to_owned(), found: name.to_owned(), known })
    }

    fn failure(&self, file: &FailureFile) -> Result<Failure, FileError> {
        let lanes = self.lanes("a failure", &file.class, file.lane)?;
        let of = |field: &str, seconds: f64| {
            let is_allowed = seconds > 0.0 && seconds <= 1e9;
            number(
                format!("{field} of a failure of {}", file.class),
                seconds,
                is_allowed,
                "above 0, up to 1e9",
            )
            .map(|()| seconds)
        };
        let outage = match (file.at_s, file.mtbf_s, file.mttr_s) {
            (Some(at_s), None, None) => Outage::At {
                at_s: of("at_s", at_s)?,
                back_after_s: file.back_after_s.map(|after_s| of("back_after_s", after_s)).transpose()?,
            },
            (None, Some(mtbf_s), Some(mttr_s)) if file.back_after_s.is_none() => {
                Outage::Drawn { mtbf_s: of("mtbf_s", mtbf_s)?, mttr_s: of("mttr_s", mttr_s)? }
            }
            _ => return Err(FileError::Failure { class: file.class.clone() }),
        };
        Ok(Failure { lanes, outage })
    }

    fn throttling(&self, file: &ThrottlingFile) -> Result<Throttling, FileError> {
        let &ThrottlingFile { ref class, lane, from_s, until_s, factor } = file;
        let lanes = self.lanes("a throttling", class, lane)?;
        let of = |field: &str| format!("{field} of a throttling of {class}");
        number(of("from_s"), from_s, (0.0..=1e9).contains(&from_s), "from 0 to 1e9")?;
        number(of("until_s"), until_s, until_s > from_s && until_s <= 1e9, "after from_s, up to 1e9")?;
        number(of("factor"), factor, (0.01..=1.0).contains(&factor), "from 0.01 to 1")?;
        Ok(Throttling { lanes, from_s, until_s, factor })
    }
}

impl ClassFile {
    fn class<'a>(&self, kinds: impl Iterator<Item = &'a str>) -> Result<Class, FileError> {
        let word = |field: &str, found: &str, allowed| FileError::Word {
            field: format!("{field} of the class {}", self.name),
            found: found.to_owned(),
            allowed,
        };
        let device = match self.device.as_deref() {
            None | Some("gpu") => LaneKind::Device,
            Some("cpu") => LaneKind::Host,
            Some(other) => return Err(word("device", other, "gpu, cpu")),
        };
        let link = match self.link.as_deref() {
            None => None,
            Some("nvlink") => Some(Link::Nvlink),
            Some("pcie") => Some(Link::Pcie),
            Some(other) => return Err(word("link", other, "nvlink, pcie")),
        };
        let memory_gib = self.memory_gib.unwrap_or(0.0);
        let field = format!("memory_gib of the class {}", self.name);
        number(field, memory_gib, (0.0..=MEMORY_GIB_MAX).contains(&memory_gib), "from 0 to 65,536")?;
        Ok(Class {
            name: self.name.clone(),
            lanes: self.lanes,
            speeds: kinds.map(|kind| self.speeds[kind]).collect(),
            ticks: self.tick_speed()?,
            device,
            memory_bytes: (memory_gib * GIB) as i64,
            link,
            numa_node: self.numa_node,
        })
    }

    fn tick_speed(&self) -> Result<Option<TickSpeed>, FileError> {
        let field = |field: &str| format!("{field} of the class {}", self.name);
        let overhead_us = self.batch_overhead_us;
        number(
            field("batch_overhead_us"),
            overhead_us,
            (0.0..=1e6).contains(&overhead_us),
            "from 0 to 1,000,000",
        )?;
        let Some(rows_per_s) = self.ticks_per_s else { return Ok(None) };
        number(field("ticks_per_s"), rows_per_s, (1.0..=1e12).contains(&rows_per_s), "from 1 to 1e12")?;
        Ok(Some(TickSpeed { rows_per_s, batch_overhead_ns: (overhead_us * 1e3) as i64 }))
    }
}
