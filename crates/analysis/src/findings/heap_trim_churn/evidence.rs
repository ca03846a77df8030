//! What proves the finding, as rows, and what would end it.

use super::found::HeapChurn;
use super::groups::MemoryManager;
use crate::finding::{Evidence, milliseconds, row};
use crate::findings::allocating_stack::Allocator;
use crate::findings::memory_evidence::{Remedy, add_faults, add_off_cpu, parts, rounded};
use crate::findings::other_allocators::keeping_pages;
use crate::memory::memory_fixes::{ALLOCATOR_TUNABLES, MOST_MMAP_THRESHOLD, MallocSettings, REUSE_BUFFER};
use crate::memory::released_pages::ReleaseKind;
use serde_json::Value;

/// Stacks that release, at most.
const MOST_STACKS: usize = 10;
/// What the free top of the heap holds besides what was given back: `M_TOP_PAD` (mallopt(3), 128 KiB) at both ends of an
/// oscillation, and rests of blocks.
const TOP_OF_HEAP: u64 = 1 << 20;

/// What operations and all of them cost, part by part.
pub(super) fn cost(found: &HeapChurn<'_>) -> Evidence {
    let cost = &found.cost;
    let releasing = match found.group.kind {
        ReleaseKind::BrkTrim => "giving back (brk)",
        ReleaseKind::DontNeed | ReleaseKind::Free => "giving back (madvise)",
    };
    let mut rows = vec![("page faults, with the zeroing of pages", cost.faults.time()), (releasing, cost.release_time)];
    if found.group.kind == ReleaseKind::BrkTrim {
        rows.push(("growing again (brk)", cost.grow_time));
    }
    parts("What the operations cost in the kernel.", &rows, found.group.operations.len() as f64)
}

/// How many operations, how large, how long memory is away.
pub(super) fn operations(found: &HeapChurn<'_>) -> Evidence {
    let cost = &found.cost;
    let operations = found.group.operations.len() as u64;
    let mut shown = row([
        ("operations", Value::from(operations)),
        ("kind", Value::from(found.group.kind.as_str())),
        ("grows", Value::from(cost.grows)),
        ("size_bytes", Value::from(cost.length)),
        ("released_bytes", Value::from(cost.taken.bytes().0)),
        ("held_bytes", Value::from(cost.held.bytes().0)),
        ("median_us", rounded(cost.per_operation.value, 1)),
        ("away_p50_ms", milliseconds(cost.away.0)),
        ("away_p95_ms", milliseconds(cost.away.1)),
    ]);
    add_faults(&mut shown, &cost.faults, operations as f64);
    add_off_cpu(&mut shown, "calls_off_cpu_ms", cost.calls_off_cpu);
    shown.insert("per_second".to_owned(), cost.per_second.map_or(Value::Null, |rate| rounded(rate, 2)));
    let text = "An operation is one call that gave pages back of which some were touched again: each is a fault. held is what \
                stays with the process where they are kept, away the time until the first of them was touched.";
    Evidence { text: text.to_owned(), rows: vec![shown] }
}

/// Where releases come from several places, those with most of the cost.
pub(super) fn places(found: &HeapChurn<'_>) -> Evidence {
    let stacks = &found.group.stacks;
    let rows = stacks.iter().filter(|_| stacks.len() > 1).take(MOST_STACKS).map(|(number, time)| {
        let stack = found.memory.stacks.get(*number);
        let name = stack.who_asked().map_or(Value::Null, |caller| Value::from(caller.function.as_str()));
        row([("function", name), ("stack", Value::from(stack.folded())), ("total_ms", milliseconds(*time))])
    });
    Evidence { text: "The places that gave memory back, by what it cost.".to_owned(), rows: rows.collect() }
}

/// Whether the program has its allocator trim by asking for it.
fn asks_for_trim(found: &HeapChurn<'_>) -> bool {
    found.stack.callers.iter().any(|caller| caller.function.ends_with("malloc_trim"))
}

/// Settings of glibc that let it keep what oscillates. Whoever sets one of its thresholds ends its learning of the others, so
/// blocks of these sizes must be made to stay in the heap.
fn glibc_settings(amplitude: u64) -> MallocSettings {
    let trim = amplitude.saturating_add(TOP_OF_HEAP).checked_next_power_of_two().unwrap_or(u64::MAX);
    let mmap = trim.min(MOST_MMAP_THRESHOLD);
    MallocSettings { mmap_threshold: Some(mmap), trim_threshold: Some(trim), ..MallocSettings::default() }
}

fn tunables(found: &HeapChurn<'_>) -> Option<Remedy> {
    let held = found.cost.held.bytes().as_mb();
    let remedy = |how| Remedy::new(ALLOCATOR_TUNABLES, how);
    let glibc = |where_glibc: &str| {
        let settings = glibc_settings(found.cost.amplitude);
        let how = format!(
            "{where_glibc}GLIBC_TUNABLES={settings} has glibc keep what it gives back now, at the price of {held:.1} MB that stay with the \
             process (the mmap threshold because the other setting ends what glibc learns of large blocks; \
             glibc.malloc.top_pad instead of the trim threshold has the heap grow in larger steps too)"
        );
        Remedy { settings: Some(settings), ..remedy(how) }
    };
    match found.group.place {
        _ if asks_for_trim(found) => None,
        MemoryManager::Allocator(Some(Allocator::Glibc)) => Some(glibc("")),
        MemoryManager::Allocator(Some(allocator)) => {
            Some(remedy(format!("{} ({held:.1} MB)", keeping_pages(allocator)?)))
        }
        // Without a stack: whoever shrinks the heap of brk is glibc's, as a rule.
        MemoryManager::Stack(_) if found.group.kind == ReleaseKind::BrkTrim && found.stack.callers.is_empty() => {
            Some(glibc("where the allocator is that of glibc: "))
        }
        MemoryManager::Allocator(None) | MemoryManager::Stack(_) => None,
    }
}

/// What would end it.
pub(super) fn remedies(found: &HeapChurn<'_>) -> Vec<Remedy> {
    let keep = match found.group.place {
        _ if asks_for_trim(found) => {
            "in the source: call malloc_trim after work that is not done again soon, not after each round".to_owned()
        }
        MemoryManager::Stack(_) if !found.stack.callers.is_empty() => format!(
            "in the source: leave the pages where they are between two uses, which come {:.1} ms apart (median); where the \
             advice is there to have zeros again, clear what is used",
            found.cost.away.0.as_ms()
        ),
        MemoryManager::Allocator(Some(allocator)) if allocator != Allocator::Glibc => {
            "in the source: keep the blocks of a round for the next one (a pool, an arena that is emptied and not freed)"
                .to_owned()
        }
        _ => "in the source: keep the blocks of a round for the next one (a pool, an arena that is emptied and not freed), or \
              one long-lived block behind them, so that what is free between two rounds stays in the heap"
            .to_owned(),
    };
    std::iter::once(Remedy::new(REUSE_BUFFER, keep)).chain(tunables(found)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_above_what_oscillates_and_large_blocks_stay_in_the_heap() {
        let settings = |amplitude| glibc_settings(amplitude).to_string();
        assert_eq!(
            settings(6 << 20),
            format!("glibc.malloc.mmap_threshold={}:glibc.malloc.trim_threshold={}", 8 << 20, 8 << 20)
        );
        assert_eq!(
            settings(100 << 20),
            format!("glibc.malloc.mmap_threshold={}:glibc.malloc.trim_threshold={}", 32 << 20, 128 << 20)
        );
        assert!(settings(u64::MAX).contains(&u64::MAX.to_string()));
    }
}
