//! What system calls and a filter cost, on a screen: each burst with its arms below it, what the kernel says of the arms, and what the filter
//! switched off.

use super::figures;
use super::item::Item;
use super::line::{Line, Paint, left, right};
use super::sections::{self, Section};
use super::style::Style;
use slowpath_syscall_cost::{Arm, Change, ForcedMitigation, SyscallCost, WorkloadCost};
use slowpath_tables::{Losses, Quantity, Unavailable};

/// Columns of an arm's name.
const NAME: usize = 26;
/// Columns of a difference with its interval.
const DIFFERENCE: usize = 26;

/// The figures, with a newline after every line.
pub fn syscall_cost(cost: &SyscallCost, style: &Style) -> String {
    // Every arm stays: no page has what a screen would leave out.
    let style = &Style { lines: usize::MAX, ..*style };
    let mut parts = vec![head(cost, style)];
    parts.extend(cost.workloads.iter().map(|workload| one(workload, style)));
    parts.push(states(cost, style));
    parts.extend(cost.forced.as_ref().map(|forced| switched_off(forced, style)));
    let notes: Vec<String> = cost.filter.notes.iter().chain(&cost.notes).cloned().collect();
    // Nobody who reads this sees the remedies elsewhere.
    let with_remedy =
        |gap: &Unavailable| Unavailable { reason: format!("{}; remedy: {}", gap.reason, gap.remedy), ..gap.clone() };
    let unavailable: Vec<Unavailable> = cost.unavailable.iter().map(with_remedy).collect();
    parts.push(sections::doubts(&Losses::default(), &unavailable, &notes, style));
    super::screen(parts, super::Rest::InJson, style)
}

fn head(cost: &SyscallCost, style: &Style) -> Section {
    let filter = &cost.filter;
    let several = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let text = format!(
        "Filter {} ({}; {}, {}). CPU time of a step on CPU {}: {} blocks of alternating bursts, seed {}, {:.1} s; differences from \
         the first arm with 95 % intervals. What the first arm, there twice, differs from itself is what the measurement cannot resolve.",
        filter.asked,
        filter.form,
        several(filter.programs, "program"),
        several(filter.instructions, "instruction"),
        cost.processor,
        cost.blocks,
        cost.seed,
        cost.took_ms as f64 / 1000.0
    );
    let item = Item::wrapped(Line::default(), Paint::Bold, &text, Some(0), style);
    Section { items: vec![item], ..Section::default() }
}

fn one(workload: &WorkloadCost, style: &Style) -> Section {
    let step = workload.of(Arm::None).and_then(|cost| cost.step.as_ref());
    let step = step.map_or("-".to_owned(), |step| figures::value(step, style));
    let columns = style.columns.saturating_sub(12);
    let title = Line::of(Paint::Bold, &left(&workload.title, columns, style), style);
    let head = title.with(Paint::Bold, &right(&step, 12, style), style);
    let mut items: Vec<Item> = Vec::new();
    for arm in Arm::ALL.into_iter().skip(1) {
        let Some(change) = workload.of(arm).and_then(|cost| cost.change.as_ref()) else {
            items.push(Line::of(Paint::Quiet, &row(arm.title(), "not measured", "", style), style).into());
            continue;
        };
        let paint = if arm == Arm::NoneAgain { Paint::Quiet } else { Paint::Plain };
        items.push(Line::of(paint, &changed(arm.title(), change, style), style).into());
        if let (Arm::Filter, Some(flag)) = (arm, &workload.without_flag) {
            items.push(Line::of(Paint::Quiet, &changed("  against SPEC_ALLOW", flag, style), style).into());
        }
    }
    Section { head: vec![head], items, what: "arms", spaced: true, ..Section::default() }
}

fn changed(name: &str, change: &Change, style: &Style) -> String {
    let ratio = change.ratio.as_ref().map(quotient).unwrap_or_default();
    row(name, &figures::with_interval(&change.difference, style), &ratio, style)
}

fn row(name: &str, difference: &str, ratio: &str, style: &Style) -> String {
    let cells = [left(&format!("  {name}"), NAME, style), right(difference, DIFFERENCE, style), format!("  {ratio}")];
    cells.concat()
}

/// A quotient with its interval: what matters are its last digits.
fn quotient(ratio: &Quantity) -> String {
    match ratio.low.zip(ratio.high) {
        Some((low, high)) => format!("{:.3} ({low:.3} to {high:.3})", ratio.value),
        None => format!("{:.3}", ratio.value),
    }
}

fn states(cost: &SyscallCost, style: &Style) -> Section {
    let items = cost.arms.iter().map(|arm| {
        let text = arm.state.as_ref().map_or("no thread".to_owned(), ToString::to_string);
        let prefix = Line::of(Paint::Plain, &left(&format!("  {}", arm.arm.title()), NAME, style), style);
        Item::wrapped(prefix, if arm.measured { Paint::Plain } else { Paint::Quiet }, &text, None, style)
    });
    Section {
        head: vec![Line::of(Paint::Bold, "what the kernel says of the thread of each arm", style)],
        items: items.collect(),
        what: "arms",
        spaced: true,
        ..Section::default()
    }
}

fn switched_off(forced: &ForcedMitigation, style: &Style) -> Section {
    let mut items = Vec::new();
    let mut put =
        |text: &str| items.push(Item::wrapped(Line::of(Paint::Plain, "  ", style), Paint::Plain, text, Some(4), style));
    for (factor, state) in forced.factors.iter().zip(&forced.states) {
        put(&format!("{factor}: {state}"));
    }
    for (workload, ratio) in &forced.cost {
        let percent = |value: f64| (value - 1.0) * 100.0;
        let interval = ratio
            .low
            .zip(ratio.high)
            .map_or_else(String::new, |(low, high)| format!(" ({:+.1} to {:+.1})", percent(low), percent(high)));
        put(&format!(
            "costs code of the program: {workload} {:+.1} %{interval} against {}",
            percent(ratio.value),
            forced.against.name()
        ));
    }
    for remedy in &forced.remedies {
        put(&format!("remedy: {}. Trade-off: {}", remedy.what, remedy.price));
    }
    Section {
        head: vec![Line::of(Paint::Bad, "this filter switched CPU optimisations off", style)],
        items,
        what: "lines",
        spaced: true,
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_context::chains::speculation_remedies;
    use slowpath_syscall_cost::{ArmCost, ArmShown, SCHEMA, ShownFilter, ThreadState, Workload};
    use slowpath_tables::Unit;
    use std::collections::BTreeMap;

    fn sample() -> SyscallCost {
        let change = |ratio: f64| Change {
            difference: Quantity::interval(
                80.0 * (ratio - 1.0),
                80.0 * (ratio - 1.0) - 0.5,
                80.0 * (ratio - 1.0) + 0.5,
                Unit::Ns,
            ),
            ratio: Some(Quantity::interval(ratio, ratio - 0.01, ratio + 0.01, Unit::Ratio)),
            pairs: 40,
            minimum_detectable_effect: Some(0.75),
        };
        let arm = |arm, ratio: Option<f64>| ArmCost {
            arm,
            step: Some(Quantity::exact(80.0 * ratio.unwrap_or(1.0), Unit::Ns)),
            change: ratio.map(change),
            outliers: 0,
            samples: Vec::new(),
        };
        let state = |filters, store: &str| ThreadState {
            seccomp: Some(if filters > 0 { 2 } else { 0 }),
            filters: Some(filters),
            store_bypass: Some(store.to_owned()),
            indirect_branch: Some("conditional enabled".to_owned()),
        };
        let shown = |arm, measured, state| ArmShown { arm, measured, state };
        SyscallCost {
            schema: SCHEMA,
            filter: ShownFilter {
                asked: "a\u{1b}[31m.json".to_owned(),
                form: "raw instructions".to_owned(),
                programs: 1,
                instructions: 58,
                notes: Vec::new(),
            },
            processor: 1,
            blocks: 40,
            seed: 1,
            took_ms: 4321,
            machine: BTreeMap::new(),
            arms: vec![
                shown(Arm::None, true, Some(state(0, "thread vulnerable"))),
                shown(Arm::Filter, true, Some(state(1, "thread force mitigated"))),
                shown(Arm::SpeculationDisabled, false, None),
            ],
            workloads: vec![WorkloadCost {
                workload: Workload::Getppid,
                title: Workload::Getppid.title().to_owned(),
                system_call: true,
                steps: 1000,
                arms: vec![
                    arm(Arm::None, None),
                    arm(Arm::NoneAgain, Some(1.0)),
                    arm(Arm::FilterSpeculationAllowed, Some(1.09)),
                    arm(Arm::Filter, Some(3.46)),
                ],
                without_flag: Some(change(1.3)),
                sham_p: Some(0.9),
            }],
            calm: true,
            forced: Some(ForcedMitigation {
                factors: vec!["speculative_store_bypass".to_owned()],
                states: vec!["thread force mitigated".to_owned()],
                cost: BTreeMap::from([(
                    "stores_and_loads".to_owned(),
                    Quantity::interval(1.113, 1.101, 1.125, Unit::Ratio),
                )]),
                against: Arm::FilterSpeculationAllowed,
                remedies: speculation_remedies(true, false),
            }),
            unavailable: vec![Unavailable {
                what: "arm speculation_disabled".to_owned(),
                reason: "cannot be realised here".to_owned(),
                remedy: "another CPU".to_owned(),
            }],
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn every_arm_has_its_line_and_an_arm_that_was_not_measured_says_so() {
        let text = syscall_cost(&sample(), &Style::PLAIN);
        for words in ["80.0 ns", "1.090 (1.080 to 1.100)", "197 ns (196..197)", "against SPEC_ALLOW", "not measured"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.contains("Seccomp 2, filters 1, store bypass: thread force"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn what_a_filter_switched_off_is_told_with_its_cost_and_price() {
        let text = syscall_cost(&sample(), &Style::PLAIN);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "this filter switched CPU optimisations off",
            "stores_and_loads +11.3 % (+10.1 to +12.5) against filter_speculation_allowed",
            "spec_store_bypass_disable=prctl",
            "Trade-off: security",
            "cannot be realised here",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
