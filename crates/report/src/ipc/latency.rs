//! `slowpath ipc latency` in a terminal: pairs, and every transaction for `-v`.

use super::figure;
use crate::terminal::escape_terminal;
use slowpath_ipc::latency::PairSamples;
use slowpath_ipc::latency::inheritance::Inheritance;
use slowpath_ipc::latency::outcome::{Detail, Latency, Milliseconds, PairResult};
use slowpath_ipc::latency::placement::{PlacementEffect, PlacementVerdict};
use slowpath_ipc::latency::sample::{Caller, Sample};
use slowpath_ipc::trace::explain::Explanation;
use std::fmt::Write;

/// The whole result.
pub fn text(result: &Latency) -> String {
    let mut text = String::new();
    let cfg = &result.cfg;
    let _ = writeln!(
        text,
        "{}, {} pair(s), {} iterations, deadline {} us",
        cfg.transport, cfg.pair, cfg.iterations, cfg.deadline_us
    );
    for (name, pair) in &result.pairs {
        one(&mut text, name, pair);
    }
    if let Some(effect) = &result.placement_effect {
        placement(&mut text, effect);
    }
    inheritance(&mut text, result.inheritance, &result.inherited);
    if let Some(trace) = &result.trace {
        miss(&mut text, trace);
    }
    if let Some(directory) = &result.recording {
        let _ = writeln!(
            text,
            "\nrecording of the trace: {0}\n  see it with `slowpath analyze {0}`, `slowpath report {0}` or `slowpath export {0} --to perfetto`",
            escape_terminal(directory)
        );
    }
    for gap in &result.unavailable {
        let _ = writeln!(text, "\n{} unavailable: {} (remedy: {})", gap.what, escape_terminal(&gap.reason), gap.remedy);
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "\nwarning: {}", escape_terminal(&warning.text));
    }
    text
}

/// Every transaction: tid, CPU, policy and priority of both sides.
pub fn parties(pairs: &[PairSamples]) -> String {
    let mut text = String::new();
    for (pair, measured) in pairs.iter().enumerate() {
        for (number, sample) in measured.samples.iter().enumerate() {
            let _ = writeln!(text, "P{pair} {number}: {}", both(sample));
        }
    }
    text
}

fn both(sample: &Sample) -> String {
    let Sample { client_thread, server_thread, client_cpu, server_cpu, .. } = sample;
    let caller = match sample.caller {
        Caller::Fifo => "fifo-caller SCHED_FIFO 99",
        Caller::Normal => "other-caller SCHED_OTHER 0",
    };
    // sched(7).
    let policy = match sample.server_policy {
        1 => "SCHED_FIFO",
        2 => "SCHED_RR",
        3 => "SCHED_BATCH",
        5 => "SCHED_IDLE",
        _ => "SCHED_OTHER",
    };
    format!(
        "{caller} tid {client_thread} cpu {client_cpu}; server {policy} {} nice {} tid {server_thread} cpu {server_cpu}; {:.4} ms",
        sample.server_priority,
        sample.server_nice,
        sample.latency() as f64 / 1e6
    )
}

fn one(text: &mut String, name: &str, pair: &PairResult) {
    let ratio = pair.ratio.map_or_else(|| "none".to_owned(), |ratio| format!("{ratio:.3}"));
    let _ = writeln!(
        text,
        "\n{name}  SYNC {}  S {} of I {}  R {ratio}",
        pair.sync.unwrap_or("none"),
        pair.same,
        pair.transactions
    );
    caller(text, "other", &pair.other_ms, &pair.normal);
    caller(text, "fifo", &pair.fifo_ms, &pair.fifo);
    if let Some(ended) = &pair.ended {
        let _ = writeln!(text, "  ended early: {ended}; the figures are of what was done before");
    }
}

fn caller(text: &mut String, name: &str, figures: &Milliseconds, detail: &Detail) {
    let (Some(average), Some(worst), Some(best), Some(met), Some(ratio)) =
        (figures.avg, figures.wst, figures.bst, figures.meet_ratio, detail.ratio)
    else {
        let _ = writeln!(text, "  {name:<5} no transactions");
        return;
    };
    let _ = writeln!(
        text,
        "  {name:<5} ms: avg {average:.4} wst {worst:.4} bst {best:.4}  miss {}  meetR {met:.4}  same CPU {} of {} ({ratio:.3})",
        figures.miss, detail.same_cpu, detail.transactions
    );
    // Without an interval a percentile is not shown; the JSON has it with null ends.
    let shown = ["50", "95", "99"].iter().filter_map(|at| Some((at, detail.percentiles.get(at)?)));
    let shown = shown.filter(|(_, quantity)| quantity.low.is_some());
    let percentiles: Vec<_> = shown.map(|(at, quantity)| format!("p{at} {}", figure(quantity))).collect();
    if percentiles.is_empty() {
        let _ = writeln!(text, "        too few transactions for percentiles with an interval");
    } else {
        let _ = writeln!(text, "        {}", percentiles.join("  "));
    }
}

fn placement(text: &mut String, effect: &PlacementEffect) {
    let verdict = match effect.verdict {
        PlacementVerdict::Slower => "cross-CPU placement is slower than one CPU",
        PlacementVerdict::Faster => "cross-CPU placement is faster than one CPU",
        PlacementVerdict::NotShown => "no placement effect shown",
    };
    let _ = writeln!(text, "\nplacement: {verdict}");
    let PlacementEffect { blocks, dropped, iterations, .. } = effect;
    if let (Some(difference), Some(free), Some(pinned)) = (&effect.difference, &effect.free, &effect.pinned) {
        let (difference, free, pinned) = (figure(difference), figure(free), figure(pinned));
        let _ = writeln!(text, "  difference {difference} ms: free {free} ms, pinned to one CPU {pinned} ms");
    }
    let _ = writeln!(text, "  median latency of normal callers, {blocks} blocks of {iterations} iterations each");
    if *dropped > 0 {
        let _ = writeln!(text, "  {dropped} blocks left out: no pair was POOR in them");
    }
}

fn inheritance(text: &mut String, verdict: &str, inherited: &Inheritance) {
    let _ = writeln!(text, "\ninheritance: {verdict}");
    if let Some(cause) = &inherited.cause {
        let _ = writeln!(text, "  {}", escape_terminal(cause));
    }
    for (name, probes) in [("SCHED_FIFO 99", &inherited.rt), ("nice -10", &inherited.nice)] {
        match &probes.refused {
            Some(refused) => {
                let _ = writeln!(text, "  {name}: not testable: {}", escape_terminal(refused));
            }
            None if probes.of == 0 => {}
            None => {
                let (inherited, of) = (probes.inherited, probes.of);
                let _ = writeln!(text, "  {name}: {inherited} of {of}, priorities in force {:?}", probes.effective);
            }
        }
    }
    if let Some(inversion) = &inherited.inversion {
        let _ = writeln!(
            text,
            "  priority inversion: {} of {} SCHED_FIFO calls delayed by a CPU-bound SCHED_OTHER process, median {} ms",
            inversion.inverted,
            inversion.calls,
            figure(&inversion.waited)
        );
    }
}

fn miss(text: &mut String, trace: &Explanation) {
    let _ = writeln!(text, "\nmissed after {:.3} ms: {}", trace.took_us / 1000.0, escape_terminal(&trace.text));
    let _ = writeln!(text, "  {:>10} {:>10}  {:<6}  {:<8}  CPU", "at us", "us", "who", "state");
    for part in &trace.timeline {
        let party = format!("{:?}", part.party).to_lowercase();
        let state = format!("{:?}", part.state).to_lowercase();
        let cpu = part.cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string());
        let note = part.note.as_deref().map(escape_terminal).unwrap_or_default();
        let line = format!("  {:>10.0} {:>10.0}  {party:<6}  {state:<8}  {cpu:<3}  {note}", part.at_us, part.us);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if !trace.binder.is_empty() {
        let _ = writeln!(text, "  {:>10} {:>10}  {:<6}  binder", "at us", "", "who");
    }
    for moment in &trace.binder {
        let party = format!("{:?}", moment.party).to_lowercase();
        let _ = writeln!(text, "  {:>10.0} {:>10}  {party:<6}  {}", moment.at_us, "", escape_terminal(&moment.event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_ipc::latency::inheritance::{Inversion, Kind, Probes};
    use slowpath_tables::{Quantity, Unit};

    #[test]
    fn an_inversion_names_who_was_delayed_and_by_what() {
        let inherited = Inheritance {
            kind: Kind::None,
            cause: None,
            rt: Probes::default(),
            nice: Probes::default(),
            inversion: Some(Inversion {
                calls: 8,
                inverted: 7,
                waited: Quantity::interval(19.5, 18.0, 20.0, Unit::Ms),
            }),
        };
        let mut text = String::new();
        inheritance(&mut text, "FAIL", &inherited);
        let words = "priority inversion: 7 of 8 SCHED_FIFO calls delayed by a CPU-bound SCHED_OTHER process, \
                     median 19.5 (18.0 to 20.0) ms";
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn a_placement_is_called_slower_only_when_that_was_shown() {
        let shown = |verdict, difference| {
            let mut text = String::new();
            let effect = PlacementEffect {
                verdict,
                difference: Some(difference),
                free: Some(Quantity::interval(0.03, 0.02, 0.04, Unit::Ms)),
                pinned: Some(Quantity::interval(0.02, 0.01, 0.03, Unit::Ms)),
                blocks: 14,
                dropped: 2,
                iterations: 25,
            };
            placement(&mut text, &effect);
            text
        };
        let none = shown(PlacementVerdict::NotShown, Quantity::interval(0.01, -0.001, 0.02, Unit::Ms));
        assert!(none.contains("no placement effect shown") && none.contains("0.0100 (-0.0010 to 0.0200) ms"), "{none}");
        assert!(!none.contains("slower") && !none.contains("cost"), "{none}");
        let slower = shown(PlacementVerdict::Slower, Quantity::interval(0.01, 0.001, 0.02, Unit::Ms));
        assert!(slower.contains("cross-CPU placement is slower than one CPU"), "{slower}");
        assert!(slower.contains("14 blocks of 25 iterations") && slower.contains("2 blocks left out"), "{slower}");
    }
}
