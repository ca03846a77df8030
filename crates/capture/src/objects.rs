//! The compiled probes and how they become one program: what a map is in one object that declares it, it is in all.

use crate::capture_error::CaptureError;
use crate::options::Options;
use crate::owner::SECTION;
use crate::page_content;
use crate::recorder::monotonic_now;
use libbpf_rs::{Btf, MapCore, MapHandle, Object, ObjectBuilder};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::AsFd;

/// Bytes aligned as ELF wants them.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

macro_rules! object {
    ($name:literal) => {
        object!($name, $name)
    };
    ($name:literal, $file:literal) => {{
        static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $file, ".bpf.o")));
        Probe { name: $name, object: &OBJECT.0 }
    }};
}

/// A compiled probe.
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    pub(crate) object: &'static [u8],
}

impl Probe {
    /// Whether it cannot be loaded where the kernel does not walk address spaces for it, and can be done without.
    pub(crate) fn walks_areas(&self) -> bool {
        matches!(self.name, "mapping" | "page_content")
    }
}

/// All probes, the first being the one that the others hang on.
pub(crate) fn all(options: &Options) -> [Probe; 16] {
    let stacks = options.stacks;
    [
        object!("process"),
        if stacks.faults { object!("fault", "fault_stacks") } else { object!("fault") },
        object!("mapping"),
        object!("page_cache"),
        object!("readahead"),
        object!("block"),
        object!("open"),
        object!("read"),
        object!("first_wait"),
        if stacks.waits { object!("off_cpu", "off_cpu_stacks") } else { object!("off_cpu") },
        // Before `memory`, so that looking is in no duration of a call.
        object!("page_content"),
        if stacks.memory_calls { object!("memory", "memory_stacks") } else { object!("memory") },
        object!("memory_work"),
        object!("present"),
        object!("code_area"),
        object!("cpu_sample"),
    ]
}

/// Maps that are one in all probes that declare them: the first probe that does makes them.
const SHARED: [&str; 11] = [
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
];

/// The shared maps that were made so far.
pub(crate) struct SharedMaps {
    maps: HashMap<&'static str, MapHandle>,
    /// Of this recording.
    secret: [u64; 2],
}

impl Loaded {
    /// Whether it has programs at tracepoints of system calls.
    pub(crate) fn uses_system_calls(&self) -> bool {
        let section = |program: libbpf_rs::Program<'_>| program.section().to_string_lossy().into_owned();
        let mut sections = self.object.progs().map(section);
        sections.any(|section| section.starts_with(SYSTEM_CALLS) && !self.replaced.contains(&section))
    }
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
const FAULT_ENTRY: &str = "tp_btf/page_fault_";

/// Sections of the programs that tell changes of address spaces without tracepoints of system calls.
const AREA_TREE: [&str; 2] = ["tp_btf/ma_write", "tp_btf/mmap_lock_released"];

/// Where the sections of programs at tracepoints of system calls begin.
const SYSTEM_CALLS: &str = "tracepoint/syscalls/";

/// Probes that use those of system calls where the kernel has no others.
const TELLS_AREAS: [&str; 2] = ["mapping", "code_area"];

/// Whether the kernel tells changes of address spaces by the events of their tree. Before areas had locks of their own (kernel 6.4),
/// each page fault of the machine gave back the lock that those events tell of.
pub(crate) fn has_area_tree(btf: &Btf<'_>) -> bool {
    let is_lock =
        |field: &libbpf_rs::btf::types::StructMember<'_>| field.name.is_some_and(|name| name == "vm_lock_seq");
    let area = btf.type_by_name::<libbpf_rs::btf::types::Struct<'_>>("vm_area_struct");
    let has_own_locks = area.is_some_and(|area| area.iter().any(|field| is_lock(&field)));
    has_own_locks && AREA_TREE.iter().all(|section| kernel_has(section, btf))
}

/// Whether a program in `section` of a probe is left out because others tell the same.
fn is_replaced(probe: &str, section: &str, options: &Options, tells_area_tree: bool, exit_has_memory: bool) -> bool {
    if probe == "page_content" {
        return section == if exit_has_memory { page_content::BEFORE_EXIT } else { page_content::AT_EXIT };
    }
    if section.starts_with(FAULT_ENTRY) {
        return !options.fault_entry;
    }
    if !TELLS_AREAS.contains(&probe) {
        return false;
    }
    let is_of_tree = AREA_TREE.contains(&section);
    match tells_area_tree {
        // Where stacks are recorded, `code_area` tells both.
        true => section.starts_with(SYSTEM_CALLS) || (is_of_tree && probe == "mapping" && options.walks_stacks()),
        false => is_of_tree,
    }
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
    pub(crate) name: &'static str,
    pub(crate) object: Object,
    /// Sections of programs that are not loaded: others tell the same.
    pub(crate) replaced: Vec<String>,
    /// Sections of programs that are not loaded: this kernel has no event for them.
    pub(crate) missing: Vec<String>,
}

/// Loads `probe` with the shared maps that there are, and adds those that it makes.
pub(crate) fn load(
    probe: &Probe,
    shared: &mut SharedMaps,
    btf: &Btf<'_>,
    options: &Options,
) -> Result<Loaded, CaptureError> {
    let error = |source| CaptureError::Load { probe: probe.name, source };
    let watched_dev = options.lab.as_ref().map_or(0, |lab| lab.dev);
    let mut open = ObjectBuilder::default().open_memory(probe.object).map_err(error)?;
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
                let processors = libbpf_rs::num_possible_cpus().map_err(error)?;
                map.set_max_entries(processors as u32).map_err(error)?;
            }
            None if name.ends_with(".rodata") && probe.name == "page_cache" => {
                // The one read-only variable of the object: `watched_dev`.
                if let Some(value) = map.initial_value_mut() {
                    value[..8].copy_from_slice(&watched_dev.to_ne_bytes());
                }
            }
            None if name.ends_with(".rodata") && probe.name == "present" => {
                // The one read-only variable: the recorder, when it begins to mark, and its writer.
                if let Some(value) = map.initial_value_mut() {
                    value[..8].copy_from_slice(&u64::from(std::process::id()).to_ne_bytes());
                    value[8..16].copy_from_slice(&monotonic_now().0.to_ne_bytes());
                    value[16..24].copy_from_slice(&u64::from(options.writer.unwrap_or(0)).to_ne_bytes());
                }
            }
            None if name.ends_with(".rodata") && matches!(probe.name, "off_cpu" | "memory_work") => {
                if let Some(value) = map.initial_value_mut() {
                    crate::interrupts::Layout::of(btf).write(value);
                }
            }
            None if name.ends_with(".rodata") && probe.name == "process" => {
                // The one read-only variable: `exit_tells_last`.
                if let Some(value) = map.initial_value_mut() {
                    value[..4].copy_from_slice(
                        &u32::from(options.exit_memory && page_content::exit_has_memory(btf)).to_ne_bytes(),
                    );
                }
            }
            None if name.ends_with(".rodata") && probe.name == "cpu_sample" => {
                // The one read-only variable: `tells_arguments`.
                if let Some(value) = map.initial_value_mut() {
                    value[..4].copy_from_slice(&u32::from(options.memory_calls).to_ne_bytes());
                }
            }
            None => {}
        }
    }
    let (mut replaced, mut missing) = (Vec::new(), Vec::new());
    let tells_area_tree = options.area_tree && has_area_tree(btf);
    let exit_has_memory = options.exit_memory && page_content::exit_has_memory(btf);
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let has_event = kernel_has(&section, btf);
        let is_replaced = is_replaced(probe.name, &section, options, tells_area_tree, exit_has_memory);
        if is_replaced || !has_event {
            program.set_autoload(false);
            // On architectures without tracepoints at the entry of a fault an event tells it.
            let list = if is_replaced || section.starts_with(FAULT_ENTRY) { &mut replaced } else { &mut missing };
            list.push(section);
        }
    }
    let object = open.load().map_err(error)?;
    shared.take(probe.name, &object)?;
    Ok(Loaded { name: probe.name, object, replaced, missing })
}
