//! Many children, many clients, and kills at random: nothing is left, and every request has an answer.

use crate::served::{Served, eventually, job};
use slowpath_zygote::{Ending, SpawnError};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// Spawns in the test run; `SLOWPATH_ZYGOTE_SPAWNS=100000` asks for more.
fn spawns() -> u64 {
    std::env::var("SLOWPATH_ZYGOTE_SPAWNS").ok().and_then(|text| text.parse().ok()).unwrap_or(2000)
}

fn resident(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn thousands_of_children_of_many_clients_with_random_kills_leave_nothing() {
    let served = Served::new(None, "spares = 2\nmost_spares = 8\nchildren = 300");
    eventually(|| served.status().spares == 2);
    let (descriptors, memory) = (served.descriptors(), resident(served.pid()));
    let left = AtomicU64::new(spawns());
    let (answered, killed) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for client in 0..200u64 {
            let (left, answered, killed, served) = (&left, &answered, &killed, &served);
            scope.spawn(move || {
                let mut state = client * 7919 + 1;
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let code = (state >> 40) as u8;
                    match (state >> 33) % 4 {
                        // Left by its client while it works.
                        0 => drop(served.spawn(job(&["sleep"])).unwrap()),
                        // Killed by somebody.
                        1 => {
                            let child = served.spawn(job(&["sleep"])).unwrap();
                            // SAFETY: takes integers. The child lives until this signal, so the number is its own.
                            unsafe { libc::kill(child.pid, libc::SIGKILL) };
                            assert_eq!(child.wait().unwrap(), Ending::Killed(libc::SIGKILL));
                            killed.fetch_add(1, Ordering::Relaxed);
                        }
                        _ => {
                            let child = served.spawn(job(&["exit", &code.to_string()])).unwrap();
                            assert_eq!(child.wait().unwrap(), Ending::Exited(code.into()));
                        }
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(answered.load(Ordering::Relaxed), spawns());
    assert!(killed.load(Ordering::Relaxed) > spawns() / 10);
    eventually(|| {
        let status = served.status();
        status.alive == 0 && served.children().len() as u64 == status.spares
    });
    eventually(|| served.descriptors() <= descriptors + 2 * 8);
    // A list of 300 connections with their messages is some MB; a leak of a message a spawn would be 250 MB.
    let grown = resident(served.pid()).saturating_sub(memory);
    assert!(grown < 16 << 10, "the zygote grew by {grown} KiB");
    let status = served.status();
    assert_eq!((status.started, status.failed, status.refused), (spawns(), 0, 0), "{status:?}");
}

#[test]
fn a_zygote_that_is_killed_at_any_moment_leaves_no_child_and_no_client_without_an_answer() {
    for round in 0..12u64 {
        let served = Served::new(None, "spares = 2");
        let pids = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    loop {
                        match served.spawn(job(&["sleep"])) {
                            Ok(child) => pids.lock().unwrap().push((child.pid, child)),
                            Err(SpawnError::Gone | SpawnError::NoZygote { .. } | SpawnError::Answer(_)) => return,
                            Err(SpawnError::Refused(refusal)) if refusal.why.contains("children are alive") => {
                                std::thread::yield_now();
                            }
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(3 + round * 2));
            served.signal(libc::SIGKILL);
        });
        for (pid, child) in pids.into_inner().unwrap() {
            assert!(matches!(child.wait(), Err(SpawnError::Gone | SpawnError::Answer(_))));
            eventually(|| !fs::exists(format!("/proc/{pid}")).unwrap());
        }
    }
}
