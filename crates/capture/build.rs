//! Compiles the probes (clang, BPF target) and derives the Rust view of their records from the one C header.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Name of each probe, and how it is compiled.
macro_rules! each_probe {
    ($($name:ident $(: $built:ident)?,)*) => {
        const PROBES: &[(&str, &str)] = &[$((stringify!($name), concat!("" $(, stringify!($built))?))),*];
    };
}
include!("src/probe_list.rs");

/// The instruction set of version 3.
const ADDS: &str = "-mcpu=v3";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let arch = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => return Err(format!("no probes for the architecture {other}").into()),
    };
    for header in [
        "bpf/kernel.h",
        "bpf/keyed_sum.bpf.h",
        "bpf/sight.bpf.h",
        "bpf/tree.bpf.h",
        "bpf/address_space.bpf.h",
        "bpf/system_calls.bpf.h",
        "bpf/area_tree.bpf.h",
        "bpf/mapping.bpf.h",
        "bpf/task_vma.bpf.h",
        "bpf/wanted.bpf.h",
        "bpf/hand_over.bpf.h",
        "bpf/interrupts.bpf.h",
        "bpf/stack.bpf.h",
        "bpf/last_walk.bpf.h",
        "bpf/stack_copy.bpf.h",
        "bpf/walk.bpf.h",
        "src/off_cpu/reason.bpf.h",
        "src/events.h",
        "src/walks.h",
        "src/probe_list.rs",
    ] {
        println!("cargo:rerun-if-changed={header}");
    }
    for (probe, built) in PROBES {
        let source = format!("src/{probe}/{probe}.bpf.c");
        println!("cargo:rerun-if-changed={source}");
        let version = if *built == "counts" { &[ADDS][..] } else { &[] };
        compile(&source, &out.join(format!("{probe}.bpf.o")), arch, version)?;
        if *built == "stacks" {
            compile(&source, &out.join(format!("{probe}_stacks.bpf.o")), arch, &["-DWITH_STACKS", ADDS])?;
        }
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

fn compile(source: &str, object: &Path, arch: &str, defines: &[&str]) -> Result<(), Box<dyn Error>> {
    let target = format!("-D__TARGET_ARCH_{arch}");
    let arguments = [target.as_str(), "-Wall", "-Werror"];
    libbpf_cargo::SkeletonBuilder::new()
        .source(source)
        .obj(object)
        .clang_args(arguments.iter().chain(defines))
        .build()?;
    Ok(())
}
