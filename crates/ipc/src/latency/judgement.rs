//! From what pairs measured to the whole result: inheritance and the effect of placement are measured, conditions are said.

use super::inheritance::{Inheritance, probe};
use super::outcome::{Latency, fewest, latency};
use super::sample::Caller;
use super::{PairSamples, Plan, placement};
use crate::conditions::{Conditions, warnings};
use crate::trace::Instance;
use crate::trace::explain::Explanation;
use crate::transport::IpcError;
use slowpath_tables::Unavailable;

/// Whether some pair has the transactions of one caller of which a median has an interval: less says nothing.
pub fn is_enough(measured: &[PairSamples]) -> bool {
    let fewest = fewest(0.5);
    let of = |pair: &PairSamples, caller| pair.samples.iter().filter(|sample| sample.caller == caller).count();
    measured.iter().any(|pair| [Caller::Fifo, Caller::Normal].iter().any(|caller| of(pair, *caller) >= fewest))
}

/// Judges pairs that ran. `instance` is the trace that they ran with, and `explanation` what it says of the miss, or why nothing.
/// When `stop` says so, what was not measured yet is left out, and the result is not complete.
///
/// # Errors
/// Processes or the transport cannot be had.
pub fn judged(
    plan: &Plan,
    measured: &[PairSamples],
    conditions: Conditions,
    instance: Option<&Instance>,
    explanation: Option<Result<Explanation, Unavailable>>,
    stop: &dyn Fn() -> bool,
) -> Result<Latency, IpcError> {
    let mut died = false;
    let inherited = match probe(plan.transport, &conditions, stop) {
        Err(IpcError::Interrupted) => Inheritance::untested("interrupted before it was tested".to_owned()),
        // What was measured before is the result all the same.
        Err(error @ IpcError::Died { .. }) => {
            died = true;
            Inheritance::untested(error.to_string())
        }
        inherited => inherited?,
    };
    let real_time = if measured.iter().all(|pair| pair.fifo_refused.is_some()) { 0 } else { plan.places.len() };
    let warnings = warnings(&conditions, plan.places.len() + plan.load, real_time);
    let mut result = latency(plan, measured, inherited, conditions, warnings);
    match explanation {
        Some(Ok(explanation)) => result.trace = Some(explanation),
        Some(Err(gap)) => result.unavailable.push(gap),
        None => {}
    }
    if let Some(instance) = instance {
        result.unavailable.extend(instance.unavailable.iter().cloned());
    }
    if result.pairs.values().any(|pair| pair.sync == Some("POOR")) && result.complete {
        match placement::unavailable(plan, result.conditions.cpus) {
            None => match placement::measure(plan, stop) {
                Err(IpcError::Died { .. }) => died = true,
                effect => result.placement_effect = effect?,
            },
            Some(gap) => result.unavailable.push(gap),
        }
    }
    result.complete &= !stop() && !died;
    Ok(result)
}

impl Latency {
    /// Whether a verdict failed: a fault of the original is that a failed inheritance ends with 0.
    pub fn has_failed(&self) -> bool {
        self.inheritance == "FAIL" || !self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_samples::{measured, sample};
    use super::*;

    #[test]
    fn transactions_of_both_callers_are_not_counted_together() {
        let of = |fifo: usize, normal: usize| {
            let samples =
                [vec![sample(Caller::Fifo, 1, true); fifo], vec![sample(Caller::Normal, 1, true); normal]].concat();
            is_enough(&[measured(samples)])
        };
        assert!(!of(19, 19), "nineteen of each have no interval");
        assert!(of(0, 20) && of(20, 5));
    }
}
