//! `slowpath android` with Debian's own adb client and a server that plays a device over the real wire protocol
//! (`crates/android/tests/scripted_device`): three states of the device, repairs, and each way in which adb fails.

use crate::running::*;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const CHROME: &str = "com.android.chrome";
pub const WEBVIEW: &str = "com.google.android.webview";

/// A server with its device. Its standard input is ours: it ends when this is dropped, and when this process is killed.
pub struct Phone {
    server: Child,
    port: u16,
}

impl Phone {
    pub fn new(state: &str, failure: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../android/tests/scripted_device/server.py");
        let mut command = Command::new("/usr/bin/python3");
        command.arg("-B").arg(script).args([state, failure]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { server, port: port.trim().parse().unwrap() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = slowpath(arguments);
        command.env("ADB_SERVER_SOCKET", format!("tcp:127.0.0.1:{}", self.port)).env_remove("ANDROID_SERIAL");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Done {
        run(self.command(arguments))
    }
}

impl Drop for Phone {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Collects both packages from a fresh device, and returns where.
fn collected(phone: &Phone, place: &Path) -> PathBuf {
    let evidence = place.join("evidence");
    phone.run(&["android", "collect", CHROME, WEBVIEW, "-o", &text(&evidence)]).succeeds();
    evidence
}

fn audit(evidence: &Path) -> Value {
    let done = run(slowpath(["android", "audit", "--json", &text(evidence)]));
    done.succeeds();
    done.json()
}

/// The outcome of each package.
fn outcomes(audit: &Value) -> Vec<(String, String)> {
    let of = |package: &Value| {
        (package["name"].as_str().unwrap().to_owned(), package["outcome"].as_str().unwrap().to_owned())
    };
    audit["packages"].as_array().unwrap().iter().map(of).collect()
}

fn chrome(outcome: &str) -> Vec<(String, String)> {
    vec![(CHROME.to_owned(), outcome.to_owned()), (WEBVIEW.to_owned(), "usable".to_owned())]
}

#[test]
fn a_healthy_phone_has_nothing_to_repair_and_its_cloud_profile_is_seen() {
    let (place, phone) = (place(), Phone::new("healthy", ""));
    let found = audit(&collected(&phone, place.path()));
    assert_eq!(outcomes(&found), chrome("usable"), "{found:#}");
    let code = &found["packages"][0]["code"][0];
    assert_eq!((code["has_cloud_profile"].as_bool(), code["reason"].as_str()), (Some(true), Some("install-dm")));
    assert_eq!(
        (code["header"]["oat_version"].as_u64(), code["header"]["filter"].as_str()),
        (Some(225), Some("speed-profile"))
    );
    assert_eq!(found["packages"][0]["repairs"].as_array().map(Vec::len), Some(0));
    assert_eq!(found["engines"][0]["packages"].as_array().map(Vec::len), Some(2), "Trichrome is in both");
    assert_eq!(found["device"]["api_level"], 33);
}

#[test]
fn story_1_is_found_repaired_and_proved_on_the_same_phone() {
    let (place, phone) = (place(), Phone::new("broken", ""));
    let evidence = collected(&phone, place.path());
    let screen = run(slowpath(["android", "audit", &text(&evidence)]));
    screen.succeeds();
    let verdict = "renderers (isolated uid) cannot read base.odex (0640, profile-guided, reason bg-dexopt): each verifies up to 8.4 MB of DEX \
                   again (estimate: all DEX of the APK)";
    assert!(screen.stdout.contains(verdict), "{}", screen.stdout);
    assert!(screen.stdout.contains("1 isolated process ran") && screen.stdout.contains("price: "), "{}", screen.stdout);
    let after = place.path().join("after");
    let done = phone.run(&["android", "audit", "--json", &text(&evidence), "--apply", "-o", &text(&after)]);
    done.succeeds();
    let said = done.json();
    assert_eq!(outcomes(&said["before"]), chrome("unreadable"));
    assert_eq!(outcomes(&said["after"]), chrome("usable"));
    assert_eq!((said["counts"]["repaired"].as_u64(), said["counts"]["not_needed"].as_u64()), (Some(1), Some(1)));
    assert_eq!(said["applied"][0]["command"], format!("cmd package compile -m speed -f {CHROME}"));
    assert_eq!(outcomes(&audit(&after)), chrome("usable"));
    // The head of the odex could not be read before, and says the new filter now.
    assert!(said["before"]["packages"][0]["code"][0]["header"].is_null());
    assert_eq!(said["after"]["packages"][0]["code"][0]["header"]["filter"], "speed");
}

#[test]
fn a_partly_repaired_phone_is_distinguished_from_both_and_its_other_repair_works() {
    let (place, phone) = (place(), Phone::new("partly", ""));
    let evidence = collected(&phone, place.path());
    let found = audit(&evidence);
    assert_eq!(outcomes(&found), chrome("unreadable"));
    let code = &found["packages"][0]["code"][0];
    assert_eq!(
        (code["odex"]["state"].as_str(), code["vdex"]["state"].as_str()),
        (Some("unreadable"), Some("readable"))
    );
    let verdict = code["verdict"].as_str().unwrap();
    assert!(verdict.contains("base.vdex can be read, so classes are not verified again"), "{verdict}");
    let after = place.path().join("after");
    phone.run(&["android", "audit", &text(&evidence), "--apply=compile_shared", "-o", &text(&after)]).succeeds();
    assert_eq!(audit(&after)["packages"][0]["code"][0]["reason"], "shared");
}

#[test]
fn a_repair_that_the_device_refuses_is_counted_and_fails_the_command() {
    let (place, phone) = (place(), Phone::new("broken", "no-compile"));
    let evidence = collected(&phone, place.path());
    let after = place.path().join("after");
    let done = phone.run(&["android", "audit", &text(&evidence), "--apply", "-o", &text(&after)]);
    done.fails_with(1, &[]);
    assert!(
        done.stdout.contains("not_run: unreadable before, unreadable now") && done.stdout.contains("Failure"),
        "{}",
        done.stdout
    );
}

#[test]
fn the_policy_of_an_audit_is_one_that_the_guard_takes() {
    let (place, phone) = (place(), Phone::new("broken", ""));
    let evidence = collected(&phone, place.path());
    let policy = text(&place.path().join("guard.toml"));
    run(slowpath(["android", "audit", &text(&evidence), "--package", CHROME, "--guard-policy", &policy])).succeeds();
    let guarded = run(slowpath(["artifacts", "guard", "--json", &policy]));
    // No such file is on this machine: the policy was read, and what it names was looked for.
    guarded.fails_with(1, &[]);
    let line: Value = serde_json::from_str(guarded.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((line["outcome"].as_str(), line["uid"].as_u64()), (Some("missing"), Some(99_000)), "{line}");
    run(slowpath(["android", "audit", &text(&evidence), "--guard-policy", &policy])).fails_with(2, &["--package"]);
}

#[test]
fn a_device_that_cannot_be_used_is_an_error_with_a_remedy_and_leaves_nothing() {
    for (failure, words) in [
        ("offline", ["is offline", "adb reconnect"]),
        ("unauthorized", ["has not allowed this computer", "unlock the device"]),
        ("none", ["none is connected", "adb devices"]),
        ("two", ["several devices: SCRIPTED1 (device), SCRIPTED2 (device)", "--serial"]),
    ] {
        let (place, phone) = (place(), Phone::new("broken", failure));
        let evidence = place.path().join("evidence");
        let done = phone.run(&["android", "collect", CHROME, "-o", &text(&evidence)]);
        done.fails_with(3, &words);
        assert!(!evidence.exists(), "{failure}: a directory is left");
    }
    let (place, phone) = (place(), Phone::new("broken", "two"));
    let evidence = text(&place.path().join("evidence"));
    phone.run(&["android", "collect", "--serial", "SCRIPTED1", CHROME, "-o", &evidence]).succeeds();
    phone
        .run(&["android", "collect", "--serial", "OTHER", CHROME, "-o", &text(&place.path().join("o"))])
        .fails_with(3, &["OTHER is not connected"]);
}

#[test]
fn no_client_and_no_server_are_said_and_no_server_is_started() {
    let place = place();
    let evidence = text(&place.path().join("evidence"));
    let mut command = slowpath(["android", "collect", "--adb", "/no/such/adb", CHROME, "-o", &evidence]);
    run(&mut command).fails_with(3, &["adb cannot be run", "apt install adb"]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = slowpath(["android", "collect", CHROME, "-o", &evidence]);
    run(command.env("ADB_SERVER_SOCKET", format!("tcp:{free}")))
        .fails_with(3, &["no adb server listens", "adb start-server"]);
    assert!(std::net::TcpStream::connect(free).is_err(), "a server was started");
    run(slowpath(["android", "collect", "not a package", "-o", &evidence])).fails_with(2, &["no name of a package"]);
}

#[test]
fn what_fails_while_collecting_is_noted_and_what_came_is_kept() {
    for (failure, outcome, code) in [
        ("hang", "timed_out", 0),
        ("half", "cut_short", 0),
        ("no-dexopt", "refused", 0),
        ("denied", "partly_refused", 0),
        ("gone", "disconnected", 3),
    ] {
        let (place, phone) = (place(), Phone::new("broken", failure));
        let evidence = place.path().join("evidence");
        let done = phone.run(&["android", "collect", "--json", "--timeout", "2s", CHROME, "-o", &text(&evidence)]);
        assert_eq!(done.code(), code, "{failure}: {done:?}");
        let manifest = done.json();
        let broken: Vec<&Value> =
            manifest["steps"].as_array().unwrap().iter().filter(|step| step["outcome"] != "done").collect();
        // Those of the odex without root come on top.
        assert!(broken.iter().any(|step| step["outcome"] == outcome), "{failure}: {broken:#?}");
        assert!(broken.iter().all(|step| step["said"].is_string() && step["remedy"].is_string()), "{broken:#?}");
        assert_eq!(manifest["is_complete"].as_bool(), Some(code == 0), "{failure}");
        if code != 0 {
            assert!(done.stderr.contains("is kept in"), "{}", done.stderr);
            assert!(evidence.join("getprop.txt").exists() && evidence.join("evidence.json").exists());
            continue;
        }
        // The listing alone is enough to see who cannot read what.
        let found = audit(&evidence);
        let expected = if failure == "denied" { "unknown" } else { "unreadable" };
        assert_eq!(found["packages"][0]["outcome"], expected, "{failure}: {found:#}");
        let gaps = found["unavailable"].as_array().unwrap();
        assert!(gaps.iter().any(|gap| gap["what"].as_str().unwrap().starts_with("from the device: ")), "{gaps:#?}");
    }
}

/// Whether a client of this server still runs: its environment has the server's port.
fn client_of(phone: &Phone) -> bool {
    let variable = format!("ADB_SERVER_SOCKET=tcp:127.0.0.1:{}\0", phone.port);
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    processes.into_iter().any(|process| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        environment.windows(variable.len()).any(|window| window == variable.as_bytes())
    })
}

#[test]
fn ctrl_c_and_a_kill_leave_no_client_and_keep_what_came() {
    for (signal, code) in [(libc::SIGINT, Some(130)), (libc::SIGKILL, None)] {
        let (place, phone) = (place(), Phone::new("broken", "hang"));
        let evidence = place.path().join("evidence");
        let mut running = start(phone.command(&["android", "collect", CHROME, "-o", &text(&evidence)]));
        let until = Instant::now() + Duration::from_secs(60);
        while !evidence.join("processes.txt").exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        running.signal(signal);
        assert_eq!(running.wait().status.code(), code);
        assert!(evidence.join("getprop.txt").exists() && evidence.join("evidence.json").exists());
        while client_of(&phone) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!client_of(&phone), "signal {signal}: a client of adb is left");
    }
}

/// The commands of docs/android.md, in their order, against one broken phone.
#[test]
fn every_command_of_the_page_works_in_its_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/android.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (place, phone) = (place(), Phone::new("broken", ""));
    let bin = Path::new(SLOWPATH).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let (mut ran, mut is_console) = (0, false);
    for line in page.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) else { continue };
        let mut shell = Command::new("bash");
        shell.args(["-euc", command]).current_dir(place.path()).env("PATH", &path).stdin(Stdio::null());
        let output = shell.env("ADB_SERVER_SOCKET", format!("tcp:127.0.0.1:{}", phone.port)).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).join("\n");
        // The guard finds none of the phone's files on this machine, which is its exit code 1.
        let expected = i32::from(command.contains("artifacts guard"));
        assert_eq!(output.status.code(), Some(expected), "{command}\n{said}");
        ran += 1;
    }
    assert!(ran >= 6, "only {ran} commands found");
}
