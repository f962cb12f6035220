//! Figures for people and for programs.

use std::io::Write;

use serde_json::json;
use warptape_simulator::Interval;
use warptape_simulator::figures::{About, BESIDE_COST, FigureRow};

use crate::cli::SimulateFormat;
use crate::commands::columns::{Align, aligned};

/// The rows at one load, with their parameters.
pub struct Printed<'a> {
    /// The load; `None` if the workload has its own.
    pub load: Option<f64>,
    pub seeds: u64,
    pub tasks: usize,
    /// Ticks per second beside the tasks; `None` if there are none.
    pub ticks_per_s: Option<f64>,
    pub rows: &'a [FigureRow],
    /// Sentences to print below the tables.
    pub remarks: &'a [String],
}

/// Prints the rows in a format.
pub fn print(out: &mut impl Write, format: SimulateFormat, printed: &Printed<'_>) -> anyhow::Result<()> {
    match format {
        SimulateFormat::Table => tables(out, printed)?,
        SimulateFormat::Json => {
            for row in printed.rows {
                writeln!(out, "{}", line(printed, row))?;
            }
        }
        SimulateFormat::Csv => {
            let load = printed.load.map_or(String::new(), |load| load.to_string());
            for row in printed.rows {
                for figure in &row.figures {
                    let Interval { mean, half } = figure.values;
                    writeln!(out, "{},{load},{},{},{mean},{half}", row.name, printed.seeds, figure.name)?;
                }
            }
        }
    }
    Ok(())
}

/// Prints a table for each subject of figures. A table has the rows with figures on its subject.
fn tables(out: &mut impl Write, printed: &Printed<'_>) -> anyhow::Result<()> {
    let given = printed.load.map_or("as it comes".to_owned(), |load| load.to_string());
    let ticks = printed.ticks_per_s.map_or(String::new(), |rate| format!(" beside {rate} ticks/s"));
    writeln!(out, "load {given}, {} seeds of {} tasks{ticks}", printed.seeds, printed.tasks)?;
    for about in About::ALL {
        if !printed.rows.iter().any(|row| row.figures.iter().any(|figure| figure.about == about)) {
            continue;
        }
        let names = |row: &FigureRow| -> Vec<String> {
            let figures = row.figures.iter().filter(|figure| figure.about == about);
            figures.map(|figure| figure.name.clone()).collect()
        };
        let mut columns: Vec<String> = Vec::new();
        for name in printed.rows.iter().flat_map(names) {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
        if about == About::Cost {
            columns.extend(BESIDE_COST.map(str::to_owned));
        }
        let header: Vec<_> = std::iter::once(("policy", Align::Left))
            .chain(columns.iter().map(|name| (name.as_str(), Align::Right)))
            .collect();
        let cells: Vec<Vec<String>> = printed
            .rows
            .iter()
            .filter(|row| row.figures.iter().any(|figure| figure.about == about))
            .map(|row| {
                let cell = |name: &String| row.figure(name).map_or(String::new(), shown);
                std::iter::once(row.name.clone()).chain(columns.iter().map(cell)).collect()
            })
            .collect();
        writeln!(out, "\n{}", aligned(&header, &cells).trim_end())?;
    }
    for remark in printed.remarks {
        writeln!(out, "\n{remark}")?;
    }
    writeln!(out)?;
    Ok(())
}

fn line(printed: &Printed<'_>, row: &FigureRow) -> serde_json::Value {
    let figures: serde_json::Map<_, _> = row
        .figures
        .iter()
        .map(|figure| {
            let Interval { mean, half } = figure.values;
            (figure.name.clone(), json!({"mean": mean, "half_95": half}))
        })
        .collect();
    json!({"policy": row.name, "load": printed.load, "seeds": printed.seeds, "tasks": printed.tasks, "figures": figures})
}

/// Formats a mean and its half-interval, to about four digits.
fn shown(Interval { mean, half }: Interval) -> String {
    let digits = match mean.abs() {
        size if size >= 1_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 4,
    };
    match half {
        0.0 => format!("{mean:.digits$}"),
        _ => format!("{mean:.digits$} ± {half:.digits$}"),
    }
}
