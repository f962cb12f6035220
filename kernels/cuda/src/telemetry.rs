//! Measured values of GPUs from NVML, read on demand.

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{
    Clock, EccCounter, MemoryError, TemperatureSensor, TemperatureThreshold,
};
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::event::EventSet;
use thiserror::Error;
use warptape_kernels::device::Sample;

/// Most events that one sample reads.
const EVENTS_MAX: usize = 64;

/// NVML, and the events of the GPUs that were sampled.
pub struct Telemetry {
    /// NVML. It is not shut down before the process ends, because sets of events borrow it.
    nvml: &'static Nvml,
    watched: Vec<Watched>,
}

struct Watched {
    pci_bus_id: String,
    /// The set of events; `None` if the GPU has no events, or they are not available.
    events: Option<EventSet<'static>>,
}

/// The reason for missing figures.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("NVML (libnvidia-ml.so.1) does not answer: {reason}")]
pub struct NoTelemetry {
    /// Text of NVML.
    pub reason: String,
}

impl Telemetry {
    /// Loads NVML; one instance per process is enough.
    pub fn open() -> Result<Telemetry, NoTelemetry> {
        let nvml = Nvml::init().map_err(|error| NoTelemetry { reason: error.to_string() })?;
        Ok(Telemetry { nvml: Box::leak(Box::new(nvml)), watched: Vec::new() })
    }

    /// Figures of the GPU at a place on the bus ([`Gpu::pci_bus_id`](crate::Gpu::pci_bus_id)), without waiting.
    pub fn sample(&mut self, pci_bus_id: &str) -> Result<Sample, NoTelemetry> {
        let no_answer = |error: nvml_wrapper::error::NvmlError| NoTelemetry { reason: error.to_string() };
        let device = self.nvml.device_by_pci_bus_id(pci_bus_id).map_err(no_answer)?;
        let utilization = device.utilization_rates().ok();
        let memory = device.memory_info().ok();
        Ok(Sample {
            utilization_percent: utilization.map(|rates| rates.gpu),
            memory_used_bytes: memory.as_ref().map(|memory| memory.used),
            memory_free_bytes: memory.as_ref().map(|memory| memory.free),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            slowdown_c: device.temperature_threshold(TemperatureThreshold::Slowdown).ok(),
            power_mw: device.power_usage().ok(),
            sm_clock_mhz: device.clock_info(Clock::SM).ok(),
            memory_clock_mhz: device.clock_info(Clock::Memory).ok(),
            throttle_bits: device.current_throttle_reasons().ok().map(|reasons| reasons.bits()),
            ecc_errors_uncorrected: device
                .total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile)
                .ok(),
            xid: self.last_xid(pci_bus_id),
        })
    }

    fn last_xid(&mut self, pci_bus_id: &str) -> Option<u64> {
        let index = match self.watched.iter().position(|watched| watched.pci_bus_id == pci_bus_id) {
            Some(index) => index,
            None => {
                let events = self.watch(pci_bus_id);
                self.watched.push(Watched { pci_bus_id: pci_bus_id.to_owned(), events });
                self.watched.len() - 1
            }
        };
        let events = self.watched[index].events.as_ref()?;
        let xids = (0..EVENTS_MAX).map_while(|_| events.wait(0).ok()).filter_map(|event| event.event_data);
        let numbers = xids.map(|xid| match xid {
            XidError::Value(number) => number,
            XidError::Unknown => XID_UNKNOWN,
        });
        numbers.filter(|xid| !XIDS_OF_PROGRAMS.contains(xid)).last()
    }

    fn watch(&self, pci_bus_id: &str) -> Option<EventSet<'static>> {
        let device = self.nvml.device_by_pci_bus_id(pci_bus_id).ok()?;
        let set = self.nvml.create_event_set().ok()?;
        let watched = device.register_events(EventTypes::CRITICAL_XID_ERROR, set);
        watched.inspect_err(|error| tracing::debug!(%error, pci_bus_id, "no Xid errors can be seen")).ok()
    }
}

/// Xid errors of a single program on the GPU, which may be another one and does not affect others (NVIDIA, "XID
/// Errors"). If it is this program, the driver reports the error itself.
const XIDS_OF_PROGRAMS: [u64; 5] = [13, 31, 43, 45, 68];

/// NVML's number for an unknown error.
const XID_UNKNOWN: u64 = 999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_nvml_it_says_so() {
        match Telemetry::open() {
            Err(error) => assert!(error.to_string().contains("NVML"), "{error}"),
            Ok(mut telemetry) => assert!(telemetry.sample("ffff:ff:1f.7").is_err()),
        }
    }
}
