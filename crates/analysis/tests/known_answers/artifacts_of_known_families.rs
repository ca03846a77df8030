//! Findings `unreadable_artifact` and `missing_artifact` for files whose family says what a process does without them, where nothing is saved.

use serde_json::Value;
use slowpath_analysis::findings::{missing_artifact, of_recordings, unreadable_artifact};
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::Tables;
use std::fmt::Write as _;

const CACHE: &str = "3830d5c3ddfd5cd38a049b759396e72e-le64.cache-8";

/// An open: when, in ms, its path, and what it returned.
type Opened<'a> = (u64, &'a str, i32);

/// Processes that begin at 10 ms, each with its opens and its end, in ms; they run all the time.
fn found(processes: &[(&[Opened<'_>], u64)]) -> Option<Finding> {
    let rows = (20..).zip(processes).map(|(pid, (rows, _))| {
        let row = |(at, path, result): &Opened<'_>| {
            let file = if *result < 0 { "- -" } else { "1 7" };
            // Another thread than the main one: a JVM has one.
            format!("{at}000000 {pid} 5 {} {path} 0 {result} {file}\n", pid + 100)
        };
        rows.iter().map(row).collect::<String>()
    });
    let rows: Vec<String> = rows.collect();
    of_rows(&rows.iter().map(String::as_str).zip(processes.iter().map(|(_, end)| *end)).collect::<Vec<_>>())
}

fn of_opens(rows: &[&str]) -> Option<Finding> {
    of_rows(&rows.iter().map(|rows| (*rows, 400)).collect::<Vec<_>>())
}

/// Rows of `opens` of each process, and its end, in ms.
fn of_rows(processes: &[(&str, u64)]) -> Option<Finding> {
    let mut text = r#"== manifest
{"command": ["/bin/tool"], "started": 0, "ended": 900000000, "probes": [{"name": "off_cpu", "state": "attached"}]}
"#
    .to_owned();
    text += "== files\ndev ino path size\n1 7 /a/source 1000\n";
    let mut opens = "== opens\nts pid start tid path flags result dev ino\n".to_owned();
    for (pid, (rows, end)) in (20..).zip(processes) {
        writeln!(text, "== forks\nts pid start tid parent_pid parent_start\n10000000 {pid} 5 {pid} 7 1").unwrap();
        writeln!(text, "== execs\nts pid start uid filename dev ino\n10000001 {pid} 5 1000 /bin/tool 1 99").unwrap();
        opens += rows;
        // The main thread has none of the time.
        let worker = format!("{end}000000 {pid} 5 {} false {}000000", pid + 100, end - 10);
        writeln!(text, "== exits\nts pid start tid last run_time\n{worker}\n{end}000000 {pid} 5 {pid} true 0").unwrap();
    }
    let tables = Tables::from_text(&format!("{text}{opens}")).unwrap();
    let names = [unreadable_artifact::NAME, missing_artifact::NAME];
    let mut all = of_recordings(&[&tables], None).into_iter().filter(|one| names.contains(&one.name.as_str()));
    let first = all.next();
    assert!(all.next().is_none());
    first
}

#[track_caller]
fn assert_costs(finding: &Finding, [low, value, high]: [f64; 3], confidence: Confidence) {
    let cost = [finding.cost.low.unwrap(), finding.cost.value, finding.cost.high.unwrap()];
    let is_near = cost.iter().zip([low, value, high]).all(|(found, wanted)| (found - wanted).abs() < 0.01);
    assert!(is_near && finding.confidence == confidence, "{finding:#?}");
}

#[test]
fn fonts_that_are_read_instead_of_their_cache_are_its_work_until_the_program_turns_to_other_files() {
    let (denied, own) = (format!("/var/cache/fontconfig/{CACHE}"), format!("/home/u/.cache/fontconfig/{CACHE}"));
    let scan = [
        (100, denied.as_str(), -13),
        (101, own.as_str(), -2),
        (110, "/fonts/A.ttf", 3),
        (120, "/fonts/fonts.dir", 3),
        (121, "/fonts/fonts.alias", -2),
        (130, "/fonts/B.otf", 3),
        (150, "/usr/share/app/picture.png", 3),
    ];
    let finding = found(&[(&scan, 400)]).unwrap();
    assert_costs(&finding, [30.0, 50.0, 50.0], Confidence::Medium);
    assert_eq!(finding.subject["artifact"], denied);
    let row = &finding.evidence[1].rows[0];
    assert_eq!(row["measured"], "until it has read what the artifact is made from", "{row:?}");
    assert_eq!(row["read_instead"], "/fonts/A.ttf", "{row:?}");
    // Two directories, each with its cache: neither has the time of the other.
    let second = "/var/cache/fontconfig/d589a488-62cc-4d3e-9ba8-3f6e0f5c0c8f-le64.cache-8";
    let two = [&scan[..6], &[(140, second, -13), (141, "/more/C.ttf", 3), (150, "/p.png", 3)]].concat();
    assert_costs(&found(&[(&two, 400)]).unwrap(), [31.0, 50.0, 50.0], Confidence::Medium);
    // It is asked for twice, each font is opened twice, and one of them is drawn much later.
    let draws = [
        scan[0],
        (100, denied.as_str(), -13),
        scan[2],
        scan[2],
        scan[3],
        scan[5],
        scan[5],
        (150, "/fonts/A.ttf", 3),
        (350, "/other/C.ttf", 3),
    ];
    assert_costs(&found(&[(&draws, 400)]).unwrap(), [30.0, 50.0, 50.0], Confidence::Medium);
    // One process beside that could read it, and asks twice too: 10 ms to the picture beside 49, once.
    let could = [(100, denied.as_str(), 3), (101, denied.as_str(), 3), (110, "/usr/share/app/picture.png", 3)];
    let beside = [scan[0], (101, denied.as_str(), -13), scan[2], scan[5], scan[6]];
    assert_costs(&found(&[(&beside, 400), (&could, 360)]).unwrap(), [39.0; 3], Confidence::High);
    // A cache of the same name elsewhere, and a directory without fonts.
    let mut other = scan;
    other[1].2 = 3;
    assert_eq!(found(&[(&other, 400)]), None);
    assert_eq!(found(&[(&[scan[0], scan[1], scan[6]], 400)]), None);
}

#[test]
fn a_jvm_that_may_not_read_its_archive_pays_all_that_follows_at_most() {
    let archive = "/jvm/lib/server/classes.jsa";
    let library = (40, "/jvm/lib/server/libjvm.so", 3);
    let denied = [library, (50, archive, -13), (51, "/jvm/lib/modules", 3), (60, "/app.jar", 3)];
    let finding = found(&[(&denied, 300)]).unwrap();
    assert_costs(&finding, [0.0, 290.0, 290.0], Confidence::Low);
    let row = &finding.evidence[1].rows[0];
    assert_eq!(
        (&row["measured"], &row["read_instead"]),
        (&"all that the process does".into(), &Value::Null),
        "{row:?}"
    );
    // A program that is no JVM reads files, or not: `tar`.
    assert_eq!(found(&[(&denied[1..], 300)]), None);
    assert!(finding.reasons.iter().any(|reason| reason.contains("a trial measures")), "{:?}", finding.reasons);
    // Once a process, however many archives it is denied.
    let two = [library, denied[1], (52, "/jvm/lib/server/classes_nocoops.jsa", -13), denied[1], denied[2]];
    assert_costs(&found(&[(&two, 300)]).unwrap(), [0.0, 290.0, 290.0], Confidence::Low);
    // One that could read it says what it is: 150 ms, or nothing at all.
    let read = [library, (50, archive, 3), (51, "/jvm/lib/modules", 3), (60, "/app.jar", 3)];
    let (denied, read) = (&[library, denied[1], (250, "/end", 3)][..], &[library, read[1], (100, "/end", 3)][..]);
    assert_costs(&found(&[(denied, 300), (read, 150)]).unwrap(), [150.0; 3], Confidence::Medium);
    let slow = [library, (50, archive, 3), (260, "/end", 3)];
    assert_eq!(found(&[(denied, 300), (&slow, 310)]), None);
    // A file of no such family says nothing.
    assert_eq!(found(&[(&[(50, "/app/optional.settings", -13), (60, "/app.jar", 3)], 300)]), None);
}

#[test]
fn a_cache_that_is_saved_in_a_place_of_the_users_own_is_made_once() {
    let denied = format!("/var/cache/fontconfig/{CACHE}");
    let saved = format!("/home/u/.cache/fontconfig/{CACHE}.TMP-x");
    let rows = |pid: u64| {
        let mut text = String::new();
        for (at, path, flags, result) in [
            (100, denied.as_str(), 0, -13),
            (110, "/fonts/A.ttf", 0, 3),
            (150, saved.as_str(), 0o301, 3),
            (160, "/picture.png", 0, 3),
        ] {
            writeln!(text, "{at}000000 {pid} 5 {} {path} {flags} {result} - -", pid + 100).unwrap();
        }
        text
    };
    assert_eq!(of_opens(&[&rows(20)]), None);
    // Two that both make it: neither finds what the other saved.
    let finding = of_opens(&[&rows(20), &rows(21)]).unwrap();
    assert_costs(&finding, [100.0; 3], Confidence::Medium);
}

/// A directory of Node.js for its compile cache.
const NODE: &str = "/n/v22.12.0-x64-00250a7c-65534";

#[test]
fn modules_that_are_read_before_their_denied_cache_cost_the_time_to_the_next_file_within_what_others_take() {
    let caches = [1, 2, 3, 4].map(|number| format!("{NODE}/859dc7{number}"));
    let opens = |modules: usize| {
        let of = |(number, cache): (u64, &'_ String)| {
            [format!("{} /a/{number}.js 3", 100 + 20 * number), format!("{} {cache} -13", 101 + 20 * number)]
        };
        let rows: Vec<String> =
            (0..).zip(&caches[..modules]).flat_map(of).chain(["300 /etc/other 3".to_owned()]).collect();
        let parts: Vec<Vec<&str>> = rows.iter().map(|row| row.split(' ').collect()).collect();
        let opened: Vec<Opened<'_>> =
            parts.iter().map(|row| (row[0].parse().unwrap(), row[1], row[2].parse().unwrap())).collect();
        found(&[(&opened, 400)])
    };
    // Three take 19 ms, and of the 139 behind the fourth, which the program may do itself, twice as much counts.
    let finding = opens(4).unwrap();
    assert_costs(&finding, [0.0, 3.0 * 19.0 + 38.0, 3.0 * 19.0 + 139.0], Confidence::Low);
    assert_eq!((&finding.subject["artifact"], &finding.subject["artifacts"]), (&caches[3].as_str().into(), &4.into()));
    assert_eq!(finding.evidence[1].rows[0]["read_instead"], "/a/3.js");
    // Of two it is not known what one takes.
    assert_eq!(opens(2), None);
}

#[test]
fn who_cannot_make_the_directory_of_the_cache_pays_all_that_follows_at_most() {
    let rows = |path: &str| {
        format!(
            "50000000 20 5 20 /a/main.js 0 3 1 7\n== opens\nts pid start tid path call result\n\
             60000000 20 5 20 {path} make_directory -13\n61000000 20 5 20 /etc/x look -13\n"
        )
    };
    let finding = of_opens(&[&rows(NODE)]).unwrap();
    assert_eq!((finding.name.as_str(), &finding.subject["artifact"]), ("missing_artifact", &NODE.into()));
    assert_costs(&finding, [0.0, 390.0, 390.0], Confidence::Low);
    assert_eq!(of_opens(&[&rows("/a/cache")]), None);
}
