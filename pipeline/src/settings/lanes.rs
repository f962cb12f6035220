//! Lanes on GPUs: checks that the requested GPUs exist, weighs lanes, and describes all lanes' devices.
//!
//! The caller passes in the probe for GPUs, which is called only if a device may be a GPU.

use warptape_cuda::{Gpu, Inventory};
use warptape_kernels::Isa;
use warptape_scheduler::WIDTH_MAX;
use warptape_schemas::journal::{LaneSpec, Link, Peer};

use super::syntax::{DeviceSyntax, gpu_of_lane};

/// Finds and measures GPUs.
#[derive(Clone, Copy, Debug)]
pub struct GpuProbe {
    /// Finds the GPUs of this machine.
    pub inventory: fn() -> Inventory,
    /// Measures a GPU's score; `None` if it cannot be measured.
    pub score: fn(&Gpu) -> Option<i32>,
}

/// Returns the GPUs of this machine; `None` if no device can be a GPU, or no probe is given.
pub(super) fn inventory_for(devices: &[String], probe: Option<&GpuProbe>) -> Option<Inventory> {
    let may_be_gpu = |device: &String| {
        matches!(DeviceSyntax::parse(device), Some(DeviceSyntax::Auto | DeviceSyntax::Gpu { .. }))
    };
    probe.filter(|_| devices.iter().any(may_be_gpu)).map(|probe| (probe.inventory)())
}

/// Returns the allowed devices, in words, if a GPU is missing; `None` if all exist.
pub(super) fn absent(devices: &[String], inventory: &Inventory) -> Option<String> {
    let there = inventory.usable();
    let is_absent = |device: &&String| matches!(DeviceSyntax::parse(device), Some(DeviceSyntax::Gpu { ordinal, .. }) if ordinal as usize >= there.len());
    let absent = devices.iter().find(is_absent)?;
    let found = inventory.missing.clone().unwrap_or_else(|| {
        let names: Vec<_> = there.iter().map(|gpu| format!("cuda:{} ({})", gpu.ordinal, gpu.name)).collect();
        format!("found {}", names.join(", "))
    });
    Some(format!("only GPUs of this machine; {absent} is missing: {found}"))
}

/// Weighs each lane on a GPU by the GPU's score divided by its number of lanes. If one of the GPUs cannot be measured,
/// all lanes weigh 1.
pub(super) fn weigh(lanes: &mut [LaneSpec], inventory: &Inventory, probe: &GpuProbe) {
    let lanes_of = |lanes: &[LaneSpec], gpu: &Gpu| -> Vec<usize> {
        let name = format!("cuda:{}", gpu.ordinal);
        let of_gpu = |(index, lane): (usize, &LaneSpec)| {
            (gpu_of_lane(&lane.device) == Some(name.as_str())).then_some(index)
        };
        lanes.iter().enumerate().filter_map(of_gpu).collect()
    };
    let mut weights = Vec::new();
    for gpu in inventory.usable() {
        let of_gpu = lanes_of(lanes, gpu);
        if of_gpu.is_empty() {
            continue;
        }
        let Some(score) = (probe.score)(gpu) else { return };
        let weight = (score / of_gpu.len() as i32).max(1);
        weights.extend(of_gpu.into_iter().map(|index| (index, weight)));
    }
    for (index, weight) in weights {
        lanes[index].weight = weight;
    }
}

/// Describes each lane's device: its class, its width, its memory, and the lanes that it can copy to without the host.
/// Lanes of one GPU share its width.
pub(super) fn describe(lanes: &mut [LaneSpec], gpus: &[Gpu], isa: Isa) {
    let gpu_of = |lane: &LaneSpec| {
        let name = gpu_of_lane(&lane.device)?;
        gpus.iter().find(|gpu| name == format!("cuda:{}", gpu.ordinal))
    };
    let of_lanes: Vec<Option<&Gpu>> = lanes.iter().map(gpu_of).collect();
    for (lane, gpu) in lanes.iter_mut().zip(&of_lanes) {
        let Some(gpu) = gpu else {
            if gpu_of_lane(&lane.device).is_none() {
                lane.class = format!("host/{}", isa.name());
            }
            continue;
        };
        lane.class = class_of(gpu);
        lane.memory_bytes = gpu.memory_total_bytes.try_into().unwrap_or(i64::MAX);
        let sharing = of_lanes.iter().flatten().filter(|other| other.ordinal == gpu.ordinal).count();
        lane.width =
            (i32::try_from(gpu.blocks_at_once()).unwrap_or(i32::MAX) / sharing as i32).clamp(1, WIDTH_MAX);
        lane.numa_node = gpu.numa_node;
        let peers = (0..).zip(&of_lanes).filter(|(other, _)| *other != lane.lane);
        lane.peers =
            peers.filter_map(|(lane, other)| Some(Peer { lane, link: link(gpu, (*other)?)? })).collect();
    }
}

/// Returns the device class, which is equal for GPUs of the same model with the same division.
fn class_of(gpu: &Gpu) -> String {
    match &gpu.mig {
        // CUDA shows one slice of a divided GPU; the slice's multiprocessors and memory identify its profile.
        Some(mig) if mig.is_enabled => {
            format!("{}/mig-{}sm-{}gb", gpu.name, gpu.multiprocessors, gpu.memory_total_bytes >> 30)
        }
        _ => gpu.name.clone(),
    }
}

fn link(gpu: &Gpu, other: &Gpu) -> Option<Link> {
    if gpu.ordinal == other.ordinal {
        return Some(Link::SameDevice);
    }
    let has_nvlink = |gpu: &Gpu| gpu.links.nvlinks_active.is_some_and(|links| links > 0);
    let link = if has_nvlink(gpu) && has_nvlink(other) { Link::Nvlink } else { Link::Pcie };
    gpu.links.peers.contains(&other.ordinal).then_some(link)
}

#[cfg(test)]
mod tests {
    use warptape_cuda::{Links, Mig};

    use super::super::{Mistake, SettingsError, Sources, load};
    use super::*;

    fn gpu(ordinal: u32) -> Gpu {
        Gpu {
            ordinal,
            name: "H200".to_owned(),
            uuid: format!("0-{ordinal}"),
            pci_bus_id: format!("0000:{ordinal:02x}:00.0"),
            compute_capability: (9, 0),
            multiprocessors: 132,
            multiprocessor_threads: 2_048,
            memory_total_bytes: 1 << 37,
            memory_free_bytes: None,
            sm_clock: Default::default(),
            memory_clock: Default::default(),
            links: Links::default(),
            numa_node: None,
            mig: None,
            driver_version: None,
        }
    }

    fn two_gpus() -> Inventory {
        Inventory { gpus: vec![gpu(0), gpu(1)], missing: None }
    }

    /// Returns the lanes as `DEVICE*WEIGHT`; an error names the allowed devices.
    fn lanes(devices: &str, probe: GpuProbe) -> Result<Vec<String>, String> {
        let gpus = Some(probe);
        let environment = vec![("WARPTAPE__ENGINE__DEVICES".to_owned(), devices.to_owned())];
        match load(&Sources { environment, cores: 4, gpus, ..Sources::default() }) {
            Ok((settings, _)) => Ok(settings
                .lanes
                .specs
                .iter()
                .enumerate()
                .map(|(index, lane)| {
                    assert_eq!(lane.lane, index as i32);
                    format!("{}*{}", lane.device, lane.weight)
                })
                .collect()),
            Err(SettingsError::Mistakes(mistakes)) => match mistakes.as_slice() {
                [Mistake { key, allowed, .. }] if key == "engine.devices" => Err(allowed.clone()),
                other => panic!("{other:?}"),
            },
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn lanes_weigh_what_their_gpus_score() {
        let probe = GpuProbe { inventory: two_gpus, score: |gpu| Some([900, 301][gpu.ordinal as usize]) };
        let check = |devices: &str, expected: &[&str]| {
            assert_eq!(lanes(devices, probe).unwrap(), expected, "{devices}");
        };
        check("auto", &["cuda:0*900", "cuda:1*301", "cpu:2*0", "cpu:3*0", "cpu:4*0"]);
        check("cuda:1,cpu:1", &["cuda:1*301", "cpu:1*1"]);
        check("cuda:0,cuda:1#2,cpu:1", &["cuda:0*900", "cuda:1#0*150", "cuda:1#1*150", "cpu:3*1"]);
        check("cpu:2", &["cpu:0*1", "cpu:1*1"]);
    }

    #[test]
    fn without_a_score_all_weigh_the_same() {
        let score = |gpu: &Gpu| (gpu.ordinal == 0).then_some(900);
        let probe = GpuProbe { inventory: two_gpus, score };
        assert_eq!(lanes("auto,cpu:1", probe).unwrap(), ["cuda:0*1", "cuda:1*1", "cpu:2*1"]);
    }

    #[test]
    fn a_gpu_that_is_not_there_is_a_mistake() {
        let unmeasured = |_: &Gpu| -> Option<i32> { panic!("nothing is measured") };
        let probe = GpuProbe { inventory: two_gpus, score: unmeasured };
        assert_eq!(
            lanes("cuda:1,cuda:2#3", probe).unwrap_err(),
            "only GPUs of this machine; cuda:2#3 is missing: found cuda:0 (H200), cuda:1 (H200)"
        );
        let without_compiler =
            || Inventory { missing: Some("no GPU can be used: X".to_owned()), ..two_gpus() };
        let probe = GpuProbe { inventory: without_compiler, score: unmeasured };
        assert_eq!(
            lanes("cuda:0", probe).unwrap_err(),
            "only GPUs of this machine; cuda:0 is missing: no GPU can be used: X"
        );
        assert_eq!(lanes("auto", probe).unwrap(), ["cpu:0*1", "cpu:1*1", "cpu:2*1"]);
    }

    #[test]
    fn what_was_not_found_is_kept() {
        let nothing = || Inventory { missing: Some("no GPU".to_owned()), ..Inventory::default() };
        let probe = GpuProbe { inventory: nothing, score: |_| None };
        let settings = |devices: &str, gpus: Option<GpuProbe>| {
            let environment = vec![("WARPTAPE__ENGINE__DEVICES".to_owned(), devices.to_owned())];
            let sources = Sources { environment, cores: 4, gpus, ..Sources::default() };
            load(&sources).unwrap().0.lanes
        };
        assert_eq!(settings("auto", Some(probe)).gpus_missing.as_deref(), Some("no GPU"));
        assert_eq!(settings("cpu:1", Some(probe)).gpus_missing, None);
        // A command that runs no lanes does not look for GPUs, and may read the settings of another machine.
        assert_eq!(settings("cuda:7,cpu:1", None).specs.len(), 2);
    }

    #[test]
    fn lanes_tell_what_their_devices_are() {
        let linked = |ordinal, peers: &[u32], nvlinks_active| Gpu {
            links: Links { peers: peers.to_vec(), nvlinks_active, ..Links::default() },
            ..gpu(ordinal)
        };
        let slice = Gpu {
            mig: Some(Mig { is_enabled: true, slices: 7 }),
            multiprocessors: 16,
            memory_total_bytes: 18 << 30,
            numa_node: Some(1),
            ..gpu(3)
        };
        let gpus =
            [linked(0, &[1, 2], Some(18)), linked(1, &[0, 2], Some(18)), linked(2, &[0, 1], None), slice];
        let devices = ["cuda:0#0", "cuda:0#1", "cuda:1", "cuda:2", "cuda:3", "cpu:5", "cuda:9"];
        let mut lanes: Vec<_> =
            (0..).zip(devices).map(|(lane, device)| LaneSpec::new(lane, device, 1)).collect();
        describe(&mut lanes, &gpus, Isa::Baseline);
        let classes: Vec<_> = lanes.iter().map(|lane| lane.class.as_str()).collect();
        assert_eq!(classes, ["H200", "H200", "H200", "H200", "H200/mig-16sm-18gb", "host/baseline", ""]);
        let peers =
            |lane: usize| -> Vec<_> { lanes[lane].peers.iter().map(|peer| (peer.lane, peer.link)).collect() };
        assert_eq!(peers(0), [(1, Link::SameDevice), (2, Link::Nvlink), (3, Link::Pcie)]);
        assert_eq!(peers(3), [(0, Link::Pcie), (1, Link::Pcie), (2, Link::Pcie)]);
        assert_eq!([peers(4), peers(5)], [vec![], vec![]]);
        assert_eq!((lanes[4].memory_bytes, lanes[4].numa_node), (18 << 30, Some(1)));
        let widths: Vec<_> = lanes.iter().map(|lane| lane.width).collect();
        assert_eq!(widths, [1_056, 1_056, 2_112, 2_112, 256, 1, 1], "lanes of one GPU share its width");
    }

    #[test]
    fn gpus_are_looked_for_only_where_they_may_be_wanted() {
        let probe = GpuProbe { inventory: || panic!("nothing is asked"), score: |_| None };
        assert_eq!(lanes("cpu:1", probe).unwrap(), ["cpu:0*1"]);
    }
}
