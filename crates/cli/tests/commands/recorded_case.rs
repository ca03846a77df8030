//! A program of `cases/`: built, recorded once and analyzed.

use crate::running::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

/// What can be found of a program's own faults and memory calls. On a machine that is short of memory, files are read again
/// and other threads reclaim: that is found too, and true.
pub const ABOUT_MEMORY: [&str; 4] =
    ["transient_large_allocation", "heap_trim_churn", "unused_touched_pages", "thp_missed"];

/// With what the findings about memory are recorded.
pub const MEMORY: [&str; 4] = ["--quiet", "--memory-calls", "--stacks", "fault,alloc"];

/// A case of compiled programs in a place of its own: built when the first test asks for it, and copied for each.
#[track_caller]
pub fn built(case: &str) -> tempfile::TempDir {
    static BUILT: Mutex<BTreeMap<String, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());
    let once = Arc::clone(BUILT.lock().unwrap().entry(case.to_owned()).or_default());
    let built = once.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cases").join(case);
        let _ = std::fs::remove_dir_all(&directory);
        make(case, &directory, &[]);
        directory
    });
    let place = place();
    let copied = Command::new("cp").arg("-a").arg(built.join(".")).arg(place.path()).status().unwrap();
    assert!(copied.success(), "{case} was not copied");
    place
}

/// Builds a case where it is used, with more arguments than its directory.
#[track_caller]
pub fn built_with(case: &str, arguments: &[&str]) -> tempfile::TempDir {
    let place = place();
    make(case, place.path(), arguments);
    place
}

#[track_caller]
fn make(case: &str, directory: &Path, arguments: &[&str]) {
    let make = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases").join(case).join("make");
    let done = Command::new(make).arg(directory).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// What `analyze` says of a recording.
#[track_caller]
pub fn analyzed(recording: &Path) -> Value {
    let done = run(slowpath(["analyze", "--json", recording.to_str().unwrap()]));
    done.succeeds();
    done.json()
}

/// One recorded run.
pub struct RecordedCase {
    pub findings: Vec<Value>,
    /// What the program printed of itself: name and number.
    pub numbers: Vec<(String, f64)>,
}

impl RecordedCase {
    /// Records a command into `out`, and keeps the findings of these names.
    #[track_caller]
    pub fn record(out: &Path, options: &[&str], target: &[&str], names: &[&str]) -> Self {
        let done = record(out, options, target);
        done.succeeds();
        let numbers = done.stdout.split_whitespace().filter_map(|word| word.split_once('='));
        let numbers = numbers.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect();
        let mut findings = analyzed(out)["findings"].as_array().unwrap().clone();
        findings.retain(|finding| names.iter().any(|name| finding["name"] == *name));
        Self { findings, numbers }
    }

    /// The only finding.
    #[track_caller]
    pub fn one(&self) -> &Value {
        let [one] = self.findings.as_slice() else { panic!("not one finding: {:#?}", self.findings) };
        println!("{one:#} {:?}", self.numbers);
        one
    }

    #[track_caller]
    pub fn none(&self) {
        assert!(self.findings.is_empty(), "{:#?}", self.findings);
    }

    /// A number that the program printed.
    #[track_caller]
    pub fn number(&self, name: &str) -> f64 {
        let found = self.numbers.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("no {name} in {:?}", self.numbers)).1
    }

    /// A count of the evidence is what the program counted itself, to a hundredth.
    #[track_caller]
    pub fn assert_counts(&self, row: &Value, column: &str, name: &str) {
        let (value, truth) = (row[column].as_f64().unwrap(), self.number(name));
        assert!(truth >= 1.0 && (value - truth).abs() <= truth * 0.01, "{column}: {value} of {truth}: {row:#}");
    }
}

/// The rows of evidence with this column.
pub fn rows<'a>(finding: &'a Value, column: &str) -> Vec<&'a Value> {
    let evidence = finding["evidence"].as_array().unwrap();
    let rows = evidence.iter().flat_map(|one| one["rows"].as_array().unwrap());
    rows.filter(|row| row.get(column).is_some()).collect()
}

/// The first of them.
#[track_caller]
pub fn row<'a>(finding: &'a Value, column: &str) -> &'a Value {
    rows(finding, column).first().copied().unwrap_or_else(|| panic!("no {column} in {finding:#}"))
}
