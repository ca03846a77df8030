//! Several programs in one recording, one after the other. Loading the recorder with call stacks takes seconds of CPU time in a
//! debug build, most of them in the kernel, which checks programs; findings and counts are reported by program.

use crate::recorded_case::analyzed;
use crate::running::*;
use serde_json::Value;
use slowpath_analysis::LaunchFacts;
use slowpath_recording::Tables;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What became of programs that were recorded together.
pub struct Together {
    /// Their recording.
    pub tables: Tables,
    findings: Vec<Value>,
    printed: BTreeMap<String, String>,
}

/// A program under a name of its own: it is by the name of its file that processes are told apart.
pub fn named(place: &Path, program: &str, name: &str) {
    fs::hard_link(place.join(program), place.join(name)).unwrap();
}

impl Together {
    /// Records commands of a shell in this directory, each with the name of its program.
    #[track_caller]
    pub fn record(place: &Path, commands: &[(&str, String)]) -> Self {
        let out = |name: &str| place.join(format!("{name}.out"));
        let lines = commands.iter().map(|(name, command)| format!("{command} > {}\n", out(name).display()));
        let script = format!("cd {}\n{}exit 0\n", place.display(), lines.collect::<String>());
        let recording = place.join("recording");
        let options = ["--quiet", "--memory-calls", "--stacks", "fault,alloc"];
        record(&recording, &options, &["/bin/sh", "-c", &script]).succeeds();
        let analysis = analyzed(&recording);
        let printed = |(name, _): &(&str, String)| ((*name).to_owned(), fs::read_to_string(out(name)).unwrap());
        Self {
            tables: tables(&recording),
            findings: analysis["findings"].as_array().unwrap().clone(),
            printed: commands.iter().map(printed).collect(),
        }
    }

    /// What a program printed.
    #[track_caller]
    pub fn printed(&self, name: &str) -> &str {
        self.printed.get(name).unwrap_or_else(|| panic!("{name} was not recorded"))
    }

    /// A number `name=value` that a program printed.
    #[track_caller]
    pub fn said(&self, name: &str, number: &str) -> f64 {
        let words = self.printed(name).split_whitespace().filter_map(|word| word.split_once('='));
        let mut values = words.filter(|(known, _)| *known == number).map(|(_, value)| value.parse::<f64>().unwrap());
        values.next().unwrap_or_else(|| panic!("no {number} in {:?}", self.printed(name)))
    }

    /// Findings of these names about a program.
    #[track_caller]
    pub fn findings(&self, name: &str, about: &[&str]) -> Vec<&Value> {
        assert!(self.printed.contains_key(name), "{name} was not recorded");
        let findings = self.findings.iter().filter(|one| about.iter().any(|about| one["name"] == *about));
        findings.filter(|finding| finding["subject"]["process"] == name).collect()
    }

    /// All faults of all processes were recorded, to one each: a signal can end a program in the middle of a fault.
    #[track_caller]
    pub fn assert_whole(&self) {
        assert_eq!(self.tables.manifest.losses.total(), 0, "{:?}", self.tables.manifest.losses);
        let facts = LaunchFacts::new(&self.tables);
        let processes = &facts.completeness().processes;
        assert!(processes.len() > self.printed.len(), "{processes:#?}");
        for process in processes {
            assert!(process.unexplained().abs() <= 1, "{process:#?}");
        }
    }
}
