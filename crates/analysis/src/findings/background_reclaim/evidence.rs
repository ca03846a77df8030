//! What proves the finding, as rows, and what would reduce it.

use super::found::ReclaimCost;
use crate::finding::{Evidence, Row, milliseconds, row};
use crate::findings::memory_evidence::rounded;
use crate::memory::background_reclaim::{Task, sum};
use crate::memory::memory_fixes::REUSE_BUFFER;
use serde_json::Value;
use std::collections::BTreeSet;

/// Processes and counters, at most.
const MOST_ROWS: usize = 30;

/// A ledger of the threads: what of their time is the program's, what is others', what is nobody's.
pub(super) fn threads(found: &ReclaimCost<'_>) -> Evidence {
    let end = |end: Option<f64>, digits: i32| end.map_or(Value::Null, |value| rounded(value, digits));
    let rows = found.threads.iter().map(|thread| {
        let share = thread.share.as_ref();
        let others = share.map(|_| thread.cpu_time.as_ms() - thread.cost.value);
        row([
            ("thread", Value::from(thread.thread.as_str())),
            ("cpu_ms", milliseconds(thread.cpu_time)),
            ("share", end(share.map(|share| share.value), 4)),
            ("share_low", end(share.and_then(|share| share.low), 4)),
            ("share_high", end(share.and_then(|share| share.high), 4)),
            ("cost_ms", end(share.map(|_| thread.cost.value), 3)),
            ("others_ms", end(others, 3)),
            ("not_attributed_ms", if share.is_some() { Value::from(0.0) } else { milliseconds(thread.cpu_time) }),
        ])
    });
    let text = "The kernel's threads for memory: their CPU time, the share that the program caused, what others caused, and what \
                nobody is known to have caused.";
    Evidence { text: text.to_owned(), rows: rows.collect() }
}

/// How shares were got.
pub(super) fn shares(found: &ReclaimCost<'_>) -> Evidence {
    let ways = found.threads.iter().flat_map(|thread| thread.ways.iter().map(move |way| (thread, way)));
    let rows = ways.map(|(thread, way)| {
        row([
            ("thread", Value::from(thread.thread.as_str())),
            ("by", Value::from(way.way.words())),
            ("of_program", rounded(way.of, 2)),
            ("of_all", rounded(way.all, 2)),
            ("share", rounded(way.share(), 4)),
        ])
    });
    let text = "How the shares were estimated; where there are two estimates, the interval spans them.";
    Evidence { text: text.to_owned(), rows: rows.collect() }
}

/// Why the threads had work: what the kernel counted on the whole machine.
pub(super) fn counters(found: &ReclaimCost<'_>) -> Evidence {
    let counters = found.facts.tables.manifest.memory_threads.iter().flat_map(|known| &known.counters);
    let grown = counters.filter(|(_, count)| **count > 0).take(MOST_ROWS);
    let rows =
        grown.map(|(name, count)| row([("counter", Value::from(name.as_str())), ("grew_by", Value::from(*count))]));
    Evidence { text: "Counters of /proc/vmstat, of the whole machine, meanwhile.".to_owned(), rows: rows.collect() }
}

/// Where the program runs in several processes, those that caused most.
pub(super) fn processes(found: &ReclaimCost<'_>) -> Evidence {
    let cost = |process| sum(&found.memory.costs(&BTreeSet::from([process]))).value;
    let several = found.processes.iter().filter(|_| found.processes.len() > 1);
    let mut costs: Vec<_> = several.map(|process| (*process, cost(*process))).filter(|(_, cost)| *cost > 0.0).collect();
    costs.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rows = costs
        .iter()
        .take(MOST_ROWS)
        .map(|(process, cost)| row([("pid", Value::from(process.pid)), ("cost_ms", rounded(*cost, 3))]));
    Evidence { text: "The processes that caused most of it.".to_owned(), rows: rows.collect() }
}

/// What the program's threads did of the kind themselves.
pub(super) fn direct(found: &ReclaimCost<'_>) -> Evidence {
    let rows = found.memory.direct(&found.processes).into_iter().map(|work| {
        row([
            ("work", Value::from(work.work.as_str())),
            ("times", Value::from(work.count)),
            ("own_ms", if work.time.0 > 0 { milliseconds(work.time) } else { Value::Null }),
            ("pages", Value::from(work.pages.0)),
        ])
    });
    let text = "What the program's threads did of that kind themselves: inside their own faults and calls, and no part of this cost.";
    Evidence { text: text.to_owned(), rows: rows.collect() }
}

/// What would reduce it: the name of a fix, where there is one, and what to do.
pub(super) fn remedies(found: &ReclaimCost<'_>, kept: Option<&str>) -> Vec<(Option<&'static str>, String)> {
    let mut remedies = Vec::new();
    if found.charges(Task::HugePages) {
        let how = "in the source: madvise(MADV_HUGEPAGE) before memory is touched has the fault bring a huge page, with nothing to copy \
                   later; MADV_NOHUGEPAGE keeps khugepaged away where small pages will do";
        remedies.push((None, how.to_owned()));
    }
    if found.charges(Task::Reclaim) || found.charges(Task::Compaction) {
        match kept {
            Some(finding) => {
                let how = format!(
                    "in the source: keep the blocks that {finding} names: pages that are not freed need not be found again"
                );
                remedies.push((Some(REUSE_BUFFER), how));
            }
            None => {
                let how = "allocate less, or give the machine (the cgroup, the virtual machine) more memory";
                remedies.push((None, how.to_owned()));
            }
        }
    }
    remedies
}

/// The same as rows.
pub(super) fn reducing(remedies: &[(Option<&'static str>, String)]) -> Evidence {
    let rows = remedies.iter().map(|(fix, how)| -> Row {
        row([("fix", fix.map_or(Value::Null, Value::from)), ("how", Value::from(how.as_str()))])
    });
    Evidence { text: "What would reduce it.".to_owned(), rows: rows.collect() }
}
