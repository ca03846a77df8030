//! Compiles the probes (clang, BPF target) and derives the Rust view of their records from the one C header.

use std::env;
use std::error::Error;
use std::path::PathBuf;

/// One folder a probe; `<probe>/<probe>.bpf.c`.
const PROBES: [&str; 12] = [
    "process",
    "fault",
    "mapping",
    "page_cache",
    "readahead",
    "block",
    "open",
    "read",
    "first_wait",
    "off_cpu",
    "memory",
    "present",
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let arch = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => return Err(format!("no probes for the architecture {other}").into()),
    };
    for header in ["bpf/kernel.h", "bpf/tree.bpf.h", "bpf/mapping.bpf.h", "src/off_cpu/reason.bpf.h", "src/events.h"] {
        println!("cargo:rerun-if-changed={header}");
    }
    for probe in PROBES {
        let source = format!("src/{probe}/{probe}.bpf.c");
        println!("cargo:rerun-if-changed={source}");
        libbpf_cargo::SkeletonBuilder::new()
            .source(&source)
            .obj(out.join(format!("{probe}.bpf.o")))
            .clang_args([format!("-D__TARGET_ARCH_{arch}"), "-Wall".to_owned(), "-Werror".to_owned()])
            .build()?;
    }
    bindgen::Builder::default()
        .header("src/events.h")
        .derive_default(true)
        .layout_tests(false)
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .generate()?
        .write_to_file(out.join("events.rs"))?;
    Ok(())
}
