//! Which crate may know which.
//!
//! Data moves one way: `tables -> {capture, recording} -> analysis -> fix -> verify -> report`. An edge that is not in
//! [`ALLOWED`] fails the test run; whoever adds one says here why it does not turn the order round. An allowed edge that
//! nobody uses fails it as well: it would let the next one in without a reason.

use MayUse::{AnyOf, Exactly};
use serde_json::Value;
use std::collections::BTreeSet;

/// Crates of this workspace that one may name in any kind of dependency (normal, build, dev).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayUse {
    /// These, and it uses every one.
    Exactly(&'static [&'static str]),
    /// Any of these, and not all: for what joins the others.
    AnyOf(&'static [&'static str]),
}

impl MayUse {
    /// Their names without the prefix.
    fn names(self) -> &'static [&'static str] {
        match self {
            Exactly(names) | AnyOf(names) => names,
        }
    }
}

/// A crate, what it may depend on, and why no more.
pub struct Rule {
    /// Name without the prefix `slowpath-`.
    pub name: &'static str,
    /// What it may depend on.
    pub may_use: MayUse,
    /// Why the list ends where it does.
    pub why: &'static str,
}

const EVERYTHING: &[&str] = &[
    "tables",
    "process",
    "recording",
    "capture",
    "analysis",
    "fix",
    "experiment",
    "launch",
    "lab",
    "verify",
    "browse",
    "report",
    "symbols",
    "context",
    "seccomp",
    "syscall-cost",
    "ipc",
    "layout",
    "artifacts",
    "android",
    "guard",
    "session",
    "budget",
    "diagnose",
    "zygote",
    "import",
];

/// The order of the workspace.
pub const ALLOWED: &[Rule] = &[
    Rule { name: "tables", may_use: Exactly(&[]), why: "the vocabulary of all others" },
    Rule {
        name: "process",
        may_use: Exactly(&["seccomp"]),
        why: "privilege, identity, paths of root, and what passes between processes: small enough to be read as a whole, so it knows nothing \
              of slowpath; its sandboxes are filters, which seccomp compiles and installs",
    },
    Rule {
        name: "recording",
        may_use: Exactly(&["tables"]),
        why: "files hold rows; it knows not who fills or reads them",
    },
    Rule {
        name: "symbols",
        may_use: Exactly(&["tables", "process"]),
        why: "it knows machine code and ELF files, and from process where its own vdso is mapped; others know who recorded the frames, and \
              where they go",
    },
    Rule {
        name: "capture",
        may_use: Exactly(&["tables", "process", "recording"]),
        why: "fills rows and the manifest's lists; a conclusion in the recorder would need privilege and a target",
    },
    Rule {
        name: "analysis",
        may_use: Exactly(&["tables", "recording", "experiment", "artifacts"]),
        why: "explains recordings of any age and machine, so it never calls the recorder or a launch; of artifacts it asks what is one by \
              its name, never the disk; sets of recordings are compared by experiment, which is pure too",
    },
    Rule {
        name: "fix",
        may_use: Exactly(&["tables", "process", "recording", "analysis", "experiment", "artifacts"]),
        why: "turns findings into plans, with the random numbers of experiment for an order by seed, and plans into files that root may write \
              only where nobody else can (process); whether one helps is not for it to say",
    },
    Rule {
        name: "session",
        may_use: Exactly(&["tables", "process", "recording", "capture", "symbols", "experiment", "launch"]),
        why: "one recording from begin to end: it needs the recorder and the launch that hangs on it, and intervals for what it \
              measures of itself; what a recording means, and labs, stand above it",
    },
    Rule {
        name: "experiment",
        may_use: Exactly(&[]),
        why: "numbers in, verdicts out: it must be testable by simulation alone",
    },
    Rule {
        name: "launch",
        may_use: Exactly(&["tables", "process", "seccomp"]),
        why: "one launch; what is recorded of it hangs on its hooks, and what its filters are, others say",
    },
    Rule {
        name: "lab",
        may_use: Exactly(&["tables", "process", "launch"]),
        why: "describes mounts that launch carries out",
    },
    Rule {
        name: "verify",
        may_use: Exactly(&[
            "tables",
            "process",
            "recording",
            "capture",
            "analysis",
            "fix",
            "experiment",
            "launch",
            "session",
            "lab",
            "browse",
            "context",
            "zygote",
        ]),
        why: "runs and judges arms of targets that a session launches, and makes them of treatments (fix, which knows no arm); it records \
              what a lab must hold and nothing that is judged, so that the recorder's cost stays out of it",
    },
    Rule {
        name: "diagnose",
        may_use: Exactly(&[
            "tables",
            "process",
            "recording",
            "capture",
            "session",
            "analysis",
            "fix",
            "experiment",
            "launch",
            "lab",
            "verify",
            "artifacts",
        ]),
        why: "one path from a recording to verdicts, as types that are printed; it prints nothing",
    },
    Rule {
        name: "budget",
        may_use: Exactly(&["tables", "recording", "analysis", "experiment", "launch", "session", "verify"]),
        why: "judges numbers and recordings; it says how many launches a verdict takes, which verify makes, and has budgets and recordings read \
              as their user (session, on which verify stands)",
    },
    Rule {
        name: "browse",
        may_use: Exactly(&["tables", "process"]),
        why: "visits pages in a browser that others start and watch; whose a connection is, process asks the kernel",
    },
    Rule {
        name: "context",
        may_use: Exactly(&["tables", "process", "launch", "session", "lab", "seccomp"]),
        why: "reads what surrounds a process, that of a command while it is launched (session), and gives it to launches; what a difference \
              costs, others measure",
    },
    Rule {
        name: "seccomp",
        may_use: Exactly(&[]),
        why: "filters as instructions; who gets them, and what they cost, others know",
    },
    Rule {
        name: "syscall-cost",
        may_use: Exactly(&["tables", "experiment", "session", "context", "seccomp"]),
        why: "measures in one process, with filters from files of others (session); it launches nothing and shows nothing",
    },
    Rule {
        name: "ipc",
        may_use: Exactly(&["tables", "process", "recording", "experiment"]),
        why: "measures mechanisms between processes of its own, and turns the kernel's trace of a miss into a recording; it records no \
              program and prints nothing",
    },
    Rule {
        name: "layout",
        may_use: Exactly(&["tables", "process", "experiment", "launch", "session", "symbols", "fix", "verify"]),
        why: "follows one launch by its hooks and orders what it saw (random numbers: experiment), copies binaries by what a preload plan \
              needs (fix), has variants built as their user (session) and compared (verify), and says nothing of what a difference means",
    },
    Rule {
        name: "artifacts",
        may_use: Exactly(&["tables", "process"]),
        why: "says who can use which file, from facts; what that costs a launch, and who reports it, others know",
    },
    Rule {
        name: "android",
        may_use: Exactly(&["tables", "artifacts", "experiment", "import", "session"]),
        why: "reads what a device printed and runs the user's adb client; who may read a file is for artifacts to say, what launches show for \
              experiment (intervals), which bytes are a packet of a trace for import, and how work is done as the invoker for session, which \
              knows no device",
    },
    Rule {
        name: "guard",
        may_use: Exactly(&["tables", "process", "artifacts"]),
        why: "goes into products: it looks by the rules of artifacts, and knows users and gives up privilege by process; launching, recording, \
              explaining and judging have no place in a product's start",
    },
    Rule {
        name: "guard-c",
        may_use: Exactly(&["guard"]),
        why: "the same for other languages, in a package of its own: a shared library has no hash in its name, so nothing depends on it",
    },
    Rule {
        name: "import",
        may_use: Exactly(&["tables", "recording", "symbols", "analysis"]),
        why: "turns foreign traces into rows and a manifest, with names of code from files of this machine (symbols, which knows no trace); \
              what those mean is for others to say (analysis: its tests read back with it)",
    },
    Rule {
        name: "zygote",
        may_use: Exactly(&["process", "seccomp"]),
        why: "goes into products: it forks and isolates by the rules of process and installs filters of seccomp; what it saves, others measure",
    },
    Rule {
        name: "zygote-c",
        may_use: Exactly(&["zygote"]),
        why: "the same for other languages, in a package of its own, as guard-c",
    },
    Rule {
        name: "report",
        may_use: Exactly(&[
            "tables",
            "recording",
            "capture",
            "launch",
            "session",
            "analysis",
            "fix",
            "experiment",
            "verify",
            "context",
            "budget",
            "diagnose",
            "syscall-cost",
            "artifacts",
            "android",
            "guard",
            "import",
            "ipc",
            "layout",
            "zygote",
        ]),
        why: "shows results, publishes their schemas, and explains every name that one has (session: of counters); it starts nothing and \
              records nothing",
    },
    Rule { name: "cli", may_use: AnyOf(EVERYTHING), why: "wiring: the only one that sees all" },
    Rule {
        name: "foreign-data",
        may_use: AnyOf(EVERYTHING),
        why: "gives bytes to every parser of foreign data; nothing uses it but its tests and the fuzzers",
    },
    Rule {
        name: "house",
        may_use: Exactly(&["tables", "recording", "report"]),
        why: "reads what documents are generated from",
    },
];

/// `from` depends on `to`; both without the prefix.
pub type Edge = (String, String);

fn list(value: &Value, key: &str) -> Result<Vec<Value>, String> {
    value.get(key).and_then(Value::as_array).cloned().ok_or_else(|| format!("no list {key}"))
}

/// The dependencies inside the workspace, from the output of `cargo metadata --no-deps`, and the crates.
///
/// # Errors
/// The JSON is not what cargo prints.
pub fn edges(metadata: &Value) -> Result<(BTreeSet<String>, BTreeSet<Edge>), String> {
    let text = |value: &Value, key: &str| -> Result<String, String> {
        let text = value.get(key).and_then(Value::as_str).ok_or_else(|| format!("no {key} in {value}"))?;
        Ok(text.strip_prefix("slowpath-").unwrap_or(text).to_owned())
    };
    let packages = list(metadata, "packages")?;
    let crates = packages.iter().map(|package| text(package, "name")).collect::<Result<BTreeSet<_>, _>>()?;
    let mut edges = BTreeSet::new();
    for package in &packages {
        for dependency in list(package, "dependencies")? {
            // A path names a member; a crate of the same name from elsewhere has none.
            if dependency.get("path").is_some_and(Value::is_string) {
                edges.insert((text(package, "name")?, text(&dependency, "name")?));
            }
        }
    }
    Ok((crates, edges))
}

/// Crates from elsewhere that a member names in its manifest.
///
/// # Errors
/// The JSON is not what cargo prints.
pub fn foreign(metadata: &Value) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for package in list(metadata, "packages")? {
        for dependency in list(&package, "dependencies")? {
            if !dependency.get("path").is_some_and(Value::is_string) {
                names.extend(dependency.get("name").and_then(Value::as_str).map(str::to_owned));
            }
        }
    }
    Ok(names)
}

/// What is wrong: crates without a rule, rules without a crate, edges that no rule allows, and allowed ones that are none.
pub fn violations(rules: &[Rule], crates: &BTreeSet<String>, edges: &BTreeSet<Edge>) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in crates {
        if !rules.iter().any(|rule| rule.name == name) {
            wrong.push(format!(
                "{name} has no rule in crates/house/src/layering.rs: say what it may depend on, and why"
            ));
        }
    }
    for rule in rules.iter().filter(|rule| !crates.contains(rule.name)) {
        wrong.push(format!("there is a rule for {}, which does not exist", rule.name));
    }
    for (from, to) in edges {
        let Some(rule) = rules.iter().find(|rule| rule.name == from) else { continue };
        if !rule.may_use.names().contains(&to.as_str()) {
            wrong.push(format!("{from} depends on {to}, against the order of the workspace: {}", rule.why));
        }
    }
    for rule in rules.iter().filter(|rule| crates.contains(rule.name)) {
        let Exactly(names) = rule.may_use else { continue };
        for name in names {
            if !edges.contains(&(rule.name.to_owned(), (*name).to_owned())) {
                wrong.push(format!("{} may use {name} and does not: take it out of the rule", rule.name));
            }
        }
    }
    wrong
}

/// Crates that rules lead back to themselves: a table of rules that allows a circle orders nothing.
pub fn circles(rules: &[Rule]) -> Vec<String> {
    let mut open: Vec<&Rule> = rules.iter().collect();
    // Takes away whoever depends on nothing that is left; what cannot be taken away is part of a circle.
    loop {
        let names: BTreeSet<&str> = open.iter().map(|rule| rule.name).collect();
        let before = open.len();
        open.retain(|rule| rule.may_use.names().iter().any(|used| names.contains(used)));
        if open.len() == before {
            return open.iter().map(|rule| rule.name.to_owned()).collect();
        }
    }
}

/// The rules as ARCHITECTURE.md has them: a line for each crate, indented as code.
pub fn shown(rules: &[Rule]) -> String {
    const COLUMNS: usize = 120;
    let width = rules.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for rule in rules {
        let names = match rule.may_use {
            Exactly(names) => names,
            AnyOf(_) => &["all others"],
        };
        let mut line = format!("    {:width$}", rule.name);
        for (index, name) in names.iter().enumerate() {
            let piece = if index == 0 { format!(" -> {name}") } else { format!(", {name}") };
            if line.len() + piece.len() + 1 > COLUMNS {
                text.push_str(&line);
                text.push_str(",\n");
                line = format!("{:indent$}{name}", "", indent = 4 + width + 4);
            } else {
                line.push_str(&piece);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(name: &'static str, may_use: &'static [&'static str]) -> Rule {
        Rule { name, may_use: Exactly(may_use), why: "made up" }
    }

    fn metadata(analysis_uses: &[&str]) -> Value {
        let uses = |names: &[&str]| -> Vec<Value> {
            names.iter().map(|name| json!({"name": format!("slowpath-{name}"), "path": "/x", "kind": "dev"})).collect()
        };
        json!({"packages": [
            {"name": "slowpath-tables", "dependencies": [{"name": "serde"}]},
            {"name": "slowpath-capture", "dependencies": uses(&["tables"])},
            {"name": "slowpath-analysis", "dependencies": uses(analysis_uses)},
        ]})
    }

    fn check(metadata: &Value) -> Vec<String> {
        let rules = [rule("tables", &[]), rule("capture", &["tables"]), rule("analysis", &["tables"])];
        let (crates, edges) = edges(metadata).unwrap();
        violations(&rules, &crates, &edges)
    }

    #[test]
    fn edges_in_the_order_pass() {
        assert_eq!(check(&metadata(&["tables"])), Vec::<String>::new());
    }

    #[test]
    fn an_edge_against_the_order_is_named_even_when_only_tests_use_it() {
        let wrong = check(&metadata(&["tables", "capture"]));
        assert_eq!(wrong, ["analysis depends on capture, against the order of the workspace: made up"]);
    }

    #[test]
    fn an_allowed_edge_that_nobody_uses_is_named_except_where_any_of_several_may_be_used() {
        let (crates, edges) = edges(&metadata(&["tables"])).unwrap();
        let check = |of_analysis| {
            let analysis = Rule { name: "analysis", may_use: of_analysis, why: "made up" };
            violations(&[rule("tables", &[]), rule("capture", &["tables"]), analysis], &crates, &edges)
        };
        let wrong = check(Exactly(&["tables", "capture"]));
        assert_eq!(wrong, ["analysis may use capture and does not: take it out of the rule"]);
        assert_eq!(check(AnyOf(&["tables", "capture"])), Vec::<String>::new());
        assert_eq!(
            check(AnyOf(&["capture"])),
            ["analysis depends on tables, against the order of the workspace: made up"]
        );
    }

    #[test]
    fn a_crate_without_a_rule_and_a_rule_without_a_crate_are_named() {
        let (crates, edges) = edges(&metadata(&[])).unwrap();
        let wrong = violations(&[rule("tables", &[]), rule("analysis", &[]), rule("gone", &[])], &crates, &edges);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].starts_with("capture has no rule"));
        assert!(wrong[1].contains("gone"));
    }

    #[test]
    fn a_circle_in_the_rules_is_found() {
        let rules = [rule("a", &["b"]), rule("b", &["c"]), rule("c", &["b"]), rule("d", &[])];
        assert_eq!(circles(&rules), ["a", "b", "c"]);
        assert_eq!(circles(&[rule("a", &["b"]), rule("b", &[])]), Vec::<String>::new());
    }

    #[test]
    fn rules_are_shown_as_a_list() {
        let rules =
            [rule("a", &[]), rule("long", &["a"]), Rule { name: "cli", may_use: AnyOf(&["a"]), why: "made up" }];
        assert_eq!(shown(&rules), "    a\n    long -> a\n    cli  -> all others\n");
    }

    #[test]
    fn text_that_cargo_does_not_print_is_an_error() {
        assert!(edges(&json!({"packages": [{"dependencies": []}]})).is_err());
    }
}
