//! Where output cannot go, and what is no recording.

use crate::attached::Toucher;
use crate::exports;
use crate::running::*;
use slowpath_recording::Recording;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

/// Faults at random addresses, so that they do not compress well: about 60,000 rows.
const MUCH: &str = "
import mmap, random
m = mmap.mmap(-1, 240 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
pages = list(range(0, 240 << 20, 4096))
random.Random(1).shuffle(pages)
for i in pages: m[i] = 1
";

#[test]
fn a_full_disk_ends_the_recording_with_a_clear_message_and_what_is_whole_is_read() {
    if !root() {
        return;
    }
    let place = place();
    fs::write(place.path().join("much.py"), MUCH).unwrap();
    let script = "cd $PLACE; mkdir disk kept; mount -t tmpfs -o size=300k none disk; code=0; \
        $SLOWPATH record -o disk/r -- /usr/bin/python3 much.py || code=$?; \
        $SLOWPATH analyze --json disk/r > kept/analysis; cp -r disk/r kept/r; exit $code";
    let done = run(in_private_mounts(script).env("PLACE", place.path()));
    done.fails_with(3, &["No space left on device", "what was written before is intact"]);
    let recording = Recording::open(place.path().join("kept/r")).unwrap();
    let (tables, damage) = recording.tables_whole();
    assert!(damage.is_empty(), "the manifest lists only what is whole: {damage:?}");
    assert_eq!(tables.execs.len(), 1, "the processes are written first");
    assert!(!tables.files.is_empty());
    let analysis: serde_json::Value =
        serde_json::from_slice(&fs::read(place.path().join("kept/analysis")).unwrap()).unwrap();
    assert_eq!(analysis["schema"], "slowpath-analyze/1");
}

#[test]
fn a_read_only_or_forbidden_directory_is_said_before_the_target_runs() {
    if !root() {
        return;
    }
    let place = place();
    let mark = place.path().join("ran");
    let script = "mkdir -p $PLACE/ro; mount -t tmpfs -o ro none $PLACE/ro; \
        exec $SLOWPATH record -o $PLACE/ro/r -- /bin/touch $PLACE/ran";
    let words = ["cannot be used", "Read-only file system", "hint:"];
    run(in_private_mounts(script).env("PLACE", place.path())).fails_with(2, &words);
    let script = script.replace("record", "diagnose");
    run(in_private_mounts(&script).env("PLACE", place.path())).fails_with(2, &words);
    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let done = record(&closed, &["--user", "65534"], &["/bin/touch", mark.to_str().unwrap()]);
    done.fails_with(2, &["cannot be used", "Permission denied", "hint:"]);
    assert!(!mark.exists());
}

#[test]
fn nothing_is_overwritten_and_no_link_is_followed() {
    if !root() {
        return;
    }
    let place = place();
    let file = place.path().join("file");
    fs::write(&file, "precious").unwrap();
    record(&file, &[], &["/bin/true"]).fails_with(2, &["no directory"]);
    record(place.path(), &[], &["/bin/true"]).fails_with(2, &["is not empty", "never overwrites"]);
    let (target, link) = (place.path().join("target"), place.path().join("link"));
    fs::create_dir(&target).unwrap();
    symlink(&target, &link).unwrap();
    record(&link, &[], &["/bin/true"]).fails_with(2, &["no directory"]);
    record(&place.path().join("missing/out"), &[], &["/bin/true"]).fails_with(2, &["No such file or directory"]);
    let out = place.path().join("out");
    record(&out, &[], &["/bin/true"]).succeeds();
    let page = place.path().join("page.html");
    symlink(&file, &page).unwrap();
    run(slowpath(["report"]).arg(&out).arg("-o").arg(&page)).succeeds();
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert!(fs::symlink_metadata(&page).unwrap().is_file(), "the link is replaced");
}

#[test]
fn a_recording_belongs_to_the_targets_user_alone() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    record(&out, &["--user", "65534"], &["/bin/true"]).succeeds();
    assert_eq!((fs::metadata(&out).unwrap().uid(), fs::metadata(&out).unwrap().mode() & 0o777), (65534, 0o700));
    let manifest = fs::metadata(out.join("manifest.json")).unwrap();
    assert_eq!((manifest.uid(), manifest.mode() & 0o777), (65534, 0o600));
    assert_eq!(tables(&out).execs[0].uid, 65534);
}

#[test]
fn what_is_no_recording_is_refused_and_what_is_whole_in_a_damaged_one_is_read() {
    let place = place();
    for command in ["analyze", "report"] {
        let done = run(slowpath([command]).arg(place.path()));
        done.fails_with(2, &["not a recording", "slowpath record"]);
    }
    run(slowpath(["preload", "plan", "-o", "/var/tmp/slowpath-never"]).arg(place.path()))
        .fails_with(2, &["not a recording"]);
    run(slowpath(["preload", "check"]).arg(place.path().join("nothing"))).fails_with(2, &["cannot be read"]);
    if !root() {
        return;
    }
    let out = place.path().join("out");
    record(&out, &[], &["/bin/ls", "/"]).succeeds();
    fs::write(out.join("faults/000000.parquet"), "damaged").unwrap();
    let done = run(slowpath(["analyze", "--json"]).arg(&out));
    done.succeeds();
    assert!(done.stderr.contains("warning: faults/000000.parquet is damaged"), "{}", done.stderr);
    done.json();
}

#[test]
fn a_reader_that_goes_away_is_no_failure_and_a_full_standard_output_is() {
    let piped = |to: &str| {
        let script = format!("set -o pipefail; \"$1\" doctor --json {to}");
        run(std::process::Command::new("bash").args(["-c", &script, "bash", SLOWPATH]))
    };
    let gone = piped("| true");
    gone.succeeds();
    assert!(gone.stderr.is_empty(), "{}", gone.stderr);
    piped("> /dev/full").fails_with(2, &["standard output cannot be written: No space left on device"]);
}

#[test]
fn a_diagnosis_without_a_name_for_its_directory_takes_one_that_is_free() {
    if !root() {
        return;
    }
    let place = place();
    let toucher = Toucher::start("diagnosed without a name");
    let pid = toucher.child.id().to_string();
    fs::write(place.path().join("slowpath-diagnosis-2"), "somebody's").unwrap();
    for expected in ["slowpath-diagnosis", "slowpath-diagnosis-3"] {
        let mut command = slowpath(["diagnose", "--quiet", "--json", "--pid", &pid, "--duration", "0.2"]);
        let done = run(command.current_dir(place.path()));
        done.succeeds();
        let said = done.json();
        let recording = said["recording"].as_str().unwrap();
        assert!(recording.starts_with(place.path().join(expected).join("running").to_str().unwrap()), "{recording}");
        assert!(place.path().join(expected).join("report.html").exists());
    }
}

#[test]
fn a_result_that_is_larger_than_a_worker_may_send_is_printed_whole() {
    let place = place();
    const PROCESSES: usize = 10_000;
    let rows = |row: &dyn Fn(usize) -> String| (1..=PROCESSES).map(row).collect::<String>();
    // It stands in the result several times.
    let name = "long".repeat(600);
    let execs = rows(&|pid| format!("{} {pid} 1 /usr/bin/{name}{pid} app\n", 1000 + pid));
    let exits = rows(&|pid| format!("{} {pid} 1 {pid} true 5000000\n", 9_000_000 + pid));
    let waits = rows(&|pid| format!("{} 300000 {pid} 1 {pid} futex 1000\n", 100_000 + pid));
    let text = format!(
        "== manifest\n{{\"command\": [\"/usr/bin/app\"]}}\n== execs\nts pid start filename command_line\n{execs}\
         == exits\nts pid start tid last run_time\n{exits}== off_cpu\nts duration pid start tid reason runnable\n{waits}"
    );
    let recording = exports::recording(place.path(), &text);
    let done = run(slowpath(["analyze", "--json"]).arg(&recording));
    done.succeeds();
    let analysis: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(analysis["ledger"]["threads"].as_array().unwrap().len(), PROCESSES);
    assert!(analysis.to_string().len() > 64 << 20, "it would be small enough to be sent");
    let line =
        run(Command::new("sh").args(["-c", "\"$0\" analyze --json \"$1\" | head -n 1", SLOWPATH]).arg(&recording));
    assert_eq!((line.stdout.as_str(), line.stderr.contains("written")), ("{\n", false), "{}", line.stderr);
    let full =
        run(Command::new("sh").args(["-c", "\"$0\" analyze --json \"$1\" > /dev/full", SLOWPATH]).arg(&recording));
    full.fails_with(2, &["standard output cannot be written: No space left on device"]);
}
