//! Fleets, workloads and recordings as files say them, checked: what is wrong is an error that names it.

use serde::Deserialize;
use thiserror::Error;
use warptape_events::journal::TaskClass;

use crate::fleet::{Class, Fleet};
use crate::workload::{Arrival, Burst, Closed, Diurnal, Kind, Process, Sizes, Tenant, Workload};

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FileError {
    /// A number is not one that can be simulated.
    #[error("{field} is {found}; it must be {allowed}")]
    Number {
        /// The field.
        field: String,
        /// What it says.
        found: f64,
        /// What it may be.
        allowed: &'static str,
    },
    /// A word is not one of those that are known.
    #[error("{field} is {found:?}; it must be one of: {allowed}")]
    Word {
        /// The field.
        field: String,
        /// What it says.
        found: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// A list has nothing in it.
    #[error("{0} is empty; there must be one at least")]
    Empty(&'static str),
    /// No lane of the fleet can do a kind.
    #[error("no class of the fleet has a speed for tasks of the kind {kind:?}; it has speeds for: {known}")]
    Kind {
        /// The kind.
        kind: String,
        /// The kinds that the fleet knows.
        known: String,
    },
    /// A line of a recording cannot be read.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
}

/// A fleet as a file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetFile {
    /// Time that a slice takes beside its units, in microseconds.
    #[serde(default)]
    pub slice_overhead_us: f64,
    /// Classes of lanes.
    pub classes: Vec<ClassFile>,
}

/// A class of lanes as a file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassFile {
    /// Its name.
    pub name: String,
    /// Number of lanes.
    pub lanes: usize,
    /// Speeds by kind, relative to a lane that takes a task's size in seconds.
    pub speeds: std::collections::BTreeMap<String, f64>,
}

/// A workload as a file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    /// Tasks of a run.
    pub tasks: usize,
    /// `poisson`, `bursty`, `diurnal` or `closed`.
    #[serde(default = "poisson")]
    pub arrivals: String,
    /// For `bursty`: probability that a task follows the one before closely.
    pub burst_probability: Option<f64>,
    /// For `bursty`: mean time to a task that does, as a share of the mean time between tasks.
    pub burst_spacing: Option<f64>,
    /// For `diurnal`: the period, in seconds.
    pub period_s: Option<f64>,
    /// For `diurnal`: by how much of the mean the rate changes.
    pub swing: Option<f64>,
    /// For `closed`: how many send tasks.
    pub senders: Option<usize>,
    /// For `closed`: mean time before a sender sends its next task, in seconds.
    pub think_s: Option<f64>,
    /// Time to a task's deadline in multiples of the mean size of its kind, beside a second; none: no deadlines.
    pub deadline_factor: Option<f64>,
    /// Kinds of tasks.
    pub kinds: Vec<KindFile>,
    /// Tenants; none: all tasks are of one.
    #[serde(default)]
    pub tenants: Vec<TenantFile>,
}

/// A kind of tasks as a file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindFile {
    /// Its name.
    pub name: String,
    /// Its share of the work, relative to the other kinds.
    pub share: f64,
    /// Mean size, in seconds of a lane with a speed of 1.
    pub mean_s: f64,
    /// `exponential` or `fixed`.
    #[serde(default = "exponential")]
    pub sizes: String,
    /// `critical`, `interactive` or `batch`.
    #[serde(default = "interactive")]
    pub class: String,
    /// Whether lanes may share a task.
    #[serde(default = "divisible")]
    pub divisible: bool,
}

/// A tenant as a file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantFile {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: i32,
    /// Its share of the tasks, relative to the other tenants.
    pub share: f64,
}

fn poisson() -> String {
    "poisson".to_owned()
}

fn exponential() -> String {
    "exponential".to_owned()
}

fn interactive() -> String {
    "interactive".to_owned()
}

fn divisible() -> bool {
    true
}

/// Units that a second of work is divided into.
const UNITS_PER_S: f64 = 2_000.0;
const LANES_MAX: usize = 64;
const TASKS_MAX: usize = 10_000_000;
/// The longest task: a day.
const SIZE_S_MAX: f64 = 86_400.0;

fn number(
    field: impl Into<String>,
    found: f64,
    is_allowed: bool,
    allowed: &'static str,
) -> Result<(), FileError> {
    match is_allowed {
        true => Ok(()),
        false => Err(FileError::Number { field: field.into(), found, allowed }),
    }
}

fn is_positive(found: f64) -> bool {
    found > 0.0 && found <= SIZE_S_MAX
}

fn class_of(field: impl Into<String>, word: &str) -> Result<TaskClass, FileError> {
    match word {
        "critical" => Ok(TaskClass::Critical),
        "interactive" => Ok(TaskClass::Interactive),
        "batch" => Ok(TaskClass::Batch),
        _ => {
            let (field, found) = (field.into(), word.to_owned());
            Err(FileError::Word { field, found, allowed: "critical, interactive, batch" })
        }
    }
}

impl FleetFile {
    /// The fleet, with speeds for these kinds, in their order.
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
                let known: std::collections::BTreeSet<_> = known.map(String::as_str).collect();
                let known = known.into_iter().collect::<Vec<_>>().join(", ");
                return Err(FileError::Kind { kind: kind.to_owned(), known });
            }
        }
        let class = |class: &ClassFile| Class {
            name: class.name.clone(),
            lanes: class.lanes,
            speeds: kinds.clone().map(|kind| class.speeds[kind]).collect(),
        };
        let classes = self.classes.iter().filter(|class| class.lanes > 0).map(class).collect();
        Ok(Fleet { classes, slice_overhead_ns: (overhead_us * 1e3) as i64 })
    }
}

impl WorkloadFile {
    /// The workload at a load.
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
    fn kind(&self, shares: f64) -> Result<Kind, FileError> {
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
        Ok(Kind {
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

/// Columns of a recording.
pub const TRACE_COLUMNS: &str = "time_s,kind,size_s,class,tenant,deadline_s";

/// A recording: a header of [`TRACE_COLUMNS`], and a task a line. Times are from the begin of the recording and do not run backwards; a deadline is a
/// time as well, and may be empty. The load is what it is.
pub fn trace(text: &str) -> Result<Workload, FileError> {
    let mut lines = (1..).zip(text.lines());
    let at = |line, reason: String| FileError::Line { line, reason };
    let header = lines.next().map_or("", |(_, header)| header.trim());
    if header != TRACE_COLUMNS {
        return Err(at(1, format!("the columns are {header:?}; they must be {TRACE_COLUMNS:?}")));
    }
    let (mut kinds, mut tenants): (Vec<Kind>, Vec<Tenant>) = (Vec::new(), Vec::new());
    let (mut arrivals, mut work_s, mut last_s): (Vec<Arrival>, Vec<f64>, f64) = (Vec::new(), Vec::new(), 0.0);
    for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
        let cells: Vec<_> = text.trim().split(',').collect();
        let [time, kind, size, class, tenant, deadline] = cells[..] else {
            return Err(at(line, format!("it has {} columns; there are 6", cells.len())));
        };
        let number = |name: &str, cell: &str| {
            let number = cell.parse::<f64>().ok().filter(|number| number.is_finite() && number.abs() <= 1e9);
            number.ok_or_else(|| at(line, format!("{name} is {cell:?}; it must be a number")))
        };
        let (at_s, size_s) = (number("time_s", time)?, number("size_s", size)?);
        if at_s < last_s {
            return Err(at(
                line,
                format!("time_s is {at_s}, before {last_s} of the line before; time must not run backwards"),
            ));
        }
        if !is_positive(size_s) {
            return Err(at(line, format!("size_s is {size_s}; it must be above 0 and up to a day")));
        }
        let deadline_s = if deadline.is_empty() { None } else { Some(number("deadline_s", deadline)?) };
        if deadline_s.is_some_and(|deadline_s| deadline_s <= at_s) {
            return Err(at(line, format!("deadline_s is {deadline}; it must be after time_s")));
        }
        let class = class_of("class", class).map_err(|error| at(line, error.to_string()))?;
        let kind = kinds.iter().position(|known| known.name == kind).unwrap_or_else(|| {
            let kind = Kind {
                name: kind.to_owned(),
                share: 0.0,
                mean_s: 0.0,
                sizes: Sizes::Fixed,
                divisible: true,
                class,
            };
            kinds.push(kind);
            work_s.push(0.0);
            kinds.len() - 1
        });
        let tenant = tenants.iter().position(|known| known.name == tenant).unwrap_or_else(|| {
            tenants.push(Tenant { name: tenant.to_owned(), weight: 1, share: 0.0 });
            tenants.len() - 1
        });
        work_s[kind] += size_s;
        last_s = at_s;
        arrivals.push(Arrival {
            at_ns: (at_s * 1e9) as i64,
            kind,
            class,
            tenant,
            units: ((size_s * UNITS_PER_S).round() as i64).max(1),
            deadline_ns: deadline_s.map(|deadline_s| (deadline_s * 1e9) as i64),
        });
    }
    if arrivals.is_empty() {
        return Err(FileError::Empty("the recording"));
    }
    let all_s: f64 = work_s.iter().sum();
    for (index, kind) in kinds.iter_mut().enumerate() {
        let tasks = arrivals.iter().filter(|arrival| arrival.kind == index).count();
        (kind.share, kind.mean_s) = (work_s[index] / all_s, work_s[index] / tasks as f64);
    }
    for (index, tenant) in tenants.iter_mut().enumerate() {
        let tasks = arrivals.iter().filter(|arrival| arrival.tenant == index).count();
        tenant.share = tasks as f64 / arrivals.len() as f64;
    }
    Ok(Workload {
        kinds,
        tenants,
        load: 0.0,
        tasks: arrivals.len(),
        process: Process::Recorded(arrivals),
        deadline_factor: None,
        units_per_s: UNITS_PER_S,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<T>(result: Result<T, FileError>) -> String {
        result.err().map_or("no error".to_owned(), |error| error.to_string())
    }

    fn lines(lines: &[&str]) -> String {
        [&[TRACE_COLUMNS], lines].concat().join("\n")
    }

    #[test]
    fn a_recording_is_its_tasks() {
        let text = lines(&["0,a,0.5,batch,x,", "0.5,b,1.5,critical,y,2.5", "", "0.5,a,0.25,batch,x,9"]);
        let workload = trace(&text).unwrap();
        assert_eq!(workload.tasks, 3);
        let shares: Vec<_> = workload.kinds.iter().map(|kind| (kind.share, kind.mean_s)).collect();
        assert_eq!(shares, [(0.75 / 2.25, 0.375), (1.5 / 2.25, 1.5)]);
        let Process::Recorded(arrivals) = workload.process else { panic!("a recording") };
        let found: Vec<_> =
            arrivals.iter().map(|one| (one.at_ns, one.kind, one.units, one.deadline_ns)).collect();
        let expected = [
            (0, 0, 1_000, None),
            (500_000_000, 1, 3_000, Some(2_500_000_000)),
            (500_000_000, 0, 500, Some(9_000_000_000)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_wrong_with_a_recording_is_said_with_its_line() {
        let check = |line: &str, expected: &str| {
            assert_eq!(said(trace(&lines(&["1,a,1,batch,x,", line]))), format!("line 3: {expected}"));
        };
        check("2,a,-1,batch,x,", "size_s is -1; it must be above 0 and up to a day");
        check("0.5,a,1,batch,x,", "time_s is 0.5, before 1 of the line before; time must not run backwards");
        check("2,a,1,urgent,x,", "class is \"urgent\"; it must be one of: critical, interactive, batch");
        check("2,a,much,batch,x,", "size_s is \"much\"; it must be a number");
        check("nan,a,1,batch,x,", "time_s is \"nan\"; it must be a number");
        check("2,a,1,batch", "it has 4 columns; there are 6");
        check("2,a,1,batch,x,2", "deadline_s is 2; it must be after time_s");
        assert_eq!(said(trace(TRACE_COLUMNS)), "the recording is empty; there must be one at least");
        assert!(
            said(trace("time,size\n")).starts_with("line 1: the columns are \"time,size\"; they must be")
        );
    }

    #[test]
    fn what_is_wrong_with_a_fleet_or_a_workload_is_said() {
        let class =
            |lanes, speed| ClassFile { name: "A".into(), lanes, speeds: [("a".into(), speed)].into() };
        let fleet = |classes| FleetFile { slice_overhead_us: 20.0, classes };
        let found = fleet(vec![class(2, 0.5)]).fleet(["a"].into_iter()).unwrap();
        assert_eq!((found.lanes(), found.classes[0].speeds[0], found.slice_overhead_ns), (2, 0.5, 20_000));
        let expected = "no class of the fleet has a speed for tasks of the kind \"b\"; it has speeds for: a";
        assert_eq!(said(fleet(vec![class(2, 0.5)]).fleet(["a", "b"].into_iter())), expected);
        let expected = "the speed of A for a is -1; it must be from 0.001 to 1000";
        assert_eq!(said(fleet(vec![class(2, -1.0)]).fleet(["a"].into_iter())), expected);
        assert_eq!(
            said(fleet(vec![]).fleet([].into_iter())),
            "lanes of all classes is 0; it must be from 1 to 64"
        );

        let kind = |mean_s| KindFile {
            name: "a".into(),
            share: 1.0,
            mean_s,
            sizes: exponential(),
            class: interactive(),
            divisible: true,
        };
        let workload = |arrivals: &str, mean_s| WorkloadFile {
            tasks: 10,
            arrivals: arrivals.to_owned(),
            burst_probability: Some(0.8),
            burst_spacing: Some(1.5),
            period_s: None,
            swing: None,
            senders: None,
            think_s: None,
            deadline_factor: None,
            kinds: vec![kind(mean_s)],
            tenants: Vec::new(),
        };
        assert!(workload("poisson", 1.0).workload(0.5).is_ok());
        let check = |arrivals, mean_s, expected: &str| {
            assert_eq!(said(workload(arrivals, mean_s).workload(0.5)), expected);
        };
        check("poisson", -1.0, "mean_s of the kind a is -1; it must be above 0, up to a day");
        check("bursty", 1.0, "burst_spacing is 1.5; it must be from 0, below 1");
        check("diurnal", 1.0, "period_s is NaN; it must be above 0");
        check("closed", 1.0, "senders is 0; it must be from 1 to 100,000");
        check("daily", 1.0, "arrivals is \"daily\"; it must be one of: poisson, bursty, diurnal, closed");
    }
}
