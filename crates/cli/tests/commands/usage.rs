//! `slowpath analyze` of a recording of the whole system: what processes have of it, and of the machine.

use crate::attached::Toucher;
use crate::running::*;
use serde_json::Value;
use std::path::Path;

/// Rounds, and pages of one touch.
const ROUNDS: u64 = 12;
const PAGES: u64 = 1000;

/// The machine's own count of its faults.
fn machine_faults() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("pgfault ")).unwrap();
    line.trim().parse().unwrap()
}

fn of(usage: &Value, pid: u32) -> &Value {
    usage["processes"].as_array().unwrap().iter().find(|one| one["pid"] == pid).unwrap()
}

#[track_caller]
fn near(value: f64, expected: f64, relative: f64) {
    assert!((value - expected).abs() <= expected * relative, "{value}, expected {expected}");
}

/// How long a process of one thread has run by the kernel's account, in ms.
fn ran(toucher: &Toucher) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{}/schedstat", toucher.child.id())).unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

/// Records the whole system while one process touches three times as many pages as the other; the machine's faults, and how long the two
/// have run at least.
fn recorded(out: &Path, three: &mut Toucher, one: &mut Toucher) -> (u64, [f64; 2]) {
    let mut command = slowpath(["record", "--quiet", "--system", "--stacks", "fault", "--sample", "97", "-o"]);
    let before = machine_faults();
    let mut running = start(command.arg(out));
    // The manifest is written when all processes are followed.
    while !out.join("manifest.json").exists() {
        assert!(running.child.try_wait().unwrap().is_none(), "{:?}", running.wait());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let begin = [ran(three), ran(one)];
    for _ in 0..ROUNDS {
        (0..3).for_each(|_| three.touch());
        one.touch();
    }
    let ran = [ran(three) - begin[0], ran(one) - begin[1]];
    running.signal(libc::SIGINT);
    running.wait().succeeds();
    (machine_faults() - before, ran)
}

#[test]
fn processes_that_touch_three_pages_to_one_have_these_shares_of_recording_and_machine() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let (mut three, mut one) = (Toucher::start("three"), Toucher::start("one"));
    let begin = [ran(&three), ran(&one)];
    let (most, at_least) = recorded(&out, &mut three, &mut one);
    let at_most = [ran(&three) - begin[0], ran(&one) - begin[1]];
    let analyzed = run(slowpath(["analyze", "--json", out.to_str().unwrap()]));
    analyzed.succeeds();
    let said = analyzed.json();
    let usage = &said["shares"];
    let (three, one) = (of(usage, three.child.id()), of(usage, one.child.id()));
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
    let faults = |process: &Value| number(&process["used"]["minor_faults"]) + number(&process["used"]["major_faults"]);

    // The truth: so many pages, and what Python needs itself. What all processes do together can be more than the ring holds.
    let lost = number(&usage["machine"]["lost"]);
    let is_truth = |faults: f64, truth: f64| faults <= truth * 1.02 && faults + lost >= truth * 0.98;
    assert!(is_truth(faults(three), (3 * ROUNDS * PAGES) as f64), "{three:#} {lost} lost");
    assert!(is_truth(faults(one), (ROUNDS * PAGES) as f64), "{one:#} {lost} lost");
    let tables = tables(&out);
    for (process, (at_least, at_most)) in [three, one].into_iter().zip(at_least.into_iter().zip(at_most)) {
        // The kernel's counters, from the rows themselves.
        let pid = process["pid"].as_u64().unwrap() as u32;
        let exits = tables.exits.iter().filter(|exit| exit.pid == pid);
        let end: u64 = exits.map(|exit| exit.min_flt + exit.maj_flt).sum();
        let begin = tables.execs.iter().find(|exec| exec.pid == pid).unwrap();
        let counted = end - begin.min_flt - begin.maj_flt;
        assert_eq!(process["used"]["faults_by_kernel"], counted);
        let (recorded, counted) = (faults(process), counted as f64);
        assert!(recorded <= counted * 1.005 && recorded + lost >= counted * 0.995, "{recorded}, {lost}, {counted}");
        let cpu = number(&process["used"]["cpu_time"]["value"]);
        let in_faults = number(&process["used"]["fault_time"]["value"]);
        // A fault takes longer than the process runs meanwhile, where another one has the CPU.
        assert!(in_faults > 0.0, "{process:#}");
        assert!(cpu >= at_least - 0.1 && cpu <= at_most + 0.1, "{cpu} ms of {at_least} to {at_most} ms by the kernel");
        let recorded = number(&usage["total"]["minor_faults"]) + number(&usage["total"]["major_faults"]);
        near(number(&process["share"]["faults"]["value"]), faults(process) / recorded, 1e-9);
        let machine = number(&usage["machine"]["faults"]);
        near(number(&process["share"]["machine_faults"]["value"]), faults(process) / machine, 1e-9);
    }
    let machine = &usage["machine"];
    let parts = ["recorded", "lost", "without_event", "recorder", "elsewhere"];
    assert_eq!(parts.iter().map(|part| machine[part].as_u64().unwrap()).sum::<u64>(), machine["faults"]);
    assert!(machine["faults"].as_u64().unwrap() <= most, "{machine} of {most}");
    assert!(number(&machine["recorded"]) >= number(&machine["faults"]) / 2.0, "{machine}");
    // The two touch in one function of one file, which is listed by its time, unless ten functions of others had more: what else runs
    // on the machine meanwhile is recorded too.
    let functions = usage["functions_by_fault_time"].as_array().unwrap();
    assert!(!functions.is_empty() && functions.len() <= 10, "{functions:?}");
    let time = |used: &Value| number(&used["fault_time"]["value"]);
    let own = time(&three["used"]) + time(&one["used"]);
    let weight = |function: &Value| number(&function["weight"]["value"]);
    match functions.iter().find(|function| function["file"].as_str().unwrap().contains("mmap.")) {
        Some(touching) => {
            assert!(weight(touching) > 0.5 * own, "{own} ms of {functions:?}");
            near(number(&touching["share"]["value"]), weight(touching) / time(&usage["total"]), 1e-3);
        }
        None => assert!(functions.len() == 10 && weight(&functions[9]) > 0.5 * own, "{own} ms of {functions:?}"),
    }
    assert!(functions.is_sorted_by(|a, b| weight(a) >= weight(b)), "{functions:?}");

    let printed = run(slowpath(["analyze", out.to_str().unwrap()]));
    printed.succeeds();
    let pid = three["pid"].to_string();
    assert!(printed.stdout.lines().any(|line| line.contains(&pid) && line.contains(" %")), "{}", printed.stdout);
    assert!(printed.stdout.contains("the machine ") && printed.stdout.contains("not recorded "), "{}", printed.stdout);
}
