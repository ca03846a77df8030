//! Every ready condition, met by a real program, at the time it is met.

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use slowpath_launch::{LaunchOutcome, LaunchSpec, ReadyWhen, StdioPolicy, StopReason};

use super::*;

const PYTHON: &str = "/usr/bin/python3";

/// Launches and checks that the time to ready is at least `delay`, and above it by no more than five seconds (the machine may be busy).
fn ready_after(spec: &LaunchSpec, mark: &str, delay: Duration) -> LaunchOutcome {
    let outcome = launch(spec).unwrap();
    assert_eq!(outcome.stop, StopReason::Ready, "{outcome:?}");
    let time = Duration::from_nanos(outcome.require_ready().unwrap());
    assert!(time >= delay && time < delay + Duration::from_secs(5), "{time:?} with a delay of {delay:?}");
    assert_eq!(marked(mark), [] as [i32; 0]);
    outcome
}

const DELAY: Duration = Duration::from_millis(100);

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn python(script: &str) -> (LaunchSpec, String) {
    spec(&[PYTHON, "-c", script])
}

#[test]
fn exit_is_ready_when_the_target_exits_with_0() {
    let (spec, mark) = shell("sleep 0.1; echo done; echo problem >&2");
    let outcome = ready_after(&spec, &mark, DELAY);
    assert_eq!(outcome.stdout_tail.as_deref(), Some("done\n"));
    assert_eq!(outcome.stderr_tail.as_deref(), Some("problem\n"));
    assert_eq!(outcome.exit, Some(slowpath_launch::Exit::Code(0)));
    assert!(outcome.usage.unwrap().minor_faults > 50, "{:?}", outcome.usage);
}

#[test]
fn line_is_ready_at_the_first_match_on_either_stream_and_output_still_arrives() {
    for stream in ["", ">&2"] {
        let (mut spec, mark) = shell(&format!("echo not yet {stream}; sleep 0.1; echo on port 80 {stream}; sleep 100"));
        spec.ready = "line:^on port [0-9]+$".parse().unwrap();
        let outcome = ready_after(&spec, &mark, DELAY);
        let tails = outcome.stdout_tail.unwrap() + &outcome.stderr_tail.unwrap();
        assert_eq!(tails, "not yet\non port 80\n");
    }
}

#[test]
fn a_line_printed_immediately_before_the_exit_counts() {
    for _ in 0..20 {
        let (mut spec, _) = spec(&["/bin/echo", "up"]);
        spec.ready = "line:up".parse().unwrap();
        assert_eq!(launch(&spec).unwrap().stop, StopReason::Ready);
    }
}

#[test]
fn inherited_output_passes_through_byte_for_byte_while_a_line_is_awaited() {
    let (mut spec, _) = shell("head -c 300000 /dev/zero; printf '\\377\\n'; echo ready; printf rest >&2");
    spec.ready = "line:^ready$".parse().unwrap();
    spec.stdio = StdioPolicy::Inherit;
    spec.end = slowpath_launch::EndPolicy::WaitExit;
    let output = kills::probe(&spec).output().unwrap();
    let mut expected = vec![0; 300_000];
    expected.extend_from_slice(b"\xff\nready\n");
    let (outcome, read) = apart(output.stdout);
    assert_eq!(outcome.stop, StopReason::Ready);
    assert!(read == expected, "{} bytes", read.len());
    assert_eq!(output.stderr, b"rest");
}

/// Of what a probe printed: the outcome, and what its target did. Whoever reads for longer than a second what is left at the exit has
/// the outcome before the end.
fn apart(mut read: Vec<u8>) -> (LaunchOutcome, Vec<u8>) {
    let begin = read.iter().position(|byte| *byte == b'{').unwrap();
    let end = begin + read[begin..].iter().position(|byte| *byte == b'\n').unwrap();
    let outcome = serde_json::from_slice(&read.drain(begin..=end).collect::<Vec<_>>()).unwrap();
    (outcome, read)
}

#[test]
fn a_line_printed_before_the_exit_counts_when_nobody_reads_what_went_before_it() {
    // A pipe full to the reader, as much kept back, and the line in the target's pipe behind the rest.
    let (mut spec, _) = shell("head -c 180000 /dev/zero; printf '\nready\n'");
    spec.ready = "line:^ready$".parse().unwrap();
    spec.stdio = StdioPolicy::Inherit;
    spec.end = slowpath_launch::EndPolicy::WaitExit;
    let mut main = kills::probe(&spec).stdout(std::process::Stdio::piped()).spawn().unwrap();
    // Longer than the launch waits for its reader: it has ended then, and its output is all there nevertheless.
    std::thread::sleep(Duration::from_millis(1500));
    let mut printed = Vec::new();
    main.stdout.take().unwrap().read_to_end(&mut printed).unwrap();
    assert!(main.wait().unwrap().success());
    let (outcome, read) = apart(printed);
    assert_eq!(outcome.stop, StopReason::Ready);
    assert!(read.len() == 180_007 && read.ends_with(b"\nready\n"), "{} bytes", read.len());
}

#[test]
fn file_is_ready_when_the_name_appears_in_a_directory_that_was_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spec, mark) = shell("mkdir a; mkdir a/b; sleep 0.1; : > a/b/ready; sleep 100");
    spec.cwd = dir.path().to_owned();
    spec.ready = "file:a/b/ready".parse().unwrap();
    ready_after(&spec, &mark, DELAY);
}

#[test]
fn tcp_is_ready_when_a_connection_is_accepted() {
    let port = free_port();
    let (mut spec, mark) = python(&format!(
        "import socket,time; time.sleep(0.1); s=socket.create_server(('127.0.0.1',{port})); time.sleep(100)"
    ));
    spec.ready = format!("tcp:{port}").parse().unwrap();
    assert_eq!(ready_after(&spec, &mark, DELAY).resolution, 1_000_000);
    spec.ready = format!("tcp:localhost:{port}").parse().unwrap();
    ready_after(&spec, &mark, DELAY);
}

#[test]
fn http_is_ready_at_the_first_answer_below_500() {
    let port = free_port();
    let (mut spec, mark) = python(&format!(
        "import http.server as h,time\n\
         start=time.time()\n\
         class H(h.BaseHTTPRequestHandler):\n\
         \x20def do_GET(self):\n\
         \x20\x20assert self.path=='/health?x=1'\n\
         \x20\x20self.send_response(404 if time.time()-start>0.1 else 503); self.end_headers()\n\
         h.HTTPServer(('127.0.0.1',{port}),H).serve_forever()"
    ));
    spec.ready = format!("http://127.0.0.1:{port}/health?x=1").parse().unwrap();
    ready_after(&spec, &mark, DELAY);
}

#[test]
fn notify_is_ready_at_ready_1_and_not_at_other_states() {
    let script = "import socket,os,time\n\
        s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); a=os.environ['NOTIFY_SOCKET'].replace('@','\\0')\n\
        s.sendto(b'STATUS=READY=1',a); time.sleep(0.1); s.sendto(b'MAINPID=1\\nREADY=1',a); time.sleep(100)";
    for pid_namespace in [false, true] {
        if pid_namespace && !is_root() {
            return;
        }
        let (mut spec, mark) = python(script);
        spec.ready = ReadyWhen::Notify;
        spec.pid_namespace = pid_namespace;
        ready_after(&spec, &mark, DELAY);
    }
}

#[test]
fn browser_gives_the_page_in_place_of_the_url_or_as_last_argument() {
    let script = "import sys,urllib.request as u,time\n\
        page=u.urlopen(sys.argv[1].removeprefix('--app=')).read().decode(); assert '/ready' in page, page\n\
        time.sleep(0.1); u.urlopen(sys.argv[1].removeprefix('--app=')+'ready'); time.sleep(100)";
    for argument in [None, Some("--app={url}")] {
        let (mut spec, mark) = python(script);
        spec.argv.extend(argument.map(OsString::from));
        spec.ready = "browser".parse().unwrap();
        let outcome = ready_after(&spec, &mark, DELAY);
        assert!(outcome.url.unwrap().starts_with("http://127.0.0.1:"));
    }
}

#[test]
fn a_real_browser_runs_the_script_of_a_given_page_as_an_ordinary_user_in_a_pid_namespace() {
    if !is_root() || !has("/usr/bin/chromium") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let page = dir.path().join("page.html");
    fs::write(&page, "<!DOCTYPE html><html><head><title>x</title></head><body>text</body></html>").unwrap();
    let (mut spec, mark) = spec(&["/usr/bin/chromium", "--headless", "--disable-gpu", "--no-first-run"]);
    spec.argv.push(format!("--user-data-dir={}", dir.path().join("profile").display()).into());
    spec.identity = Identity::for_invocation(Some("65534"), []).unwrap().0;
    spec.env.push(("HOME".into(), dir.path().into()));
    spec.env.push(("TMPDIR".into(), dir.path().into()));
    spec.ready = format!("browser:{}", page.display()).parse().unwrap();
    spec.pid_namespace = true;
    spec.timeout = Some(Duration::from_secs(60));
    let outcome = launch(&spec).unwrap();
    assert_eq!(outcome.stop, StopReason::Ready, "{outcome:?}");
    println!("chromium: {} ms, {:?}", outcome.require_ready().unwrap() / 1_000_000, outcome.usage);
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

#[test]
fn a_page_that_the_target_replaces_shows_nothing_that_the_target_may_not_read() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (private, page) = (dir.path().join("private"), dir.path().join("page.html"));
    fs::write(&private, "of root alone").unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    let script = "import sys,os,urllib.request as u\n\
        page=u.urlopen(sys.argv[1]).read().decode(); print(page, flush=True)\n\
        u.urlopen(sys.argv[1]+'ready')";
    let launched = |page: &Path| {
        let (mut spec, mark) = python(script);
        spec.identity = Identity::for_invocation(Some("65534"), []).unwrap().0;
        spec.ready = format!("browser:{}", page.display()).parse().unwrap();
        let outcome = launch(&spec);
        assert_eq!(marked(&mark), [] as [i32; 0]);
        outcome
    };
    let refused = |page: &Path| match launched(page) {
        Err(LaunchError::InvalidSpec(why)) => why,
        other => panic!("{}: {other:?}", page.display()),
    };
    let link = dir.path().join("link.html");
    symlink(&private, &link).unwrap();
    assert!(refused(&link).contains("Permission denied"));
    let pipe = dir.path().join("pipe.html");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU | nix::sys::stat::Mode::S_IRWXO).unwrap();
    assert!(refused(&pipe).contains("not a regular file"));
    // A page of the target's is what it was at first, whatever the launches make of it.
    fs::write(&page, "the page").unwrap();
    for _ in 0..2 {
        let outcome = launched(&page).unwrap();
        assert_eq!(outcome.stop, StopReason::Ready, "{outcome:?}");
        let said = outcome.stdout_tail.unwrap();
        assert!(said.contains("the page") && !said.contains("root alone"), "{said}");
        fs::remove_file(&page).ok();
        symlink(&private, &page).unwrap();
    }
}

#[test]
fn strangers_who_send_without_end_do_not_hold_the_observer() {
    // Processes of the target send here what strangers could send.
    let script = "import os,socket\n\
        name='\\0'+os.environ['NOTIFY_SOCKET'][1:]\n\
        for i in range(3):\n    os.fork()\n\
        s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\n\
        while 1: s.sendto(b'X=1',name)";
    let (mut spec, mark) = python(script);
    spec.ready = "notify".parse().unwrap();
    spec.timeout = Some(Duration::from_millis(500));
    let start = std::time::Instant::now();
    let outcome = launch(&spec).unwrap();
    assert!(outcome.timed_out(), "{outcome:?}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(marked(&mark), [] as [i32; 0]);
}
