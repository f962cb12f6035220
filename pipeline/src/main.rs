//! The `warptape` binary. Everything it does is in the library, so that tests can reach it.

fn main() -> std::process::ExitCode {
    warptape_pipeline::cli::main()
}
