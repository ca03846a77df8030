//! Who ends with whom, and what is left.

use crate::served::{Served, eventually, job};
use slowpath_zygote::{Ending, SpawnError};
use std::path::Path;
use std::time::Duration;

fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn the_client_is_told_how_its_child_ended() {
    for policy in ["", "spares = 2"] {
        let served = Served::new(None, policy);
        let ends = |words: &[&str]| served.spawn(job(words)).unwrap().wait().unwrap();
        assert_eq!(ends(&["exit", "0"]), Ending::Exited(0));
        assert_eq!(ends(&["exit", "42"]), Ending::Exited(42));
        assert_eq!(ends(&["panic"]), Ending::Exited(101));
        let child = served.spawn(job(&["sleep"])).unwrap();
        child.signal(libc::SIGUSR1).unwrap();
        assert_eq!(child.wait().unwrap(), Ending::Killed(libc::SIGUSR1));
        let child = served.spawn(job(&["sleep"])).unwrap();
        assert!(matches!(child.wait_for(Duration::from_millis(1)), Err(SpawnError::Late(_))));
        assert!(child.pidfd.is_some());
        let pid = child.pid;
        drop(child);
        eventually(|| !exists(pid));
    }
}

#[test]
fn a_killed_zygote_takes_its_children_and_spares_with_it_and_its_clients_hear_of_it() {
    let served = Served::new(None, "spares = 2");
    eventually(|| served.status().spares == 2);
    let children = [(); 5].map(|()| served.spawn(job(&["sleep"])).unwrap());
    eventually(|| served.status().spares == 2);
    let all = served.children();
    assert_eq!(all.len(), 7);
    served.signal(libc::SIGKILL);
    for child in &children {
        assert!(matches!(child.wait(), Err(SpawnError::Gone)));
    }
    eventually(|| all.iter().all(|pid| !exists(pid.cast_signed())));
}

#[test]
fn one_that_is_told_to_end_ends_its_children_and_removes_its_socket() {
    let served = Served::new(None, "spares = 1");
    let child = served.spawn(job(&["sleep"])).unwrap();
    let (pid, socket, place) = (child.pid, served.socket(), served.place.path().to_owned());
    served.signal(libc::SIGTERM);
    assert_eq!(child.wait().unwrap(), Ending::Killed(libc::SIGKILL));
    eventually(|| !socket.exists());
    assert!(place.exists() && !exists(pid));
    assert_eq!(served.ended(), "Stopped 1 0 0");
}

#[test]
fn it_ends_when_idle_and_not_while_a_child_or_a_holder_is_there() {
    // Whoever finds it ready stays: on a busy machine it could be idle for long enough until the next one comes.
    let mut holder = None;
    let served = Served::held(None, "idle = \"300ms\"", |client| {
        client.hold().unwrap();
        holder = Some(client);
    });
    std::thread::sleep(Duration::from_millis(900));
    let child = served.spawn(job(&["sleep"])).unwrap();
    drop(holder);
    std::thread::sleep(Duration::from_millis(900));
    assert!(exists(child.pid));
    drop(child);
    assert_eq!(served.ended(), "Idle 1 0 0");
}

#[test]
fn one_that_is_to_be_renewed_ends_after_its_last_child() {
    let served = Served::new(None, "");
    let child = served.spawn(job(&["sleep"])).unwrap();
    served.signal(libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(200));
    assert!(exists(child.pid));
    child.signal(libc::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap(), Ending::Killed(libc::SIGTERM));
    drop(child);
    assert_eq!(served.ended(), "Renew 1 0 0");
}

#[test]
fn spares_are_made_ahead_and_a_child_of_one_is_told_as_such() {
    let served = Served::new(None, "spares = 3");
    eventually(|| served.status().spares == 3);
    let child = served.spawn(job(&["exit", "5"])).unwrap();
    assert!(child.from_spare);
    assert_eq!(child.wait().unwrap(), Ending::Exited(5));
    eventually(|| served.status().spares == 3);
    let status = served.status();
    assert_eq!((status.started, status.from_spares), (1, 1));
    // A spare that somebody else ends is replaced.
    let spares = served.children();
    // SAFETY: takes integers; a child of the zygote that waits.
    unsafe { libc::kill(spares[0].cast_signed(), libc::SIGKILL) };
    eventually(|| served.status().spares == 3 && !exists(spares[0].cast_signed()));
    assert_eq!(Served::new(None, "").status().spares, 0);
}

#[test]
fn a_child_of_a_spare_does_not_wait_for_the_fork_of_the_next_one() {
    let served = Served::new(None, "spares = 1");
    eventually(|| served.status().spares == 1);
    let [spare] = served.children()[..] else { panic!("{:?}", served.children()) };
    let signal = |signal: i32| {
        // SAFETY: takes integers; a child of the zygote that waits, and then one of this test's.
        assert_eq!(unsafe { libc::kill(spare.cast_signed(), signal) }, 0);
    };
    // It has its order and does not come to it: as long as this lasts, the client waits.
    signal(libc::SIGSTOP);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| served.spawn(job(&["exit", "0"])).unwrap());
        eventually(|| served.status().spares == 0);
        // Each answer is a turn of the zygote, in which it would make the spare that is missing if it did not let the client go first.
        for _ in 0..20 {
            let status = served.status();
            assert_eq!((status.spares, status.spares_wanted, status.started), (0, 1, 0), "{status:?}");
        }
        assert_eq!(served.children(), [spare], "the next one is forked while the client waits");
        assert!(!client.is_finished());
        signal(libc::SIGCONT);
        let child = client.join().unwrap();
        assert!(child.from_spare && child.pid == spare.cast_signed());
        assert_eq!(child.wait().unwrap(), Ending::Exited(0));
    });
    eventually(|| served.status().spares == 1);
}
