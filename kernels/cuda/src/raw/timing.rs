//! Times by a GPU's own clock, and recorded launches.

use cudarc::driver::{result, sys};

use super::{DriverResult, Session};

/// First CUDA version, in the driver's numbers, with cuEventElapsedTime_v2; cudarc supports no other form.
pub const TIMING_VERSION_MIN: i32 = 12_080;

/// A moment of the GPU: the time at which all earlier calls are done.
pub struct Moment(sys::CUevent);

impl Moment {
    /// Milliseconds until a later moment; both must have passed. The driver must have [`TIMING_VERSION_MIN`] or later.
    pub fn ms_until(&self, later: &Moment) -> DriverResult<f64> {
        // SAFETY: both events are live.
        unsafe { result::event::elapsed(self.0, later.0) }.map(f64::from)
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        // SAFETY: there is no other handle of the event.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

/// Recorded launches that can be repeated as one.
pub struct Graph {
    graph: sys::CUgraph,
    launched: sys::CUgraphExec,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: there are no other handles of them. Work that was launched continues.
        unsafe {
            let _ = result::graph::exec_destroy(self.launched);
            let _ = result::graph::destroy(self.graph);
        }
    }
}

impl Session {
    /// The present moment.
    pub fn moment(&self) -> DriverResult<Moment> {
        self.context.make_current()?;
        let moment = Moment(result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)?);
        // SAFETY: the event and the stream are live.
        unsafe { result::event::record(moment.0, self.stream) }?;
        Ok(moment)
    }

    /// Records launches without running them.
    pub fn record(&self, launches: impl FnOnce() -> DriverResult<()>) -> DriverResult<Graph> {
        self.context.make_current()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is live.
        unsafe { result::stream::begin_capture(self.stream, mode) }?;
        let recorded = launches();
        // SAFETY: the capture was begun, and ends here whatever was recorded.
        let graph = unsafe { result::stream::end_capture(self.stream) };
        recorded?;
        let graph = graph?;
        // SAFETY: the graph was just created, and is destroyed if it cannot be instantiated.
        unsafe {
            let flags = sys::CUgraphInstantiate_flags(0);
            match result::graph::instantiate(graph, flags) {
                Ok(launched) => Ok(Graph { graph, launched }),
                Err(error) => {
                    let _ = result::graph::destroy(graph);
                    Err(error)
                }
            }
        }
    }

    /// Launches a recorded graph.
    pub fn launch_graph(&self, graph: &Graph) -> DriverResult<()> {
        self.context.make_current()?;
        // SAFETY: both are live.
        unsafe { result::graph::launch(graph.launched, self.stream) }
    }
}
