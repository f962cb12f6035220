//! Recordings: the tasks of a run with their times.

use super::{FileError, UNITS_PER_S, class_of, is_positive};
use crate::workload::{Arrival, Process, Sizes, TaskKind, Tenant, Workload};

/// Columns of a recording.
pub const TRACE_COLUMNS: &str = "time_s,kind,size_s,class,tenant,deadline_s";

/// Reads a recording: a header line [`TRACE_COLUMNS`], then one task per line. Times count from the start of the
/// recording and never decrease. A deadline is also such a time, and may be empty. The load follows from the recording.
pub fn trace(text: &str) -> Result<Workload, FileError> {
    let mut lines = (1..).zip(text.lines());
    let at = |line, reason: String| FileError::Line { line, reason };
    let header = lines.next().map_or("", |(_, header)| header.trim());
    if header != TRACE_COLUMNS {
        return Err(at(1, format!("the columns are {header:?}; they must be {TRACE_COLUMNS:?}")));
    }
    let (mut kinds, mut tenants): (Vec<TaskKind>, Vec<Tenant>) = (Vec::new(), Vec::new());
    let (mut arrivals, mut work_s, mut last_s): (Vec<Arrival>, Vec<f64>, f64) = (Vec::new(), Vec::new(), 0.0);
    for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
        let cells: Vec<_> = text.trim().split(',').collect();
        let [time, kind, size, class, tenant, deadline] = cells[..] else {
            return Err(at(line, format!("it has {} columns; 6 are needed", cells.len())));
        };
        let number = |name: &str, cell: &str| {
            let number = cell.parse::<f64>().ok().filter(|number| number.is_finite() && number.abs() <= 1e9);
            number.ok_or_else(|| at(line, format!("{name} is {cell:?}; it must be a number")))
        };
        let (at_s, size_s) = (number("time_s", time)?, number("size_s", size)?);
        if at_s < last_s {
            return Err(at(
                line,
                format!("time_s is {at_s}, less than {last_s} of the previous line; times must not decrease"),
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
            let kind = TaskKind {
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
        ticks: None,
    })
}
