//! JSON reports for other tools: health and memory of GPUs, and the pipeline's speed.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use warptape_schemas::journal::BreakerState;

use super::health::device_troubles;
use super::scrape::throttle_reasons;
use super::view::View;

/// Returns the health of each GPU, and its lanes.
pub(super) fn gpu_health(view: &View<'_>) -> Value {
    let devices: Vec<Value> = view.engine.samples.iter().map(|(device, sample)| {
        let troubles = device_troubles(view, device);
        let of_device = |lane: &&warptape_engine::LaneStatus| gpu_of(view.watched.device_of(lane.lane())) == device;
        let lanes = view.engine.status.lanes.iter().filter(of_device);
        let lanes: Vec<Value> = lanes
            .map(|lane| {
                let breaker = match lane.breaker {
                    BreakerState::Closed => "closed",
                    BreakerState::HalfOpen => "half_open",
                    BreakerState::Open => "open",
                };
                json!({"lane": lane.lane(), "ready": lane.load.ready, "in_service": lane.load.in_service, "breaker": breaker})
            })
            .collect();
        json!({
            "device": device,
            "healthy": troubles.is_empty(),
            "reasons": troubles,
            "temperature_celsius": sample.temperature_c,
            "slowdown_celsius": sample.slowdown_c,
            "power_watts": sample.power_mw.map(|milliwatts| f64::from(milliwatts) / 1e3),
            "utilization_percent": sample.utilization_percent,
            "sm_clock_megahertz": sample.sm_clock_mhz,
            "memory_clock_megahertz": sample.memory_clock_mhz,
            "throttle_reasons": sample.throttle_bits.map(|bits| throttle_reasons(bits).collect::<Vec<_>>()),
            "ecc_errors_uncorrected": sample.ecc_errors_uncorrected,
            "xid_errors": view.engine.xids.get(device).copied().unwrap_or_default(),
            "lanes": lanes,
        })
    }).collect();
    json!({"devices": devices})
}

/// Returns the memory of each GPU, in bytes.
pub(super) fn gpu_memory(view: &View<'_>) -> Value {
    let devices: Vec<Value> = view
        .engine
        .samples
        .iter()
        .map(|(device, sample)| {
            let total =
                sample.memory_used_bytes.zip(sample.memory_free_bytes).map(|(used, free)| used + free);
            json!({
                "device": device,
                "used_bytes": sample.memory_used_bytes,
                "free_bytes": sample.memory_free_bytes,
                "total_bytes": total,
            })
        })
        .collect();
    json!({"devices": devices})
}

/// Returns each GPU with its health and its memory.
pub(super) fn devices(view: &View<'_>) -> Vec<Value> {
    let list = |report: Value| match report {
        Value::Object(mut fields) => match fields.remove("devices") {
            Some(Value::Array(devices)) => devices,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let mut devices = list(gpu_health(view));
    for (device, memory) in devices.iter_mut().zip(list(gpu_memory(view))) {
        if let (Value::Object(device), Value::Object(memory)) = (device, memory) {
            device.extend(memory);
        }
    }
    devices
}

/// Returns the pipeline's speed in the last half minute and since the start.
pub(super) fn performance(view: &View<'_>) -> Value {
    let recent = &view.sampled.recent;
    let per_second = |count: u64| if recent.seconds > 0.0 { count as f64 / recent.seconds } else { 0.0 };
    let progress = &view.watched.progress;
    let lanes = &view.engine.status.lanes;
    // Unknown values are null.
    let lags = view.sampled.lag.known(view.now_ns);
    json!({
        "window_seconds": recent.seconds,
        "ticks_per_second": per_second(recent.ticks),
        "signals_per_second": per_second(recent.signals),
        "commits_per_second": per_second(recent.commits),
        "ticks": progress.ticks.load(Ordering::Relaxed),
        "signals": progress.signals.load(Ordering::Relaxed),
        "tick_to_signal_ms": view.engine.latency_ms.map(|[p50, p99, p999]| json!({"p50": p50, "p99": p99, "p99.9": p999})),
        "waiting_rows": lanes.iter().map(|lane| lane.load.waiting_rows).sum::<i64>(),
        "in_flight_rows": lanes.iter().map(|lane| lane.load.in_flight_rows).sum::<i64>(),
        "lag_records": lags.map(|lags| lags.values().map(|lag| lag.records).sum::<i64>()),
        "lag_seconds": lags.map(|lags| lags.values().map(|lag| lag.seconds).fold(0.0, f64::max)),
        "risk_tasks": view.engine.status.tasks,
    })
}

/// Returns the GPU of a lane's device: `cuda:0` for `cuda:0#1`.
fn gpu_of(device: &str) -> &str {
    device.split('#').next().unwrap_or(device)
}
