//! Probe `code_area`: where a process has executable code. What follows from it for call stacks is done in [`crate::stack`].

use crate::events::{EVENT_MODULE, module_event};
use crate::kernel_events::is_replaced_by_tree;
use crate::probe::Probe;
use crate::records::RecordKind;

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "code_area",
    title: "executable mappings and their unwinding tables",
    what: "Tracks the executable mappings of followed processes for the unwinder, and reports which files need tables.",
    asked_for: "`--sample`, `--stacks`",
    price: "some us at each change of an executable mapping",
    is_essential: true,
    is_wanted: |options| options.walks_stacks(),
    is_replaced: |section, _, kernel| is_replaced_by_tree(section, kernel),
    records: &[RecordKind::of::<module_event>(EVENT_MODULE, "modules", |bytes, to| to.stacks.learn_module(bytes))
        .reported_once()],
    ..Probe::USUAL
};
