//! What proves the finding, as rows.

use super::Found;
use crate::finding::{Evidence, milliseconds, row};
use crate::findings::memory_evidence::{add_faults, parts, rounded};
use crate::findings::memory_fixes::{ALLOCATOR_TUNABLES, KEEP_BUFFER, MOST_MMAP_THRESHOLD};
use serde_json::Value;

/// What operations and all of them cost, part by part.
pub(super) fn bill(found: &Found<'_>) -> Evidence {
    let bill = &found.bill;
    let rows = [
        ("page faults, with the zeroing of pages", bill.faults.time()),
        ("releasing (munmap, madvise)", bill.release_time),
        ("mapping (mmap, mremap)", bill.map_time),
    ];
    parts("What the operations cost in the kernel.", &rows, found.group.operations.len() as f64)
}

/// How many operations, how large, how long they last.
pub(super) fn operations(found: &Found<'_>) -> Evidence {
    let (bill, group) = (&found.bill, &found.group);
    let operations = group.operations.len() as u64;
    let mut shown = row([
        ("operations", Value::from(operations)),
        ("across_threads", Value::from(bill.across_threads)),
        ("at_the_same_time", Value::from(group.peak())),
        ("not_released", Value::from(group.not_released)),
        ("size_bytes", Value::from(bill.length)),
        ("median_us", rounded(bill.per_operation.value, 1)),
        ("lifetime_p50_ms", milliseconds(bill.lifetime.0)),
        ("lifetime_p95_ms", milliseconds(bill.lifetime.1)),
        ("mapped_bytes", Value::from(bill.mapped)),
        ("touched_bytes", Value::from(bill.touched)),
    ]);
    add_faults(&mut shown, &bill.faults, operations as f64);
    shown.insert("per_second".to_owned(), bill.per_second.map_or(Value::Null, |rate| rounded(rate, 2)));
    let text = "An operation is one block that was mapped, touched and released; pages are those that faults brought.";
    Evidence { text: text.to_owned(), rows: vec![shown] }
}

/// Settings of glibc that let it keep the blocks; `None` where no allocator asked for them, or they are too large for it.
fn tunables(found: &Found<'_>) -> Option<String> {
    let threshold = found.bill.length.saturating_mul(2).min(MOST_MMAP_THRESHOLD);
    let is_possible = found.stack.through_allocator && found.bill.length < threshold;
    let trim = threshold.saturating_mul(4).saturating_mul(found.group.peak().max(1) as u64);
    is_possible.then(|| format!("glibc.malloc.mmap_threshold={threshold}:glibc.malloc.trim_threshold={trim}"))
}

/// What would end it.
pub(super) fn fixes(found: &Found<'_>) -> Vec<(&'static str, String)> {
    let kept = found.group.peak();
    let blocks = if kept == 1 { "one block".to_owned() } else { format!("{kept} blocks") };
    let mut fixes = vec![(
        KEEP_BUFFER,
        format!(
            "in the source: keep {blocks} and use it again (a member, a pool, thread-local storage), or use the data where \
             they are, without a copy"
        ),
    )];
    fixes.extend(tunables(found).map(|settings| {
        let how = format!(
            "where the allocator is that of glibc: GLIBC_TUNABLES={settings} makes it keep such blocks, at the price of \
             memory that stays with the process; other allocators have settings of their own"
        );
        (ALLOCATOR_TUNABLES, how)
    }));
    fixes
}
