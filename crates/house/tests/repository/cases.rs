//! Every finding has a program of which it is true, declared in `cases/`: what the acceptance runs `cases` and `diagnosed-cases` hold
//! slowpath against. `bench/accept/case_truths.py` says what the declarations mean.

use slowpath_house::root;
use slowpath_report::explain::{self, NameKind};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// Names in a declaration: of findings that must be there, and of those that may be.
#[derive(Default)]
struct Declared {
    true_of_it: BTreeSet<String>,
    may_be: BTreeSet<String>,
}

impl Declared {
    fn add(&mut self, case: &Table) {
        self.may_be.extend(words(case, "may"));
        for variant in case.get("variants").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table)
        {
            self.true_of_it.extend(variant.get("finding").and_then(Value::as_str).map(str::to_owned));
            self.true_of_it.extend(words(variant, "also"));
            self.may_be.extend(words(variant, "may"));
        }
    }
}

/// The list of words that has this name.
fn words(table: &Table, name: &str) -> Vec<String> {
    let list = table.get(name).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn registry() -> BTreeSet<String> {
    explain::all().into_iter().filter(|one| one.kind == NameKind::Finding).map(|one| one.name).collect()
}

/// What is wrong with declarations, in sentences.
fn wrong(registry: &BTreeSet<String>, declared: &Declared) -> Vec<String> {
    let unproved = registry.difference(&declared.true_of_it).map(|name| format!("no case in cases/ has {name}"));
    let named = declared.true_of_it.union(&declared.may_be).filter(|name| !registry.contains(*name));
    unproved.chain(named.map(|name| format!("a case declares {name}, which is no finding"))).collect()
}

#[test]
fn a_finding_without_a_case_and_a_name_that_is_no_finding_are_found() {
    let text =
        "may = [\"c\"]\n[[variants]]\narguments = []\nfinding = \"a\"\nalso = [\"b\"]\n[[variants]]\narguments = []\n";
    let mut declared = Declared::default();
    declared.add(&toml::from_str(text).unwrap());
    let registry = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(wrong(&registry(&["a", "b", "c"]), &declared), ["no case in cases/ has c"]);
    assert_eq!(wrong(&registry(&["a", "b"]), &declared), ["a case declares c, which is no finding"]);
}

#[test]
fn every_finding_has_a_case_with_a_known_answer() {
    let mut declared = Declared::default();
    let mut cases = 0;
    for folder in std::fs::read_dir(root().join("cases")).unwrap().map(|entry| entry.unwrap().path()) {
        // What a case of another command does stands in its own files.
        let Ok(text) = std::fs::read_to_string(folder.join("truth.toml")) else { continue };
        let case: Table = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let programs = ["program", "command"].iter().filter(|name| case.contains_key(**name)).count();
        assert_eq!(programs, 1, "{}: program or command", folder.display());
        declared.add(&case);
        cases += 1;
    }
    assert!(cases > 10, "only {cases} cases found: the search is broken");
    let wrong = wrong(&registry(), &declared);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
