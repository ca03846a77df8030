//! Whether a process may have transparent huge pages, where the machine gives them (PR_SET_THP_DISABLE, prctl(2)).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Setting, Toggle};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;

/// What can be done about huge pages that a process or the machine forgoes.
pub(crate) const HUGE_PAGE_REMEDIES: &[(&str, &str)] = &[(
    "allow it huge pages (PR_SET_THP_DISABLE off; madvise where the machine asks for it)",
    "memory: partly used huge pages are resident as a whole",
)];

/// The factor.
pub const HUGE_PAGES: Factor = Factor {
    name: "huge_pages",
    former: Former::NONE,
    title: "THP of the process",
    what: "Whether the process may have transparent huge pages where the machine gives them. \
           prctl(PR_SET_THP_DISABLE) forbids them; children inherit that.",
    why: "2 MiB take 512 faults of 4 KiB pages instead of one, and programs that jump about in much memory miss the \
          TLB more often.",
    by_hand: "`grep THP_enabled /proc/PID/status`",
    scope: Scope::Process,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(HUGE_PAGE_REMEDIES),
    toggle: Toggle::Parts(parts),
};

const ALLOWED: &str = "allowed";

fn read(task: &TaskFiles<'_>) -> Reading {
    let word = |enabled: String| Value::text(if enabled == "1" { ALLOWED } else { "disabled by prctl" });
    Reading::of(task.status("THP_enabled").map(word), "this kernel does not report it (before 5.0)")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "with small pages memory takes 512 times the faults, and programs that jump about in much memory miss the TLB more often",
        "Documentation/admin-guide/mm/transhuge.rst",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::MinorFaults],
    mechanism: "memory comes in small pages, each with a fault of its own",
    sham: "the same call with the other answer: huge pages stay allowed",
};

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    contrast.whole(&HOW, |value| {
        let disabled = match value {
            Some(Value::Text(word)) => word != ALLOWED,
            _ => return Err("it is not known".to_owned()),
        };
        Ok(vec![Setting::Step(ContextStep::HugePages { disabled })])
    })
}
