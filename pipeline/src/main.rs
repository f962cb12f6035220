//! The `warptape` binary. Everything it does is in the library, so that tests can reach it.

use mimalloc::MiMalloc;

/// Batches of rows come and go by the megabyte. The system's allocator gives each back to the kernel, which then clears
/// the same pages again for the next: two thirds of the engine thread's time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    warptape_pipeline::cli::main()
}
