//! Recorded call stacks against the stacks that programs keep by hand while they run: `cases/stacks`.

mod comparison;
mod log;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../commands/running.rs"]
mod running;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../commands/traces.rs"]
mod traces;

use crate::running::*;
use comparison::{Possible, Recorded, Verdict, compare, own_name};
use log::Log;
use slowpath_analysis::stacks::call_stacks::{CallStacks, FramePlace};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

/// Stacks of all programs together that may contradict their logs, and that may end early.
const MOST_WRONG: f64 = 0.002;
const MOST_TRUNCATED: f64 = 0.01;
/// The same of programs of which a part opens a library and calls it at once.
const MOST_TRUNCATED_LATE: f64 = 0.03;

/// What came of the stacks of one program.
#[derive(Default)]
struct Row {
    name: String,
    stacks: usize,
    wrong: usize,
    truncated: usize,
    missing: usize,
    /// How often each reason, and one stack of it.
    reasons: BTreeMap<String, (usize, String)>,
    /// The longest time, in ns, from a process's first touch to one whose stack ended early.
    truncated_after: u64,
}

impl Row {
    fn add(&mut self, verdict: Verdict, what: impl FnOnce() -> String) {
        self.stacks += 1;
        let reason = match verdict {
            Verdict::Right => return,
            Verdict::Wrong(why) => {
                self.wrong += 1;
                format!("wrong: {why}")
            }
            Verdict::Truncated(why) => {
                self.truncated += 1;
                why
            }
        };
        self.reasons.entry(reason).or_insert_with(|| (0, what())).0 += 1;
    }
}

/// Names of a recording's stacks.
struct Names<'a>(CallStacks<'a>, HashMap<u32, Recorded>);

impl Names<'_> {
    fn of(&mut self, stack: u32) -> &Recorded {
        let stacks = &self.0;
        self.1.entry(stack).or_insert_with(|| {
            let mut recorded = Recorded::default();
            let mut shown = Vec::new();
            let path = stacks.path(Some(stack)).expect("a stack has a path");
            for number in stacks.outermost_first(path).into_iter().rev() {
                let frame = &stacks.frames()[number as usize];
                match frame.place {
                    FramePlace::Truncated(why) => recorded.truncation = Some(why.unwrap_or("no reason").to_owned()),
                    FramePlace::Kernel(_) => continue,
                    _ => {}
                }
                for function in &frame.functions {
                    recorded.own.extend(own_name(&function.name).filter(|_| function.named));
                    shown.push(function.name.to_string());
                }
            }
            recorded.shown = shown.join(";");
            recorded
        })
    }
}

struct Programs {
    place: tempfile::TempDir,
    names: Vec<String>,
}

/// Builds the programs that are looked at in one way.
fn programs(look: &str) -> Programs {
    let place = place();
    let make = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/stacks/make");
    // Not `run`, whose patience is for what is under test: on a busy machine compilers take minutes.
    let done = Command::new(make).arg(place.path()).arg(look).output().unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let name = |line: &str| line.split_once(' ').unwrap().1.to_owned();
    Programs { names: printed.lines().map(name).collect(), place }
}

impl Programs {
    /// Records a program with `options`; gives its row after `judge` has filled it.
    fn recorded(&self, name: &str, options: &[&str], rest: &[&str], judge: impl FnOnce(&mut Row, Log, &Path)) -> Row {
        let place = place();
        let (out, log) = (place.path().join("out"), place.path().join("log"));
        std::fs::create_dir(&log).unwrap();
        std::os::unix::fs::chown(&log, std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok()), None).unwrap();
        let program = self.place.path().join(name);
        let target = [&[program.to_str().unwrap(), log.to_str().unwrap()], rest].concat();
        let options = [&["--quiet"], options].concat();
        record(&out, &options, &target).succeeds();
        let mut row = Row { name: [&[name], rest].concat().join(" "), ..Row::default() };
        judge(&mut row, Log::read(&log), &out);
        row
    }

    fn faults(&self, name: &str, rest: &[&str]) -> Row {
        self.recorded(name, &["--stacks", "fault"], rest, |row, log, out| {
            let tables = tables(out);
            assert_eq!(tables.manifest.losses.total(), 0, "{name}: {:?}", tables.manifest.losses);
            let mut faults: HashMap<_, Vec<_>> = HashMap::new();
            for fault in &tables.faults {
                faults.entry((fault.pid, fault.address & !4095)).or_default().push(fault);
            }
            let mut names = Names(CallStacks::new(&tables), HashMap::new());
            let mut firsts = HashMap::new();
            for touch in &log.touches {
                let first = firsts.entry(touch.pid).or_insert(touch.ts);
                *first = touch.ts.min(*first);
            }
            for touch in &log.touches {
                let fault = faults.get(&(touch.pid, touch.address)).map(Vec::as_slice);
                let stack = match fault {
                    // One touch, one fault: anything else is not understood.
                    Some([fault]) if fault.tid == touch.tid && fault.ts.0 >= touch.ts => fault.stack,
                    _ => None,
                };
                let Some(stack) = stack else {
                    row.missing += 1;
                    let what = format!("{} faults of {touch:?}", fault.map_or(0, <[_]>::len));
                    row.reasons.entry("missing".to_owned()).or_insert((0, what)).0 += 1;
                    continue;
                };
                let recorded = names.of(stack);
                let logged: Vec<&str> = touch.chain.iter().map(String::as_str).collect();
                let verdict = compare(&logged, recorded);
                if matches!(verdict, Verdict::Truncated(_)) {
                    row.truncated_after = row.truncated_after.max(touch.ts - firsts[&touch.pid]);
                }
                row.add(verdict, || format!("logged {}, recorded {}", touch.chain.join(";"), recorded.shown));
            }
            assert!(row.stacks > 30, "{name}: {} stacks", row.stacks);
        })
    }

    fn samples(&self, name: &str) -> Row {
        self.recorded(name, &["--sample", "1000"], &[], |row, log, out| {
            let tables = tables(out);
            let chains = |of: &[String]| -> Vec<Vec<String>> {
                of.iter().map(|chain| chain.split(';').map(str::to_owned).collect()).collect()
            };
            let (calls, handlers) = (chains(&log.chains), chains(&log.handlers));
            let borrowed = |of: &'_ [Vec<String>]| -> Vec<Vec<&'static str>> {
                of.iter().map(|chain| chain.iter().map(|name| &*name.clone().leak()).collect()).collect()
            };
            let possible = Possible { chains: borrowed(&calls), handlers: borrowed(&handlers) };
            let mut names = Names(CallStacks::new(&tables), HashMap::new());
            for sample in &tables.cpu_samples {
                if sample.kernel || sample.ts.0 < log.begins || sample.ts.0 > log.ends {
                    continue;
                }
                let Some(stack) = sample.stack else {
                    row.missing += 1;
                    continue;
                };
                let recorded = names.of(stack);
                row.add(possible.judge(recorded), || format!("recorded {}", recorded.shown));
            }
            assert!(row.stacks > 300, "{name}: {} samples", row.stacks);
        })
    }
}

/// Prints the rows as a table and says what they come to.
fn total(rows: &[Row]) -> Row {
    let mut all = Row { name: "all".to_owned(), ..Row::default() };
    for row in rows {
        all.stacks += row.stacks;
        all.wrong += row.wrong;
        all.truncated += row.truncated;
        all.missing += row.missing;
    }
    println!("| program | stacks | wrong | truncated | missing | reasons |");
    println!("|---|---:|---:|---:|---:|---|");
    for row in rows.iter().chain([&all]) {
        let reasons: Vec<String> = row.reasons.iter().map(|(why, (count, _))| format!("{count} {why}")).collect();
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            row.name,
            row.stacks,
            row.wrong,
            row.truncated,
            row.missing,
            reasons.join("; ")
        );
    }
    println!();
    for row in rows {
        for (why, (_, stack)) in &row.reasons {
            eprintln!("{}: {why}: {stack}", row.name);
        }
    }
    all
}

#[track_caller]
fn assert_bar(all: &Row, most_truncated: f64) {
    let share = |count: usize| count as f64 / all.stacks as f64;
    assert_eq!(all.missing, 0, "stacks are missing");
    assert!(share(all.wrong) <= MOST_WRONG, "{} of {} stacks are wrong", all.wrong, all.stacks);
    assert!(share(all.truncated) <= most_truncated, "{} of {} stacks end early", all.truncated, all.stacks);
}

/// Which share of the stacks ends early depends on how soon the recorder gets a CPU, so a program is recorded while no
/// other is. That is also why these tests are a program of their own.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[test]
fn stacks_of_faults_are_those_that_programs_keep_by_hand() {
    if !root() {
        return;
    }
    let _alone = alone();
    let programs = programs("faults");
    println!("Stacks of page faults, in code that is there when the program starts:\n");
    assert_bar(
        &total(&programs.names.iter().map(|name| programs.faults(name, &[])).collect::<Vec<_>>()),
        MOST_TRUNCATED,
    );
}

/// A table is made when a file is mapped, which takes some hundred microseconds: what is called before ends early. How many stacks
/// that concerns depends on how much of its life a program has just opened something, and how soon the recorder gets a
/// CPU; these programs do little else.
#[test]
fn stacks_through_code_that_is_mapped_meanwhile_are_those_that_programs_keep_by_hand() {
    if !root() {
        return;
    }
    let _alone = alone();
    let programs = programs("late");
    println!("Stacks of page faults, also in code that is opened or executed while the program runs:\n");
    let mut rows: Vec<Row> = programs.names.iter().map(|name| programs.faults(name, &[])).collect();
    let lasting = programs.names.iter().filter(|name| name.starts_with("opens"));
    rows.extend(lasting.map(|name| programs.faults(name, &["50"])));
    let all = total(&rows);
    for row in &rows {
        let first = row.truncated_after / 1_000_000;
        println!(
            "{}: the last stack that ended early came {first} ms after the first touch of its process.\n",
            row.name
        );
    }
    assert_bar(&all, MOST_TRUNCATED_LATE);
}

#[test]
fn samples_have_stacks_that_their_programs_can_have() {
    if !root() {
        return;
    }
    let _alone = alone();
    let programs = programs("samples");
    println!("Samples in user mode, 1000 a second:\n");
    assert_bar(&total(&programs.names.iter().map(|name| programs.samples(name)).collect::<Vec<_>>()), MOST_TRUNCATED);
}
