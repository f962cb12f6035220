//! Sets `cfg(loom)` for this crate alone; in RUSTFLAGS it would compile tokio without sockets.

fn main() {
    println!("cargo::rustc-cfg=loom");
}
