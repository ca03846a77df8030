//! Launches of real processes through the real launcher.

mod another_user;
mod contexts;
mod devtools;
mod ends;
mod failures;
mod kills;
mod places;
mod readiness;
mod seen;
mod stays;
mod users;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use slowpath_launch::{
    Identity, LAUNCHER_ARGUMENT, LaunchError, LaunchOutcome, LaunchSpec, Launcher, LauncherProgram, NoHooks,
    ProcessLauncher,
};

fn launcher() -> ProcessLauncher {
    let path = env!("CARGO_BIN_EXE_launch-probe").into();
    ProcessLauncher::new(LauncherProgram { path, args: vec![LAUNCHER_ARGUMENT.into()] })
}

/// A launch as the caller, with a minimal environment that carries a mark of this launch.
fn spec(argv: &[&str]) -> (LaunchSpec, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mark = format!("LAUNCH_TEST_MARK={}-{}-", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let (name, value) = mark.split_once('=').unwrap();
    let env: Vec<(OsString, OsString)> =
        vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()), (name.into(), value.into())];
    let mut spec = LaunchSpec::new(argv.iter().map(OsString::from).collect(), Identity::of_caller().unwrap(), env);
    spec.timeout = Some(Duration::from_secs(20));
    (spec, mark)
}

fn shell(script: &str) -> (LaunchSpec, String) {
    spec(&["/bin/sh", "-c", script])
}

fn launch(spec: &LaunchSpec) -> Result<LaunchOutcome, LaunchError> {
    launcher().launch(spec, &mut NoHooks)
}

/// The processes, zombies excepted, whose environment at their exec carried the mark.
fn marked(mark: &str) -> Vec<i32> {
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let carries = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    pids.filter(carries).collect()
}

/// Waits until no process carries the mark; what is left after the limit.
fn left_after(mark: &str, limit: Duration) -> Vec<i32> {
    let start = Instant::now();
    loop {
        // Asked before the look, which waits for as long as a process of another test holds the lock of its memory map.
        let is_last = start.elapsed() > limit;
        let left = marked(mark);
        if left.is_empty() || is_last {
            return left;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("skipped: needs root");
    }
    root
}

fn has(program: &str) -> bool {
    let there = Path::new(program).exists();
    if !there {
        println!("skipped: {program} is not installed");
    }
    there
}
