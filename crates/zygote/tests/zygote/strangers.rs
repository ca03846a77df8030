//! Users who may ask for nothing, and what they can hold up.

use crate::served::{PATIENCE, Served, eventually, is_root, job};
use slowpath_process::{receive_packet, send_packet};
use slowpath_zygote::message::{FromClient, MOST_BYTES, ToClient, decoded, encoded};
use slowpath_zygote::{Client, Ending};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Ends with the test.
struct Stranger(Child);

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What comes next, if it does soon.
fn heard(socket: BorrowedFd<'_>) -> Option<ToClient> {
    let until = Instant::now() + PATIENCE / 4;
    while Instant::now() < until {
        match receive_packet(socket, MOST_BYTES) {
            Ok(packet) => return packet.map(|packet| decoded(&packet.bytes).unwrap()),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
    None
}

#[test]
fn strangers_who_connect_without_end_do_not_keep_a_zygote_from_its_clients() {
    if !is_root() {
        println!("skipped: only root can be other users");
        return;
    }
    let served = Served::new(None, "");
    let strangers = [(); 3].map(|()| {
        let mut command = Command::new(served.place.path().join("probe"));
        command.arg("connect").arg(served.socket()).uid(99_007).gid(99_007);
        Stranger(command.spawn().unwrap())
    });
    let began = Instant::now();
    let (mut asked, mut refused) = (0, 0);
    while asked < 20 || refused < 10_000 {
        let client = served.client().unwrap();
        send_packet(client.as_fd(), &encoded(&FromClient::Status).unwrap(), &[]).unwrap();
        match heard(client.as_fd()) {
            Some(ToClient::Status(status)) => refused = status.refused,
            other => panic!("{other:?} after {asked} answers"),
        }
        asked += 1;
        assert!(began.elapsed() < PATIENCE, "{asked} answers and {refused} refusals in {PATIENCE:?}");
    }
    assert_eq!(served.spawn(job(&["exit", "7"])).unwrap().wait().unwrap(), Ending::Exited(7));
    drop(strangers);
}

#[test]
fn who_asks_while_the_zygote_forks_for_longer_than_it_waits_for_the_silent_is_heard() {
    // Longer than the 5 s that a client may be silent.
    let served = Served::with(None, "", |command| {
        command.env("ZYGOTE_PROBE_FORK_MS", "6000");
    });
    let says = |client: &Client, message: &FromClient| {
        send_packet(client.as_fd(), &encoded(message).unwrap(), &[]).unwrap();
    };
    let [first, early] = [(); 2].map(|()| served.client().unwrap());
    eventually(|| first.status().unwrap().connections == 2);
    // Both are there in one turn: the late one is accepted, and then the child of the first is forked.
    served.signal(libc::SIGSTOP);
    says(&first, &FromClient::Spawn(Box::new(job(&["exit", "0"]))));
    let late = served.client().unwrap();
    says(&late, &FromClient::Status);
    served.signal(libc::SIGCONT);
    // That turn has begun when this one speaks.
    std::thread::sleep(Duration::from_secs(1));
    says(&early, &FromClient::Status);
    for client in [late, early] {
        let answer = heard(client.as_fd());
        assert!(matches!(answer, Some(ToClient::Status(_))), "{answer:?}");
    }
    assert!(matches!(heard(first.as_fd()), Some(ToClient::Started { .. })));
}
