//! File names that attack what shows them: a terminal, a JSON reader, a browser.

use crate::running::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Ends a line, clears a screen, ends a script, turns the writing direction around.
const NAMES: [&str; 5] = [
    "new\nslowpath: forged line",
    "esc\u{1b}[2J\u{1b}]0;title\u{7}",
    "</script><script>alert(1)</script>",
    "rtl\u{202e}gnp.exe",
    "c1\u{9b}31m",
];

fn harmless(text: &str) {
    for bad in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{2066}'] {
        assert!(!text.contains(bad), "{bad:?} reaches the terminal: {text:?}");
    }
    assert!(!text.lines().any(|line| line.starts_with("slowpath: forged line")), "{text:?}");
}

/// Files of these names that are executed, read, or missing.
fn prepare(place: &Path) -> String {
    for name in NAMES {
        let path = place.join(name.replace('/', "\u{2215}"));
        fs::write(&path, vec![b'x'; 200_000]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    format!("cd {} && cat ./* missing-\u{1b}[31m > /dev/null; sync; true", place.display())
}

#[test]
fn names_are_harmless_in_terminal_json_and_html() {
    if !root() {
        return;
    }
    let (files, place) = (place(), place());
    let script = prepare(files.path());
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let out = path("r");
    // Reads through the disk, so that the findings speak of these files: the lab gives cold ones.
    let done = run(slowpath(["diagnose", "--blocks", "2", "-o", &out, "--", "/bin/sh", "-c", &script]));
    done.succeeds();
    harmless(&done.stdout);
    harmless(&done.stderr);
    for recording in ["cold", "needed-1"] {
        let directory = format!("{out}/{recording}");
        let analyzed = run(slowpath(["analyze", &directory]));
        analyzed.succeeds();
        harmless(&analyzed.stdout);
        let said = run(slowpath(["analyze", "--json", &directory]));
        let text = said.json().to_string();
        assert!(text.contains("alert(1)"), "the file is in the findings of {recording}: {text:.2000}");
    }
    let recorded = tables(&Path::new(&out).join("cold"));
    for name in NAMES {
        let name = name.replace('/', "\u{2215}");
        assert!(recorded.files.iter().any(|file| file.path.ends_with(&name)), "{name:?} is recorded as it is");
    }
    let page = fs::read_to_string(format!("{out}/report.html")).unwrap();
    assert!(page.contains("alert(1)"), "the page shows the file");
    assert!(!page.contains("<script>alert(1)"), "and does not run it");
    assert!(page.contains("Content-Security-Policy"));
    let plan = path("plan");
    run(slowpath(["preload", "plan", &out, "-o", &plan])).succeeds();
    fs::write(files.path().join(NAMES[1]), "changed").unwrap();
    let checked = run(slowpath(["preload", "check", &plan]));
    assert_eq!(checked.code(), 1, "{checked:?}");
    harmless(&checked.stdout);
}

#[test]
fn a_hostile_command_name_and_output_directory_are_harmless_in_messages() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join(NAMES[1]);
    for target in ["/bin/no-\u{1b}[2Jprogram", "/bin/true", "/bin/false"] {
        let done = record(&out, &[], &[target]);
        harmless(&done.stderr);
        harmless(&done.stdout);
    }
    let recording = place.path().join("r");
    record(&recording, &[], &["/usr/bin/test", "</script><script>alert(2)</script>\u{1b}[1m"]).succeeds();
    let page = place.path().join("page.html");
    let reported = run(slowpath(["report"]).arg(&recording).arg("-o").arg(&page));
    reported.succeeds();
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("alert(2)") && !text.contains("<script>alert(2)"), "the title is escaped");
    harmless(&run(slowpath(["analyze"]).arg(&recording)).stdout);
    let strange = place.path().join(format!("page{}", NAMES[1]));
    let reported = run(slowpath(["report"]).arg(&recording).arg("-o").arg(&strange));
    harmless(&reported.stderr);
    let exported = run(slowpath(["export", "--to", "perfetto"]).arg(&recording).arg("-o").arg(&strange));
    harmless(&exported.stderr);
}
