//! `slowpath export` on small recordings that are written here: every format, where it goes, and what is refused.

use crate::running::*;
use slowpath_recording::{Recording, Tables, Writer};
use slowpath_tables::Nanos;
use std::fs;
use std::path::{Path, PathBuf};

const SAMPLES: &str = r#"
== manifest
{"command": ["/usr/bin/app"], "losses": {"ring_buffer": 3}}
== execs
ts pid start filename command_line
1000 8 900 /usr/bin/app app
== cpu_samples
ts pid start tid cpu kernel stack
2000000 8 900 8 0 false 1
3000000 8 900 8 0 false 1
4000000 8 900 8 1 true -
== memory_calls
ts duration pid start tid call address length result stack
2100000 500 8 900 8 mmap 0x7f0000000000 8192 0 1
== stacks
id parent frame
0 - 0
1 0 1
== frames
id kind dev ino offset
0 file 7340032 42 0x10
1 file 7340032 42 0x20
== symbols
frame level function
0 0 main
1 0 "work(int)\u{1b}[31m;"
== files
dev ino path
7340032 42 /usr/bin/app
"#;

/// Writes a recording that belongs to the user who called sudo, as whom the command reads it.
pub fn recording(place: &Path, text: &str) -> PathBuf {
    let (path, tables) = (place.join("recording"), Tables::from_text(&text.replace("\\u{1b}", "\\u001b")).unwrap());
    let mut writer = Writer::create(&path, tables.manifest.clone()).unwrap();
    tables.write(&mut writer).unwrap();
    writer.finish(|manifest| manifest.ended = Some(Nanos(1_000_000_000))).unwrap();
    assert!(Recording::open(&path).is_ok());
    let invoker = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    for one in files.chain([path.clone()]) {
        std::os::unix::fs::chown(one, invoker, None).unwrap();
    }
    path
}

fn export(recording: &Path, arguments: &[&str]) -> Done {
    run(slowpath(["export"]).arg(recording).args(arguments))
}

#[test]
fn folded_stacks_go_to_standard_output_and_losses_to_standard_error() {
    let place = place();
    let recording = recording(place.path(), SAMPLES);
    let done = export(&recording, &["--to", "collapsed"]);
    done.succeeds();
    assert_eq!(done.stdout, "app;[no stack] 1\napp;main;work(int)\\u{1b}[31m\\u{3b} 2\n");
    assert!(done.stderr.contains("note: 3 events were lost: ring_buffer."), "{}", done.stderr);
    let done = export(&recording, &["--to", "collapsed", "--weight", "allocations"]);
    assert_eq!(done.stdout, "app;main;work(int)\\u{1b}[31m\\u{3b} 8192\n");
}

#[test]
fn a_table_is_a_file_of_rows_with_the_names_of_its_stacks() {
    let place = place();
    let recording = recording(place.path(), SAMPLES);
    let file = place.path().join("samples.csv");
    let done = export(&recording, &["--to", "csv", "--table", "cpu_samples", "-o", file.to_str().unwrap()]);
    done.succeeds();
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("3 rows of table cpu_samples"), "{}", done.stderr);
    assert!(done.stderr.contains("3 events were lost: ring_buffer."), "{}", done.stderr);
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "ts,pid,start,tid,cpu,kernel,stack,first_argument,second_argument,copies");
    assert_eq!(lines[1], "2000000,8,900,8,0,false,main;work(int)\\u{1b}[31m\\u{3b},,,");
    assert_eq!(lines[3], "4000000,8,900,8,1,true,,,,");
}

/// Names that spreadsheets and readers of CSV take for more than names.
const NAMES: [&str; 7] =
    ["=1+1", "a;=b", "say \"hi\", you", "two\nlines\r\n=c", "'quoted'", "plain", "\u{9b}31m\u{202e}é"];

/// Reads every file by Python's own reader: the header, rows, sums of the columns of numbers, and all text, unquoted.
const READ_BACK: &str = r"
import csv, json, pathlib, re, sys
found = {}
for path in pathlib.Path(sys.argv[1]).iterdir():
    with open(path, newline='', encoding='utf-8') as file:
        rows = list(csv.reader(file, strict=True))
    columns = []
    for at, name in enumerate(rows[0]):
        cells = [row[at] for row in rows[1:]]
        full = [cell for cell in cells if cell]
        if full and all(re.fullmatch(r'-?[0-9]+', cell) for cell in full):
            columns.append([name, str(sum(map(int, full)))])
        else:
            columns.append([name, [re.sub(r'(^|[;\t\r\n])\'', r'\1', cell) for cell in cells]])
    assert all(len(row) == len(rows[0]) for row in rows)
    found[path.name] = [len(rows) - 1, columns]
print(json.dumps(found))
";

#[test]
fn every_table_is_a_file_that_python_reads_back_as_the_recording_holds_it() {
    let place = place();
    let text = |name: &str| serde_json::to_string(name).unwrap();
    let opens: String = (0..).zip(NAMES).map(|(at, name)| format!("{at} 8 900 8 {} 0 -2 - -\n", text(name))).collect();
    let opens = format!("== opens\nts pid start tid path flags result dev ino\n{opens}");
    let recording = recording(place.path(), &format!("{SAMPLES}{opens}"));
    let directory = place.path().join("tables");
    let done = export(&recording, &["--to", "csv", "-o", directory.to_str().unwrap()]);
    done.succeeds();
    assert!(
        done.stderr.contains("tables, each a file") && done.stderr.contains("3 events were lost"),
        "{}",
        done.stderr
    );
    let read = run(std::process::Command::new("/usr/bin/python3").args(["-c", READ_BACK]).arg(&directory));
    read.succeeds();
    let read: serde_json::Value = serde_json::from_str(&read.stdout).unwrap();
    let tables = Recording::open(&recording).unwrap().tables().unwrap();
    let counts = tables.row_counts();
    assert_eq!(read.as_object().unwrap().len(), counts.len());
    let rows = |name: &str| read[format!("{name}.csv")][0].as_u64();
    for (name, count) in counts {
        assert_eq!(rows(name), Some(count as u64), "{name}");
    }
    let column = |table: &str, name: &str| {
        let columns = read[format!("{table}.csv")][1].as_array().unwrap();
        columns.iter().find(|column| column[0] == name).unwrap_or_else(|| panic!("no {name} in {columns:?}"))[1].clone()
    };
    let sum = |values: Vec<i128>| serde_json::Value::from(values.into_iter().sum::<i128>().to_string());
    let of = |ts: Nanos| i128::from(ts.0);
    let samples = &tables.cpu_samples;
    assert_eq!(column("cpu_samples", "ts"), sum(samples.iter().map(|row| of(row.ts)).collect()));
    assert_eq!(
        column("cpu_samples", "stack"),
        sum(samples.iter().filter_map(|row| row.stack).map(i128::from).collect())
    );
    let calls = &tables.memory_calls;
    assert_eq!(column("memory_calls", "duration"), sum(calls.iter().map(|row| of(row.duration)).collect()));
    assert_eq!(column("memory_calls", "address"), sum(calls.iter().map(|row| i128::from(row.address)).collect()));
    assert_eq!(column("opens", "result"), sum(tables.opens.iter().map(|row| i128::from(row.result)).collect()));
    assert_eq!(column("opens", "path"), serde_json::json!(NAMES));
    assert_eq!(column("symbols", "function"), serde_json::json!(["main", "work(int)\u{1b}[31m;"]));
    // A directory that holds something is left as it is, and what cannot be exported makes none.
    let again = export(&recording, &["--to", "csv", "-o", directory.to_str().unwrap()]);
    again.fails_with(2, &["is not empty"]);
    assert!(directory.join("opens.csv").exists());
    let never = place.path().join("never");
    export(&place.path().join("nothing"), &["--to", "csv", "-o", never.to_str().unwrap()]).fails_with(2, &["nothing"]);
    assert!(!never.exists());
}

#[test]
fn a_summary_for_a_pull_request_is_of_a_recording_a_diagnosis_or_a_comparison() {
    let place = place();
    let shown = recording(place.path(), SAMPLES);
    let done = export(&shown, &["--to", "markdown"]);
    done.succeeds();
    assert!(done.stdout.starts_with("## slowpath: `/usr/bin/app`\n"), "{}", done.stdout);
    assert!(done.stdout.contains("\n| `ring_buffer` | 3 |\n"), "{}", done.stdout);
    let diagnosis = serde_json::json!({
        "schema": "slowpath-diagnose/1", "warm": true, "command": ["/usr/bin/app"], "recording": "warm",
        "launch": {"ready": "it ends", "seed": 1, "blocks": 0, "conditions": [], "arms": []},
        "findings": [], "verdicts": [], "share_of_gap_removed": [], "losses": {}, "notes": ["a | b"],
        "unavailable": [{"what": "samples", "reason": "no <events>", "remedy": "none"}],
    });
    let directory = place.path().join("diagnosis");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("diagnosis.json"), diagnosis.to_string()).unwrap();
    fs::rename(&shown, directory.join("warm")).unwrap();
    let done = export(&directory, &["--to", "markdown"]);
    done.succeeds();
    let parts = [
        "## slowpath diagnose: `/usr/bin/app`\n",
        "\n| samples | no \\<events\\> | none |\n",
        "\n- Note: a &#124; b\n",
    ];
    assert!(parts.iter().all(|part| done.stdout.contains(part)), "{}", done.stdout);
    export(&directory, &["--to", "collapsed"])
        .fails_with(2, &["is a diagnosis, and --to collapsed is for recordings", "/warm"]);
    let before = recording(place.path(), SAMPLES);
    let done = run(slowpath(["compare", "--quiet", "--markdown"]).arg(before).arg(directory.join("warm")));
    done.succeeds();
    assert!(done.stdout.starts_with("## slowpath compare: `/usr/bin/app`\n\n1 recording before, 1 recording after. "));
    assert!(done.stdout.contains("\n| `ring_buffer` | 3 | 3 |\n"), "{}", done.stdout);
}

#[test]
fn what_was_not_recorded_is_refused_with_what_would_record_it_and_leaves_no_file() {
    let place = place();
    let recording = recording(place.path(), "== execs\nts pid start\n1 8 1\n");
    let file = place.path().join("out");
    let to = |arguments: &[&str]| export(&recording, &[arguments, &["-o", file.to_str().unwrap()]].concat());
    let collapsed = ["--to", "collapsed", "--weight"];
    to(&[&collapsed[..], &["cpu"]].concat())
        .fails_with(2, &["holds no CPU samples", "hint: record with --sample 1000"]);
    to(&[&collapsed[..], &["off-cpu"]].concat()).fails_with(2, &["holds no intervals off the CPU", "hint:"]);
    to(&["--to", "collapsed"]).fails_with(2, &["holds no samples, waits, faults or memory calls", "--sample 1000"]);
    let none = export(&recording, &["--to", "csv"]);
    none.fails_with(2, &["needs a directory for all tables, or the name of one", "execs (1 rows), exits (0 rows)"]);
    to(&["--to", "csv", "--table", "exec"]).fails_with(2, &["there is no table \"exec\"", "--table with one of:"]);
    to(&["--to", "csv", "--weight", "cpu"]).fails_with(2, &["--weight is for --to collapsed only"]);
    to(&["--to", "perfetto", "--table", "execs"]).fails_with(2, &["--table is for --to csv only"]);
    to(&["--to", "svg"]).fails_with(2, &["possible values:"]);
    assert!(!file.exists());
}

#[test]
fn a_profile_for_firefox_is_json_that_holds_every_sample() {
    let place = place();
    let recording = recording(place.path(), SAMPLES);
    let file = place.path().join("profile.json");
    let done = export(&recording, &["--to", "firefox", "-o", file.to_str().unwrap()]);
    done.succeeds();
    assert!(done.stderr.contains("profile.json in https://profiler.firefox.com"), "{}", done.stderr);
    let profile: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(profile["meta"]["product"], "/usr/bin/app");
    let lengths: Vec<_> = profile["threads"].as_array().unwrap().iter().map(|t| &t["samples"]["length"]).collect();
    assert_eq!(lengths, [0, 3], "the recording itself, and the thread");
    assert_eq!(export(&recording, &["--to", "firefox"]).stdout.matches("\"threads\":").count(), 1);
}

#[test]
fn a_reader_that_goes_away_is_no_failure_and_a_full_disk_is_one_that_leaves_nothing() {
    let place = place();
    let rows: String = (0..40_000).map(|ts| format!("{ts} 8 1 a-long-name-that-fills-the-pipe-{ts}\n")).collect();
    let recording = recording(place.path(), &format!("== opens\nts pid start path\n{rows}"));
    let script = "set -o pipefail; \"$1\" export \"$2\" --to csv --table opens | head -n 1";
    let done = run(std::process::Command::new("bash").args(["-c", script, "bash", SLOWPATH]).arg(&recording));
    done.succeeds();
    assert!(done.stdout.starts_with("ts,pid,start,") && done.stderr.is_empty(), "{done:?}");
    let full = export(&recording, &["--to", "csv", "--table", "opens", "-o", "/dev/full"]);
    full.fails_with(2, &["/dev/full cannot be written: No space left on device"]);
    assert!(Path::new("/dev/full").exists());
}
