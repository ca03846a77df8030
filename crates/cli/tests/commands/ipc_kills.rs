//! SIGKILL of a client, a server, the process that keeps the trace, or the parent of `slowpath ipc`, at random moments: no process,
//! queue or trace instance is left, and what was measured until then is valid JSON.
//!
//! `SLOWPATH_KILLS=1000` is the long run, of which this gets a fifth. Shared memory of `ipc` has no name that could be left.

use crate::ipc::parsed;
use crate::ipc_ended::{children_of, instances};
use crate::kills::{Moments, kills};
use crate::running::*;
use crate::traces::{assert_no_kernel_object_left, clean, processes_with};
use std::time::Duration;

/// How long a run takes about, from its first process to its last.
const WHOLE: Duration = Duration::from_millis(1500);

/// Message queues in this ipc namespace that are slowpath's.
fn queues_of(owners: &[u32]) -> Vec<String> {
    let listed = in_private_mounts("mount -t mqueue mqueue /mnt && ls /mnt").output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let own = |name: &&str| owners.iter().any(|pid| name.starts_with(&format!("slowpath-ipc-{pid}-")));
    names.lines().filter(own).map(str::to_owned).collect()
}

#[test]
fn whoever_of_a_latency_benchmark_is_killed_nothing_is_left_and_its_json_is_valid() {
    if !root() || instances(0).is_none() {
        println!("skipped: no tracefs");
        return;
    }
    let mut moments = Moments::new(0x1BC5);
    let transports = ["posix-mq", "futex-shm", "pi-futex-shm", "dbus", "unix-stream", "pipe", "eventfd-shm", "grpc"];
    let (mut parents, mut results, mut errors) = (0, 0, 0);
    for number in 0..kills(20) {
        let transport = transports[number as usize % transports.len()];
        let words = ["ipc", "latency", "-i", "40", "-pair", "2", "--rate", "80", "-deadline_us", "60000000", "-trace"];
        let (name, value) = mark();
        let mut running = start(slowpath(words).args(["--transport", transport, "--json"]).env(name, &value));
        let parent = running.child.id();
        std::thread::sleep(WHOLE.mul_f64(moments.next()));
        let children = children_of(parent);
        // The parent in one of four, and where it has no child at that moment.
        let victim = match moments.next() {
            chance if chance < 0.25 || children.is_empty() => None,
            _ => children.get((moments.next() * children.len() as f64) as usize).copied(),
        };
        match victim {
            Some(child) => {
                let child = nix::unistd::Pid::from_raw(child.cast_signed());
                // One that has ended by now is killed no more.
                let _ = nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL);
            }
            None => running.signal(libc::SIGKILL),
        }
        let done = running.wait();
        let context = format!("kill {number} of {victim:?}, {transport}: {done:?}");
        if victim.is_none() {
            parents += 1;
        } else {
            // One that ended before may have been meant, or the keeper of the trace, without whom all is measured.
            let result = parsed(&done.stdout);
            match result["P0"].is_object() {
                true => results += 1,
                false => errors += u32::from(result["error"]["kind"].is_string()),
            }
            assert!(result["P0"].is_object() || result["error"]["kind"].is_string(), "{context}");
        }
        assert!(soon(|| processes_with(&value).is_empty()), "{context}: {:?} live on", processes_with(&value));
        assert!(queues_of(&[&children[..], &[parent]].concat()).is_empty(), "{context}");
        // Where the process that keeps it was killed and then the parent, the next command removes it.
        let left = || instances(parent).unwrap_or_default();
        if !soon(|| left().is_empty()) {
            clean();
            assert!(left().is_empty(), "{context}");
        }
        assert_no_kernel_object_left(&done);
    }
    println!("{parents} parents killed; of the children killed {results} results and {errors} errors, all valid JSON");
}
