//! Findings `relocation_cost` and `many_libraries` on compiled programs: pages and relocations that are known from the source, what
//! flags take away, and near misses.

use crate::recorded_case::{RecordedCase, row, rows};
use crate::running::*;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const RELOCATIONS: &str = "relocation_cost";
const LIBRARIES: &str = "many_libraries";

/// Relocations of the program: one in each 64 bytes, so there are 64 a page.
const ENTRIES: u64 = 60_000;
/// Pages that hold them.
const PAGES: u64 = ENTRIES * 64 / 4096;

fn compiled(place: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (code, program) = (place.join(format!("{name}.c")), place.join(name));
    fs::write(&code, source).unwrap();
    let done = Command::new("gcc").args(["-O1", "-o"]).arg(&program).arg(&code).args(flags).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

/// A table with an address in every entry, of which main uses none.
fn table(entries: u64) -> String {
    format!(
        "int x; struct entry {{ int *at; char more[56]; }};\n\
         struct entry table[{entries}] = {{ [0 ... {}] = {{ &x, \"\" }} }};\n\
         int main(int argc, char **argv) {{ (void)argv; return argc > 9 ? *table[argc].at : 0; }}\n",
        entries - 1
    )
}

fn recorded(place: &Path, program: &Path) -> RecordedCase {
    let out = place.join("out");
    let _ = fs::remove_dir_all(&out);
    let target = [program.to_str().unwrap()];
    RecordedCase::record(&out, &["--quiet", "--off-cpu"], &target, &[RELOCATIONS, LIBRARIES])
}

/// The row of the program itself.
fn of_program<'a>(finding: &'a Value, program: &Path) -> &'a Value {
    let found = rows(finding, "pages_written").into_iter().find(|row| row["object"] == program.to_str().unwrap());
    found.unwrap_or_else(|| panic!("{finding:#}"))
}

#[test]
fn pages_of_relocations_are_counted_and_packed_ones_read_less_of_the_file() {
    if !root() {
        return;
    }
    let place = place();
    let plain = compiled(place.path(), "plain", &table(ENTRIES), &["-fPIE", "-pie"]);
    let case = recorded(place.path(), &plain);
    let finding = case.one();
    assert_eq!((&finding["name"], &finding["confidence"]), (&RELOCATIONS.into(), &"high".into()));
    let of = of_program(finding, &plain);
    let written = of["pages_written"].as_u64().unwrap();
    assert!((PAGES..PAGES + 8).contains(&written), "{written} of {PAGES}: {of:#}");
    let relative = of["relative"].as_u64().unwrap();
    assert!((ENTRIES..ENTRIES + 20).contains(&relative), "{of:#}");
    // 24 bytes each, of which a fault maps as many pages as the kernel finds around it.
    let read = of["table_pages"].as_u64().unwrap();
    assert!((2..=ENTRIES * 24 / 4096 + 2).contains(&read), "{of:#}");
    let settings: Vec<&str> = rows(finding, "setting").iter().map(|row| row["setting"].as_str().unwrap()).collect();
    assert_eq!(settings, ["-no-pie", "-Wl,-z,pack-relative-relocs"]);
    assert!(row(finding, "private_kib")["private_kib"].as_u64().unwrap() >= PAGES * 4, "{finding:#}");

    let packed = compiled(place.path(), "packed", &table(ENTRIES), &["-fPIE", "-pie", "-Wl,-z,pack-relative-relocs"]);
    let case = recorded(place.path(), &packed);
    let of = of_program(case.one(), &packed);
    assert!(of["packed"].as_u64().unwrap() >= ENTRIES && of["relative"] == 0, "{of:#}");
    assert!(of["pages_written"].as_u64().unwrap() >= PAGES, "{of:#}");
    assert!(of["table_pages"].as_u64().unwrap() < read, "{of:#}");
}

#[test]
fn a_program_at_a_fixed_address_a_static_one_and_one_with_few_relocations_have_none() {
    if !root() {
        return;
    }
    let place = place();
    let near = [
        ("fixed", ENTRIES, ["-fno-pie", "-no-pie"]),
        ("static", ENTRIES, ["-static", "-no-pie"]),
        ("few", 500, ["-fPIE", "-pie"]),
    ];
    for (name, entries, flags) in near {
        recorded(place.path(), &compiled(place.path(), name, &table(entries), &flags)).none();
    }
}

#[test]
fn each_of_many_libraries_has_its_lookups_and_a_few_are_none() {
    if !root() {
        return;
    }
    let place = place();
    let (empty, libraries) = (place.path().join("empty"), place.path().join("libraries"));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&libraries).unwrap();
    let program = |count: u32| {
        let (mut calls, mut flags) = ("int main(void) { return 0".to_owned(), Vec::new());
        let mut declared = String::new();
        for number in 0..count {
            let source = format!("int value{number}(void) {{ return 0; }}\n");
            let library = format!("lib{number}.so");
            let path = libraries.join(&library);
            let built = compiled(place.path(), &library, &source, &["-shared", "-fPIC"]);
            fs::rename(built, &path).unwrap();
            write!(calls, " + value{number}()").unwrap();
            writeln!(declared, "int value{number}(void);").unwrap();
            flags.push(path.to_str().unwrap().to_owned());
        }
        // Looked for in a directory that has none of them first. Names without a path: what a library is called when it has no SONAME.
        let path = format!("-Wl,-rpath,{}:{}", empty.display(), libraries.display());
        let names: Vec<String> = (0..count).map(|number| format!("-l:lib{number}.so")).collect();
        let search = format!("-L{}", libraries.display());
        let flags: Vec<&str> =
            [search.as_str(), path.as_str()].into_iter().chain(names.iter().map(String::as_str)).collect();
        compiled(place.path(), &format!("program{count}"), &format!("{declared}{calls}; }}\n"), &flags)
    };
    let many = program(60);
    let case = recorded(place.path(), &many);
    let found = case.findings.iter().find(|finding| finding["name"] == LIBRARIES);
    let finding = found.unwrap_or_else(|| panic!("{:#?}", case.findings));
    // And the C library.
    assert_eq!(finding["subject"]["libraries"], 61, "{finding:#}");
    let programs = rows(finding, "libraries");
    assert!(programs[0]["lookups"].as_u64().unwrap() >= 121, "{finding:#}");
    for library in rows(finding, "load_ms").into_iter().filter(|row| row.get("library").is_some()) {
        assert!(library["mapped_kib"].as_u64().unwrap() >= 16, "{library:#}");
        let path = library["library"].as_str().unwrap();
        // In the directory without any first; for the first library in those for other CPUs beneath it, too.
        let lookups = library["lookups"].as_u64().unwrap();
        assert!(!path.starts_with(libraries.to_str().unwrap()) || lookups >= 2, "{library:#}");
    }
    recorded(place.path(), &program(6)).none();
}
