//! What it costs to touch spans page by page.
//!
//! **Value.** Time in the first fault of each page, and for each what no duration of a fault shows, less what recording adds to it,
//! where that was measured ([`crate::memory::cost_model::CostModel::unseen`]).
//!
//! **Interval.** That of the faults ([`crate::findings::fault_sums`]), and that of what was measured.
//!
//! **Not included**: second faults of pages that were read first, mapping, giving back, and all that stands in the finding's reasons.

use super::groups::Missed;
use crate::findings::fault_sums::FaultSums;
use crate::memory::cost_model::{CostModel, Estimate};
use crate::memory::huge_page_spans::Spans;
use crate::time::off_cpu_times::FaultTimes;
use slowpath_tables::{Nanos, Quantity, Unit};
use std::collections::BTreeMap;

/// The cost of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cost {
    /// First faults of all pages.
    pub faults: FaultSums,
    /// What their durations lack, each, in ns.
    pub unseen: Option<Estimate>,
    /// Everything, in ms.
    pub total: Quantity,
    /// Time in the faults of each span; unknown durations count as long as the others are on average.
    pub of_span: BTreeMap<u32, Nanos>,
}

/// For each group the faults that are counted: numbers of rows, in their order.
pub(crate) fn faults_of(groups: &[Missed], spans: &Spans) -> Vec<Vec<usize>> {
    let mut group_of_span: Vec<Option<usize>> = vec![None; spans.spans.len()];
    for (number, group) in groups.iter().enumerate() {
        group.spans.iter().for_each(|span| group_of_span[*span as usize] = Some(number));
    }
    let mut faults = vec![Vec::new(); groups.len()];
    for (number, span) in spans.of_fault.iter().enumerate() {
        if let Some(group) = span.and_then(|span| group_of_span[span as usize]) {
            faults[group].push(number);
        }
    }
    faults
}

/// Adds up a group; `rows` are all faults of the recording, and `numbers` the rows of the group.
pub(crate) fn cost(spans: &Spans, rows: &FaultTimes<'_>, numbers: &[usize], model: Option<&CostModel>) -> Cost {
    let faults = FaultSums::of(numbers.iter().copied(), rows);
    let unseen = model.and_then(CostModel::unseen);
    let each = unseen.unwrap_or(Estimate { value: 0.0, low: 0.0, high: 0.0 });
    let count = faults.count as f64;
    let ms = |recorded: f64, unseen: f64| ((recorded + count * unseen) / 1e6).max(0.0);
    let value = ms(faults.time(), each.value);
    let low = ms(faults.low(), each.low).min(value);
    let high = ms(faults.high(), each.high).max(value);
    let mut of_span: BTreeMap<u32, Nanos> = BTreeMap::new();
    for number in numbers {
        let time = rows.time(*number).unwrap_or(Nanos(faults.mean as u64));
        spans.of_fault[*number].into_iter().for_each(|span| *of_span.entry(span).or_default() += time);
    }
    Cost { unseen, total: Quantity::interval(value, low, high, Unit::Ms), of_span, faults }
}
