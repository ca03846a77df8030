//! The counters that candidates name do show their mechanism: launches of both sides, one after the other, on programs that pay for it.

mod launched;

use launched::{command, launcher};
use slowpath_context::toggles::Side;
use slowpath_context::{Here, Reading, Snapshot, Value, plan};
use slowpath_launch::{LaunchSpec, Launcher, NoHooks};
use slowpath_launch::{Metric, measures};
use std::process::{Child, Command, Stdio};

/// Launches a side.
const LAUNCHES: usize = 3;

/// Programs with nothing but what is paid for.
const SLEEPS: &str = "import time\nfor i in range(200): time.sleep(0.0005)";
const CALLS: &str = "import os\nfor i in range(60000): os.getppid()";
const COMPUTES: &str = "x = 0\nfor i in range(1500000): x += i";
const TOUCHES: &str = "import mmap\nm = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n\
                       m.madvise(14)\nfor i in range(0, 64 << 20, 4096): m[i] = 1";

fn python(program: &str) -> LaunchSpec {
    let mut spec = command();
    spec.argv = ["/usr/bin/python3", "-S", "-c", program].map(Into::into).into();
    spec
}

/// This process's context, and the same with another value of one factor.
fn pair(factor: &str, change: impl Fn(Option<Value>) -> Value) -> (Snapshot, Snapshot) {
    let fast = Snapshot::of_process(std::process::id()).unwrap();
    let mut slow = fast.clone();
    let value = change(fast.reading(factor).and_then(Reading::value).cloned());
    let reading = Reading::Known { value };
    match slow.process.get_mut(factor) {
        Some(place) => *place = reading,
        None => drop(slow.threads[0].factors.insert(factor.to_owned(), reading)),
    }
    (fast, slow)
}

fn with_part(part: &'static str, text: &'static str) -> impl Fn(Option<Value>) -> Value {
    move |value| match value {
        Some(Value::Table(mut parts)) => {
            parts.insert(part.to_owned(), text.to_owned());
            Value::Table(parts)
        }
        other => panic!("{other:?}"),
    }
}

/// The median of a counter with the candidate fast, and with it slow.
fn medians((fast, slow): &(Snapshot, Snapshot), name: &str, base: &LaunchSpec, counter: Metric) -> Option<[f64; 2]> {
    let plan = plan(fast, slow, &Here::now().unwrap());
    let Some(index) = plan.candidate(name) else {
        println!("skipped: {name}: {:?}", plan.remaining);
        return None;
    };
    assert!(plan.candidates[index].counters.contains(&counter), "{name} does not name {counter:?}");
    let prepared = plan.prepare(base).unwrap();
    let mut launcher = launcher();
    let mut told = [Vec::new(), Vec::new()];
    for _ in 0..LAUNCHES {
        for (side, values) in [Side::Fast, Side::Slow].into_iter().zip(&mut told) {
            let mut sides = vec![Side::Fast; plan.candidates.len()];
            sides[index] = side;
            let outcome = launcher.launch(&prepared.spec(&sides).unwrap(), &mut NoHooks).unwrap();
            outcome.require_ready().unwrap();
            values.push(measures(&outcome)[&counter]);
        }
    }
    Some(told.map(|mut values| {
        values.sort_by(f64::total_cmp);
        values[LAUNCHES / 2]
    }))
}

#[track_caller]
fn shows(pair: &(Snapshot, Snapshot), name: &str, base: &LaunchSpec, counter: Metric, at_least: f64) {
    if let Some([fast, slow]) = medians(pair, name, base, counter) {
        println!("{name}: {} {fast} and {slow}", counter.name());
        assert!(slow >= fast + at_least, "{name}: {} is {fast} and {slow}", counter.name());
    }
}

#[test]
fn slack_is_seen_in_waiting() {
    // 200 sleeps, each later by up to 5 ms. A CPU that others use has its tick meanwhile, which ends sleeps whose slack has begun: half a
    // tick later on average, that is 100 ms in all where the kernel has 1000 ticks a second.
    let pair = pair("timer_slack_ns", |_| Value::Number(5_000_000));
    shows(&pair, "timer_slack_ns", &python(SLEEPS), Metric::Waiting, 60.0);
}

#[test]
fn a_tracer_is_seen_in_switches() {
    let pair = pair("tracer", |_| Value::text("yes"));
    shows(&pair, "tracer", &python(CALLS), Metric::VoluntarySwitches, 60_000.0);
}

#[test]
fn filters_are_seen_in_the_kernels_time() {
    let pair = pair("seccomp", |_| Value::table([("mode", "filter"), ("filters", "20")]));
    let (name, base) = ("seccomp", python(CALLS));
    if let Some([fast, slow]) = medians(&pair, name, &base, Metric::System) {
        println!("{name}: {fast} and {slow} ms");
        assert!(slow > fast * 1.5, "{fast} and {slow} ms in the kernel");
    }
}

#[test]
fn small_pages_are_seen_in_faults() {
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if huge.is_empty() || huge.contains("[never]") {
        println!("skipped: this machine gives no huge pages");
        return;
    }
    let pair = pair("huge_pages", |_| Value::text("disabled by prctl"));
    shows(&pair, "huge_pages", &python(TOUCHES), Metric::MinorFaults, 5_000.0);
}

#[test]
fn a_quota_is_seen_in_what_its_group_counts() {
    let quota = pair("control_groups", with_part("cpu.max", "20.0 % of a CPU"));
    shows(&quota, "control_groups cpu.max", &python(COMPUTES), Metric::ThrottledPeriods, 1.0);
}

#[test]
fn a_limit_of_memory_is_seen_in_how_often_its_group_was_there() {
    let place = tempfile::tempdir().unwrap();
    // Twice the limit in the page cache.
    let file = place.path().join("written");
    let program =
        format!("f = open({:?}, 'wb')\nfor i in range(64): f.write(b'x' * (1 << 20))", file.display().to_string());
    let pair = pair("control_groups", with_part("memory.max", "33554432"));
    shows(&pair, "control_groups memory.max", &python(&program), Metric::MemoryLimitHits, 10.0);
}

/// A process that computes on one CPU, until it is dropped.
struct Hog(Child);

impl Hog {
    fn on(processor: &str) -> Self {
        let mut command = Command::new("/usr/bin/taskset");
        command.args(["-c", processor, "/usr/bin/python3", "-S", "-c", "while True: pass"]);
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_nicer_thread_is_seen_in_the_wait_for_a_processor_beside_one_who_computes() {
    if !std::path::Path::new("/usr/bin/taskset").exists() {
        println!("skipped: taskset is not installed");
        return;
    }
    let _hog = Hog::on("0");
    // Eight steps of 1.25 each.
    let nicer = |value: Option<Value>| {
        let own = value.as_ref().and_then(|value| value.part("nice")?.parse::<i32>().ok()).unwrap_or(0);
        Value::table([("policy".to_owned(), "other".to_owned()), ("nice".to_owned(), (own + 8).min(19).to_string())])
    };
    let pair = pair("scheduling", nicer);
    let mut base = python("x = 0\nfor i in range(150000): x += i");
    base.context.push(slowpath_launch::ContextStep::Affinity { processors: vec![0] });
    if let Some([fast, slow]) = medians(&pair, "scheduling", &base, Metric::RunDelay) {
        println!("scheduling: {fast} and {slow} ms");
        assert!(slow > fast * 2.0, "{fast} and {slow} ms of waiting for a processor");
    }
}

#[test]
fn variables_of_malloc_are_seen_in_the_programs_own_time() {
    let pair = pair("environment", with_part("MALLOC_PERTURB_", "165"));
    let program =
        "x = [b'x' * 60000 for i in range(2000)]\nfor k in range(15): x = [b'x' * 60000 for i in range(2000)]";
    let mut base = python(program);
    base.env.push(("PYTHONMALLOC".into(), "malloc".into()));
    if let Some([fast, slow]) = medians(&pair, "environment MALLOC_PERTURB_", &base, Metric::User) {
        println!("environment: {fast} and {slow} ms");
        assert!(slow > fast * 1.1, "{fast} and {slow} ms");
    }
}
