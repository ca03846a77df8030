//! Where the kernel keeps a CPU's count of nested interrupts, from its type information, for `interrupts.bpf.h`.

use libbpf_rs::Btf;
use libbpf_rs::btf::types::{DataSec, Var};
use std::ffi::OsStr;

/// Where the count of nested interrupts stands relative to a CPU's run queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    distance: i64,
    /// As in the probe: 0 not known, 1 a variable, 2 a field of `pcpu_hot`.
    kind: u64,
}

impl Layout {
    /// As the running kernel has it.
    pub(crate) fn of(btf: &Btf<'_>) -> Self {
        let Some(section) = btf.type_by_name::<DataSec<'_>>(".data..percpu") else { return Self::default() };
        let variables = section.iter().filter_map(|one| {
            let variable = btf.type_by_id::<Var<'_>>(one.ty)?;
            Some((variable.name()?, one.offset))
        });
        Self::from_variables(variables)
    }

    /// From names and offsets of the variables in the section.
    fn from_variables<'a>(variables: impl Iterator<Item = (&'a OsStr, u32)>) -> Self {
        let (mut queue, mut count) = (None, None);
        for (name, offset) in variables {
            match name.to_str() {
                Some("runqueues") => queue = Some(offset),
                Some("__preempt_count") => count = Some((offset, 1)),
                Some("pcpu_hot") => count = count.or(Some((offset, 2))),
                _ => {}
            }
        }
        let Some((queue, (count, kind))) = queue.zip(count) else { return Self::default() };
        Self { distance: i64::from(count) - i64::from(queue), kind }
    }

    /// The value of the read-only variable of a probe.
    pub(crate) fn bytes(self) -> Vec<u8> {
        [self.distance.to_ne_bytes(), self.kind.to_ne_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(variables: &[(&str, u32)]) -> Layout {
        Layout::from_variables(variables.iter().map(|(name, offset)| (OsStr::new(*name), *offset)))
    }

    #[test]
    fn the_count_is_found_where_each_kernel_has_it() {
        assert_eq!(layout(&[("__preempt_count", 100), ("runqueues", 300)]), Layout { distance: -200, kind: 1 });
        assert_eq!(layout(&[("runqueues", 64), ("pcpu_hot", 128)]), Layout { distance: 64, kind: 2 });
        assert_eq!(layout(&[("__preempt_count", 100)]), Layout::default());
        assert_eq!(layout(&[("runqueues", 100)]), Layout::default());
    }
}
