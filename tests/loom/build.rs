//! Sets `cfg(loom)` for this crate only; in RUSTFLAGS, the flag would compile tokio without sockets.

fn main() {
    println!("cargo::rustc-cfg=loom");
}
