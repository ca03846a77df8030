//! What a probe is declared as. Which there are is listed in [`crate::probes`].
//!
//! A probe is one folder with one declaration, `PROBE`. What is compiled, loaded and decoded, what its losses are called, what
//! `doctor` looks for and `explain` says follow from it.

use crate::kernel_events::Kernel;
use crate::options::Options;
use crate::records::RecordKind;
use libbpf_rs::{Btf, Object};
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
