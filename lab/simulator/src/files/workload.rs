//! Files that describe workloads.

use serde::Deserialize;

use super::{FileError, SIZE_S_MAX, TicksFile, UNITS_PER_S, class_of, is_positive, number};
use crate::workload::{Burst, Closed, Diurnal, Process, Sizes, TaskKind, Tenant, Workload};

/// Greatest number of tasks of a run.
const TASKS_MAX: usize = 10_000_000;

/// A workload as written in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    /// Number of tasks of a run.
    pub tasks: usize,
    /// `poisson`, `bursty`, `diurnal` or `closed`.
    #[serde(default = "poisson")]
    pub arrivals: String,
    /// For `bursty`: probability that a task comes shortly after the previous one.
    pub burst_probability: Option<f64>,
    /// For `bursty`: mean time to such a close task, as a share of the mean time between tasks.
    pub burst_spacing: Option<f64>,
    /// For `diurnal`: the period, in seconds.
    pub period_s: Option<f64>,
    /// For `diurnal`: deviation of the rate from the mean, as a share of the mean.
    pub swing: Option<f64>,
    /// For `closed`: number of senders.
    pub senders: Option<usize>,
    /// For `closed`: mean think time of a sender, in seconds.
    pub think_s: Option<f64>,
    /// Deadline of a task: one second after its arrival plus this multiple of its kind's mean size; `None`: no
    /// deadlines.
    pub deadline_factor: Option<f64>,
    /// Kinds of tasks.
    pub kinds: Vec<KindFile>,
    /// Tenants; by default one tenant has all tasks.
    #[serde(default)]
    pub tenants: Vec<TenantFile>,
    /// Ticks that come beside tasks; `None`: tasks alone.
    pub ticks: Option<TicksFile>,
}

/// A kind of tasks as written in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindFile {
    /// The kind's name.
    pub name: String,
    /// The kind's share of the work, relative to the other kinds.
    pub share: f64,
    /// Mean size of a task, in seconds of a lane with a speed of 1.
    pub mean_s: f64,
    /// `exponential` or `fixed`.
    #[serde(default = "exponential")]
    pub sizes: String,
    /// `critical`, `interactive` or `batch`.
    #[serde(default = "interactive")]
    pub class: String,
    /// True if several lanes may share a task; otherwise one lane does all of it.
    #[serde(default = "divisible")]
    pub divisible: bool,
}

/// A tenant as written in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantFile {
    /// The tenant's name.
    pub name: String,
    /// The tenant's weight.
    pub weight: i32,
    /// The tenant's share of the tasks, relative to the other tenants.
    pub share: f64,
}

fn poisson() -> String {
    "poisson".to_owned()
}

pub(super) fn exponential() -> String {
    "exponential".to_owned()
}

pub(super) fn interactive() -> String {
    "interactive".to_owned()
}

fn divisible() -> bool {
    true
}

impl WorkloadFile {
    /// Checks the file, and returns the workload at the given load.
    pub fn workload(&self, load: f64) -> Result<Workload, FileError> {
        if self.kinds.is_empty() {
            return Err(FileError::Empty("kinds"));
        }
        number("tasks", self.tasks as f64, (1..=TASKS_MAX).contains(&self.tasks), "from 1 to 10,000,000")?;
        let factor = self.deadline_factor.unwrap_or(1.0);
        number("deadline_factor", factor, is_positive(factor), "above 0")?;
        let shares: f64 = self.kinds.iter().map(|kind| kind.share).sum();
        let kinds = self.kinds.iter().map(|kind| kind.kind(shares)).collect::<Result<_, _>>()?;
        let shares: f64 = self.tenants.iter().map(|tenant| tenant.share).sum();
        let mut tenants = self.tenants.iter().map(|one| one.tenant(shares)).collect::<Result<Vec<_>, _>>()?;
        if tenants.is_empty() {
            tenants.push(Tenant { name: "all".to_owned(), weight: 1, share: 1.0 });
        }
        Ok(Workload {
            kinds,
            tenants,
            load,
            tasks: self.tasks,
            process: self.process()?,
            deadline_factor: self.deadline_factor,
            units_per_s: UNITS_PER_S,
            ticks: self.ticks.as_ref().map(TicksFile::ticks).transpose()?,
        })
    }

    fn process(&self) -> Result<Process, FileError> {
        let of = |field: &str, value: Option<f64>, is_allowed: fn(f64) -> bool, allowed| {
            let value = value.unwrap_or(f64::NAN);
            number(field, value, is_allowed(value), allowed).map(|()| value)
        };
        let is_share = |share: f64| (0.0..1.0).contains(&share);
        Ok(match self.arrivals.as_str() {
            "poisson" => Process::Poisson,
            "bursty" => Process::Bursty(Burst {
                probability: of("burst_probability", self.burst_probability, is_share, "from 0, below 1")?,
                spacing: of("burst_spacing", self.burst_spacing, is_share, "from 0, below 1")?,
            }),
            "diurnal" => Process::Diurnal(Diurnal {
                period_s: of("period_s", self.period_s, is_positive, "above 0")?,
                swing: of("swing", self.swing, is_share, "from 0, below 1")?,
            }),
            "closed" => {
                let senders = self.senders.unwrap_or(0);
                number("senders", senders as f64, (1..=100_000).contains(&senders), "from 1 to 100,000")?;
                let think_s = self.think_s.unwrap_or(0.0);
                number("think_s", think_s, (0.0..=SIZE_S_MAX).contains(&think_s), "from 0 to 86,400")?;
                Process::Closed(Closed { senders, think_s })
            }
            other => {
                let allowed = "poisson, bursty, diurnal, closed";
                return Err(FileError::Word {
                    field: "arrivals".to_owned(),
                    found: other.to_owned(),
                    allowed,
                });
            }
        })
    }
}

impl KindFile {
    fn kind(&self, shares: f64) -> Result<TaskKind, FileError> {
        let field = |field: &str| format!("{field} of the kind {}", self.name);
        number(field("share"), self.share, is_positive(self.share), "above 0")?;
        number(field("mean_s"), self.mean_s, is_positive(self.mean_s), "above 0, up to a day")?;
        let sizes = match self.sizes.as_str() {
            "exponential" => Sizes::Exponential,
            "fixed" => Sizes::Fixed,
            other => {
                let (field, found) = (field("sizes"), other.to_owned());
                return Err(FileError::Word { field, found, allowed: "exponential, fixed" });
            }
        };
        Ok(TaskKind {
            name: self.name.clone(),
            share: self.share / shares,
            mean_s: self.mean_s,
            sizes,
            divisible: self.divisible,
            class: class_of(field("class"), &self.class)?,
        })
    }
}

impl TenantFile {
    fn tenant(&self, shares: f64) -> Result<Tenant, FileError> {
        let field = |field: &str| format!("{field} of the tenant {}", self.name);
        number(field("share"), self.share, is_positive(self.share), "above 0")?;
        number(
            field("weight"),
            f64::from(self.weight),
            (1..=1_000).contains(&self.weight),
            "from 1 to 1000",
        )?;
        Ok(Tenant { name: self.name.clone(), weight: self.weight, share: self.share / shares })
    }
}
