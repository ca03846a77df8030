//! When children of a recorded program were ready, against what parent and children themselves wrote down.

use crate::running::*;
use serde_json::Value;
use std::path::Path;

/// Starts children one after the other: three copies of itself, one copy that ends at once, and two new processes. Each
/// sleeps for 5 ms (which is no wait for events), works, and then waits 50 ms for events. It prints on standard output, in ns of CLOCK_MONOTONIC: when the parent was about to
/// make a child and had made it, when the child was about to wait and had waited.
const PARENT: &str = r#"
import os, sys, time
CHILD = '''
import os, select, sys, time
now = time.monotonic_ns
name, end = sys.argv[1], now() + int(sys.argv[2]) * 1000000
poll = select.poll()
time.sleep(0.005)
while now() < end: pass
begins = now()
poll.poll(50)
os.write(1, f"child {name} {begins} {now()}\\n".encode())
'''
now = time.monotonic_ns
def timed(name, make):
    before = now()
    pid = make()
    after = now()
    os.waitpid(pid, 0)
    os.write(1, f"parent {name} {before} {after}\n".encode())
def copy(name, work):
    pid = os.fork()
    if pid == 0:
        sys.argv = ["", name, str(work)]
        exec(CHILD)
        os._exit(0)
    return pid
def new(name, work):
    return os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", CHILD, name, str(work)], os.environ)
def ended():
    pid = os.fork()
    if pid == 0: os._exit(0)
    return pid
for work in (20, 60, 150): timed(f"copy{work}", lambda: copy(f"copy{work}", work))
timed("ended", ended)
for work in (40, 10): timed(f"new{work}", lambda: new(f"new{work}", work))
"#;

/// How long the wait of each child lasts at least, ms.
const WAIT: f64 = 50.0;
/// What may pass between a moment and the program's own look at the clock, on a machine that does other things too, ms.
const TOLERANCE: f64 = 3.0;

/// The least and the most that the child `name` can have taken from its fork to its wait by the witnesses, in ms.
fn witnessed(said: &str, name: &str) -> (f64, f64) {
    let moments = |who: &str| -> [f64; 2] {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("{who} {name} "))).expect(name);
        let mut moments = line.split(' ').map(|ns| ns.parse::<f64>().unwrap() / 1e6);
        [moments.next().unwrap(), moments.next().unwrap()]
    };
    let ([before, after], [begins, waited]) = (moments("parent"), moments("child"));
    (begins - after, waited - WAIT - before)
}

fn of_kind<'a>(children: &'a Value, kind: &str, origin: &str) -> &'a Value {
    let kinds = children["kinds"].as_array().unwrap();
    kinds.iter().find(|one| one["kind"] == kind && one["origin"] == origin).unwrap_or_else(|| panic!("{children:#}"))
}

#[track_caller]
fn assert_samples(said: &str, samples: &Value, names: &[&str]) {
    let samples: Vec<f64> = samples.as_array().unwrap().iter().map(|ms| ms.as_f64().unwrap()).collect();
    assert_eq!(samples.len(), names.len(), "{samples:?}");
    for (ms, name) in samples.into_iter().zip(names) {
        let (least, most) = witnessed(said, name);
        println!("{name}: {ms:.2} ms from fork to ready; by the witnesses {least:.2} to {most:.2} ms");
        assert!(least - TOLERANCE <= ms && ms <= most + TOLERANCE, "{name}: {ms} is not in {least} to {most}");
    }
}

fn children(directories: &[&Path], json: bool) -> Done {
    let mut command = slowpath(["launch", "children"]);
    run(command.args(json.then_some("--json")).args(directories))
}

#[test]
fn children_are_ready_when_they_say_that_they_began_to_wait() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let done = record(&out, &["--child-startup", "--quiet"], &["/usr/bin/python3", "-c", PARENT]);
    done.succeeds();
    let printed = children(&[&out], true);
    printed.succeeds();
    let found = printed.json();
    assert_eq!((&found["schema"], &found["runs"]), (&"slowpath-children/1".into(), &1.into()));
    assert_eq!(found["losses"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>(), 0, "{found:#}");

    let copies = of_kind(&found, "python3", "forked");
    assert_samples(&done.stdout, &copies["first"]["samples_ms"], &["copy20"]);
    assert_samples(&done.stdout, &copies["later"]["samples_ms"], &["copy60", "copy150"]);
    let new = of_kind(&found, "python3", "executed");
    assert_samples(&done.stdout, &new["first"]["samples_ms"], &["new40"]);
    assert_samples(&done.stdout, &new["later"]["samples_ms"], &["new10"]);
    let ended = of_kind(&found, "copy of python3", "forked");
    assert_eq!((&ended["count"], &ended["never_ready"], &ended["all"]), (&1.into(), &1.into(), &Value::Null));
    let counted = copies["histogram"].as_array().unwrap().iter();
    let counted = counted.map(|bucket| bucket["first"].as_u64().unwrap() + bucket["later"].as_u64().unwrap());
    assert_eq!(counted.sum::<u64>(), 3);

    let shown = children(&[&out], false);
    shown.succeeds();
    assert!(shown.stdout.contains("python3            reused first      1/1"), "{}", shown.stdout);
    assert!(shown.stdout.contains("python3            new    first      1/1"), "{}", shown.stdout);
}

#[test]
fn what_holds_no_readiness_is_refused_with_a_hint_or_left_out_and_said() {
    if !root() {
        return;
    }
    let place = place();
    let path = |name: &str| place.path().join(name);
    let shell = ["/bin/sh", "-c", "/bin/true; /bin/true"];
    record(&path("without"), &["--quiet"], &shell).succeeds();
    record(&path("with"), &["--quiet", "--child-startup"], &shell).succeeds();

    children(&[&path("nothing")], false).fails_with(2, &["hint: a recording is a directory made by"]);
    children(&[place.path()], false).fails_with(2, &["hint: a recording is a directory made by"]);
    let words = ["recorded without --child-startup", "hint: record it again: `slowpath record --child-startup"];
    children(&[&path("without")], false).fails_with(2, &words);
    let refused = children(&[&path("without")], true);
    assert_eq!((refused.code(), &refused.json()["error"]["kind"]), (2, &"usage".into()));
    let again = path("with/.");
    children(&[&path("with"), &again], false).fails_with(2, &["given twice"]);

    let found = children(&[&path("without"), &path("with")], true);
    found.succeeds();
    let found = found.json();
    assert_eq!(found["runs"], 1);
    assert_eq!(found["recordings"].as_array().unwrap().len(), 1);
    let gaps = found["unavailable"].as_array().unwrap();
    assert!(gaps.iter().any(|one| one["remedy"].as_str().unwrap().contains("--child-startup")), "{gaps:?}");
    let of_true = of_kind(&found, "true", "executed");
    assert_eq!((&of_true["count"], &of_true["never_ready"]), (&2.into(), &2.into()));
}
