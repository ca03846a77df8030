//! What was withheld from the owner of a recording, by the counters of the probes. The rule is [`Owner`]'s.

use super::Owner;
use crate::events::{EVENT_EXEC, EVENT_KINDS};
use crate::record_kinds::kind_name;
use libbpf_rs::{MapCore, MapFlags};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;

impl Owner {
    /// What was withheld, by the counters of the probes; `user` is how it is said.
    pub(crate) fn gap(self, counters: &impl MapCore) -> Option<Unavailable> {
        let of = |kind: u32| -> u64 {
            let values = counters.lookup_percpu(&kind.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
            values.iter().filter_map(|value| value.get(..8)?.try_into().ok().map(u64::from_ne_bytes)).sum()
        };
        let programs = of(EVENT_EXEC);
        let events: Vec<String> = (0..EVENT_KINDS)
            .filter(|kind| *kind != EVENT_EXEC)
            .map(|kind| (of(kind), kind_name(kind)))
            .filter(|(count, _)| *count > 0)
            .map(|(count, kind)| format!("{kind} {count}"))
            .collect();
        (programs > 0 || !events.is_empty()).then(|| {
            let whose = format!(
                "{programs} program{} ({})",
                if programs == 1 { "" } else { "s" },
                if events.is_empty() { "no events".to_owned() } else { events.join(", ") }
            );
            let reason = format!(
                "user {}, the owner of this recording, may not trace them: they are set-uid or the like, have capabilities, are another \
                 user's, or keep themselves from being traced",
                self.uid
            );
            let remedy = "a recording of root's holds them: --user root, or without sudo in a shell of root's";
            declared::OTHERS_DETAILS.of(&[&whose], reason, remedy)
        })
    }
}
