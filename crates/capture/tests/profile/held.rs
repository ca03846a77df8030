//! Targets that are recorded from their first instruction, and what they say of themselves.

use crate::targets::held;
use slowpath_capture::{Options, Recorder, decode};
use slowpath_recording::Tables;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Time that is compared with the kernel's clocks is spent by one test at a time: there are few CPUs.
static ALONE: Mutex<()> = Mutex::new(());

/// Keeps other tests of this program from recording.
pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A recording in which no switch was lost. Kernels are known that tell no switch away from certain tasks, of which one may run
/// before the target at any time; the recorder counts them, and the attempt is repeated.
pub fn undisturbed<T>(attempt: impl Fn() -> (Tables, T)) -> (Tables, T) {
    for _ in 0..8 {
        let (out, other) = attempt();
        if out.manifest.losses.total() == 0 {
            return (out, other);
        }
        println!("disturbed: {:?}", out.manifest.losses);
    }
    panic!("every recording was disturbed");
}

/// Records a command to its end; `meanwhile` is called again and again with its pid.
pub fn recorded(options: Options, command: &[&str], mut meanwhile: impl FnMut(nix::unistd::Pid)) -> Tables {
    let _alone = alone();
    let mut recorder = Recorder::load(options).unwrap();
    let (child, release) = held(command);
    recorder.attach_tree(child.as_raw()).unwrap();
    meanwhile(child);
    nix::unistd::write(&release, b"x").unwrap();
    loop {
        recorder.drain().unwrap();
        let flags = Some(nix::sys::wait::WaitPidFlag::WNOHANG);
        let status = nix::sys::wait::waitpid(child, flags).unwrap();
        if status != nix::sys::wait::WaitStatus::StillAlive {
            assert_eq!(status, nix::sys::wait::WaitStatus::Exited(child, 0));
            break;
        }
        meanwhile(child);
        std::thread::sleep(Duration::from_millis(5));
    }
    let raw = recorder.finish().unwrap();
    assert_eq!(raw.facts.losses.total(), raw.facts.losses.0["off_cpu"], "{:?}", raw.facts.losses);
    assert!(!raw.facts.unavailable.iter().any(|one| one.what.starts_with("probe ")), "{:?}", raw.facts.unavailable);
    let decoded = decode(&raw);
    assert_eq!(decoded.manifest.counters[slowpath_capture::UNREADABLE_BYTES], 0);
    decoded
}

/// Lines `name number` of a file that a target wrote.
pub fn facts(path: &Path) -> HashMap<String, u64> {
    let text = std::fs::read_to_string(path).unwrap();
    let pair = |line: &str| line.split_once(' ').map(|(name, number)| (name.to_owned(), number.parse().unwrap()));
    text.lines().filter_map(pair).collect()
}
