//! The `warptape` binary. Everything it does is in the library, so that tests can reach it.

use warptape_pipeline::allocator::{self, Allocator};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> std::process::ExitCode {
    allocator::set_up();
    warptape_pipeline::cli::main()
}
