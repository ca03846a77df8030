//! The probes: what each is declared as, and which there are.
//!
//! A probe is one folder with one declaration, `PROBE`, and a line in `probe_list.rs`. What is compiled, loaded and decoded, what its
//! losses are called, what `doctor` looks for and `explain` says follow from it.

use crate::objects::Loaded;
use crate::options::Options;
use crate::records::RecordKind;
use libbpf_rs::Btf;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::{Missing, declared};

/// A probe.
pub struct Probe {
    /// Its name, that of its folder.
    pub name: &'static str,
    /// What it records, in a few words.
    pub title: &'static str,
    /// What it records and how.
    pub what: &'static str,
    /// When it is loaded, as options of `slowpath record`.
    pub asked_for: &'static str,
    /// What it costs.
    pub price: &'static str,
    /// Whether a recording without it is none, or not the one that was asked for.
    pub(crate) is_essential: bool,
    /// Whether it cannot be loaded where the kernel does not walk address spaces for it.
    pub(crate) walks_areas: bool,
    /// Whether its programs at system calls are run by the probe `system_calls`.
    pub(crate) is_handed_calls: bool,
    /// Whether it is loaded.
    pub(crate) is_wanted: fn(&Options) -> bool,
    /// Whether its events have call stacks; only of those that are compiled so.
    pub(crate) has_stacks: fn(&Options) -> bool,
    /// The value of its read-only variables, where it has some.
    pub(crate) settings: Option<Settings>,
    /// Whether a program in a section is left out because others tell the same.
    pub(crate) is_replaced: fn(&str, &Options, Kernel) -> bool,
    /// What is not recorded where it was loaded without some of its programs.
    pub(crate) gap: Option<fn(&Loaded) -> Option<Unavailable>>,
    /// Its program that is run over all tasks when recording ends.
    pub(crate) end_walk: Option<&'static str>,
    /// Its records.
    pub(crate) records: &'static [RecordKind],
    /// Tracepoints that it needs, and what a machine without them lacks.
    pub(crate) tracepoints: &'static [(&'static Missing, &'static [&'static str])],
}

/// The value of a probe's read-only variables, by the types of the kernel, what was asked for, and what the kernel reports.
type Settings = fn(&Btf<'_>, &Options, Kernel) -> Vec<u8>;

/// What the kernel reports, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Changes of address spaces by the events of their tree.
    pub(crate) tells_area_tree: bool,
    /// The end of a process while it has its memory.
    pub(crate) exit_has_memory: bool,
}

impl Probe {
    /// What most probes are: loaded wherever more than processes are recorded, and dispensable.
    pub(crate) const USUAL: Self = Self {
        name: "",
        title: "",
        what: "",
        asked_for: "always",
        price: "little: its events are rare, or are seen for the followed processes only",
        is_essential: false,
        walks_areas: false,
        is_handed_calls: false,
        is_wanted: |options| !options.processes_only,
        has_stacks: |_| false,
        settings: None,
        is_replaced: |_, _, _| false,
        gap: None,
        end_walk: None,
        records: &[],
        tracepoints: &[],
    };
}

/// What probes of system calls need.
pub(crate) const SYSTEM_CALLS: &[(&Missing, &[&str])] = &[(&declared::SYSCALLS, &["sys_enter", "sys_exit"])];

/// Whether a section is of a program at the entry or return of all system calls.
pub(crate) fn is_at_calls(section: &str) -> bool {
    matches!(section, "tp_btf/sys_enter" | "tp_btf/sys_exit")
}

/// A probe and its programs.
pub(crate) struct Compiled {
    /// The declaration.
    pub(crate) probe: &'static Probe,
    object: &'static [u8],
    with_stacks: Option<&'static [u8]>,
}

impl Compiled {
    /// All that were compiled.
    #[cfg(test)]
    pub(crate) fn objects(&self) -> impl Iterator<Item = &'static [u8]> + use<> {
        [Some(self.object), self.with_stacks].into_iter().flatten()
    }

    /// The programs that are asked for.
    pub(crate) fn object(&self, options: &Options) -> &'static [u8] {
        self.with_stacks.filter(|_| (self.probe.has_stacks)(options)).unwrap_or(self.object)
    }
}

/// Bytes aligned as ELF wants them.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

macro_rules! object {
    ($name:ident, $variant:literal) => {{
        const OBJECT: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", stringify!($name), $variant, ".bpf.o")));
        &OBJECT.0
    }};
}

macro_rules! with_stacks {
    ($name:ident stacks) => {
        Some(object!($name, "_stacks"))
    };
    ($name:ident $($other:ident)?) => {
        None
    };
}

macro_rules! each_probe {
    ($($name:ident $(: $built:ident)?,)*) => {
        /// All, in the order in which they are loaded.
        pub(crate) static ALL: &[Compiled] = &[$(Compiled {
            probe: &crate::$name::PROBE,
            object: object!($name, ""),
            with_stacks: with_stacks!($name $($built)?),
        }),*];
    };
}
include!("probe_list.rs");

/// The declarations, in the order in which the probes are loaded.
pub fn declared() -> impl DoubleEndedIterator<Item = &'static Probe> {
    ALL.iter().map(|compiled| compiled.probe)
}

/// The tracepoints without which a machine lacks something.
pub(crate) fn tracepoints_for(missing: &Missing) -> Vec<&'static str> {
    let all = declared().flat_map(|probe| probe.tracepoints);
    all.filter(|(what, _)| what.name == missing.name).flat_map(|(_, names)| names.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_probe_is_declared_in_full_and_once() {
        let names: BTreeSet<&str> = declared().map(|probe| probe.name).collect();
        assert_eq!(names.len(), ALL.len());
        for probe in declared() {
            let texts = [probe.name, probe.title, probe.what, probe.asked_for, probe.price];
            assert!(texts.iter().all(|text| !text.is_empty()), "{}", probe.name);
        }
        assert_eq!(ALL[0].probe.name, "process", "the others hang on it");
    }

    #[test]
    fn programs_with_stacks_are_taken_where_they_are_asked_for() {
        let mut options = Options::default();
        let fault = ALL.iter().find(|one| one.probe.name == "fault").unwrap();
        let without = fault.object(&options);
        options.stacks.faults = true;
        assert_ne!(without.as_ptr(), fault.object(&options).as_ptr());
    }
}
