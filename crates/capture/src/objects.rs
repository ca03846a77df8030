//! The compiled probes and how they become one program: what a map is in one object that declares it, it is in all.

use crate::capture_error::CaptureError;
use crate::kernel_types::KernelTypes;
use crate::options::Options;
use crate::owner::SECTION;
use crate::page_content;
use crate::probes::{Compiled, Kernel, Probe, is_at_calls};
use libbpf_rs::{Btf, MapCore, MapHandle, Object, ObjectBuilder};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::AsFd;

/// Maps that are one in all probes that declare them: the first probe that does makes them.
const SHARED: [&str; 13] = [
    "tree",
    "ring",
    "lost",
    "withheld",
    "named",
    "wanted",
    "spaces",
    "walk_settings",
    "walk_counts",
    "stack_numbers",
    "unwind_tables",
    "calls_entered",
    "calls_returned",
];

/// The shared maps that were made so far.
pub(crate) struct SharedMaps {
    maps: HashMap<&'static str, MapHandle>,
    /// Of this recording.
    secret: [u64; 2],
}

impl SharedMaps {
    /// None yet.
    pub(crate) fn new(secret: [u64; 2]) -> Self {
        Self { maps: HashMap::new(), secret }
    }

    /// Takes those that `object` was the first to declare.
    fn take(&mut self, probe: &'static str, object: &Object) -> Result<(), CaptureError> {
        for map in object.maps() {
            let Some(name) = SHARED.into_iter().find(|name| map.name() == *name) else { continue };
            if let Entry::Vacant(place) = self.maps.entry(name) {
                place.insert(MapHandle::try_from(&map).map_err(|source| CaptureError::Load { probe, source })?);
            }
        }
        Ok(())
    }

    /// A handle of one's own to a map that the loaded probes declare.
    pub(crate) fn copy(&self, name: &'static str) -> Result<MapHandle, CaptureError> {
        MapHandle::try_from(self.get(name)?).map_err(|source| CaptureError::Load { probe: "process", source })
    }

    /// A map that the loaded probes declare.
    pub(crate) fn get(&self, name: &'static str) -> Result<&MapHandle, CaptureError> {
        let problem = || CaptureError::Program { probe: "process", problem: format!("map {name} is missing") };
        self.maps.get(name).ok_or_else(problem)
    }
}

/// Sections of the programs that tell where a fault begins, on architectures with such tracepoints.
pub(crate) const FAULT_ENTRY: &str = "tp_btf/page_fault_";

/// Sections of the programs that tell changes of address spaces without the tracepoints of system calls.
const AREA_TREE: [&str; 2] = ["tp_btf/ma_write", "tp_btf/mmap_lock_released"];

/// Whether the kernel reports changes of address spaces by the events of their tree. Before areas had locks of their own (kernel 6.4),
/// each page fault of the machine gave back the lock that those events tell of.
pub(crate) fn has_area_tree(btf: &Btf<'_>) -> bool {
    let is_lock =
        |field: &libbpf_rs::btf::types::StructMember<'_>| field.name.is_some_and(|name| name == "vm_lock_seq");
    let area = btf.type_by_name::<libbpf_rs::btf::types::Struct<'_>>("vm_area_struct");
    let has_own_locks = area.is_some_and(|area| area.iter().any(|field| is_lock(&field)));
    has_own_locks && AREA_TREE.iter().all(|section| kernel_has(section, btf))
}

impl Kernel {
    /// What the kernel with these types reports.
    pub(crate) fn of(btf: &Btf<'_>, options: &Options) -> Self {
        Self {
            tells_area_tree: options.area_tree && has_area_tree(btf),
            exit_has_memory: page_content::exit_has_memory(btf, options),
        }
    }
}

/// Whether a program that reports changes of address spaces is left out: one at system calls where the kernel's tree reports them, one at
/// the tree where it does not.
pub(crate) fn is_replaced_by_tree(section: &str, kernel: Kernel) -> bool {
    if kernel.tells_area_tree { is_at_calls(section) } else { is_at_tree(section) }
}

/// Whether a program is at the tree of an address space.
pub(crate) fn is_at_tree(section: &str) -> bool {
    AREA_TREE.contains(&section)
}

/// Whether the running kernel has what a program's section asks for; a program without it is not loaded.
fn kernel_has(section: &str, btf: &Btf<'_>) -> bool {
    match section.strip_prefix("tp_btf/") {
        Some(name) => btf.type_by_name::<libbpf_rs::btf::types::Typedef<'_>>(&format!("btf_trace_{name}")).is_some(),
        None => true,
    }
}

/// A loaded probe.
pub(crate) struct Loaded {
    pub(crate) probe: &'static Probe,
    pub(crate) name: &'static str,
    pub(crate) object: Object,
    /// Sections of programs that are not loaded: others tell the same.
    pub(crate) replaced: Vec<String>,
    /// Sections of programs that are not loaded: this kernel has no event for them.
    pub(crate) missing: Vec<String>,
}

/// Loads `probe` with the shared maps that there are, and adds those that it makes. Its relocations are resolved in `types`; its events
/// and functions are looked up in the kernel's own types, `btf`, of which `kernel` was found before: libbpf goes through all types for each
/// name.
pub(crate) fn load(
    compiled: &Compiled,
    shared: &mut SharedMaps,
    btf: &Btf<'_>,
    kernel: Kernel,
    types: &KernelTypes,
    options: &Options,
) -> Result<Loaded, CaptureError> {
    let probe = compiled.probe;
    let error = |source| CaptureError::Load { probe: probe.name, source };
    let mut builder = ObjectBuilder::default();
    if let Some(path) = types.path() {
        builder.btf_custom_path(path).map_err(error)?;
    }
    let mut open = builder.open_memory(compiled.object(options)).map_err(error)?;
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match shared.maps.get(name.as_str()) {
            Some(first) => map.reuse_fd(first.as_fd()).map_err(error)?,
            None if name == SECTION => {
                if let Some(value) = map.initial_value_mut() {
                    options.owner.write(shared.secret, value);
                }
            }
            None if name == "ring" => map.set_max_entries(options.ring_bytes).map_err(error)?,
            None if name == "copies" && options.copy_every > 0 => {
                let cpus = libbpf_rs::num_possible_cpus().map_err(error)?;
                map.set_max_entries(cpus as u32).map_err(error)?;
            }
            None if name.ends_with(".rodata") => {
                if let (Some(settings), Some(value)) = (probe.settings, map.initial_value_mut()) {
                    let settings = settings(btf, options, kernel);
                    value.iter_mut().zip(settings).for_each(|(place, byte)| *place = byte);
                }
            }
            None => {}
        }
    }
    let (mut replaced, mut missing) = (Vec::new(), Vec::new());
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let has_event = kernel_has(&section, btf);
        let is_replaced = (probe.is_replaced)(&section, options, kernel);
        if is_replaced || !has_event {
            program.set_autoload(false);
            // On architectures without tracepoints at the entry of a fault an event reports it.
            let list = if is_replaced || section.starts_with(FAULT_ENTRY) { &mut replaced } else { &mut missing };
            list.push(section);
        }
    }
    let object = open.load().map_err(error)?;
    shared.take(probe.name, &object)?;
    Ok(Loaded { probe, name: probe.name, object, replaced, missing })
}
