//! The time ledger as the page draws it: the busiest threads and processes, and all others in one sum each.
//!
//! Owns how many are drawn. A machine that compiles has tens of thousands of threads, of some 700 bytes each; `analyze --json`
//! prints them all. Leaves the ledger itself to [`slowpath_analysis::time::ledger`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::printed::ledger::{Ledger, LedgerRow};
use slowpath_analysis::time::ledger::Category;
use slowpath_tables::{Quantity, Unit};
use std::collections::BTreeMap;

/// Processes with a bar of their own.
const MOST_PROCESSES: usize = 100;
/// Threads with a bar of their own: all of a browser's.
const MOST_THREADS: usize = 300;

/// The ledger of the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HtmlLedger {
    /// The ledger as `analyze` prints it, but of the busiest threads and processes only.
    pub busiest: Ledger,
    /// The threads that are left out; null for none.
    pub other_threads: Option<LedgerSum>,
    /// The processes that are left out; null for none.
    pub other_processes: Option<LedgerSum>,
}

/// Threads or processes together. Rows and `unexplained` add up to `thread_time`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerSum {
    /// How many there are.
    pub count: u64,
    /// Sum of the times from begin to end of their threads.
    pub thread_time: Quantity,
    /// The categories that have time, the largest first; without intervals.
    pub rows: Vec<LedgerRow>,
    /// What no category has, of those of which that is known; null for none.
    pub unexplained: Option<Quantity>,
}

/// What a thread or process adds to a sum: its time, its rows, and what is unexplained.
type TimeRows<'a> = (&'a Quantity, &'a [LedgerRow], Option<&'a Quantity>);

fn sum<'a>(parts: impl Iterator<Item = TimeRows<'a>>) -> Option<LedgerSum> {
    let (mut count, mut time, mut unexplained) = (0, 0.0, None);
    let mut by_category: BTreeMap<Category, f64> = BTreeMap::new();
    for (whole, rows, rest) in parts {
        count += 1;
        time += whole.value;
        for row in rows {
            *by_category.entry(row.category).or_default() += row.time.value;
        }
        if let Some(rest) = rest {
            *unexplained.get_or_insert(0.0) += rest.value;
        }
    }
    let row = |(category, ms): (Category, f64)| LedgerRow {
        category,
        time: Quantity::exact(ms, Unit::Ms),
        share: (time > 0.0).then(|| Quantity::exact(ms / time, Unit::Ratio)),
    };
    let mut rows: Vec<LedgerRow> = by_category.into_iter().map(row).collect();
    rows.sort_by(|one, other| other.time.value.total_cmp(&one.time.value));
    (count > 0).then(|| LedgerSum {
        count,
        thread_time: Quantity::exact(time, Unit::Ms),
        rows,
        unexplained: unexplained.map(|ms| Quantity::exact(ms, Unit::Ms)),
    })
}

/// The ledger of a page from that of an analysis.
pub fn of_ledger(ledger: Ledger) -> HtmlLedger {
    cut(ledger, MOST_PROCESSES, MOST_THREADS)
}

fn cut(mut ledger: Ledger, most_processes: usize, most_threads: usize) -> HtmlLedger {
    let threads = ledger.threads.iter().skip(most_threads);
    let other_threads = sum(threads.map(|one| (&one.wall, &*one.rows, one.unexplained.as_ref())));
    let processes = ledger.processes.iter().skip(most_processes);
    let other_processes = sum(processes.map(|one| (&one.thread_time, &*one.rows, one.unexplained.as_ref())));
    ledger.threads.truncate(most_threads);
    ledger.processes.truncate(most_processes);
    HtmlLedger { busiest: ledger, other_threads, other_processes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Tables;

    /// Two processes of two threads each, with waits of several kinds and a counter that leaves something unexplained.
    const TEXT: &str = r#"
== manifest
{"started": 100, "ended": 1100, "probes": [{"name": "off_cpu", "state": "attached"}]}
== execs
ts  present pid start filename run_time
100 false   7   1     /bin/a   40
100 true    9   2     /bin/b   5000
== forks
ts  parent_pid parent_start pid start tid thread
200 7          1            7   1     8   true
== thread_counters
ts   pid start tid end   run_time utime stime run_delay name
101  7   1     7   false 41       0     0     10        a
90   9   2     9   false 5000     0     0     -         b
95   9   2     10  false 100      0     0     -         pool
700  7   1     8   true  120      0     0     20        worker
901  7   1     7   true  341      0     0     70        a
1090 9   2     9   true  5000     0     0     -         b
1090 9   2     10  true  350      0     0     -         pool
== exits
ts   pid start tid last  run_time running
680  7   1     8   false 100      false
880  7   1     7   true  320      false
1100 9   2     9   false 5000     true
== off_cpu
ts  duration pid start tid reason   runnable
201 19       7   1     8   runnable 19
300 341      7   1     8   futex    1
500 250      7   1     7   timer    30
300 250      7   1     7   other_io 30
90  1000     9   2     9   poll     0
95  745      9   2     10  futex    0
"#;

    fn time(rows: &[LedgerRow], category: Category) -> f64 {
        rows.iter().filter(|row| row.category == category).map(|row| row.time.value).sum()
    }

    #[test]
    fn what_is_left_out_is_a_sum_and_nothing_is_lost() {
        let tables = Tables::from_text(TEXT).unwrap();
        let ledger = crate::ledger_of(&tables, &crate::usage_of(&tables)).unwrap().unwrap();
        assert_eq!((ledger.threads.len(), ledger.processes.len()), (4, 2));
        let all = cut(ledger.clone(), 2, 4);
        assert_eq!((all.other_threads, all.other_processes, all.busiest), (None, None, ledger.clone()));
        for (processes, threads) in [(0, 0), (0, 1), (1, 3)] {
            let page = cut(ledger.clone(), processes, threads);
            let (other_threads, other_processes) = (page.other_threads.unwrap(), page.other_processes.unwrap());
            assert_eq!((other_threads.count, other_processes.count), (4 - threads as u64, 2 - processes as u64));
            assert_eq!(page.busiest.threads, ledger.threads[..threads]);
            for category in Category::ALL {
                let of =
                    |shown: &[crate::LedgerThread]| -> f64 { shown.iter().map(|one| time(&one.rows, *category)).sum() };
                let whole = of(&ledger.threads);
                let parts = of(&page.busiest.threads) + time(&other_threads.rows, *category);
                assert!((whole - parts).abs() < 1e-9, "{category:?}: {whole} in all, {parts} in parts");
            }
            for sum in [&other_threads, &other_processes] {
                let rows: f64 = sum.rows.iter().map(|row| row.time.value).sum();
                let whole = rows + sum.unexplained.unwrap().value;
                assert!((whole - sum.thread_time.value).abs() < 1e-9, "{sum:?}");
                assert!(sum.rows.is_sorted_by(|one, other| one.time.value >= other.time.value), "{sum:?}");
            }
        }
    }
}
