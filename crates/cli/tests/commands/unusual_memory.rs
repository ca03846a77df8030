//! Programs whose memory is unusual (`cases/unusual`): another allocator loaded before glibc's, static musl, Go, Java, huge pages, a
//! cgroup at its limit, forks. The report of them is right against what they do by their source and count themselves, or is
//! said to be unknown; never settings of glibc for an allocator that is not glibc's, never more than all. Counts do not depend on how
//! busy the machine is.

use crate::memory_group::Group;
use crate::recorded_case::ABOUT_MEMORY;
use crate::recorded_together::{Together, named};
use crate::running::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const TRANSIENT: &str = "transient_large_allocation";
const CHURN: &str = "heap_trim_churn";
const NEVER_USED: &str = "unused_touched_pages";
const NO_HUGE_PAGES: &str = "thp_missed";

/// What each program does, by its name in the recording: the program that `cases/unusual` builds, what is loaded before it, arguments.
/// Those of which nothing is to be reported come first: a file that is executed while it is recorded has its unwinding tables later.
const PROGRAMS: [(&str, &str, Preload, &str); 18] = [
    ("jemalloc-keeps", "blocks", Some(JEMALLOC), "each 40 2048"),
    ("mimalloc-keeps", "blocks", Some(MIMALLOC), "each 20 2048"),
    ("musl-kept", "blocks-musl", None, "kept 12 1024"),
    ("go-kept", "blocks-go", None, "kept 15"),
    ("stripped-kept", "blocks-go-stripped", None, "kept 15"),
    ("huge-sparse", "huge", None, "sparse 12"),
    ("huge-reserved", "huge", None, "reserved 12"),
    ("fork-children", "forks", None, "children 6 16"),
    ("fork-parent", "forks", None, "parent 6 16"),
    // Blocks of 8 MiB and more are purged at once, others after 10 s.
    ("jemalloc", "blocks", Some(JEMALLOC), "each 12 9216"),
    ("mimalloc", "blocks", Some(MIMALLOC), "each 10 20000"),
    ("musl", "blocks-musl", None, "each 12 4096"),
    ("go", "blocks-go", None, "each 15"),
    ("go-stripped", "blocks-go-stripped", None, "each 15"),
    ("huge", "huge", None, "each 12"),
    ("huge-edges", "huge", None, "edges 12"),
    ("fork-block", "forks", None, "block 12 16"),
    ("fork-own", "forks", None, "own 4 16"),
];
/// The first that has something to tell: before it there is time to make tables in.
const FIRST: &str = "jemalloc";
const JEMALLOC: &str = "libjemalloc.so.2";
const MIMALLOC: &str = "libmimalloc.so.2.0";
type Preload = Option<&'static str>;

/// Options of a Java machine whose heap gives back what it does not need, and of one whose heap stays as it is.
const JAVA: &str = "-Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseG1GC -Xmx256m";
const SHRINKS: &str = "-Xms4m -XX:MinHeapFreeRatio=1 -XX:MaxHeapFreeRatio=2";
const STAYS: &str = "-Xms256m";

/// Limit of the cgroup of the program that it kills.
const LIMIT_MIB: u64 = 24;

/// What is known of all of them, recorded once for all tests.
struct Recorded {
    together: Together,
    /// Names that are not there, with the reason.
    missing: Vec<(String, String)>,
}

fn recorded() -> Option<&'static Recorded> {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    root().then(|| RECORDED.get_or_init(record_all))
}

fn record_all() -> Recorded {
    let place = place();
    let path = place.path();
    let make = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/unusual/make");
    // Go builds its library once: that outlives the test.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-cache");
    let done = Command::new(make).arg(path).env("GOCACHE", cache).output().unwrap();
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{output}{}", String::from_utf8_lossy(&done.stderr));
    let not_built = |program: &str| {
        let mut missing = output.lines().filter_map(|line| line.strip_prefix("missing ")?.split_once(": "));
        Some(missing.find(|(name, _)| *name == program)?.1.to_owned())
    };
    let (mut commands, mut missing) = (Vec::new(), Vec::new());
    for (name, program, preload, arguments) in PROGRAMS {
        let library = preload.map(|name| library(name).ok_or(format!("{name} is not installed"))).transpose();
        match (not_built(program), library) {
            (Some(reason), _) | (None, Err(reason)) => missing.push((name.to_owned(), reason)),
            (None, Ok(library)) => {
                if program != name {
                    named(path, program, name);
                }
                let wait = if name == FIRST { "sleep 4; " } else { "" };
                let preload = library.map(|path| format!("LD_PRELOAD={} ", path.display())).unwrap_or_default();
                commands.push((name, format!("{wait}{preload}./{name} {arguments}")));
            }
        }
    }
    let java = find_in_path("java");
    for (place, name, options, variant) in [(0, "java-kept", STAYS, "kept"), (usize::MAX, "java", SHRINKS, "each")] {
        match (not_built("Blocks.class"), &java) {
            (None, Some(java)) => {
                std::os::unix::fs::symlink(java, path.join(name)).unwrap();
                let command = (name, format!("./{name} {JAVA} {options} -cp . Blocks {variant} 10"));
                commands.insert(place.min(commands.len()), command);
            }
            (reason, _) => {
                missing.push((name.to_owned(), reason.unwrap_or_else(|| "java is not installed".to_owned())));
            }
        }
    }
    let group = Group::new(&format!("{LIMIT_MIB}M"));
    match &group {
        Some(group) => {
            named(path, "blocks", "killed");
            let script = format!("echo $$ > {}/cgroup.procs; exec ./killed hoard 1000 1024", group.path.display());
            commands.push(("killed", format!("sh -c '{script}'")));
        }
        None => missing.push(("killed".to_owned(), "no cgroup v1 memory controller".to_owned())),
    }
    Recorded { together: Together::record(path, &commands), missing }
}

fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|place| place.join(program)).find_map(|path| path.canonicalize().ok())
}

/// The library of an allocator, where its package is installed.
fn library(name: &str) -> Option<PathBuf> {
    let own = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let places = [own.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib"];
    places.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file())
}

impl Recorded {
    /// Whether a program was recorded; the reason is printed where it was not.
    fn has(&self, name: &str) -> bool {
        let missing = self.missing.iter().find(|(missing, _)| missing == name);
        missing.into_iter().for_each(|(name, reason)| println!("skipped: {name}: {reason}"));
        missing.is_none()
    }

    fn findings(&self, name: &str) -> Vec<&Value> {
        self.together.findings(name, &ABOUT_MEMORY)
    }

    /// The only finding about a program, of this name.
    #[track_caller]
    fn one(&self, name: &str, finding: &str) -> &Value {
        let findings = self.findings(name);
        let [one] = findings.as_slice() else { panic!("{name}: not one finding: {findings:#?}") };
        println!("{one:#} {}", self.together.printed(name));
        assert_eq!(one["name"], finding, "{one:#}");
        one
    }

    #[track_caller]
    fn none(&self, name: &str) {
        let findings = self.findings(name);
        assert!(findings.is_empty(), "{name}: {findings:#?} {}", self.together.printed(name));
    }

    #[track_caller]
    fn said(&self, name: &str, number: &str) -> f64 {
        self.together.said(name, number)
    }
}

/// A number of the evidence about operations.
#[track_caller]
fn number(finding: &Value, column: &str) -> f64 {
    let evidence = finding["evidence"].as_array().unwrap();
    let mut rows = evidence.iter().flat_map(|one| one["rows"].as_array().unwrap());
    let row = rows.find(|row| row.get("faults").is_some() && row.get(column).is_some());
    row.unwrap_or_else(|| panic!("no {column}: {finding:#}"))[column].as_f64().unwrap()
}

#[track_caller]
fn assert_near(found: f64, truth: f64, share: f64) {
    assert!((found - truth).abs() <= truth * share, "{found} of {truth}");
}

/// Who asked is not known, and that is said.
#[track_caller]
fn assert_nobody_is_named(finding: &Value) {
    assert!(finding["subject"]["function"].is_null() && finding["confidence"] == "low", "{finding:#}");
    assert!(finding["reasons"].to_string().contains("the caller is not known"), "{finding:#}");
}

#[track_caller]
fn assert_names(finding: &Value, function: &str) {
    assert!(finding["subject"]["function"].as_str().unwrap().contains(function), "{finding:#}");
}

/// Whether it is about memory that a Java machine has from glibc, and not about its heap: `heap_trim` gives back what its collector had
/// for a collection.
fn is_the_java_machines_own(finding: &Value) -> bool {
    let evidence = finding["evidence"].as_array().unwrap();
    let frames = || evidence.iter().flat_map(|one| one["rows"].as_array().unwrap());
    let asked = |frame: &Value| frame["asked"] == true && frame["file"] == "libjvm.so";
    frames().any(|frame| frame["function"] == "heap_trim" && frame["file"] == "libc.so.6") && frames().any(asked)
}

#[test]
fn every_fault_is_recorded_and_no_finding_tells_more_than_there_is_or_of_a_malloc_that_is_not_there() {
    let Some(recorded) = recorded() else { return };
    recorded.together.assert_whole();
    let names = PROGRAMS.iter().map(|(name, ..)| *name).chain(["java", "java-kept", "killed"]);
    for name in names.filter(|name| recorded.has(name)) {
        let mut counted = 0.0;
        for finding in recorded.findings(name) {
            let ends = ["low", "value", "high"].map(|end| finding["cost"][end].as_f64().unwrap());
            assert!(0.0 <= ends[0] && ends[0] <= ends[1] && ends[1] <= ends[2], "{finding:#}");
            assert!((0.0..=1.0).contains(&finding["subject"]["share"].as_f64().unwrap()), "{finding:#}");
            counted += number(finding, "faults");
            // Only the program that is killed asks glibc's malloc, and a Java machine for what is its own.
            let text = finding.to_string();
            let of_glibc = text.contains("GLIBC_TUNABLES") || text.contains("glibc.malloc");
            assert!(name == "killed" || !of_glibc || is_the_java_machines_own(finding), "{finding:#}");
        }
        let processes = slowpath_analysis::LaunchFacts::new(&recorded.together.tables).completeness().processes.clone();
        let faults: u64 = processes.iter().filter(|process| process.name == name).map(|process| process.kernel()).sum();
        assert!(faults > 0 && counted <= faults as f64, "{name}: {counted} faults are counted of {faults}");
    }
}

#[test]
fn pages_that_jemalloc_purges_are_found_with_its_own_settings_and_those_it_keeps_are_not() {
    let Some(recorded) = recorded().filter(|recorded| recorded.has("jemalloc")) else { return };
    let finding = recorded.one("jemalloc", CHURN);
    // The first round's pages are new.
    assert_near(number(finding, "faults"), recorded.said("jemalloc", "pages") * 11.0 / 12.0, 0.01);
    assert_names(finding, "drop_block");
    assert!(finding.to_string().contains("MALLOC_CONF=dirty_decay_ms:-1"), "{finding:#}");
    recorded.none("jemalloc-keeps");
}

#[test]
fn blocks_that_mimalloc_maps_one_by_one_are_found_without_a_setting_that_nothing_heeds() {
    let Some(recorded) = recorded().filter(|recorded| recorded.has("mimalloc")) else { return };
    // On a busy machine the library's unwinding table can come after its first calls: their stacks end early, and they are findings
    // of their own then, which say how little is known of them; a single call with such a stack repeats nothing, and can only be
    // reported for its missing huge pages.
    let findings = recorded.findings("mimalloc");
    let (finding, early) = findings.split_first().unwrap();
    assert_eq!(finding["name"], TRANSIENT);
    assert!(early.iter().all(|one| one["confidence"] == "low"), "{early:#?}");
    let (repeated, single): (Vec<&Value>, Vec<&Value>) = findings.iter().partition(|one| one["name"] == TRANSIENT);
    assert!(single.iter().all(|one| one["name"] == NO_HUGE_PAGES && number(one, "mappings") == 1.0), "{single:#?}");
    let operations = repeated.iter().map(|one| number(one, "operations")).sum::<f64>();
    assert_near(operations + single.len() as f64, 10.0, 0.0);
    let faults = repeated.iter().map(|one| number(one, "faults")).sum::<f64>();
    assert_near(faults, recorded.said("mimalloc", "minflt") * operations / 10.0, 0.01);
    assert_names(finding, "new_block");
    assert_eq!(finding["fixes"], serde_json::json!(["reuse_buffer", "populate_at_map"]));
    recorded.none("mimalloc-keeps");
}

#[test]
fn of_a_static_program_with_musl_the_cost_is_right_and_who_asked_is_said_to_be_unknown() {
    let Some(recorded) = recorded().filter(|recorded| recorded.has("musl")) else { return };
    let finding = recorded.one("musl", TRANSIENT);
    assert_near(number(finding, "operations"), 12.0, 0.0);
    // Each block has a header besides, which takes a page.
    assert_near(number(finding, "faults"), recorded.said("musl", "pages") + 12.0, 0.01);
    assert_nobody_is_named(finding);
    recorded.none("musl-kept");
}

#[test]
fn what_the_runtime_of_go_gives_back_is_found_and_nobody_but_who_asked_is_named_for_it() {
    let Some(recorded) = recorded().filter(|recorded| recorded.has("go")) else { return };
    for name in ["go", "go-stripped"] {
        let (findings, came_back) = (recorded.findings(name), recorded.said(name, "minflt"));
        println!("{findings:#?} {}", recorded.together.printed(name));
        for finding in &findings {
            assert_eq!(finding["name"], CHURN, "{name}: {finding:#}");
            // The runtime gives back on a stack of its own. A walk comes from there to the one that asked only where that lies close
            // above, which is up to where the kernel put them.
            if name == "go" && !finding["subject"]["function"].is_null() {
                assert_eq!(finding["subject"]["function"], "main.giveBack", "{finding:#}");
            } else {
                assert_nobody_is_named(finding);
            }
        }
        // Not the first round's pages, which are new, nor what its collector used again. Without names there are several findings, by stack,
        // and some are too small to tell.
        let counted: f64 = findings.iter().map(|finding| number(finding, "faults")).sum();
        let least = if name == "go" { 0.8 } else { 0.4 };
        assert!(counted <= came_back * 1.02 && counted >= came_back * least, "{name}: {counted} of {came_back}");
    }
    recorded.none("go-kept");
    recorded.none("stripped-kept");
}

#[test]
fn a_java_heap_that_shrinks_is_found_with_the_machines_own_setting_and_one_that_stays_is_not() {
    let Some(recorded) = recorded().filter(|recorded| recorded.has("java")) else { return };
    for name in ["java", "java-kept"] {
        let (findings, all) = (recorded.findings(name), recorded.said(name, "minflt"));
        println!("{findings:#?} {}", recorded.together.printed(name));
        let mut counted = 0.0;
        for finding in findings {
            if finding["name"] == NEVER_USED {
                // The bits that its collector marks are cleared again: what they were for cannot be seen from outside, and that is said.
                assert_ne!(finding["confidence"], "high", "{finding:#}");
                assert!(finding["reasons"].to_string().contains("from outside they are the same"), "{finding:#}");
                continue;
            }
            if is_the_java_machines_own(finding) {
                continue;
            }
            assert_eq!(finding["name"], TRANSIENT, "{finding:#}");
            assert!(finding.to_string().contains("-Xms as large as -Xmx"), "{finding:#}");
            counted += number(finding, "faults");
        }
        assert!(counted <= all * 1.05, "{name}: {counted} of {all}");
        assert!(name == "java" || counted == 0.0, "{counted}");
    }
}

#[test]
fn blocks_with_huge_pages_are_counted_with_the_bytes_that_they_brought() {
    let Some(recorded) = recorded() else { return };
    // As few faults, of small pages. Beside something else they can take longer than a millisecond, which is reported then; they are not huge.
    for finding in recorded.findings("huge-sparse") {
        assert_eq!(finding["name"], TRANSIENT, "{finding:#}");
        assert_near(number(finding, "touched_bytes"), recorded.said("huge-sparse", "minflt") * 4096.0, 0.01);
        assert!(!finding["reasons"].to_string().contains("huge"), "{finding:#}");
    }
    for name in ["huge", "huge-edges"] {
        if recorded.said(name, "no_huge") == 1.0 {
            println!("skipped: the machine gave no huge pages");
            return;
        }
        let finding = recorded.one(name, TRANSIENT);
        assert_near(number(finding, "operations"), 12.0, 0.0);
        assert_near(number(finding, "faults"), recorded.said(name, "minflt"), 0.01);
        // Where there was no huge page to be had at once, some came in small ones.
        assert_near(number(finding, "touched_bytes"), recorded.said(name, "bytes"), 0.05);
        assert!(finding["reasons"].to_string().contains("pages may be huge ones"), "{finding:#}");
    }
}

#[test]
fn reserved_huge_pages_are_counted_where_there_are_any_and_what_mmap_refuses_is_no_block() {
    let Some(recorded) = recorded() else { return };
    let refused = recorded.said("huge-reserved", "refused");
    if refused > 0.0 {
        println!(
            "unavailable: no huge page is reserved (vm.nr_hugepages), and reserving some would change the machine"
        );
        assert_near(refused, 12.0, 0.0);
        recorded.none("huge-reserved");
        return;
    }
    let finding = recorded.one("huge-reserved", TRANSIENT);
    assert_near(number(finding, "faults"), recorded.said("huge-reserved", "minflt"), 0.01);
    assert_near(number(finding, "touched_bytes"), recorded.said("huge-reserved", "bytes"), 0.05);
}

#[test]
fn a_program_that_its_control_group_kills_is_recorded_to_the_last_fault() {
    let Some(recorded) = recorded().filter(|recorded| recorded.has("killed")) else { return };
    let tables = &recorded.together.tables;
    let process = tables.execs.iter().find(|exec| exec.filename.ends_with("/killed")).unwrap().process();
    let exit = tables.exits.iter().find(|exit| exit.process() == process).unwrap();
    assert_eq!(exit.signal, Some(9), "{exit:?}");
    let rounds = recorded.together.printed("killed").lines().count() as u64;
    assert!((8..=LIMIT_MIB + 2).contains(&rounds), "{rounds} rounds of 1 MiB each in a group of {LIMIT_MIB}");
    // Of the last block nobody knows how much was touched.
    let faults = tables.faults.iter().filter(|fault| fault.process() == process).count() as u64;
    assert!(faults >= (rounds - 1) * 256, "{faults} in {rounds} rounds");
    recorded.none("killed");
}

#[test]
fn pages_that_forks_copy_are_in_no_finding_and_those_that_are_touched_first_are() {
    let Some(recorded) = recorded() else { return };
    // Children that copy all of the parent's memory, and parents that copy theirs: nothing that somebody asked for.
    for name in ["fork-children", "fork-parent"] {
        assert!(
            recorded.said(name, "minflt") + recorded.said(name, "children_minflt") >= recorded.said(name, "copied")
        );
        recorded.none(name);
    }
    // Each page of a block is touched first, and once more after a fork, which copies it; children that map their own copy nothing.
    for (name, operations) in [("fork-block", 12.0), ("fork-own", 40.0)] {
        let finding = recorded.one(name, TRANSIENT);
        assert_near(number(finding, "operations"), operations, 0.0);
        assert_near(number(finding, "faults"), recorded.said(name, "first"), 0.01);
        let says = finding["reasons"].to_string().contains("faults in these blocks that forks caused");
        assert_eq!(says, name == "fork-block", "{finding:#}");
    }
}
