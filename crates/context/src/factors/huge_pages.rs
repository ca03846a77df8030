//! Whether a process may have transparent huge pages, where the machine gives them (PR_SET_THP_DISABLE, prctl(2)).

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;

/// The factor.
pub const HUGE_PAGES: Factor = Factor {
    name: "huge_pages",
    title: "transparent huge pages of the process",
    scope: Scope::Process,
    moves: false,
    read,
    known,
};

fn read(subject: &Subject<'_>) -> Reading {
    let word = |enabled: String| Value::text(if enabled == "1" { "allowed" } else { "disabled by prctl" });
    Reading::of(subject.status("THP_enabled").map(word), "this kernel does not tell it (before 5.0)")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "with small pages memory takes 512 times the faults, and programs that jump about in much memory miss the TLB more often",
        "Documentation/admin-guide/mm/transhuge.rst",
    )
}
