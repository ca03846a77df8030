//! Who ended whose wait: arrows between the threads of a page.

use super::page_numbers::PageNumbers;
use crate::columns::Numbers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::time::ledger::ThreadStates;
use slowpath_recording::Tables;
use slowpath_tables::Nanos;

/// Wake-ups of the page; of more those that ended the longest waits: 8 bytes each.
const MOST_WAKES: usize = 300_000;

/// Wake-ups between threads of the page, in the order of time; columns of one length, as LEB128 in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeColumns {
    /// How many.
    pub count: u64,
    /// When the first was, ns since `zero`.
    pub first_ns: i64,
    /// Since the one before, ns; 0 for the first.
    pub gaps: String,
    /// Who woke: index into `threads`.
    pub wakers: String,
    /// Who was woken: index into `threads`.
    pub woken: String,
    /// Wake-ups between these threads that ended shorter waits and are left out.
    pub left_out: u64,
}

/// Length of the wait, when it was ended, by whom, whose it was.
type Wake = (u64, u64, u32, u32);

/// Leaves those that ended the longest waits; how many it took out.
fn keep_longest(all: &mut Vec<Wake>, most: usize) -> usize {
    let more = all.len().saturating_sub(most);
    if more > 0 {
        all.select_nth_unstable_by_key(most, |wake| (std::cmp::Reverse(wake.0), wake.1, wake.2, wake.3));
        all.truncate(most);
    }
    more
}

pub(super) fn of_tables(tables: &Tables, found: &ThreadStates<'_>, numbers: &PageNumbers) -> WakeColumns {
    cut(tables, found, numbers, MOST_WAKES)
}

pub(super) fn cut(tables: &Tables, found: &ThreadStates<'_>, numbers: &PageNumbers, most: usize) -> WakeColumns {
    let mut all: Vec<Wake> = Vec::new();
    let mut left_out = 0;
    for row in &tables.off_cpu {
        let Some((pid, tid)) = row.waker_pid.zip(row.waker_tid) else { continue };
        let end = row.ts.0.saturating_add(row.duration.0);
        let woken = row.woken.map_or(end.saturating_sub(row.runnable.0), |woken| woken.0.min(end)).max(row.ts.0);
        let waker = numbers.thread(found.running_as(pid, tid, Nanos(woken)));
        let who = numbers.thread(found.of_process(row.process(), row.tid, Nanos(end)));
        if let Some((waker, who)) = waker.zip(who) {
            all.push((woken - row.ts.0, woken, waker, who));
            // There may be tens of millions.
            if all.len() >= 2 * most.max(1) {
                left_out += keep_longest(&mut all, most);
            }
        }
    }
    left_out += keep_longest(&mut all, most);
    all.sort_unstable_by_key(|(_, at, waker, woken)| (*at, *waker, *woken));
    let (mut gaps, mut wakers, mut woken) = (Numbers::default(), Numbers::default(), Numbers::default());
    let mut before = all.first().map_or(0, |(_, at, ..)| *at);
    let first_ns = all.first().map_or(0, |(_, at, ..)| numbers.since_zero(Nanos(*at)));
    for (_, at, waker, who) in &all {
        gaps.push(at - before);
        wakers.push((*waker).into());
        woken.push((*who).into());
        before = *at;
    }
    WakeColumns {
        count: all.len() as u64,
        first_ns,
        gaps: gaps.text(),
        wakers: wakers.text(),
        woken: woken.text(),
        left_out: left_out as u64,
    }
}
