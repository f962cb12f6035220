//! Lanes on GPUs: which GPUs are asked for, whether they are there, and what their lanes weigh.
//!
//! How GPUs are found is handed in, and asked only where a device may be one.

use warptape_cuda::{Gpu, Inventory};
use warptape_schemas::journal::LaneSpec;

use super::syntax::{DeviceSyntax, gpu_of_lane};

/// How GPUs are found and measured.
#[derive(Clone, Copy, Debug)]
pub struct GpuProbe {
    /// What there is.
    pub inventory: fn() -> Inventory,
    /// Score of one of them; `None` where it cannot be measured.
    pub score: fn(&Gpu) -> Option<i32>,
}

/// What there is, if a device may be a GPU and anybody wants to know.
pub(super) fn inventory_for(devices: &[String], probe: Option<&GpuProbe>) -> Option<Inventory> {
    let may_be_gpu = |device: &String| {
        matches!(DeviceSyntax::parse(device), Some(DeviceSyntax::Auto | DeviceSyntax::Gpu { .. }))
    };
    probe.filter(|_| devices.iter().any(may_be_gpu)).map(|probe| (probe.inventory)())
}

/// What is allowed instead of GPUs that are not there; `None` if all are.
pub(super) fn absent(devices: &[String], inventory: &Inventory) -> Option<String> {
    let there = inventory.usable();
    let is_absent = |device: &&String| matches!(DeviceSyntax::parse(device), Some(DeviceSyntax::Gpu { ordinal, .. }) if ordinal as usize >= there.len());
    let absent = devices.iter().find(is_absent)?;
    let found = inventory.missing.clone().unwrap_or_else(|| {
        let names: Vec<_> = there.iter().map(|gpu| format!("cuda:{} ({})", gpu.ordinal, gpu.name)).collect();
        format!("found {}", names.join(", "))
    });
    Some(format!("GPUs that are there, and {absent} is not: {found}"))
}

/// Gives lanes on GPUs the GPU's score, shared by the lanes that it has, so that they weigh what they are worth relative to
/// each other. All weigh 1 if one of the GPUs cannot be measured.
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

#[cfg(test)]
mod tests {
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
            memory_total_bytes: 1 << 37,
            memory_free_bytes: None,
            sm_clock: Default::default(),
            memory_clock: Default::default(),
            pcie: Default::default(),
            pcie_max: Default::default(),
            nvlinks_active: None,
            peers: Vec::new(),
            mig: None,
            driver_version: None,
        }
    }

    fn two_gpus() -> Inventory {
        Inventory { gpus: vec![gpu(0), gpu(1)], missing: None }
    }

    /// Lanes as `DEVICE*WEIGHT`, or what is allowed instead.
    fn lanes(devices: &str, probe: GpuProbe) -> Result<Vec<String>, String> {
        let gpus = Some(probe);
        let environment = vec![("WARPTAPE__ENGINE__DEVICES".to_owned(), devices.to_owned())];
        match load(&Sources { environment, cores: 4, gpus, ..Sources::default() }) {
            Ok((settings, _)) => Ok(settings
                .engine
                .lanes
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
            "GPUs that are there, and cuda:2#3 is not: found cuda:0 (H200), cuda:1 (H200)"
        );
        let without_compiler =
            || Inventory { missing: Some("no GPU can be used: X".to_owned()), ..two_gpus() };
        let probe = GpuProbe { inventory: without_compiler, score: unmeasured };
        assert_eq!(
            lanes("cuda:0", probe).unwrap_err(),
            "GPUs that are there, and cuda:0 is not: no GPU can be used: X"
        );
        assert_eq!(lanes("auto", probe).unwrap(), ["cpu:0*1", "cpu:1*1", "cpu:2*1"]);
    }

    #[test]
    fn what_was_not_found_is_kept() {
        let nothing = || Inventory { missing: Some("no GPU".to_owned()), ..Inventory::default() };
        let probe = GpuProbe { inventory: nothing, score: |_| None };
        let engine = |devices: &str, gpus: Option<GpuProbe>| {
            let environment = vec![("WARPTAPE__ENGINE__DEVICES".to_owned(), devices.to_owned())];
            let sources = Sources { environment, cores: 4, gpus, ..Sources::default() };
            load(&sources).unwrap().0.engine
        };
        assert_eq!(engine("auto", Some(probe)).gpus_missing.as_deref(), Some("no GPU"));
        assert_eq!(engine("cpu:1", Some(probe)).gpus_missing, None);
        // Who runs no lanes asks for no GPUs, and reads a file of another machine.
        assert_eq!(engine("cuda:7,cpu:1", None).lanes.len(), 2);
    }

    #[test]
    fn gpus_are_looked_for_only_where_they_may_be_wanted() {
        let probe = GpuProbe { inventory: || panic!("nothing is asked"), score: |_| None };
        assert_eq!(lanes("cpu:1", probe).unwrap(), ["cpu:0*1"]);
    }
}
