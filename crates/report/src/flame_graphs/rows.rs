//! The rows of a flame graph with their times, so that a page can draw the graph of what is selected in it.
//!
//! Owns the columns, and which rows a page has where there are too many: the heaviest, and of equal ones an even choice, so that what is
//! kept of a million samples is spread over the recording as all of them are. What is left out is counted and weighed. A row names the
//! nodes of both trees in which its stack ends, so the graph of any part of the rows has the nodes of the whole one, and both trees of a
//! part add up to it.

use crate::ThreadKey;
use crate::columns::Numbers;
use crate::stack_weight::TimedRow;
use crate::timeline::since;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Nanos;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Rows of a weight in a page: some 12 bytes each, so those of four weights stay near 5 MB.
pub(super) const MOST_ROWS: usize = 100_000;

/// The rows of a weight in the order of time, as columns; numbers are LEB128 in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlameRows {
    /// How many.
    pub count: u64,
    /// When the first began, ns since exec of the command was released, or since recording began where nothing was launched.
    pub first_ns: i64,
    /// From the begin of the row before to its own, ns; 0 for the first.
    pub gaps: String,
    /// In the unit of the graph; of times also how long the row lasted.
    pub weights: String,
    /// Index into `threads` of the flame graphs.
    pub threads: String,
    /// Index into `callees` and `callers`.
    pub places: String,
    /// How many places there are.
    pub place_count: u64,
    /// By place, the node of the tree `callees` that has the row as its own.
    pub callees: String,
    /// By place, the node of the tree `callers` that has the row as its own.
    pub callers: String,
    /// Rows that are left out, because there are too many: the lightest, and of equal ones an even choice.
    pub left_out: u64,
    /// What they weigh together.
    pub left_out_weight: u64,
}

/// Threads that have rows; columns of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlameThreads {
    /// Pid of its process.
    pub pid: Vec<u32>,
    /// Thread id.
    pub tid: Vec<u32>,
    /// Its process, as an index into `frames`.
    pub process: Vec<u32>,
}

/// The threads of all weights, which have one number in all of them.
#[derive(Default)]
pub(super) struct Threads {
    numbers: HashMap<ThreadKey, u32>,
    pub(super) columns: FlameThreads,
}

impl Threads {
    fn number(&mut self, (process, tid): ThreadKey, frame: u32) -> u32 {
        *self.numbers.entry((process, tid)).or_insert_with(|| {
            self.columns.pid.push(process.pid);
            self.columns.tid.push(tid);
            self.columns.process.push(frame);
            self.columns.tid.len() as u32 - 1
        })
    }
}

/// What a row is part of: the frame of its process, and its nodes in both trees.
#[derive(Clone, Copy)]
pub(super) struct RowPlace {
    pub(super) process: u32,
    pub(super) callees: u32,
    pub(super) callers: u32,
}

struct Row {
    at: Nanos,
    amount: u64,
    thread: ThreadKey,
    place: RowPlace,
    /// Its number among all rows.
    number: u64,
}

/// Puts numbers that follow each other far apart, none twice: multiples of the golden ratio (Knuth, The Art of Computer Programming,
/// volume 3, section 6.4). The least of them are spread evenly over all.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Leaves the heaviest rows; how many it took out, and what they weigh.
fn keep_heaviest(rows: &mut Vec<Row>, most: usize) -> (u64, u64) {
    if rows.len() <= most {
        return (0, 0);
    }
    rows.select_nth_unstable_by_key(most, |row| (Reverse(row.amount), spread(row.number)));
    let out = rows.drain(most..);
    out.fold((0, 0), |(count, sum), row| (count + 1, sum.saturating_add(row.amount)))
}

/// The columns of a weight. `place_of` is `None` for a row that is in no tree.
pub(super) fn columns(
    rows: impl Iterator<Item = TimedRow>,
    place_of: impl Fn(&TimedRow) -> Option<RowPlace>,
    threads: &mut Threads,
    zero: Nanos,
    most: usize,
) -> FlameRows {
    let mut kept: Vec<Row> = Vec::new();
    let (mut left_out, mut left_out_weight) = (0u64, 0u64);
    let mut cut = |kept: &mut Vec<Row>| {
        let (count, sum) = keep_heaviest(kept, most);
        left_out += count;
        left_out_weight = left_out_weight.saturating_add(sum);
    };
    for (number, row) in (0u64..).zip(rows.filter(|row| row.amount > 0)) {
        let Some(place) = place_of(&row) else { continue };
        kept.push(Row { at: row.at, amount: row.amount, thread: (row.process, row.tid), place, number });
        // There may be tens of millions.
        if kept.len() >= 2 * most.max(1) {
            cut(&mut kept);
        }
    }
    cut(&mut kept);
    kept.sort_unstable_by_key(|row| (row.at, row.number));
    let mut numbers_of_places: HashMap<(u32, u32), u64> = HashMap::new();
    let [mut gaps, mut weights, mut of_thread, mut places, mut callees, mut callers] =
        std::array::from_fn(|_| Numbers::default());
    let mut before = kept.first().map_or(zero, |row| row.at);
    let first_ns = since(zero, before);
    for row in &kept {
        let RowPlace { process, callees: inwards, callers: outwards } = row.place;
        let next = numbers_of_places.len() as u64;
        let place = *numbers_of_places.entry((inwards, outwards)).or_insert_with(|| {
            callees.push(inwards.into());
            callers.push(outwards.into());
            next
        });
        gaps.push((row.at - before).0);
        weights.push(row.amount);
        of_thread.push(threads.number(row.thread, process).into());
        places.push(place);
        before = row.at;
    }
    FlameRows {
        count: kept.len() as u64,
        first_ns,
        gaps: gaps.text(),
        weights: weights.text(),
        threads: of_thread.text(),
        places: places.text(),
        place_count: numbers_of_places.len() as u64,
        callees: callees.text(),
        callers: callers.text(),
        left_out,
        left_out_weight,
    }
}

#[cfg(test)]
mod tests {
    use super::super::FlameGraphs;
    use super::super::tests::graphs;
    use super::*;
    use crate::columns::tests::numbers;

    const WAITS: &str = "== manifest\n{\"started\": 90, \"launch\": {\"released\": 100, \"ready\": 900, \
        \"ready_when\": \"exit\", \"outcome\": \"ready\"}}\n\
        == off_cpu\nts duration pid start tid reason stack\n\
        150 400 7 1 7 futex 3\n80 100 7 1 8 futex 1\n200 30 8 1 8 futex 3\n700 5 7 1 7 futex -\n600 0 7 1 7 futex 1\n";

    #[test]
    fn rows_have_their_times_and_threads_in_the_order_of_time() {
        let found = graphs(WAITS).unwrap();
        let rows = found.graphs[1].rows.as_ref().unwrap();
        assert_eq!((rows.count, rows.first_ns, rows.left_out, rows.left_out_weight), (4, -20, 0, 0));
        assert_eq!(numbers(&rows.gaps), [0, 70, 50, 500]);
        assert_eq!(numbers(&rows.weights), [100, 400, 30, 5]);
        let names = |thread: &u64| {
            let FlameThreads { pid, tid, process } = &found.threads;
            let at = *thread as usize;
            (pid[at], tid[at], found.frames.name[process[at] as usize].as_str())
        };
        let threads: Vec<_> = numbers(&rows.threads);
        let threads: Vec<_> = threads.iter().map(names).collect();
        assert_eq!(threads, [(7, 8, "app"), (7, 7, "app"), (8, 8, "app"), (7, 7, "app")]);
        assert!(found.graphs[0].rows.is_none(), "no sample was recorded");
    }

    #[test]
    fn the_rows_of_a_node_are_what_it_has_of_its_own() {
        let found = graphs(WAITS).unwrap();
        let graph = &found.graphs[1];
        let rows = graph.rows.as_ref().unwrap();
        let (places, weights) = (numbers(&rows.places), numbers(&rows.weights));
        for (tree, nodes) in [(&graph.callees, &rows.callees), (&graph.callers, &rows.callers)] {
            let (tree, nodes) = (tree.as_ref().unwrap(), numbers(nodes));
            assert_eq!(nodes.len() as u64, rows.place_count);
            let mut own: Vec<i64> = tree.weight.iter().map(|weight| *weight as i64).collect();
            let mut callers: Vec<usize> = Vec::new();
            for node in 0..tree.depth.len() {
                callers.truncate(tree.depth[node] as usize);
                if let Some(caller) = callers.last() {
                    own[*caller] -= tree.weight[node] as i64;
                }
                callers.push(node);
            }
            for (place, weight) in places.iter().zip(&weights) {
                own[nodes[*place as usize] as usize] -= *weight as i64;
            }
            assert!(own.iter().all(|rest| *rest == 0), "{own:?}");
        }
    }

    #[test]
    fn of_too_many_rows_the_heaviest_are_kept_and_equal_ones_evenly_and_the_rest_is_counted() {
        let process = slowpath_tables::ProcessKey { pid: 7, start: Nanos(1) };
        let row = |at: u64, amount: u64| TimedRow { process, tid: 7, stack: None, at: Nanos(at), amount };
        let place = |_: &TimedRow| Some(RowPlace { process: 0, callees: 1, callers: 2 });
        let cut = |rows: Vec<TimedRow>, most| columns(rows.into_iter(), place, &mut Threads::default(), Nanos(0), most);
        let found = cut((0..100).map(|at| row(at, if at % 10 == 0 { 50 } else { at % 10 })).collect(), 10);
        assert_eq!((found.count, found.left_out, found.left_out_weight), (10, 90, 450));
        assert_eq!(numbers(&found.weights), [50; 10]);
        let found = cut((0..10_000).map(|at| row(at, 1)).collect(), 100);
        assert_eq!((found.count, found.left_out, found.left_out_weight), (100, 9_900, 9_900));
        let gaps = numbers(&found.gaps);
        assert!(gaps.iter().all(|gap| *gap <= 300), "{gaps:?}");
        assert_eq!(cut(Vec::new(), 10), FlameRows::default());
        let far = cut(vec![row(u64::MAX, u64::MAX), row(0, u64::MAX), row(5, u64::MAX)], 1);
        assert_eq!((far.count, far.left_out, far.left_out_weight), (1, 2, u64::MAX));
    }

    #[test]
    fn a_page_of_an_earlier_version_has_no_rows_and_is_read() {
        let found = graphs(WAITS).unwrap();
        let mut json = serde_json::to_value(&found).unwrap();
        json.as_object_mut().unwrap().remove("threads");
        json["graphs"].as_array_mut().unwrap().iter_mut().for_each(|graph| {
            graph.as_object_mut().unwrap().remove("rows");
        });
        let read: FlameGraphs = serde_json::from_value(json).unwrap();
        assert!(read.graphs.iter().all(|graph| graph.rows.is_none()) && read.threads == FlameThreads::default());
    }
}
