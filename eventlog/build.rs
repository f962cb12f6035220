//! Compiles librdkafka's reader of record batches a second time, with bounded decompression (native/batch_reader.c).

use std::path::Path;
use std::{env, fs};

fn main() {
    const SOURCE: &str = "native/batch_reader.c";
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-changed=build.rs");
    // The folder where rdkafka-sys built librdkafka, with its sources and its configuration.
    let root = env::var("DEP_RDKAFKA_ROOT").expect("rdkafka-sys says where it builds librdkafka from source");
    let root = Path::new(&root);
    let configured = root.join("Makefile.config");
    let configured = fs::read_to_string(&configured).unwrap_or_else(|error| {
        panic!("{}: {error}: librdkafka has to be built from source", configured.display())
    });
    let mut build = cc::Build::new();
    build.file(SOURCE).include(root).include(root.join("src")).opt_level(2).warnings(false);
    // The headers of OpenSSL, zlib and Zstandard that librdkafka was compiled with.
    let flags = configured.lines().filter_map(|line| line.strip_prefix("CFLAGS+="));
    for folder in flags.flat_map(str::split_whitespace).filter_map(|flag| flag.strip_prefix("-I")) {
        build.include(folder);
    }
    build.compile("warptape_batch_reader");
}
