//! Which probes there are, each with its programs, in the order in which they are loaded.
//!
//! A probe is a line in `probe_list.rs`; what it is declared as is in [`crate::probe`].

use crate::options::Options;
use crate::probe::Probe;
use slowpath_tables::missing::Missing;

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
