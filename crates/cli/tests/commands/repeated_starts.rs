//! Starts that children repeat, found in recordings of `cases/children`: the price beside what children take that are forked from a
//! process that has started, and near misses.

use crate::prices::{self, Price, unrecorded};
use crate::recorded_case::{RecordedCase, analyzed, built, row};
use crate::running::*;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const NAME: &str = "repeated_child_work";
const NOBODY: &str = "65534";

struct Case {
    place: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        Self { place: built("children") }
    }

    fn target(&self, mode: &str, children: &str, work: Option<&str>) -> Vec<String> {
        let path = |name: &str| self.place.path().join(name).to_str().unwrap().to_owned();
        let mut words =
            vec!["/usr/bin/python3".to_owned(), path("start_children.py"), mode.to_owned(), children.to_owned()];
        words.extend(work.map(|ms| [path("worker"), ms.to_owned()]).into_iter().flatten());
        words
    }

    fn recorded(&self, target: &[String]) -> RecordedCase {
        let out = self.place.path().join("out");
        let _ = std::fs::remove_dir_all(&out);
        let target: Vec<&str> = target.iter().map(String::as_str).collect();
        RecordedCase::record(&out, &["--quiet", "--off-cpu", "--user", NOBODY], &target, &[NAME])
    }
}

#[test]
fn a_start_that_six_children_repeat_is_priced_near_what_forked_children_save() {
    if !root() {
        return;
    }
    let case = Case::new();
    let target = case.target("executes", "6", None);
    let recorded = case.recorded(&target);
    let finding = recorded.one();
    assert_eq!(finding["subject"]["processes"], 6);
    assert_eq!((&finding["subject"]["origin"], &finding["confidence"]), (&"executed".into(), &"high".into()));
    let each = row(finding, "cpu_ms_each");
    assert!(each["opens_alike_each"].as_u64().unwrap() > 50, "{each:#}");
    assert!(each["writable_file_pages_each"].as_u64().unwrap() > 20, "{each:#}");
    let kind = row(finding, "start_ms_p95");
    assert_eq!((&kind["kind"], &kind["processes"]), (&"python3".into(), &6.into()));
    assert!(kind["start_ms_p95"].as_f64().unwrap() >= kind["start_cpu_ms_p50"].as_f64().unwrap(), "{kind:#}");

    let forks = case.target("forks", "6", None);
    prices::assert_priced(Price::of(&recorded), &|| Price::of(&case.recorded(&target)), &|| {
        (unrecorded(NOBODY, &target), unrecorded(NOBODY, &forks))
    });
    // One child still does it, and what copies fault again is in the lower end.
    let saving = &finding["predicted_saving"];
    let value = |of: &Value| of["value"].as_f64().unwrap();
    assert!((value(saving) / value(&finding["cost"]) - 5.0 / 6.0).abs() < 0.01, "{finding:#}");
    assert!(saving["low"].as_f64().unwrap() < value(saving), "{saving:#}");
}

#[test]
fn forked_children_two_children_and_those_with_work_of_their_own_are_none() {
    if !root() {
        return;
    }
    let case = Case::new();
    for (mode, children, work) in [("forks", "6", None), ("executes", "2", None), ("works", "4", Some("60"))] {
        case.recorded(&case.target(mode, children, work)).none();
    }
    // With the same command line, they do the same.
    let same = case.recorded(&case.target("same", "4", Some("60")));
    let each = row(same.one(), "cpu_ms_each")["cpu_ms_each"].as_f64().unwrap();
    // What a hypervisor took is spread over a stay on the CPU: some of it may be taken off here that fell before.
    assert!((54.0..75.0).contains(&each), "{each}");
}

/// One of a list of a diagnosis, by the name in a column.
fn named<'a>(printed: &'a Value, list: &str, column: &str, name: &str) -> &'a Value {
    let found = printed[list].as_array().unwrap().iter().find(|one| one[column] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list}: {printed:#}"))
}

const FIX: &str = "preload_in_zygote";
/// What the workers of multiprocessing import: the case by itself has more, and its launches took 1.6 s of CPU time each.
const MODULES: [&str; 3] = ["argparse", "decimal", "logging.config"];

#[test]
fn a_diagnosis_names_it_with_its_fix() {
    if !root() {
        return;
    }
    let case = Case::new();
    let out = case.place.path().join("diagnosis");
    let target = case.target("executes", "4", None);
    let printed = diagnosed(&out, &target);
    assert_eq!(named(&printed, "findings", "name", NAME)["subject"]["processes"], 4);
    let plan = named(&printed, "fixes", "fix", FIX);
    assert_eq!(plan["title"], "the 4 python3 processes are forked from one that has started");
    assert_eq!(named(&printed, "verdicts", "fix", FIX)["decision"], "not_tried");
    assert!(analyzed(Path::new(&out.join("warm")))["findings"].to_string().contains(NAME));
}

/// Until every fix is decided, or 16 blocks: a minute where a machine is quick, and nothing but the launches takes time.
fn diagnosed(out: &Path, target: &[String]) -> Value {
    let mut command = slowpath(["diagnose", "--warm", "--json", "--max-time", "20m", "--user", NOBODY, "-o"]);
    let done = start(command.arg(out).arg("--").args(target)).wait_within(Duration::from_secs(300));
    done.succeeds();
    done.json()
}

/// The verdict on the trial in which the children inherit what they load: proved. Returns it.
#[track_caller]
fn proved(printed: &Value) -> &Value {
    let verdict = named(printed, "verdicts", "fix", FIX);
    assert_eq!(verdict["decision"], "proved", "{verdict:#}");
    verdict
}

fn value(of: &Value) -> f64 {
    of["value"].as_f64().unwrap_or_else(|| panic!("no value: {of:#}"))
}

#[test]
fn children_of_multiprocessing_are_proved_to_start_sooner_as_forks_of_one_that_has_imported_what_they_import() {
    if !root() {
        return;
    }
    let case = Case::new();
    for method in ["spawn", "fork"] {
        let script = case.place.path().join("multiprocess.py").to_str().unwrap().to_owned();
        let words = ["/usr/bin/python3", &script, method].into_iter().chain(MODULES);
        let target: Vec<String> = words.map(str::to_owned).collect();
        let out = case.place.path().join(method);
        let printed = diagnosed(&out, &target);
        let verdict = proved(&printed);
        let (predicted, measured) = (value(&verdict["predicted"]), value(&verdict["measured"]));
        // Where others use the host, the launches of the prediction ran at another pace than those of the trial.
        assert!(measured < 0.0 && (0.5..2.0).contains(&(predicted / measured)), "{predicted} {measured} {printed:#}");
        // What was written for the trial says it for whoever looks later, and nothing applies it but the program itself.
        let refused = run(slowpath(["fix", "show"]).arg(&out).args([FIX, "--wrapper", "/tmp/never-written"]));
        assert!(refused.stderr.contains("in the source: "), "{}", refused.stderr);
    }
}

#[test]
fn copies_that_load_libraries_are_proved_to_inherit_those_of_their_parent() {
    if !root() {
        return;
    }
    let case = Case::new();
    let library = largest_library();
    // The plugin needs the program that loads it: no other process of the launch could load it first.
    let [program, plugin] =
        ["prefork", "plugin.so"].map(|name| case.place.path().join(name).to_str().unwrap().to_owned());
    // So many that the finding costs twice as much as it has to.
    let target = [program, "12".to_owned(), plugin.clone(), library.clone()];
    let printed = diagnosed(&case.place.path().join("libraries"), &target);
    assert!(value(&proved(&printed)["measured"]) < 0.0);
    let plan = named(&printed, "fixes", "fix", FIX);
    let loaded = plan["treatment"]["variables"]["LD_PRELOAD"].as_str().unwrap();
    assert!(loaded.contains(&library) && !loaded.contains(&plugin), "{plan:#}");
}

/// The compiler's, which what is tested is built with.
fn largest_library() -> String {
    let listed = run(std::process::Command::new("/sbin/ldconfig").arg("-p"));
    let mut paths = listed.stdout.lines().filter_map(|line| line.split_once(" => ")).map(|(_, path)| path);
    let found = paths.find(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with("libLLVM-")));
    found.expect("clang, which builds the probes, comes with libLLVM").to_owned()
}
