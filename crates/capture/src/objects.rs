//! The compiled probes and how they become one program: what a map is in one object that declares it, it is in all.

use crate::capture_error::CaptureError;
use crate::kernel_events::{FAULT_ENTRY, Kernel, has_area_tree, kernel_has};
use crate::kernel_types::KernelTypes;
use crate::options::Options;
use crate::owner::SECTION;
use crate::page_content;
use crate::probe::Loaded;
use crate::probes::Compiled;
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

impl Kernel {
    /// What the kernel with these types reports.
    pub(crate) fn of(btf: &Btf<'_>, options: &Options) -> Self {
        Self {
            tells_area_tree: options.area_tree && has_area_tree(btf),
            exit_has_memory: page_content::exit_has_memory(btf, options),
        }
    }
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
