//! Real browsers: visits of `slowpath launch scenario`, and the extensions and pages that the acceptance runs are made with.

use crate::recorded_case::built;
use crate::running::*;
use crate::traces::{carries, command_name, processes, processes_with};
use serde_json::Value;
use slowpath_browse::{Page, PageServer, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const CHROMIUM: &str = "/usr/lib/chromium/chromium";
const BROWSER: &str = "/usr/lib/chromium/chromium --headless --disable-gpu --no-first-run --no-sandbox \
                       --disable-background-networking --disable-component-update";

/// A word for the environment of one scenario's browsers.
fn new_mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("slowpath-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Runs it, and fails if a process of it is left.
#[track_caller]
fn scenario(arguments: &[&str]) -> Done {
    scenario_with(&new_mark(), arguments)
}

#[track_caller]
fn scenario_with(mark: &str, arguments: &[&str]) -> Done {
    let marked = format!("MARK={mark}");
    let common = ["launch", "scenario", "--quiet", "--env", "HOME={tmp}", "--env", "TMPDIR={tmp}", "--env", &marked];
    let done = run(slowpath(common.iter().chain(arguments)));
    assert_eq!(processes_with(mark), Vec::<u32>::new());
    done
}

/// Two pages of which one takes long to parse, in a directory of their own.
fn two_pages() -> tempfile::TempDir {
    let site = tempfile::tempdir_in("/var/tmp").unwrap();
    for (name, work) in [("quick", 0), ("slow", 1500)] {
        std::fs::create_dir(site.path().join(name)).unwrap();
        let script =
            format!("<script>const end = performance.now() + {work}; while (performance.now() < end) {{}}</script>");
        std::fs::write(site.path().join(name).join("index.html"), format!("<p>text</p>{script}")).unwrap();
    }
    site
}

#[test]
fn every_round_visits_every_page_and_tells_what_the_page_was_made_to_take() {
    let site = two_pages();
    let without = format!("without={BROWSER} --no-zygote");
    let done =
        scenario(&["--json", "--rounds", "2", "--browser", BROWSER, "--arm", &without, site.path().to_str().unwrap()]);
    done.succeeds();
    let said = done.json();
    assert_eq!(said["pages"], serde_json::json!(["quick", "slow"]));
    assert_eq!(
        said["losses"].as_object().map(|losses| losses.values().filter_map(Value::as_u64).sum::<u64>()),
        Some(0)
    );
    for arm in said["arms"].as_array().unwrap() {
        let rounds = arm["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2);
        for round in rounds {
            let visits = round["visits"].as_array().unwrap();
            assert_eq!(visits.len(), 2, "{round}");
            for visit in visits {
                let at = |name: &str| visit["milestones"][name].as_f64().unwrap();
                assert!(at("request") <= at("first_byte") && at("first_byte") <= at("interactive"), "{visit}");
                assert!(at("interactive") <= at("load"), "{visit}");
                // The script runs while the page is parsed.
                let parsing = at("interactive") - at("first_byte");
                assert_eq!(visit["page"].as_u64() == Some(1), parsing >= 1450.0, "{visit}");
            }
        }
        let children = arm["children"].to_string();
        assert!(children.contains("renderer"), "{children}");
    }
    // With the zygote renderers are copies of it; without, each executes the program anew.
    let origins = |arm: usize| -> Vec<&str> {
        let kinds = said["arms"][arm]["children"]["kinds"].as_array().unwrap();
        kinds.iter().filter(|kind| kind["kind"] == "renderer").map(|kind| kind["origin"].as_str().unwrap()).collect()
    };
    assert_eq!((origins(0), origins(1)), (vec!["forked"], vec!["executed"]));
}

/// What the descriptors of a process lead to, by their numbers.
fn descriptors(pid: u32) -> BTreeMap<String, PathBuf> {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let named = all.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path().read_link().ok()?)));
    named.collect()
}

fn command_line(pid: u32) -> String {
    String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()
}

/// Sockets of TCP that listen, as descriptors show them.
fn listening() -> Vec<PathBuf> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| std::fs::read_to_string(table).unwrap_or_default());
    let rows = tables.iter().flat_map(|table| table.lines().skip(1)).map(|row| row.split_whitespace().collect());
    // State and inode (proc_net_tcp.rst of the kernel); 0A: it listens.
    let listening = rows.filter(|row: &Vec<&str>| row.get(3) == Some(&"0A"));
    listening.filter_map(|row| Some(format!("socket:[{}]", row.get(9)?).into())).collect()
}

#[test]
fn the_browser_of_a_scenario_listens_nowhere_and_alone_has_its_end_of_devtools() {
    let site = two_pages();
    let mark = new_mark();
    let (mut looks, mut listens, mut others) = (0, Vec::new(), Vec::new());
    let (mut rounds, mut longest) = (0, Duration::ZERO);
    std::thread::scope(|scope| {
        let done = scope
            .spawn(|| scenario_with(&mark, &["--rounds", "2", "--browser", BROWSER, site.path().to_str().unwrap()]));
        while !done.is_finished() {
            let began = Instant::now();
            // By name first: a process of another test may hold the lock of its memory for long.
            let browsers = processes().filter(|pid| command_name(*pid) == "chromium");
            for browser in browsers.filter(|pid| carries(*pid, &mark)) {
                let (own, line) = (descriptors(browser), command_line(browser));
                let open = listening();
                listens.extend(own.values().filter(|one| open.contains(one)).cloned());
                let Some(end) = own.get("3").filter(|_| line.starts_with(CHROMIUM) && !line.contains("--type=")) else {
                    continue;
                };
                assert_eq!(own.get("4"), Some(end));
                // What the browser has just forked still has its command line, and all descriptors until its exec,
                // which may come between the two looks: the descriptors are looked at again behind the line.
                let has_end = |pid: &u32| descriptors(*pid).values().any(|one| one == end);
                let all = processes().filter(has_end).filter(|pid| command_line(*pid) != line);
                others.extend(all.filter(has_end).map(command_line));
                looks += 1;
            }
            (rounds, longest) = (rounds + 1, longest.max(began.elapsed()));
        }
        done.join().unwrap().succeeds();
    });
    assert!(looks > 0, "the browser was never seen in {rounds} rounds, the longest of {longest:?}");
    assert_eq!((listens, others), (Vec::new(), Vec::new()));
}

#[test]
fn a_page_that_is_missing_a_browser_that_is_none_and_a_profile_of_ones_own_are_reported() {
    let site = two_pages();
    let pages = site.path().to_str().unwrap();
    scenario(&["--browser", BROWSER, "/nonexistent"]).fails_with(2, &["cannot be read", "PAGES"]);
    scenario(&["--browser", "/nonexistent/browser", pages]).fails_with(4, &["/nonexistent/browser"]);
    scenario(&["--browser", "/bin/true", pages]).fails_with(4, &["failed in its first round", "the browser ended"]);
    scenario(&["--browser", "sleep 600", "--timeout", "1", pages]).fails_with(4, &["the browser ended"]);
    scenario(&["--browser", "/usr/bin/python3 -c 'import time; time.sleep(600)'", "--timeout", "1", pages])
        .fails_with(4, &["did not answer to DevTools within 1 s"]);
    scenario(&["--browser", "firefox-esr --headless", pages]).fails_with(3, &["unavailable", "DevTools"]);
    for own in ["--user-data-dir=/x", "--remote-debugging-port=0", "-remote-debugging-port=0"] {
        scenario(&["--browser", &format!("{BROWSER} {own}"), pages]).fails_with(2, &[own]);
    }
    scenario(&["--browser", "", pages]).fails_with(2, &["empty"]);
    // A page that does not answer.
    let list = site.path().join("list");
    std::fs::write(&list, "gone http://127.77.200.1:5999/\n").unwrap();
    scenario(&["--browser", BROWSER, list.to_str().unwrap()]).fails_with(4, &["page gone", "ERR_CONNECTION_REFUSED"]);
}

/// What Chromium makes of a page with an extension: the document after it was loaded.
fn dumped(extension: &Path, profile: &Path, url: &str) -> String {
    let done = Command::new(CHROMIUM)
        .args([
            "--headless",
            "--disable-gpu",
            "--no-sandbox",
            "--no-first-run",
            "--virtual-time-budget=2000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--load-extension={}", extension.display()))
        .arg(url)
        .env("TMPDIR", profile)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn the_extensions_of_the_ladder_do_what_they_say() {
    let extensions = built("extensions");
    let site = tempfile::tempdir_in("/var/tmp").unwrap();
    let page = "<p>x</p><script src=slowpath-blocked.js></script><script>const style = getComputedStyle(document.documentElement);
        document.title = 'style' + style.getPropertyValue('--slowpath-style').trim()</script>";
    std::fs::write(site.path().join("index.html"), page).unwrap();
    std::fs::write(site.path().join("slowpath-blocked.js"), "document.documentElement.dataset.loaded = 1").unwrap();
    let source = Source::Served { directory: site.path().to_owned(), file: "index.html".to_owned() };
    let pages = [Page { name: "page".to_owned(), source }];
    let server = PageServer::start(&pages).unwrap();
    let url = &server.urls()[0];
    let of = |name: &str| {
        let profile = tempfile::tempdir_in("/var/tmp").unwrap();
        (dumped(&extensions.path().join(name), profile.path(), url), profile)
    };
    assert!(of("content-script").0.contains("data-slowpath-content="));
    let many = of("many-files").0;
    assert!(many.contains("data-slowpath-part0=") && many.contains("data-slowpath-part149="));
    assert!(of("style-sheet").0.contains("<title>style1"));
    let listed = of("rule-list").0;
    assert!(listed.contains("<title>style<") && !listed.contains("data-loaded"), "{listed}");
    assert!(stored_by(&extensions.path().join("background-worker")), "nothing was stored");
}

/// Whether an extension that nobody waits for stores something in the first seconds of a browser.
fn stored_by(extension: &Path) -> bool {
    let profile = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut browser = Command::new(CHROMIUM)
        .args(["--headless", "--disable-gpu", "--no-sandbox", "--no-first-run", "about:blank"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--load-extension={}", extension.display()))
        .env("TMPDIR", profile.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let store = profile.path().join("Default/Local Extension Settings");
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_stored = loop {
        let found = holds(&store, b"slowpath");
        if found || Instant::now() > deadline {
            break found;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    // Its children end with it.
    browser.kill().unwrap();
    browser.wait().unwrap();
    is_stored
}

/// Whether a file below `directory` holds these bytes.
fn holds(directory: &Path, bytes: &[u8]) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.iter().any(|path| {
        let found = |content: Vec<u8>| content.windows(bytes.len()).any(|window| window == bytes);
        if path.is_dir() { holds(path, bytes) } else { std::fs::read(path).is_ok_and(found) }
    })
}
