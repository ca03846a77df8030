//! Findings `relocation_cost` and `many_libraries` on recordings with answers known by hand.

use slowpath_analysis::findings::{many_libraries, of_recordings, relocation_cost};
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::Tables;
use std::fmt::Write as _;

const PROGRAM: u64 = 2;
const LINKER: u64 = 3;
const LINKER_CODE: u64 = 0x7f00_0000_0000;
const PROGRAM_CODE: u64 = 0x5500_0000_0000;
const PROGRAM_DATA: u64 = 0x5500_0010_0000;

/// `tool`, released at 0 and ready after 20 ms, with rows of its own.
fn recording(rows: &str) -> Tables {
    Tables::from_text(&format!(
        r#"
== manifest
{{"command": ["/bin/tool"], "started": 0, "ended": 20000100,
 "launch": {{"released": 0, "ready": 20000000, "ready_when": "exit", "outcome": "ready"}},
 "probes": [{{"name": "off_cpu", "state": "attached"}}]}}
== execs
ts pid start filename  dev ino
10 7   1     /bin/tool 1   {PROGRAM}
== exits
ts       pid start tid last
20000000 7   1     7   true
== files
dev ino path
1   {PROGRAM} /bin/tool
1   {LINKER}  /lib64/ld-linux-x86-64.so.2
== sections
dev ino name          kind        offset size
1   {PROGRAM} .dynsym       relocations 4096   8192
1   {PROGRAM} .rela.dyn     relocations 12288  409600
1   {PROGRAM} .text         text        425984 4096
1   {PROGRAM} .data.rel.ro  data        1048576 4096000
1   {LINKER}  .text         text        4096   4096
== mappings
ts pid start op   address length prot dev ino offset
11 7   1     exec {PROGRAM_CODE} 430080 5 1 {PROGRAM} 0
11 7   1     exec {PROGRAM_DATA} 4096000 3 1 {PROGRAM} 1048576
11 7   1     exec {LINKER_CODE} 8192 5 1 {LINKER} 0
{rows}"#
    ))
    .unwrap()
}

const FAULTS: &str = "== faults\nts duration pid start tid address ip kind kernel\n";

/// `count` faults of the linker from `ts` on, `every` ns apart and 500 ns long, in consecutive pages.
fn linkers(ts: u64, every: u64, address: u64, count: u64, kind: &str) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let (at, page) = (ts + number * every, address + number * 4096);
        writeln!(text, "{at} 500 7 1 7 {page} {} {kind} false", LINKER_CODE + 4096).unwrap();
        text
    })
}

/// The first instruction of the program itself.
fn main_begins(ts: u64) -> String {
    let code = PROGRAM_CODE + 425_984;
    format!("{ts} 500 7 1 7 {code} {code} minor false\n")
}

const RELOCATIONS: &str = "== relocations\ndev ino program relative symbolic table_bytes libraries bind_now gnu_hash\n1 2 true 17000 20 408480 1 true true\n";

fn found(name: &str, tables: &Tables) -> Option<Finding> {
    of_recordings(&[tables], None).into_iter().find(|finding| finding.name == name)
}

fn relocations(rows: &str) -> Option<Finding> {
    found(relocation_cost::NAME, &recording(rows))
}

#[test]
fn pages_that_the_linker_writes_before_main_are_found_with_the_object_and_what_would_end_it() {
    // Three pages of table at 20 us, then 40 pages of data 25 us apart: the last has 25 us until main, which is another's code.
    let table = linkers(1_000_000, 20_000, PROGRAM_CODE + 12_288, 3, "minor");
    let data = linkers(1_060_000, 25_000, PROGRAM_DATA, 40, "minor");
    let rows = format!("{RELOCATIONS}{FAULTS}{table}{data}{}", main_begins(2_060_000));
    let finding = relocations(&rows).unwrap();
    let cost = 3.0 * 0.02 + 39.0 * 0.025 + 0.0005;
    assert!((finding.cost.value - cost).abs() < 1e-9, "{finding:?}");
    assert!((finding.cost.low.unwrap() - 43.0 * 0.0005).abs() < 1e-9, "{finding:?}");
    assert_eq!(finding.title, "tool spends 1.0 ms of 20.0 ms on relocations before main: tool");
    assert_eq!(finding.confidence, Confidence::High);
    let object = &finding.evidence[0].rows[0];
    assert_eq!((&object["pages_written"], &object["table_pages"]), (&40.into(), &3.into()), "{object:?}");
    assert_eq!((&object["relative"], &object["symbol_pages"]), (&17_000.into(), &0.into()), "{object:?}");
    let settings: Vec<&str> = finding.evidence[1].rows.iter().map(|row| row["setting"].as_str().unwrap()).collect();
    assert_eq!(settings, ["-no-pie", "-Wl,-z,pack-relative-relocs"]);
}

#[test]
fn symbol_tables_are_searched_for_the_object_that_is_relocated() {
    let data = linkers(1_000_000, 25_000, PROGRAM_DATA, 20, "minor");
    let symbols = linkers(1_500_000, 100_000, PROGRAM_CODE + 4096, 2, "minor");
    let more = linkers(1_700_000, 25_000, PROGRAM_DATA + 20 * 4096, 20, "minor");
    let finding = relocations(&format!("{FAULTS}{data}{symbols}{more}{}", main_begins(2_200_000))).unwrap();
    let object = &finding.evidence[0].rows[0];
    assert_eq!((&object["pages_written"], &object["symbol_pages"]), (&40.into(), &2.into()), "{object:?}");
    assert!((finding.cost.value - 1.175 - 0.0005).abs() < 1e-9, "{finding:?}");
    // Nothing is known of its tables, and nothing is advised.
    assert!(finding.evidence.iter().all(|one| one.rows.iter().all(|row| !row.contains_key("setting"))));
}

#[test]
fn few_relocations_a_static_program_and_work_behind_main_are_none() {
    let few = linkers(1_000_000, 25_000, PROGRAM_DATA, 10, "minor");
    assert!(relocations(&format!("{FAULTS}{few}{}", main_begins(1_250_000))).is_none());
    let data = linkers(1_000_000, 25_000, PROGRAM_DATA, 40, "minor");
    assert!(relocations(&format!("{FAULTS}{}{data}", main_begins(900_000))).is_none(), "behind main");
    let own = data.replace(&(LINKER_CODE + 4096).to_string(), &(PROGRAM_CODE + 425_984).to_string());
    assert!(relocations(&format!("{FAULTS}{own}")).is_none(), "static: the program's own code");
    let hidden = data.replace(&(LINKER_CODE + 4096).to_string(), "0");
    assert!(relocations(&format!("{FAULTS}{hidden}")).is_none(), "addresses are withheld");
    let threads = data.replace(" 7 1 7 ", " 7 1 8 ");
    assert!(relocations(&format!("{FAULTS}{threads}")).is_none(), "another thread");
}

#[test]
fn what_recording_adds_to_starts_of_few_pages_is_none() {
    let cost = |every: u64, count: u64| {
        let data = linkers(1_000_000, every, PROGRAM_DATA, count, "minor");
        relocations(&format!("{FAULTS}{data}{}", main_begins(1_000_000 + every * count)))
    };
    assert!(cost(15_000, 63).is_none(), "0.93 ms on 63 pages");
    assert!(cost(10_000, 64).is_some(), "0.63 ms on 64 pages");
    assert!(cost(100_000, 12).is_some(), "1.1 ms on 12 pages");
    let table = linkers(1_000_000, 10_000, PROGRAM_CODE + 12_288, 20, "minor");
    let symbols = linkers(1_200_000, 10_000, PROGRAM_CODE + 4096, 2, "minor");
    let data = linkers(1_220_000, 10_000, PROGRAM_DATA, 42, "minor");
    let of_all_kinds = format!("{FAULTS}{table}{symbols}{data}{}", main_begins(1_640_000));
    assert!(relocations(&of_all_kinds).is_some(), "64 pages of three kinds");
}

/// The walks of their call stacks.
#[test]
fn what_recording_its_faults_took_is_no_work_of_the_linkers() {
    let table = linkers(1_000_000, 20_000, PROGRAM_CODE + 12_288, 3, "minor");
    let data = linkers(1_060_000, 25_000, PROGRAM_DATA, 80, "minor");
    let rows = format!("{FAULTS}{table}{data}{}", main_begins(3_060_000));
    let recorded = rows.replace("kind kernel\n", "kind kernel recording\n").replace(" false\n", " false 5000\n");
    let finding = relocations(&recorded).unwrap();
    let cost = 3.0 * (0.02 - 0.005) + 79.0 * (0.025 - 0.005) + 0.0005;
    assert!((finding.cost.value - cost).abs() < 1e-9, "{finding:?}");
    assert!((finding.cost.low.unwrap() - 83.0 * 0.0005).abs() < 1e-9, "{finding:?}");
}

/// The same program, executed six times by one process, with so many pages and 0.6 ms of relocations each.
fn six_starts(pages: u64) -> Tables {
    let mut execs = "== execs\nts pid start filename dev ino\n".to_owned();
    let mut mappings = "== mappings\nts pid start op address length prot dev ino offset\n".to_owned();
    let mut faults = FAULTS.to_owned();
    for at in (1..=6).map(|number| number * 2_000_000) {
        writeln!(execs, "{at} 7 1 /bin/tool 1 {PROGRAM}").unwrap();
        writeln!(mappings, "{at} 7 1 exec {PROGRAM_CODE} 430080 5 1 {PROGRAM} 0").unwrap();
        writeln!(mappings, "{at} 7 1 exec {PROGRAM_DATA} 4096000 3 1 {PROGRAM} 1048576").unwrap();
        writeln!(mappings, "{at} 7 1 exec {LINKER_CODE} 8192 5 1 {LINKER} 0").unwrap();
        faults += &linkers(at + 100_000, 600_000 / pages, PROGRAM_DATA, pages, "minor");
        faults += &main_begins(at + 700_000);
    }
    recording(&format!("{execs}{mappings}{faults}"))
}

#[test]
fn starts_of_few_pages_do_not_add_up() {
    assert!(found(relocation_cost::NAME, &six_starts(12)).is_none(), "3.3 ms in starts of 12 pages");
    let cost = relocation_of(&six_starts(64));
    assert!((3.5..3.6).contains(&cost), "{cost}");
}

#[test]
fn a_long_time_between_two_faults_and_waiting_are_not_relocation() {
    let data = linkers(1_000_000, 10_000_000, PROGRAM_DATA, 2, "minor");
    let rest = linkers(11_000_000, 10_000, PROGRAM_DATA + 8192, 60, "minor");
    let finding = relocations(&format!("{FAULTS}{data}{rest}")).unwrap();
    assert!((finding.cost.value - (1.0 + 0.01 * 59.0 + 0.0005)).abs() < 0.011, "at most 1 ms of 10: {finding:?}");
    let waits = "== off_cpu\nts duration pid start tid reason\n1020000 200000 7 1 7 futex\n";
    let data = linkers(1_000_000, 250_000, PROGRAM_DATA, 11, "minor");
    let with = relocations(&format!("{waits}{FAULTS}{data}")).unwrap();
    assert!((with.cost.value - (2.3 + 0.0005)).abs() < 1e-9, "{with:?}");
}

/// A library that is opened and mapped at 0.9 ms, the program protected and so mapped again at 4.1 ms, another library at 7 ms, and
/// these faults.
fn searched(more: &str, protected: bool, faults: &str) -> Tables {
    let mapping = |ts: u64, file: u64| format!("{ts} 7 1 map {PROGRAM_DATA} 4096 3 1 {file} 1048576\n");
    let library = mapping(900_000, 4);
    // The last is a constructor's.
    let plugin = format!("7010000 7 1 map {} 4096 1 1 5 0\n", LINKER_CODE - 0x100_0000);
    let marks = [mapping(4_100_000, PROGRAM), mapping(4_150_000, LINKER), plugin].concat();
    let marks = if protected { marks } else { String::new() };
    recording(&format!(
        "== files\ndev ino path\n1 4 /lib/liba.so\n1 5 /lib/plugin.so\n\
         == sections\ndev ino name kind offset size\n1 4 .text text 0 4096\n1 5 .text text 0 4096\n{more}\
         == mappings\nts pid start op address length prot dev ino offset\n{library}{marks}{FAULTS}{faults}"
    ))
}

/// 3 ms in which symbols are searched, 2 ms across the mark, and then 3 ms in which something else may have run.
fn searches() -> String {
    let before = linkers(1_000_000, 3_000_000, PROGRAM_DATA, 2, "minor");
    before + &linkers(6_000_000, 3_000_000, PROGRAM_DATA + 8192, 2, "minor")
}

fn relocation_of(tables: &Tables) -> f64 {
    found(relocation_cost::NAME, tables).unwrap().cost.value
}

#[track_caller]
fn assert_ms(tables: &Tables, expected: f64) {
    let cost = relocation_of(tables);
    assert!((cost - expected).abs() < 1e-9, "{cost}");
}

#[test]
fn long_searches_count_whole_until_the_program_is_protected_where_waits_are_known() {
    let whole = searched("", true, &searches());
    // 3 ms, 0.1 until the mark and none behind it, at most 1 of the last 3, and the last fault.
    assert_ms(&whole, 3.0 + 0.1 + 1.0 + 0.0005);
    let limited = 1.0 + 1.0 + 1.0 + 0.0005;
    assert_ms(&searched("", false, &searches()), limited);
    let mut without_waits = searched("", true, &searches());
    without_waits.manifest.probes.clear();
    assert_ms(&without_waits, limited);
    let mut lost = searched("", true, &searches());
    lost.manifest.losses.add("off_cpu", 3);
    assert_ms(&lost, limited);
    assert_eq!(found(relocation_cost::NAME, &lost).unwrap().confidence, Confidence::Low);
    // It stands where the stay on a CPU began, before the program was executed.
    let stolen = "== off_cpu\nts duration pid start tid reason\n1 5 7 1 7 stolen\n6 1100000 7 1 7 stolen\n";
    assert_ms(&searched(stolen, true, &searches()), limited);
    let little = stolen.replace("1100000", "900000");
    assert_ms(&searched(&little, true, &searches()), 3.0 + 0.1 + 1.0 + 0.0005);
}

#[test]
fn the_last_search_counts_until_the_program_is_protected_whoever_runs_next() {
    let last = linkers(1_000_000, 2_500_000, PROGRAM_DATA, 1, "minor");
    let rows = searched("", true, &format!("{last}{}", main_begins(8_000_000)));
    assert_ms(&rows, 3.1);
    // A fault of a resolver, in code of the library, and one of the linker for memory of its own.
    let [resolver, own] = [(2_000_000, 1, PROGRAM_DATA + 16), (3_000_000, 2, LINKER_CODE + 4096)]
        .map(|(ts, address, ip)| format!("{ts} 500 7 1 7 {address} {ip} minor false\n"));
    let rows = searched("", true, &format!("{last}{resolver}{own}{}", main_begins(8_000_000)));
    assert_ms(&rows, 3.1);
    let unknown = searched("", false, &format!("{last}{resolver}{own}{}", main_begins(8_000_000)));
    assert!(found(relocation_cost::NAME, &unknown).is_none());
    let early = searched("", true, &format!("{last}{}", main_begins(3_000_000)));
    assert!(found(relocation_cost::NAME, &early).is_none(), "who ran until 3 ms is not known");
}

#[test]
fn what_a_constructor_opens_does_not_end_the_loading_of_the_program() {
    let opens = "== opens\nts pid start tid path flags result dev ino\n890000 7 1 7 /lib/liba.so 0 3 1 4\n\
                 7000000 7 1 7 /lib/plugin.so 0 3 1 5\n";
    let faults = linkers(1_000_000, 3_000_000, PROGRAM_DATA, 2, "minor");
    assert_ms(&searched(opens, true, &faults), 3.0 + 0.1);
    // Where opens were not recorded, mappings say the same.
    assert_ms(&searched("", true, &faults), 3.0 + 0.1);
}

#[test]
fn storage_is_left_to_cold_launches_and_losses_lower_confidence() {
    let waits = linkers(1_000_000, 25_000, PROGRAM_DATA, 40, "major").replace(" 500 7", " 24000 7");
    assert!(relocations(&format!("{FAULTS}{waits}")).is_none());
    let data = linkers(1_000_000, 25_000, PROGRAM_DATA, 44, "minor");
    let mut lost = recording(&format!("{FAULTS}{data}"));
    lost.manifest.losses.add("faults", 1000);
    assert_eq!(found(relocation_cost::NAME, &lost).unwrap().confidence, Confidence::Low);
    let mut without_waits = recording(&format!("{FAULTS}{data}"));
    without_waits.manifest.probes.clear();
    assert_eq!(found(relocation_cost::NAME, &without_waits).unwrap().confidence, Confidence::Medium);
}

/// `count` libraries, each looked for in two places, 60 us from one to the next.
fn libraries(count: u64) -> String {
    let mut files = "== files\ndev ino path\n".to_owned();
    let mut sections = "== sections\ndev ino name kind offset size\n".to_owned();
    let mut opens = "== opens\nts pid start tid path flags result dev ino\n".to_owned();
    let mut mappings = "== mappings\nts pid start op address length prot dev ino offset\n".to_owned();
    let mut faults = FAULTS.to_owned();
    for number in 0..count {
        let (at, ino, address) = (1_000_000 + number * 60_000, 100 + number, 0x7e00_0000_0000 + number * 0x100_0000);
        writeln!(files, "1 {ino} /lib/lib{number}.so").unwrap();
        writeln!(sections, "1 {ino} .text text 0 4096").unwrap();
        writeln!(opens, "{at} 7 1 7 /opt/lib{number}.so 0 -2 - -").unwrap();
        writeln!(opens, "{} 7 1 7 /lib/lib{number}.so 0 3 1 {ino}", at + 10_000).unwrap();
        writeln!(mappings, "{} 7 1 map {address} 65536 1 1 {ino} 0", at + 20_000).unwrap();
        faults.push_str(&linkers(at + 30_000, 1, address, 1, "minor"));
    }
    faults.push_str(&main_begins(1_000_000 + count * 60_000));
    [files, sections, opens, mappings, faults].concat()
}

#[test]
fn many_libraries_are_found_with_lookups_bytes_and_time_of_each() {
    let finding = found(many_libraries::NAME, &recording(&libraries(20))).unwrap();
    // The last attempt of the first library is the first that counts; behind the last one's fault comes the program's code.
    let cost = 19.0 * 0.06 + 0.02;
    assert!((finding.cost.value - cost).abs() < 1e-9, "{finding:?}");
    assert_eq!(finding.title, "tool loads 20 libraries before main in 40 lookups: 1.2 ms of 20.0 ms");
    let library = &finding.evidence[0].rows[0];
    assert_eq!((&library["lookups"], &library["mapped_kib"]), (&2.into(), &64.into()), "{library:?}");
    assert_eq!((&library["faults"], &library["load_ms"]), (&1.into(), &0.06.into()), "{library:?}");
    assert!(found(relocation_cost::NAME, &recording(&libraries(20))).is_none());
}

#[test]
fn a_few_libraries_and_those_of_dlopen_are_not_many() {
    assert!(found(many_libraries::NAME, &recording(&libraries(8))).is_none());
    let late = libraries(20).replace(FAULTS, &format!("{FAULTS}{}", main_begins(500_000)));
    assert!(found(many_libraries::NAME, &recording(&late)).is_none());
}
