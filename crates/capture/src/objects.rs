//! The compiled probes and how they become one program: every object declares the shared maps (tree, ring, lost,
//! named), and all later objects are given the first one's.

use crate::recorder::{CaptureError, Options, monotonic_now};
use libbpf_rs::{Btf, MapCore, MapHandle, Object, ObjectBuilder};
use std::os::fd::AsFd;

/// Bytes aligned as ELF wants them.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

macro_rules! object {
    ($name:literal) => {{
        static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")));
        Probe { name: $name, object: &OBJECT.0 }
    }};
}

/// A compiled probe.
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    pub(crate) object: &'static [u8],
}

/// All probes; the first owns the shared maps.
pub(crate) fn all() -> [Probe; 12] {
    [
        object!("process"),
        object!("fault"),
        object!("mapping"),
        object!("page_cache"),
        object!("readahead"),
        object!("block"),
        object!("open"),
        object!("read"),
        object!("first_wait"),
        object!("off_cpu"),
        object!("memory"),
        object!("present"),
    ]
}

/// Maps that all probes share.
pub(crate) struct SharedMaps {
    pub(crate) tree: MapHandle,
    pub(crate) ring: MapHandle,
    pub(crate) lost: MapHandle,
    pub(crate) named: MapHandle,
}

impl SharedMaps {
    fn of(object: &Object) -> Result<Self, CaptureError> {
        let handle = |name: &'static str| -> Result<MapHandle, CaptureError> {
            let map = object
                .maps()
                .find(|map| map.name() == name)
                .ok_or(CaptureError::Program { probe: "process", problem: format!("map {name} is missing") })?;
            MapHandle::try_from(&map).map_err(|source| CaptureError::Load { probe: "process", source })
        };
        Ok(Self { tree: handle("tree")?, ring: handle("ring")?, lost: handle("lost")?, named: handle("named")? })
    }

    fn by_name(&self, name: &str) -> Option<&MapHandle> {
        match name {
            "tree" => Some(&self.tree),
            "ring" => Some(&self.ring),
            "lost" => Some(&self.lost),
            "named" => Some(&self.named),
            _ => None,
        }
    }
}

/// Sections of the programs that tell where a fault begins, on architectures with such tracepoints.
pub(crate) const FAULT_ENTRY: &str = "tp_btf/page_fault_";

/// Whether the running kernel has what a program's section asks for; a program without it is not loaded.
fn kernel_has(section: &str, btf: &Btf<'_>) -> bool {
    match section.strip_prefix("tp_btf/") {
        Some(name) => btf.type_by_name::<libbpf_rs::btf::types::Typedef<'_>>(&format!("btf_trace_{name}")).is_some(),
        None => true,
    }
}

/// A loaded probe and the names of its programs that this kernel has no event for.
pub(crate) struct Loaded {
    pub(crate) name: &'static str,
    pub(crate) object: Object,
    pub(crate) missing: Vec<String>,
}

/// Loads `probe`; `shared` is `None` for the first, which then gets the ring.
pub(crate) fn load(
    probe: &Probe,
    shared: Option<&SharedMaps>,
    btf: &Btf<'_>,
    options: &Options,
) -> Result<Loaded, CaptureError> {
    let error = |source| CaptureError::Load { probe: probe.name, source };
    let watched_dev = options.lab.as_ref().map_or(0, |lab| lab.dev);
    let mut open = ObjectBuilder::default().open_memory(probe.object).map_err(error)?;
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match shared.and_then(|shared| shared.by_name(&name)) {
            Some(first) => map.reuse_fd(first.as_fd()).map_err(error)?,
            None if name == "ring" => map.set_max_entries(options.ring_bytes).map_err(error)?,
            None if name.ends_with(".rodata") && probe.name == "page_cache" => {
                // The one read-only variable of the object: `watched_dev`.
                if let Some(value) = map.initial_value_mut() {
                    value[..8].copy_from_slice(&watched_dev.to_ne_bytes());
                }
            }
            None if name.ends_with(".rodata") && probe.name == "present" => {
                // The one read-only variable: the recorder, and when it begins to mark.
                if let Some(value) = map.initial_value_mut() {
                    value[..8].copy_from_slice(&u64::from(std::process::id()).to_ne_bytes());
                    value[8..16].copy_from_slice(&monotonic_now().0.to_ne_bytes());
                }
            }
            None if name.ends_with(".rodata") && probe.name == "off_cpu" => {
                if let Some(value) = map.initial_value_mut() {
                    crate::off_cpu::processor::Layout::of(btf).write(value);
                }
            }
            None => {}
        }
    }
    let mut missing = Vec::new();
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let wanted = options.fault_entry || !section.starts_with(FAULT_ENTRY);
        if !(wanted && kernel_has(&section, btf)) {
            missing.push(section);
            program.set_autoload(false);
        }
    }
    Ok(Loaded { name: probe.name, object: open.load().map_err(error)?, missing })
}

/// The shared maps of the first object.
pub(crate) fn shared_maps(first: &Loaded) -> Result<SharedMaps, CaptureError> {
    SharedMaps::of(&first.object)
}
