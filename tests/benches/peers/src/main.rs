//! Rivals in Rust: a plain loop on one thread, and Renoir. `peers.py` runs them.
//!
//!     warptape-peers loop|renoir SPECS EMAS CROSSINGS THREADS TICKS BARS
//!
//! SPECS are lengths of bars in seconds, separated by commas; EMAS and CROSSINGS are 0 or 1. TICKS is the flat file of `market.py`. BARS gets a line
//! for each bar, in any order. The last line of standard output is JSON: seconds of the computation alone, without reading and writing.

mod bars;
mod plain;
mod streamed;

use std::fs::File;
use std::io::{BufWriter, Error, Read, Write};
use std::time::Instant;

use cpu_time::ProcessTime;

use bars::{Bar, Row, Task, Tick};

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [engine, specs, emas, crossings, threads, ticks, target] = arguments.as_slice() else {
        return Err(Error::other(
            "usage: warptape-peers loop|renoir SPECS EMAS CROSSINGS THREADS TICKS BARS",
        ));
    };
    let task = Task {
        lengths_ns: specs
            .split(',')
            .map(|spec| number::<i64>(spec).map(|seconds| seconds * 1_000_000_000))
            .collect::<Result<_, _>>()?,
        emas: emas == "1",
        crossings: crossings == "1",
    };
    let ticks = read_ticks(ticks)?;
    let before = ProcessTime::now();
    let start = Instant::now();
    let rows = match engine.as_str() {
        "loop" => plain::rows_of(&task, &ticks),
        "renoir" => streamed::rows_of(&task, ticks, number(threads)?),
        _ => return Err(Error::other("the engine is neither loop nor renoir")),
    };
    let wall_s = start.elapsed().as_secs_f64();
    let cpu_s = before.elapsed().as_secs_f64();
    write_rows(target, &task, &rows)?;
    println!("{{\"wall_s\": {wall_s}, \"cpu_s\": {cpu_s}}}");
    Ok(())
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::other(format!("{text} is not a number")))
}

/// Reads records of 32 bytes: time, symbol, 1 for a trade, price and size, in little endian.
fn read_ticks(path: &str) -> Result<Vec<Tick>, Error> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let (records, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() {
        return Err(Error::other(format!("{path} ends within a tick")));
    }
    Ok(records.iter().map(Tick::of).collect())
}

fn write_rows(path: &str, task: &Task, rows: &[Row]) -> Result<(), Error> {
    let mut out = BufWriter::new(File::create(path)?);
    for row in rows {
        let Bar { open, high, low, close, volume, trades, .. } = row.bar;
        let Bar { symbol, start_ns, length_ns, .. } = row.bar;
        write!(
            out,
            "{symbol},{},{start_ns},{open},{high},{low},{close},{volume},{trades}",
            length_ns / 1_000_000_000
        )?;
        if task.emas {
            for average in [row.fast, row.slow] {
                match average {
                    Some(average) => write!(out, ",{average:?}")?,
                    None => write!(out, ",")?,
                }
            }
        }
        if task.crossings {
            write!(out, ",{}", row.crossing)?;
        }
        writeln!(out)?;
    }
    out.flush()
}
