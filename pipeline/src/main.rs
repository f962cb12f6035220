//! The `warptape` binary. All its code is in the library, so that tests can call it.

use warptape_allocator::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> std::process::ExitCode {
    warptape_allocator::set_up();
    warptape_pipeline::cli::main(std::env::args_os())
}
