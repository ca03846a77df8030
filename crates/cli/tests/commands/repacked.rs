//! `slowpath layout repack`: copies of real programs and libraries run as what they were copied from.

use crate::running::*;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library that throws, with storage of threads, constructors, and data that relocations write.
const LIBRARY: &str = r#"
#include <stdexcept>
#include <string>
struct Counted { static int made; Counted() { made++; } };
int Counted::made;
static Counted counted[300];
thread_local int depth = 7;
static const char *const words[] = { "one", "two", "three" };
int deeper(int n) {
    if (n == 0) throw std::runtime_error(std::string("thrown at depth ") + std::to_string(depth) + " " + words[2]);
    depth++;
    return deeper(n - 1) + Counted::made;
}
"#;

/// Its user, with a mebibyte of zeros, some of which it changes.
const PROGRAM: &str = r#"
#include <cstdio>
#include <exception>
#include <thread>
int deeper(int n);
static char zeros[1 << 20];
static int ones[40000] = { 1, 2, 3 };
int main() {
    zeros[500000] = 1;
    unsigned sum = 0;
    for (char one : zeros) sum += one;
    for (int one : ones) sum += one;
    auto work = [] { try { deeper(5); } catch (const std::exception &e) { std::puts(e.what()); } };
    work();
    std::thread(work).join();
    std::printf("%u\n", sum);
    return 5;
}
"#;

fn compiled(words: &[&str], place: &Path) {
    let done = Command::new("g++").args(["-O1", "-g"]).args(words).current_dir(place).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn repack(binary: &Path, order: &Path, copy: &Path) -> Done {
    run(slowpath(["layout", "repack", "--json"]).arg(binary).arg("--order").arg(order).arg("-o").arg(copy))
}

/// Standard output and exit code of a program that may need a library of this directory.
fn outcome(program: &Path, libraries: &Path) -> (String, Option<i32>) {
    let done = Command::new(program).env("LD_LIBRARY_PATH", libraries).output().unwrap();
    (String::from_utf8_lossy(&done.stdout).into_owned(), done.status.code())
}

#[test]
fn copies_of_programs_and_libraries_run_as_they_did() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    fs::write(at("library.cc"), LIBRARY).unwrap();
    fs::write(at("program.cc"), PROGRAM).unwrap();
    compiled(&["-shared", "-fPIC", "-o", "libdeep.so", "library.cc"], place.path());
    compiled(&["-pie", "-fPIE", "-o", "pie", "program.cc", "-L.", "-ldeep"], place.path());
    compiled(&["-no-pie", "-fno-pie", "-o", "fixed", "program.cc", "-L.", "-ldeep"], place.path());
    compiled(&["-static", "-o", "static", "program.cc", "library.cc"], place.path());
    let copies = at("copies");
    fs::create_dir(&copies).unwrap();
    for name in ["pie", "fixed", "static"] {
        let before = outcome(&at(name), place.path());
        assert_eq!(before.1, Some(5), "{name}");
        let trace = at(&format!("{name}.trace"));
        let libraries = format!("LD_LIBRARY_PATH={}", place.path().display());
        let words = ["layout", "trace", "--quiet", "--all-objects", "--env", &libraries, "-o"];
        run(slowpath(words).arg(&trace).arg("--").arg(at(name))).fails_with(5, &[]);
        let copy = copies.join(name);
        let done = repack(&at(name), &trace, &copy);
        done.succeeds();
        let made = done.json();
        assert!(made["needed_pages"].as_u64() > Some(0) && made["code_only"] == true, "{made}");
        assert!(made["headers"].as_u64() > made["headers_before"].as_u64(), "{made}");
        assert_eq!(outcome(&copy, place.path()), before, "{name}");
        if name != "static" {
            repack(&at("libdeep.so"), &trace, &copies.join("libdeep.so")).succeeds();
            assert_eq!(outcome(&copy, &copies), before, "{name} with a copy of the library");
        }
        // The tracer, which goes by addresses, sees the same functions; two threads race for their order, and for whether one that
        // is joined has to be waited for.
        let uses = |program: &Path, to: &Path| {
            run(slowpath(["layout", "trace", "--quiet", "--env", &libraries, "-o"]).arg(to).arg("--").arg(program))
                .fails_with(5, &[]);
            let trace: serde_json::Value = serde_json::from_slice(&fs::read(to).unwrap()).unwrap();
            let uses = trace["first_uses"].as_array().unwrap();
            let waits = |one: &&serde_json::Value| one["name"].as_str().is_some_and(|name| name.contains("futex"));
            uses.iter().filter(|one| !waits(one)).map(|one| one["address"].as_u64().unwrap()).collect::<BTreeSet<_>>()
        };
        assert_eq!(uses(&copy, &at("again")), uses(&at(name), &at("before")), "{name}");
        // Symbols and sections are where they were.
        let symbols = |path: &Path| Command::new("nm").arg(path).output().unwrap().stdout;
        assert_eq!(symbols(&copy), symbols(&at(name)));
    }
}

/// A program whose data hold addresses of its own data and functions, of a library's, and of functions that are chosen when it starts.
const POINTERS: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <cmath>
int deeper(int n);
static int chosen_now() { return 40; }
extern "C" int (*choose())() { return chosen_now; }
int chosen() __attribute__((ifunc("choose")));
static int one() { return 1; }
struct Base { virtual int value() const { return 1; } virtual ~Base() {} };
struct Derived : Base { int value() const override { return 2; } };
thread_local int *own;
int number = 5;
int *const to_number = &number;
int (*table[])() = { one, chosen, one, std::rand };
double (*of_library)(double) = std::floor;
const char *const words[] = { "first", "second", "third" };
struct Early { int seen; Early() : seen(*to_number) {} } early;
int main(int, char **arguments) {
    Base *made = new Derived;
    own = to_number;
    try { deeper(3); } catch (const std::exception &e) { std::puts(e.what()); }
    std::printf("%s %d %d %d %d %.0f %d\n", words[2], table[0](), table[1](), made->value(), *own, of_library(2.5), early.seen);
    delete made;
    return arguments[0] == nullptr || stdout == nullptr;
}
"#;

#[test]
fn programs_whose_relocations_are_done_in_the_copy_run_as_they_did() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    fs::write(at("library.cc"), LIBRARY).unwrap();
    fs::write(at("pointers.cc"), POINTERS).unwrap();
    compiled(&["-shared", "-fPIC", "-o", "libdeep.so", "library.cc"], place.path());
    let outcome = |program: &Path, variable: &str| {
        let mut command = Command::new(program);
        let done = command.env("LD_LIBRARY_PATH", place.path()).env(variable, "1").output().unwrap();
        let left: BTreeSet<String> = std::iter::once(String::from_utf8_lossy(&done.stderr).into_owned()).collect();
        (String::from_utf8_lossy(&done.stdout).into_owned(), done.status.code(), left)
    };
    for (name, flags) in [
        ("lazy", &["-Wl,-z,lazy"][..]),
        ("now", &["-Wl,-z,now", "-Wl,-z,relro"]),
        ("packed", &["-Wl,-z,pack-relative-relocs"]),
        ("lld", &["-fuse-ld=lld"]),
    ] {
        let words = [&["-pie", "-fPIE", "-o", name, "pointers.cc", "-L.", "-ldeep"], flags].concat();
        compiled(&words, place.path());
        let before = outcome(&at(name), "UNUSED");
        assert_eq!(
            (before.0.as_str(), before.1),
            ("thrown at depth 10 three\nthird 1 40 2 5 2 5\n", Some(0)),
            "{name}"
        );
        let copy = at(&format!("{name}.prelinked"));
        let done = run(slowpath(["layout", "repack", "--json", "--prelink"]).arg(at(name)).arg("-o").arg(&copy));
        done.succeeds();
        let made = done.json();
        assert!(made["relocations"].as_u64() > Some(5) && made["relocated_pages"].as_u64() > Some(0), "{made}");
        assert_eq!((&made["needed_pages"], &made["headers"]), (&0.into(), &made["headers_before"]), "{made}");
        for variable in ["UNUSED", "LD_BIND_NOW"] {
            assert_eq!(outcome(&copy, variable), before, "{name} {variable}");
        }
        // Another reader finds no relocation of the program alone, and symbols where they are now.
        let readelf = |words: &[&str]| {
            let done = Command::new("readelf").args(words).arg(&copy).output().unwrap();
            String::from_utf8(done.stdout).unwrap()
        };
        assert!(!readelf(&["-rW"]).contains("R_X86_64_RELATIVE"), "{name}");
        assert!(readelf(&["-hW"]).contains("EXEC (Executable file)"), "{name}");
        let symbols = readelf(&["-sW"]);
        let entry =
            readelf(&["-hW"]).lines().find_map(|line| line.split_once("point address:")).unwrap().1.trim().to_owned();
        let start = symbols.lines().find(|line| line.ends_with(" _start")).unwrap();
        assert!(start.contains(&format!("{:016x}", u64::from_str_radix(&entry[2..], 16).unwrap())), "{start} {entry}");
        // Its pages can be put together, too.
        fs::write(at("plan"), plan(&at(name), fs::metadata(at(name)).unwrap().len(), &[(1, 1), (3, 1)])).unwrap();
        let words = ["layout", "repack", "--json", "--prelink", "--order"];
        run(slowpath(words).arg(at("plan")).arg(at(name)).arg("-o").arg(&copy)).succeeds();
        assert_eq!(outcome(&copy, "UNUSED"), before, "{name}");
    }
    // A library, and what has an address already.
    let refused = |of: &Path| run(slowpath(["layout", "repack", "--prelink"]).arg(of).arg("-o").arg(at("none")));
    refused(&at("libdeep.so")).fails_with(2, &["not a position-independent program", "only programs are"]);
    refused(&at("lazy.prelinked")).fails_with(2, &["not a position-independent program"]);
}

/// A plan of pages of one file, as `slowpath preload plan` writes it.
fn plan(of: &Path, size: u64, ranges: &[(u64, u64)]) -> String {
    let header = serde_json::json!({
        "schema": "slowpath-preload-plan/1",
        "provenance": { "created": "2026-01-01T00:00:00Z", "command": ["x"], "recordings": [] },
        "options": slowpath_fix::preload_plan::PlanOptions::default(),
        "files": 1,
        "ranges": ranges.len(),
    });
    let file = serde_json::json!({ "path": of, "size": size, "mtime_ns": 0 });
    let ranges = ranges.iter().map(|(page, pages)| format!("[0,{page},{pages}]\n"));
    format!("{header}\n{file}\n{}", ranges.collect::<String>())
}

#[test]
fn a_plan_says_which_pages_of_all_kinds_and_of_which_file() {
    let place = place();
    let at = |name: &str| -> PathBuf { place.path().join(name) };
    let program = fs::canonicalize("/bin/sh").unwrap();
    let size = fs::metadata(&program).unwrap().len();
    fs::write(at("plan"), plan(&program, size, &[(20, 2), (4, 1), (9, 3), (size / 4096, 1)])).unwrap();
    let done = repack(Path::new("/bin/sh"), &at("plan"), &at("copy"));
    done.succeeds();
    let made = done.json();
    assert_eq!((&made["needed_pages"], &made["code_only"]), (&8.into(), &false.into()), "{made}");
    let echo = Command::new(at("copy")).args(["-c", "echo $((6 * 7))"]).output().unwrap();
    assert_eq!(echo.stdout, b"42\n");
    assert_eq!(fs::metadata(at("copy")).unwrap().permissions().mode() & 0o7777, 0o755);
    // The same page again and again is there once; a file is no copy of itself.
    fs::write(at("plan"), plan(&program, size, &vec![(0, size / 4096); 500_000])).unwrap();
    let done = repack(&at("copy"), &at("plan"), &at("copy"));
    done.fails_with(2, &["is the binary itself"]);
    let done = repack(&program, &at("plan"), &at("copy"));
    done.succeeds();
    assert_eq!(done.json()["needed_pages"], size / 4096);
    // A file that changed, another file, a file without segments.
    fs::write(at("plan"), plan(&program, size + 1, &[(20, 2)])).unwrap();
    repack(&program, &at("plan"), &at("none")).fails_with(2, &["is not the file any more that the plan was made for"]);
    fs::write(at("plan"), plan(Path::new("/bin/other"), size, &[(20, 2)])).unwrap();
    repack(&program, &at("plan"), &at("none")).fails_with(2, &["the plan has no page of", "preload plan"]);
    fs::write(at("text"), "#!/bin/sh\n").unwrap();
    repack(&at("text"), &at("plan"), &at("none")).fails_with(2, &["cannot be read"]);
    assert!(!at("none").exists());
}
