//! `warptape devices`: the devices that lanes run on.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::thread;

use warptape_cuda::{Clocks, CudaDevices, Gpu, PcieLink, Score, cache_folder};

use crate::commands::columns::{Align, aligned};
use crate::printable::stdout;
use crate::settings::{GpuProbe, Settings};

/// Finds and measures this machine's GPUs.
pub const PROBE: GpuProbe =
    GpuProbe { inventory: warptape_cuda::inventory, score: |gpu| measured(gpu).map(|score| score.value()) };

/// Prints the processor, the GPUs and the configured lanes.
pub fn execute(settings: &Settings) -> anyhow::Result<ExitCode> {
    let mut stdout = stdout();
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    writeln!(stdout, "CPU: {}, {cores} cores available", model().as_deref().unwrap_or("unknown model"))?;
    writeln!(stdout, "Instructions: {}", instructions())?;
    let inventory = warptape_cuda::inventory();
    if !inventory.gpus.is_empty() {
        let scores: Vec<Option<Score>> = inventory
            .gpus
            .iter()
            .map(|gpu| if inventory.missing.is_none() { measured(gpu) } else { None })
            .collect();
        write!(stdout, "{}", table(&inventory.gpus, &scores))?;
    }
    if let Some(line) = &inventory.missing {
        writeln!(stdout, "{line}")?;
    }
    writeln!(stdout, "Lanes ({}):", settings.lanes.specs.len())?;
    for lane in &settings.lanes.specs {
        writeln!(stdout, "  lane {}: {}, weight {}", lane.lane, lane.device, lane.weight)?;
    }
    let cpu_lanes = settings.lanes.specs.iter().filter(|lane| lane.device.starts_with("cpu:")).count();
    if cpu_lanes > cores {
        writeln!(
            stdout,
            "There are more lanes than cores. They share the cores and gain nothing: use fewer lanes."
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the score of a GPU, measured now or read from the cache.
fn measured(gpu: &Gpu) -> Option<Score> {
    let devices = CudaDevices::new(cache_folder(|name| std::env::var_os(name)));
    let measured = devices.score(gpu);
    measured.inspect_err(|error| tracing::warn!(%error, "a GPU cannot be measured")).ok()
}

/// Titles of the columns.
const TITLES: [&str; 13] = [
    "GPU",
    "name",
    "CC",
    "SMs",
    "memory free/total",
    "SM MHz",
    "memory MHz",
    "PCIe",
    "NVLinks",
    "peers",
    "MIG",
    "driver",
    "score",
];

/// Formats a line for each GPU under the titles. Clocks and links are "current/maximum"; `-` marks an unknown value.
fn table(gpus: &[Gpu], scores: &[Option<Score>]) -> String {
    let rows: Vec<Vec<String>> = gpus.iter().zip(scores).map(|(gpu, score)| row(gpu, *score)).collect();
    aligned(&TITLES.map(|title| (title, Align::Left)), &rows)
}

fn row(gpu: &Gpu, score: Option<Score>) -> Vec<String> {
    let (major, minor) = gpu.compute_capability;
    let gib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 30));
    let clock = |clock: Clocks| format!("{}/{}", or_dash(clock.now_mhz), or_dash(clock.max_mhz));
    let link =
        |link: PcieLink| or_dash(link.generation.zip(link.width).map(|(one, two)| format!("{one}x{two}")));
    let peers: Vec<String> = gpu.links.peers.iter().map(u32::to_string).collect();
    let mig =
        gpu.mig.map(|mig| if mig.is_enabled { format!("{} slices", mig.slices) } else { "off".to_owned() });
    vec![
        format!("cuda:{}", gpu.ordinal),
        gpu.name.clone(),
        format!("{major}.{minor}"),
        gpu.multiprocessors.to_string(),
        format!("{}/{} GiB", or_dash(gpu.memory_free_bytes.map(gib)), gib(gpu.memory_total_bytes)),
        clock(gpu.sm_clock),
        clock(gpu.memory_clock),
        format!("{}/{}", link(gpu.links.pcie), link(gpu.links.pcie_max)),
        or_dash(gpu.links.nvlinks_active),
        or_dash((!peers.is_empty()).then(|| peers.join(","))),
        or_dash(mig),
        or_dash(gpu.driver_version.as_ref()),
        or_dash(score.map(|score| score.value())),
    ]
}

fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Returns the processor's name as Linux gives it.
fn model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn instructions() -> &'static str {
    match warptape_kernels::Isa::detect() {
        warptape_kernels::Isa::Avx512(_) => "AVX-512 (used by the hot loops)",
        warptape_kernels::Isa::Avx2Fma(_) => "AVX2 and FMA (used by the hot loops)",
        warptape_kernels::Isa::Baseline => {
            "baseline (this processor has no AVX2 with FMA); same results, slower"
        }
    }
}

#[cfg(test)]
mod tests {
    use warptape_cuda::{Links, Mig};

    use super::*;

    #[test]
    fn gpus_in_a_table() {
        let known = Gpu {
            ordinal: 0,
            name: "NVIDIA H200".to_owned(),
            uuid: "a".to_owned(),
            pci_bus_id: "0000:3b:00.0".to_owned(),
            compute_capability: (9, 0),
            multiprocessors: 132,
            multiprocessor_threads: 2_048,
            memory_total_bytes: 140 << 30,
            memory_free_bytes: Some(139 << 30),
            sm_clock: Clocks { now_mhz: Some(345), max_mhz: Some(1980) },
            memory_clock: Clocks { now_mhz: Some(3201), max_mhz: Some(3201) },
            links: Links {
                pcie: PcieLink { generation: Some(1), width: Some(16) },
                pcie_max: PcieLink { generation: Some(5), width: Some(16) },
                nvlinks_active: Some(18),
                peers: vec![1, 2],
            },
            numa_node: None,
            mig: Some(Mig { is_enabled: false, slices: 0 }),
            driver_version: Some("570.1".to_owned()),
        };
        let silent = Gpu {
            ordinal: 1,
            memory_free_bytes: None,
            sm_clock: Clocks::default(),
            memory_clock: Clocks::default(),
            links: Links::default(),
            mig: Some(Mig { is_enabled: true, slices: 7 }),
            ..known.clone()
        };
        let score = Score { copy_gb_s: 2000.0, f64_gflop_s: 34_000.0 };
        assert_eq!(
            table(&[known, silent], &[Some(score), None]),
            "GPU     name         CC   SMs  memory free/total  SM MHz    memory MHz  PCIe       NVLinks  peers  MIG       driver  score\n\
             cuda:0  NVIDIA H200  9.0  132  139.0/140.0 GiB    345/1980  3201/3201   1x16/5x16  18       1,2    off       570.1   825\n\
             cuda:1  NVIDIA H200  9.0  132  -/140.0 GiB        -/-       -/-         -/-        -        -      7 slices  570.1   -\n"
        );
    }
}
