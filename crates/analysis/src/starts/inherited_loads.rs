//! What children that start alike load, each for itself, and could inherit from the process that forks them; and how that process is
//! brought to load it.
//!
//! Owns that for the kinds of programs in which it can be had from outside ([`Way`]): Python's multiprocessing, Python programs that fork,
//! and programs whose copies load libraries. The finding `repeated_child_work` shows it in its evidence, a row for each thing that is
//! loaded, and carries it to the fix `preload_in_zygote`, which knows no recording. Paths are foreign text.

use crate::finding::{Evidence, row};
use crate::launch_facts::LaunchFacts;
use crate::starts::children::Origin;
use crate::starts::repeated_starts::{LEAST_SIBLINGS, Siblings, Start};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;

/// The fix: a parent that has done it forks the children.
pub const PRELOAD_IN_ZYGOTE: &str = "preload_in_zygote";

/// Loads at most. pandas has 700 modules.
const MOST_LOADS: usize = 2_000;

/// Bytes of their paths at most: a list of libraries is the value of one variable, which has at most 128 KiB (`MAX_ARG_STRLEN`, execve(2)).
const MOST_BYTES: usize = 100_000;

/// What a child of multiprocessing is executed with (`multiprocessing/spawn.py`, `get_command_line`).
const SPAWNED: &str = "from multiprocessing.spawn import spawn_main";

/// How a process is brought to load something before it forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Python's multiprocessing executes the children; its fork server would import modules and fork them.
    PythonSpawned,
    /// A Python process forks them; it would import modules before.
    PythonForked,
    /// Another process forks them; the dynamic linker would load libraries with it.
    Libraries,
}

impl Way {
    /// The word in evidence.
    fn name(self) -> &'static str {
        match self {
            Self::PythonSpawned => "python_spawned",
            Self::PythonForked => "python_forked",
            Self::Libraries => "libraries",
        }
    }
}

/// What children load again, and how they would inherit it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InheritedLoads {
    /// How.
    pub way: Way,
    /// In the order of loading: files of libraries; files of modules, without what follows the name.
    pub loads: Vec<String>,
}

impl InheritedLoads {
    /// What these siblings load; `None` where they load nothing, or where their parent could not be brought to load it.
    pub(crate) fn of(facts: &LaunchFacts<'_>, siblings: &Siblings<'_>) -> Option<Self> {
        let line = |start: &Start| facts.processes.get(start.process).map_or("", |one| one.command_line.as_str());
        let spawned: Vec<&Start> = siblings.starts.iter().filter(|start| line(start).contains(SPAWNED)).collect();
        let (children, is_spawned) = match siblings.origin {
            Origin::Executed if spawned.len() >= LEAST_SIBLINGS => (spawned, true),
            Origin::Executed => return None,
            Origin::Forked => (siblings.starts.iter().collect(), false),
        };
        let alike: HashSet<&str> = siblings.steps.iter().map(|step| step.until).collect();
        // The one with the most steps has loaded most of it.
        let child = children.into_iter().max_by_key(|start| start.steps)?;
        let mut opens: Vec<_> = facts.tables.opens.iter().filter(|open| open.process() == child.process).collect();
        opens.sort_by_key(|open| open.ts);
        let paths = || opens.iter().map(|open| open.path.as_str()).filter(|path| alike.contains(path));
        let modules = first_of_each(paths().filter_map(module));
        let (way, loads) = match (is_spawned, modules.is_empty()) {
            (true, false) => (Way::PythonSpawned, modules),
            (false, false) => (Way::PythonForked, modules),
            (true, true) => return None,
            (false, true) => {
                (Way::Libraries, first_of_each(paths().filter(|path| is_library(path)).map(str::to_owned)))
            }
        };
        let is_heeded = way == Way::Libraries || heeds_environment(line(child));
        (is_heeded && !loads.is_empty()).then_some(Self { way, loads })
    }

    /// A row for each load.
    pub(crate) fn evidence(&self) -> Evidence {
        let (what, how) = match self.way {
            Way::PythonSpawned => ("modules", "multiprocessing's fork server imports them (\"forkserver\")"),
            Way::PythonForked => ("modules", "their parent imports them before it forks"),
            Way::Libraries => ("libraries", "the dynamic linker loads them with their parent (LD_PRELOAD)"),
        };
        let rows = self.loads.iter().map(|load| {
            row([
                ("fix", PRELOAD_IN_ZYGOTE.into()),
                ("how", self.way.name().into()),
                ("loads", Value::from(load.as_str())),
            ])
        });
        Evidence {
            text: format!("The {what} that each of them loads, in this order, and would inherit where {how}."),
            rows: rows.collect(),
        }
    }
}

/// As many as there may be, each where it comes first.
fn first_of_each(paths: impl Iterator<Item = String>) -> Vec<String> {
    let (mut known, mut bytes) = (HashSet::new(), 0);
    let within = paths.filter(|path| known.insert(path.clone())).take(MOST_LOADS).take_while(|path| {
        bytes += path.len() + 1;
        bytes <= MOST_BYTES
    });
    within.collect()
}

/// The file of a module that is loaded from bytecode (PEP 3147) or a library (PEP 3149), without what follows its name; that of a package is
/// its directory.
fn module(path: &str) -> Option<String> {
    if !path.starts_with('/') || path.contains('\n') {
        return None;
    }
    let (directory, file) = path.rsplit_once('/')?;
    let (name, rest) = file.split_once('.')?;
    let is_library = rest.ends_with("so") && (rest.starts_with("cpython-") || rest.starts_with("abi3."));
    let folder = match rest.starts_with("cpython-") && rest.ends_with(".pyc") {
        true => directory.strip_suffix("/__pycache__")?,
        false if is_library => directory,
        false => return None,
    };
    match name {
        "" | "__main__" => None,
        "__init__" => Some(folder.to_owned()),
        name => Some(format!("{folder}/{name}")),
    }
}

/// A library that LD_PRELOAD can name: the list is split at spaces and colons (ld.so(8)).
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_named = name.ends_with(".so") || name.contains(".so.");
    is_named && path.starts_with('/') && !path.contains([' ', ':', '\n'])
}

/// Whether a Python with this command line looks into PYTHONPATH: not with -E or -I, and without `site` (-S) nothing there is run.
fn heeds_environment(line: &str) -> bool {
    let words = line.split(' ').skip(1);
    let options = words.take_while(|word| word.starts_with('-') && !matches!(*word, "-" | "-c" | "-m"));
    // Of these options the rest of the word is a value.
    let mut flags = options.filter(|word| !["--", "-W", "-X"].iter().any(|option| word.starts_with(option)));
    !flags.any(|word| word.contains(['E', 'I', 'S']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::starts::repeated_starts::siblings;
    use proptest::prelude::*;
    use slowpath_recording::Tables;

    /// Three children of pid 7 that open these files, one a millisecond; they execute `line`, or are copies where there is none.
    fn loads(line: Option<&str>, paths: &[&str]) -> Option<InheritedLoads> {
        let mut text = String::from(
            "== manifest\n{\"command\": [\"/bin/app\"], \"started\": 0, \"ended\": 1000000000}\n\
             == execs\nts pid start filename command_line dev ino\n1 7 1 /bin/app /bin/app 1 1\n",
        );
        for pid in [11, 12, 13] {
            text += &format!("== forks\nts pid start tid parent_pid parent_start\n2 {pid} 2 {pid} 7 1\n");
            if let Some(line) = line {
                text += "== execs\nts pid start filename command_line dev ino\n";
                text += &format!("3 {pid} 2 /bin/python3 \"{line}\" 1 2\n");
            }
            text += "== opens\nts pid start tid path flags result dev ino\n";
            for (at, path) in paths.iter().enumerate() {
                text += &format!("{} {pid} 2 {pid} {path} 0 3 1 9\n", (at + 1) * 1_000_000);
            }
        }
        let tables = Tables::from_text(&text).unwrap();
        let facts = LaunchFacts::new(&tables);
        let all = siblings(&facts);
        InheritedLoads::of(&facts, all.first()?)
    }

    const CHILD: &str =
        "/bin/python3 -c from multiprocessing.spawn import spawn_main; spawn_main(9) --multiprocessing-fork";
    const FILES: &[&str] = &[
        "/lib/libz.so.1",
        "/p/xml/__pycache__/__init__.cpython-311.pyc",
        "/p/xml/__pycache__/sax.cpython-311.opt-1.pyc",
        "/p/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so",
        "/p/xml/__pycache__/sax.cpython-311.opt-1.pyc",
        "/p/fast.abi3.so",
        "/p/data.json",
        "/p/__pycache__/__main__.cpython-311.pyc",
    ];

    #[test]
    fn modules_come_in_the_order_of_their_files_and_packages_are_their_directories() {
        let expected = ["/p/xml", "/p/xml/sax", "/p/lib-dynload/_json", "/p/fast"].map(str::to_owned).to_vec();
        let spawned = loads(Some(CHILD), FILES).unwrap();
        assert_eq!(spawned, InheritedLoads { way: Way::PythonSpawned, loads: expected.clone() });
        assert_eq!(loads(None, FILES).unwrap(), InheritedLoads { way: Way::PythonForked, loads: expected });
        let shown = spawned.evidence();
        assert_eq!((shown.rows.len(), &shown.rows[0]["how"]), (4, &"python_spawned".into()));
    }

    #[test]
    fn copies_of_other_programs_inherit_libraries_and_executed_programs_nothing() {
        let files = ["/lib/libLLVM.so.14", "/etc/passwd", "/a:b/libx.so", "libz.so", "/lib/plugin.so"];
        let expected = InheritedLoads {
            way: Way::Libraries,
            loads: ["/lib/libLLVM.so.14", "/lib/plugin.so"].map(str::to_owned).to_vec(),
        };
        assert_eq!(loads(None, &files), Some(expected));
        assert_eq!(loads(Some("/bin/python3 job.py"), FILES), None);
        assert_eq!(loads(None, &["/etc/passwd", "/etc/hosts"]), None);
        assert_eq!(loads(Some(CHILD), &["/lib/libz.so.1"]), None);
    }

    #[test]
    fn a_python_that_does_not_look_there_is_left_alone() {
        for line in ["-I", "-E", "-sE", "-S", "-B -I", "-Wignore -E"] {
            assert!(!heeds_environment(&format!("/bin/python3 {line} -c x")), "{line}");
        }
        for line in
            ["", "-B", "-Werror::ImportWarning", "-X importtime -I", "--check-hash-based-pycs always", "x -I", "- -I"]
        {
            assert!(heeds_environment(&format!("/bin/python3 {line}")), "{line}");
        }
        assert_eq!(loads(Some(&CHILD.replace("python3", "python3 -I")), FILES), None);
    }

    #[test]
    fn there_is_an_end_to_what_is_listed() {
        let many: Vec<String> = (0..3_000).map(|number| format!("/p/{number}")).collect();
        assert_eq!(first_of_each(many.iter().map(|path| path.as_str().to_owned())).len(), MOST_LOADS);
        let long: Vec<String> = (0..200).map(|number| format!("/p/{number}{}", "x".repeat(1_000))).collect();
        assert_eq!(first_of_each(long.into_iter()).len(), 99);
    }

    proptest! {
        #[test]
        fn any_path_is_a_module_or_none(path in "(/[a-z_.é]{0,12}){0,4}(cpython-3|abi3)?(.pyc|.so)?") {
            if let Some(module) = module(&path) {
                prop_assert!(path.starts_with('/') && module.starts_with('/') || module.is_empty());
            }
        }
    }
}
