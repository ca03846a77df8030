//! `slowpath ipc compare`.

use super::{chosen, figure, interrupted, ipc_failure, say_gaps};
use crate::arguments::IpcCompareArguments;
use crate::commands::print_json;
use crate::failure::Failure;
use crate::interrupt;
use slowpath_ipc::comparison::{Comparison, Plan, compare};
use std::process::ExitCode;

/// Runs the command.
pub(super) fn run(arguments: &IpcCompareArguments) -> Result<ExitCode, Failure> {
    let (transports, gaps) = chosen(&arguments.transports)?;
    let plan = Plan { transports, size: arguments.size, blocks: arguments.blocks as usize, seed: arguments.seed };
    let mut comparison = compare(&plan, &interrupt::requested).map_err(ipc_failure)?;
    comparison.unavailable = gaps;
    if arguments.json {
        print_json(&comparison);
    } else {
        say_gaps(&comparison.unavailable);
        print!("{}", text(&comparison));
    }
    Ok(if comparison.complete { ExitCode::SUCCESS } else { interrupted() })
}

fn text(comparison: &Comparison) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let first = comparison.arms.first().map_or("", |arm| arm.transport);
    let _ = writeln!(text, "Round trips of {} bytes, {} blocks, 95 % intervals\n", comparison.size, comparison.blocks);
    let _ = writeln!(text, "{:<16} {:<28} {}", "transport", "round trip in us", format_args!("of {first}"));
    for arm in &comparison.arms {
        let round_trip = arm.round_trip.as_ref().map(figure).unwrap_or_default();
        let ratio = comparison.comparisons.iter().find(|one| one.b == arm.transport).and_then(|one| one.ratio);
        let ratio = ratio.as_ref().map(figure).unwrap_or_default();
        let _ = writeln!(text, "{}", format!("{:<16} {round_trip:<28} {ratio}", arm.transport).trim_end());
    }
    text
}
