//! `warptape devices`: what lanes run on.

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use crate::settings::Settings;

/// Prints the processor and the configured lanes.
pub fn execute(settings: &Settings) -> anyhow::Result<ExitCode> {
    let mut stdout = io::stdout().lock();
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    writeln!(stdout, "CPU: {}, {cores} cores available", model().as_deref().unwrap_or("unknown model"))?;
    writeln!(stdout, "Instructions: {}", instructions())?;
    writeln!(stdout, "Lanes ({}):", settings.engine.lanes.len())?;
    for lane in &settings.engine.lanes {
        writeln!(stdout, "  lane {}: {}, weight {}", lane.lane, lane.device, lane.weight)?;
    }
    if settings.engine.lanes.len() > cores {
        writeln!(stdout, "More lanes than cores: they share the cores, which gains nothing.")?;
    }
    writeln!(stdout, "GPU: this build has no GPU support; lanes run on the CPU.")?;
    Ok(ExitCode::SUCCESS)
}

/// The processor's name as Linux gives it.
fn model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn instructions() -> &'static str {
    match warptape_kernels::Isa::detect() {
        warptape_kernels::Isa::Avx2Fma => "AVX2 and FMA (used by the hot loops)",
        warptape_kernels::Isa::Baseline => {
            "baseline (this processor has no AVX2 with FMA); same results, slower"
        }
    }
}
