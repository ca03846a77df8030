//! What the fuzzers kept and what they found goes through every parser again, with the stable compiler.

use slowpath_foreign_data::{TARGETS, named};
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of all corpora together: they are part of every clone.
const MOST_BYTES: u64 = 2 << 20;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The inputs of a folder, sorted by name; none where there is no such folder.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn names(folder: &str) -> Vec<String> {
    inputs(&fuzz().join(folder)).iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// Runs one target on all its inputs; a panic says which one it was on.
fn run(name: &str) {
    let target = named(name);
    for folder in ["regressions", "corpus"] {
        for path in inputs(&fuzz().join(folder).join(name)) {
            let bytes = fs::read(&path).unwrap();
            let ran = std::panic::catch_unwind(|| (target.run)(&bytes));
            assert!(ran.is_ok(), "{name} panics on {}", path.display());
        }
    }
}

#[test]
fn the_script_that_fuzzes_finds_every_target_with_its_longest_input() {
    let listed = std::process::Command::new(fuzz().join("../scripts/fuzz.sh")).arg("list").output().unwrap();
    let mut all: Vec<String> = TARGETS.iter().map(|target| format!("{} {}", target.name, target.longest)).collect();
    all.sort();
    let listed: Vec<String> = String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(listed, all);
}

macro_rules! corpora {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })*

        #[test]
        fn every_target_has_a_test_a_fuzzer_and_a_corpus() {
            let mut tested = vec![$(stringify!($name).to_owned()),*];
            let mut all: Vec<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
            tested.sort();
            all.sort();
            assert_eq!(tested, all, "tests");
            assert_eq!(names("fuzz_targets"), all, "fuzz/fuzz_targets");
            assert_eq!(names("corpus"), all, "fuzz/corpus");
            let strangers: Vec<_> = names("regressions").into_iter().filter(|name| !all.contains(name)).collect();
            assert_eq!(strangers, [] as [String; 0], "fuzz/regressions");
        }
    };
}

corpora! {
    ring_records recording manifest rows elf unwind_entries startup_file perf_map preload_plan saved_context context_files
    seccomp_profile mountinfo proc_text kernel_trace devtools http diagnosis budget page_list launcher_message unwind_table_message
    writer_message artifact_file changed_file field_state file_listing guard_policy guard_tries
    layout_trace layout_order layout_repack layout_tracer
    zygote_message zygote_policy art_file device_text
    import_strace import_perf import_perf_data import_ftrace import_xperf import_wpa_csv import_perfetto import_simpleperf startup_trace
}

#[test]
fn the_corpora_stay_small() {
    let all = TARGETS.iter().flat_map(|target| inputs(&fuzz().join("corpus").join(target.name)));
    let bytes: u64 = all.map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(bytes < MOST_BYTES, "{bytes} bytes: `cargo fuzz cmin` keeps what covers most");
}
