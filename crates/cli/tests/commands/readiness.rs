//! `record --ready`: every kind is noticed, and the target survives the end of the recording.

use crate::running::*;
use crate::traces::processes_with;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

/// Records until ready; the target then still runs, and ends on request.
fn ready(place: &Path, when: &str, script: &str) {
    let out = place.join("out");
    let (name, value) = mark();
    let mut command = slowpath(["record", "--timeout", "20", "--ready", when, "-o"]);
    command.arg(&out).args(["--", "/usr/bin/python3", "-u", "-c", script]).env(name, &value).current_dir(place);
    let running = start(&mut command);
    let pid = running.child.id();
    let ended = || !processes_with(&value).contains(&pid);
    assert!(soon(ended), "{when}: record ends when the target is ready");
    if processes_with(&value).is_empty() {
        panic!("{when}: the target does not live on: {:?}", running.wait());
    }
    std::fs::write(place.join("go"), "").unwrap();
    let done = running.wait();
    done.succeeds();
    assert!(soon(|| processes_with(&value).is_empty()), "{when}: and ends by itself: {:?}", processes_with(&value));
    let tables = tables(&out);
    let launch = tables.manifest.launch.unwrap();
    assert_eq!(launch.outcome, "ready", "{when}");
    let time = launch.ready.unwrap().0 - launch.released.0;
    assert!((300_000_000..10_000_000_000).contains(&time), "{when}: ready after {time} ns, not before 300 ms");
    assert!(place.join("end").exists(), "{when}: the target ran to its end");
    if when.starts_with("line") {
        assert_eq!(done.stdout, "one\nready\nafter\n", "what it prints passes through, also afterwards");
    }
}

/// Runs `event` 300 ms after the start, waits for the file `go` (a minute at most) and ends with a file that says so.
fn script(event: &str) -> String {
    let wait = "n = 0\nwhile not os.path.exists('go') and n < 3000:\n  time.sleep(0.02); n += 1\n";
    format!("import os, time; time.sleep(0.3)\n{event}\n{wait}open('end', 'w')\n")
}

#[test]
fn a_line_is_noticed_and_output_passes_through() {
    if root() {
        let event = "print('one'); print('ready')";
        let script = script(event).replace("open('end'", "print('after'); open('end'");
        ready(place().path(), "line:^ready$", &script);
    }
}

#[test]
fn a_file_is_noticed() {
    if root() {
        ready(place().path(), "file:ready", &script("open('ready', 'w').close()"));
    }
}

#[test]
fn a_listening_port_is_noticed() {
    if root() {
        let port = free_port();
        let event = format!("import socket; s = socket.create_server(('127.0.0.1', {port}))");
        ready(place().path(), &format!("tcp:{port}"), &script(&event));
    }
}

#[test]
fn an_answered_url_is_noticed() {
    if root() {
        let port = free_port();
        let event = format!(
            "import http.server, threading; s = http.server.HTTPServer(('127.0.0.1', {port}), \
             http.server.SimpleHTTPRequestHandler); threading.Thread(target=s.serve_forever, daemon=True).start()"
        );
        ready(place().path(), &format!("http://127.0.0.1:{port}/"), &script(&event));
    }
}

#[test]
fn a_notification_is_noticed() {
    if root() {
        let event = "import socket; a = os.environ['NOTIFY_SOCKET']; \
                     s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); \
                     s.sendto(b'READY=1', '\\0' + a[1:] if a[0] == '@' else a)";
        ready(place().path(), "notify", &script(event));
    }
}

/// A port that nothing listens on, and that the kernel gives to no connection of another test meanwhile: those are from 32768 on
/// (`net.ipv4.ip_local_port_range`).
fn free_port() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    loop {
        let port = first + TRIED.fetch_add(1, Ordering::Relaxed);
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
