//! What proves the finding, as rows.

use super::found::UnusedMemory;
use crate::finding::{Evidence, row};
use crate::findings::memory_evidence::{Remedy, add_faults, rounded};
use crate::memory::memory_fixes;
use serde_json::Value;
use slowpath_tables::{Bytes, PAGE_SIZE, Quantity};

/// What was touched, and what of it was never used.
pub(super) fn cost(found: &UnusedMemory<'_>) -> Evidence {
    let (cost, blocks) = (&found.cost, found.group.blocks.len() as u64);
    let unused = cost.unused_pages();
    let bytes = |pages: f64| Value::from((pages * PAGE_SIZE as f64) as u64);
    let end = |end: Option<f64>| end.map_or(Value::Null, |pages| rounded(pages, 0));
    let mut shown = row([
        ("operations", Value::from(blocks)),
        ("size_bytes", Value::from(cost.length)),
        ("pages", Value::from(cost.pages)),
        ("unused_pages", rounded(unused.value, 0)),
        ("unused_pages_low", end(unused.low)),
        ("unused_pages_high", end(unused.high)),
        ("unused_bytes", bytes(unused.value)),
        ("fault_ms", rounded(cost.faults.time() / 1e6, 3)),
        ("unused_fault_ms", rounded(cost.total.value, 3)),
    ]);
    add_faults(&mut shown, &cost.faults, blocks as f64);
    let text = "An operation is one block whose pages were looked at when it was given back or its process, or the recording, ended; \
                faults are those that brought its pages, unused_pages those of them that held nothing but zeros.";
    Evidence { text: text.to_owned(), rows: vec![shown] }
}

/// What the sample was, and where the used pages end.
pub(super) fn looked_at(found: &UnusedMemory<'_>) -> Evidence {
    let (cost, unused) = (&found.cost, &found.cost.unused);
    let percent = |share: f64| rounded(share * 100.0, 1);
    let shown = row([
        ("looked_at_pages", Value::from(unused.looked_at)),
        ("zero_pages", Value::from(unused.zero)),
        ("never_used_percent", percent(unused.share)),
        ("never_used_percent_low", percent(unused.low)),
        ("never_used_percent_high", percent(unused.high)),
        ("used_to_bytes", Value::from(cost.used_to.0)),
        ("behind_the_used_percent", percent(cost.behind)),
        ("without_fault_pages", Value::from(found.group.without_fault)),
    ]);
    let text = "An even sample of the pages that the faults brought. used_to is where the last used page of a block ends at most; \
                without_fault are pages that were there though no fault in them was recorded, which do not count.";
    Evidence { text: text.to_owned(), rows: vec![shown] }
}

/// The change of the source, with how much is used.
pub(super) fn remedies(found: &UnusedMemory<'_>) -> Vec<Remedy> {
    let mib = |bytes: Bytes| bytes.0 as f64 / f64::from(1 << 20);
    let Quantity { value, .. } = found.cost.unused_pages();
    let used = match found.cost.used_to {
        Bytes(0) => String::new(),
        used => format!(" (no page behind the first {:.2} MiB of a block was used)", mib(used)),
    };
    let how = format!(
        "in the source: make the buffer as large as what goes into it{used}, or do not clear what is not used: memory that malloc \
         maps, and what calloc gives, is zero already and costs nothing until it is touched (reserve and append instead of a \
         vector of n elements). {:.2} MiB stay untouched then",
        mib(Bytes((value * PAGE_SIZE as f64) as u64))
    );
    vec![Remedy::new(memory_fixes::RIGHT_SIZE_BUFFER, how)]
}
