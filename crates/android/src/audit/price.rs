//! What unreadable code costs each isolated process, where traces of launches show it.

use super::printed::{AndroidAudit, MeasuredStarts, PackageAudit};
use crate::startup::{ChildStart, TraceStartups};
use slowpath_experiment::quantile::quantile;
use slowpath_experiment::{Estimate, Level};

/// Says of each package what the traces show, in its figures and as one more verdict.
pub fn price(audit: &mut AndroidAudit, traces: &[TraceStartups]) {
    for package in &mut audit.packages {
        package.measured = measured(&package.name, traces);
        if let Some(verdict) = package.measured.as_ref().map(|measured| verdict(package, measured)) {
            package.verdicts.push(verdict);
        }
    }
}

/// Whether it is an isolated process of the package: by its user, or where the trace does not say that, by not being the app itself.
fn is_isolated(child: &ChildStart, package: &str) -> bool {
    let rest = child.process.strip_prefix(package);
    rest.is_some_and(|rest| rest.starts_with(':'))
        && child.is_isolated.unwrap_or(child.kind.starts_with("sandboxed_process"))
}

fn measured(package: &str, traces: &[TraceStartups]) -> Option<MeasuredStarts> {
    let of = |trace: &TraceStartups| trace.children.iter().filter(|child| is_isolated(child, package)).count();
    let all: Vec<&ChildStart> =
        traces.iter().flat_map(|trace| &trace.children).filter(|child| is_isolated(child, package)).collect();
    let median = |read: &dyn Fn(&ChildStart) -> u64| {
        let values: Vec<f64> = all.iter().map(|child| read(child) as f64 / 1e6).collect();
        quantile(&values, 0.5, Level::P95)
    };
    let phase = |child: &ChildStart, name: &str| {
        child.phases.iter().find(|phase| phase.name == name).map_or(0, |phase| phase.duration_ns)
    };
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Some(MeasuredStarts {
        traces: number(traces.iter().filter(|trace| of(trace) > 0).count()),
        starts: number(all.len()),
        duration_ms: median(&|child| child.duration_ns)?,
        verify_class_ms: median(&|child| phase(child, "verify_class"))?,
        dex_open_ms: median(&|child| phase(child, "dex_open"))?,
        from_apk: number(
            all.iter().filter(|child| child.code.iter().any(|code| code.filter == "run-from-apk")).count(),
        ),
    })
}

fn words(estimate: &Estimate) -> String {
    match estimate.interval() {
        Some((low, high)) => format!("{:.1} ms ({low:.1} to {high:.1})", estimate.value),
        None => format!("{:.1} ms", estimate.value),
    }
}

fn verdict(package: &PackageAudit, measured: &MeasuredStarts) -> String {
    format!(
        "measured in {} starts of its isolated processes: each verifies classes for {}, opens code for {}, and starts in {} (medians){}",
        measured.starts,
        words(&measured.verify_class_ms),
        words(&measured.dex_open_ms),
        words(&measured.duration_ms),
        if package.outcome.calls_for_repair() { "; the same traces after a repair say what it saves" } else { "" },
    )
}
