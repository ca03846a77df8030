//! The built library from C, C++ and Python: what they get is what Rust gets, and what they declare is what there is.

use serde_json::Value;
use slowpath_guard::{Line, Options, Outcome, guard};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The shared library that cargo built for these tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let beside = test.parent().unwrap();
    let built = [beside.join("libslowpath_guard_c.so"), beside.join("../libslowpath_guard_c.so")];
    let built = built.into_iter().filter(|path| path.exists());
    let newest = built.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    newest.unwrap_or_else(|| panic!("no libslowpath_guard_c.so at {}", beside.display()))
}

/// A product that misses one artifact, which its policy can make, and has another.
struct Product {
    place: TempDir,
}

impl Product {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let product = Self { place };
        fs::write(product.at("there"), "").unwrap();
        let uid = fs::metadata(product.at("there")).unwrap().uid();
        let text = format!(
            "name = \"p\"\nversion = \"1\"\nstate = {:?}\n\
             [[artifact]]\nname = \"made\"\npaths = [{made:?}]\nfresh = \"readable\"\nfor = [{uid}]\n\
             repair = {{ command = [\"/usr/bin/touch\", {made:?}], as = {uid} }}\n\
             [[artifact]]\nname = \"there\"\npaths = [{:?}]\nfresh = \"readable\"\nfor = [{uid}]\n",
            product.at("state"),
            product.at("there"),
            made = product.at("made"),
        );
        fs::write(product.at("policy"), text).unwrap();
        fs::set_permissions(product.at("policy"), Permissions::from_mode(0o644)).unwrap();
        product
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }
}

fn ran(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// The code and the outcomes in what `program.c` and the Python script print.
fn said(output: &Output) -> (String, Vec<String>) {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let mut lines = text.lines();
    let code = lines.next().unwrap().to_owned();
    let outcome = |line: &str| {
        let line: Line = serde_json::from_str(line).unwrap();
        assert_eq!(line.user.as_deref(), Some("ann"));
        line.outcome.name().to_owned()
    };
    (code, lines.map(outcome).collect())
}

fn compiled(place: &Path, language: &str) -> PathBuf {
    let (program, directory) = (place.join(format!("program-{}", language.len())), library());
    let directory = directory.parent().unwrap();
    let mut command = Command::new("cc");
    command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-x", language]);
    command.arg(here("tests/program.c")).args(["-x", "none", "-I"]).arg(here("include"));
    command.arg("-L").arg(directory).arg(format!("-Wl,-rpath,{}", directory.display()));
    ran(command.args(["-lslowpath_guard_c", "-o"]).arg(&program));
    program
}

#[test]
fn a_program_in_c_and_one_in_cpp_check_and_repair() {
    for language in ["c", "c++"] {
        let product = Product::new();
        let program = compiled(product.place.path(), language);
        let found = said(&ran(Command::new(&program).arg(product.at("policy"))));
        assert_eq!(found, ("1".to_owned(), vec!["missing".to_owned(), "usable".to_owned()]), "{language}");
        assert!(!product.at("made").exists() && !product.at("state").exists(), "without a repair nothing changes");
        let repaired = said(&ran(Command::new(&program).arg(product.at("policy")).arg("repair")));
        assert_eq!(repaired, ("0".to_owned(), vec!["repaired".to_owned(), "usable".to_owned()]), "{language}");
        let wrong = ran(Command::new(&program).arg("/none/policy"));
        assert_eq!(String::from_utf8_lossy(&wrong.stdout), "2\n");
        assert!(String::from_utf8_lossy(&wrong.stderr).contains("/none/policy cannot be used"), "{wrong:?}");
    }
}

#[test]
fn the_header_declares_what_the_library_exports() {
    let symbols = ran(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let exported: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.rsplit(' ').next())
        .filter(|name| name.starts_with("slowpath_"))
        .collect();
    let header = fs::read_to_string(here("include/slowpath_guard.h")).unwrap();
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|line| line.ends_with(';') && line.contains('(') && !line.starts_with(' '))
        .filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next())
        .collect();
    assert_eq!(declared, exported);
}

const SCRIPT: &str = "
import json, sys, slowpath_guard
try:
    report = slowpath_guard.check(sys.argv[1], repair=len(sys.argv) > 2, user='ann')
except slowpath_guard.GuardError as error:
    print(error.code, error, sep='\\n', file=sys.stderr)
    print(error.code)
else:
    print(report.code)
    for line, outcome in zip(report.lines, report.outcomes, strict=True):
        assert line['outcome'] == outcome.value
        print(json.dumps(line))
";

fn python(words: &[&Path]) -> Output {
    let mut command = Command::new("/usr/bin/python3");
    command.env("PYTHONPATH", here("python")).env("SLOWPATH_GUARD_LIBRARY", library()).args(["-B", "-c", SCRIPT]);
    ran(command.args(words))
}

#[test]
fn python_checks_and_repairs_and_knows_every_outcome() {
    if !Path::new("/usr/bin/python3").exists() {
        println!("skipped: there is no /usr/bin/python3");
        return;
    }
    let product = Product::new();
    let policy = product.at("policy");
    assert_eq!(said(&python(&[&policy])).1, ["missing", "usable"]);
    assert_eq!(
        said(&python(&[&policy, Path::new("repair")])),
        ("0".to_owned(), vec!["repaired".into(), "usable".into()])
    );
    let wrong = python(&[Path::new("/none/policy")]);
    assert!(String::from_utf8_lossy(&wrong.stderr).starts_with("2\npolicy /none/policy cannot be used"), "{wrong:?}");
    let module = fs::read_to_string(here("python/slowpath_guard.py")).unwrap();
    for outcome in Outcome::ALL {
        let name = outcome.name();
        assert!(module.contains(&format!("    {} = \"{name}\"\n", name.to_uppercase())), "{name}");
    }
}

#[test]
fn a_line_has_the_columns_that_field_data_needs_and_nothing_that_names_the_machine() {
    let product = Product::new();
    let report = guard(&product.at("policy"), &Options::default()).unwrap();
    assert!(report.json_lines().lines().count() == 2 && report.exit_code() == 1);
    let (first, second): (Value, Value) = (
        serde_json::from_str(&report.lines[0].json()).unwrap(),
        serde_json::from_str(&report.lines[1].json()).unwrap(),
    );
    for key in ["time", "version", "metric", "value", "unit", "outcome", "artifact", "start_id"] {
        assert!(!first[key].is_null(), "{key}: {first}");
    }
    assert_eq!((&first["start_id"], &first["time"]), (&second["start_id"], &second["time"]));
    assert!(first.get("user").is_none(), "fleet sets rows aside whose user is null: {first}");
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    assert!(name.is_empty() || !report.json_lines().contains(&format!("\"{name}\"")));
    let again = guard(&product.at("policy"), &Options::default()).unwrap();
    assert_ne!(again.lines[0].start_id, report.lines[0].start_id);
}
