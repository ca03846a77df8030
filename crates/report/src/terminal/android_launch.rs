//! Scripted launches of apps, and launches and starts of processes in a trace, on a terminal.

use super::escape_terminal as line;
use slowpath_android::launch::{AndroidLaunches, Measure};
use slowpath_android::startup::{BinderWaits, ChildStart, Phase, Startup, TraceStartups};
use slowpath_experiment::Estimate;
use std::fmt::Write;

/// Rows of one list; JSON has all.
const MOST_ROWS: usize = 24;
const MOST_FAILURES: usize = 8;

fn ms(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

/// Launches and starts of processes of a trace, with a newline after every line.
pub fn android_startups(found: &TraceStartups) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let level = found.api_level.map(|level| format!(", API level {level}")).unwrap_or_default();
    let _ = writeln!(
        text,
        "{}: {} launches, {} starts of processes, {} CPUs{level}",
        line(&found.trace),
        found.startups.len(),
        found.children.len(),
        found.cpus
    );
    for startup in found.startups.iter().take(MOST_ROWS) {
        of_startup(&mut text, startup);
    }
    if !found.children.is_empty() {
        let _ = writeln!(text, "\nstarts of processes, from the request until the component is made");
        let _ =
            writeln!(text, "  {:>10} {:>10} {:>10} {:>10} {:<18} process", "total", "fork", "bind", "verify", "kind");
    }
    for child in found.children.iter().take(MOST_ROWS) {
        of_child(&mut text, child);
    }
    more(&mut text, found.startups.len().max(found.children.len()));
    for gap in &found.unavailable {
        let _ =
            writeln!(text, "not known: {}: {}\n  remedy: {}", line(&gap.what), line(&gap.reason), line(&gap.remedy));
    }
    text
}

fn more(text: &mut String, rows: usize) {
    if rows > MOST_ROWS {
        let _ = writeln!(text, "more rows: --json has all");
    }
}

fn of_startup(text: &mut String, startup: &Startup) {
    let kind = startup.kind.map_or("of a kind that the trace does not show", |kind| kind.name());
    let drawn = startup.fully_drawn_ns.map(|ns| format!(", fully drawn after {}", ms(ns))).unwrap_or_default();
    let _ =
        writeln!(text, "\n{}: {kind}, first frame after {}{drawn}", line(&startup.package), ms(startup.duration_ns));
    if let Some(start) = startup.process_start {
        let _ = writeln!(text, "  process asked for after {}, in {}", ms(start.before_ns), ms(start.duration_ns));
    }
    let main = &startup.main_thread;
    let _ = writeln!(
        text,
        "  main thread: runs {}, runnable {}, sleeps {}, uninterruptible {} (storage {})",
        ms(main.running_ns),
        ms(main.runnable_ns),
        ms(main.interruptible_ns),
        ms(main.uninterruptible_ns),
        ms(main.storage_ns)
    );
    of_binder(text, &startup.binder);
    for phase in &startup.phases {
        of_phase(text, phase);
    }
    for class in &startup.verified_classes {
        let _ = writeln!(text, "  verified {}: {}", line(&class.name), ms(class.duration_ns));
    }
    for code in startup.code.iter().take(MOST_ROWS) {
        let _ = writeln!(
            text,
            "  code {}: {}, filter {}, reason {}",
            line(&code.location),
            line(&code.status),
            line(&code.filter),
            line(&code.reason)
        );
    }
}

fn of_binder(text: &mut String, binder: &BinderWaits) {
    if binder.count > 0 {
        let _ = writeln!(
            text,
            "  binder: {} calls, {} ({} on the main thread)",
            binder.count,
            ms(binder.duration_ns),
            ms(binder.main_thread_ns)
        );
    }
    for call in binder.long.iter().take(MOST_ROWS) {
        let thread = call.thread.as_deref().unwrap_or(if call.is_main_thread { "main thread" } else { "a thread" });
        let _ = writeln!(text, "    {}: {} waits for {}", ms(call.duration_ns), line(thread), line(&call.to_process));
    }
}

fn of_phase(text: &mut String, phase: &Phase) {
    let _ = writeln!(
        text,
        "  {:<22} {:>12} in {:>5} slices, {:>12} on the main thread",
        phase.name.replace('_', " "),
        ms(phase.duration_ns),
        phase.count,
        ms(phase.main_thread_ns)
    );
}

fn of_child(text: &mut String, child: &ChildStart) {
    let verified = child.phases.iter().find(|phase| phase.name == "verify_class").map_or(0, |phase| phase.duration_ns);
    let _ = writeln!(
        text,
        "  {:>10} {:>10} {:>10} {:>10} {:<18} {}{}",
        ms(child.duration_ns),
        child.to_fork_ns.map_or_else(|| "?".to_owned(), ms),
        ms(child.bind_application_ns),
        ms(verified),
        line(&child.kind),
        line(&child.process),
        if child.is_isolated == Some(true) { " (isolated)" } else { "" }
    );
}

/// Scripted launches, with a newline after every line.
pub fn android_launches(launches: &AndroidLaunches, directory: &str) -> String {
    let mut text = String::new();
    let mut device: Vec<String> = launches.model.as_deref().map(line).into_iter().collect();
    device.push(format!("serial {}", line(&launches.serial)));
    device.extend(launches.release.as_deref().map(|release| format!("Android {}", line(release))));
    let compiled = launches.compilation.as_deref().map(|mode| format!(", compiled {mode}")).unwrap_or_default();
    let _ = writeln!(
        text,
        "{}: {} blocks, {} starts{compiled}; in {}",
        device.join(", "),
        launches.blocks,
        launches.kind.name(),
        line(directory)
    );
    for package in &launches.packages {
        let _ = writeln!(
            text,
            "\n{}: {} launches, {} failed, {} of another kind",
            line(&package.package),
            package.launches,
            package.failed,
            package.other_kind
        );
        for measure in package.measures.iter().filter(is_shown) {
            of_measure(&mut text, "  ", measure);
        }
        for children in &package.children {
            let _ = writeln!(
                text,
                "  {}: {} starts, {} isolated",
                line(&children.kind),
                children.starts,
                children.isolated
            );
            for measure in children.measures.iter().filter(is_shown) {
                of_measure(&mut text, "    ", measure);
            }
        }
    }
    for one in launches.differences.iter().filter(|one| one.difference_ms.value != 0.0) {
        let _ = writeln!(
            text,
            "{} less {}: {}: {} over {} blocks",
            line(&one.package),
            line(&one.baseline),
            one.measure.trim_end_matches("_ms").replace('_', " "),
            estimate(&one.difference_ms),
            one.blocks
        );
    }
    let failures: Vec<_> = launches.launches.iter().filter(|one| one.failure.is_some()).collect();
    for one in failures.iter().take(MOST_FAILURES) {
        let _ = writeln!(
            text,
            "block {}: {}: {}",
            one.block + 1,
            line(&one.package),
            line(one.failure.as_deref().unwrap_or_default()),
        );
        if let Some(remedy) = &one.remedy {
            let _ = writeln!(text, "  remedy: {}", line(remedy));
        }
    }
    if failures.len() > MOST_FAILURES {
        let _ = writeln!(text, "{} more launches failed: launches.json has all", failures.len() - MOST_FAILURES);
    }
    for gap in &launches.unavailable {
        let _ =
            writeln!(text, "not known: {}: {}\n  remedy: {}", line(&gap.what), line(&gap.reason), line(&gap.remedy));
    }
    text
}

fn estimate(estimate: &Estimate) -> String {
    match estimate.interval() {
        Some((low, high)) => format!("{:.1} ms ({low:.1} to {high:.1})", estimate.value),
        None => format!("{:.1} ms (no interval)", estimate.value),
    }
}

/// What never took time is in JSON only.
fn is_shown(measure: &&Measure) -> bool {
    measure.p50.value > 0.0 || measure.p95.value > 0.0
}

fn of_measure(text: &mut String, indent: &str, measure: &Measure) {
    let _ = writeln!(
        text,
        "{indent}{:<24} p50 {}, p95 {}",
        measure.name.trim_end_matches("_ms").replace('_', " "),
        estimate(&measure.p50),
        estimate(&measure.p95)
    );
}
