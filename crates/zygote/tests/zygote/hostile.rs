//! Clients that are not allowed, or do not keep to the rules.

use crate::hanging::Hanging;
use crate::served::{Served, eventually, is_root, job};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use slowpath_process::{receive_packet, send_packet};
use slowpath_zygote::message::{FromClient, MOST_BYTES, RefusalKind, Step, ToClient, decoded, encoded};
use slowpath_zygote::{AskedIdentity, Client, Ending, SpawnError, SpawnRequest};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

fn connected(served: &Served) -> OwnedFd {
    let made = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    connect(made.as_raw_fd(), &UnixAddr::new(&served.socket()).unwrap()).unwrap();
    made
}

/// The answer to bytes.
fn answer(served: &Served, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> ToClient {
    let socket = connected(served);
    send_packet(&socket, bytes, descriptors).unwrap();
    heard(&socket)
}

fn heard(socket: &OwnedFd) -> ToClient {
    let mut packet = None;
    eventually(|| {
        packet = receive_packet(socket, MOST_BYTES).ok();
        packet.is_some()
    });
    decoded(&packet.unwrap().expect("an answer").bytes).unwrap()
}

fn is_refused(answer: &ToClient, kind: RefusalKind, words: &str) -> bool {
    matches!(answer, ToClient::Refused(refusal) if refusal.kind == kind && refusal.why.contains(words))
}

#[test]
fn what_is_no_request_is_answered_and_leaves_nothing() {
    let served = Served::new(None, "");
    let before = served.descriptors_unconnected();
    let file = std::fs::File::open("/dev/null").unwrap();
    let many = vec![file.as_fd(); 253];
    assert!(is_refused(&answer(&served, b"\xff", &[]), RefusalKind::Malformed, "cannot be read"));
    assert!(is_refused(&answer(&served, b"{}", &many), RefusalKind::Malformed, "cannot be read"));
    let long = vec![0xc0u8; MOST_BYTES + 1];
    assert!(
        is_refused(&answer(&served, &long, &many), RefusalKind::Malformed, "")
            || is_refused(&answer(&served, &long, &many), RefusalKind::Busy, "")
    );
    let request = |spawn: SpawnRequest| encoded(&FromClient::Spawn(Box::new(spawn))).unwrap();
    let asks = request(job(&["exit", "0"]));
    let unannounced = answer(&served, &asks, &many);
    assert!(matches!(unannounced, ToClient::Failed { step: Step::Descriptors, errno: libc::EBADMSG }));
    let twice = request(SpawnRequest { descriptors: vec![5, 5], ..job(&[]) });
    assert!(is_refused(&answer(&served, &twice, &[]), RefusalKind::Malformed, "descriptor 5 twice"));
    let id = AskedIdentity { uid: u32::MAX, gid: 1, groups: vec![] };
    let nobody = request(SpawnRequest { identity: Some(id), ..job(&[]) });
    assert!(is_refused(&answer(&served, &nobody, &[]), RefusalKind::Malformed, "unchanged"));
    let mut state = 1u64;
    for round in 0..500 {
        let mut bytes = asks.clone();
        for _ in 0..=round % 3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        let given = [file.as_fd()];
        // Any answer will do, but there is one.
        answer(&served, &bytes, &given[..round % 2]);
    }
    // A client that says nothing, one that asks twice, and one that is gone before its answer.
    let silent = connected(&served);
    drop(connected(&served));
    let twice = connected(&served);
    let sleeps = request(job(&["sleep"]));
    send_packet(&twice, &sleeps, &[]).unwrap();
    assert!(matches!(heard(&twice), ToClient::Started { .. }));
    send_packet(&twice, &sleeps, &[]).unwrap();
    assert!(is_refused(&heard(&twice), RefusalKind::Malformed, "already has its one child"));
    let gone = connected(&served);
    send_packet(&gone, &sleeps, &[]).unwrap();
    drop((gone, silent, twice));
    eventually(|| served.children().is_empty() && served.descriptors() == before);
    assert_eq!(served.spawn(job(&["exit", "7"])).unwrap().wait().unwrap(), Ending::Exited(7));
}

#[test]
fn other_users_are_refused_unless_the_policy_names_them_and_get_no_more_than_it_says() {
    if !is_root() {
        println!("skipped: only root can be other users");
        return;
    }
    let served = Served::new(None, "");
    let said = |output: std::process::Output| {
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let (code, text) = said(served.asked_by(99_007, &["-", "-", "exit", "0"]));
    assert!(code == Some(3) && text.contains("user 99007 may not ask this zygote"), "{text}");
    drop(served);
    let served = Served::new(None, "allow = [99007]\nids = [\"99100-99199\"]");
    let asks = |words: &[&str]| said(served.asked_by(99_007, words));
    let (_, own) = asks(&["-", "-", "show"]);
    assert!(own.contains("Uid:\t99007\t99007\t99007\t99007\n") && own.contains("CapEff:\t0000000000000000"), "{own}");
    let (_, isolated) = asks(&["99150", "99150", "show"]);
    assert!(
        isolated.contains("Uid:\t99150\t99150\t99150\t99150\n") && isolated.contains("CapPrm:\t0000000000000000"),
        "{isolated}"
    );
    for (uid, gid) in [("0", "0"), ("0", "99007"), ("99007", "0"), ("65534", "65534"), ("99150", "5")] {
        let (code, text) = asks(&[uid, gid, "exit", "0"]);
        assert!(code == Some(3) && text.contains("policy"), "{uid} {gid}: {text}");
    }
    assert_eq!(served.status().started, 2);
    drop(served);
    let served = Served::new(Some(99_001), "");
    let (code, text) = said(served.asked_by(99_007, &["-", "-", "exit", "0"]));
    assert!(code == Some(3) && text.contains("may not ask"), "{text}");
    let (code, text) = said(served.asked_by(99_001, &["99002", "99002", "exit", "0"]));
    assert!(code == Some(3) && text.contains("only root's zygotes"), "{text}");
    assert!(
        matches!(served.spawn(job(&["exit", "0"])).unwrap().wait(), Ok(Ending::Exited(0))),
        "root may ask everybody's"
    );
}

#[test]
fn without_descriptors_every_client_gets_a_clear_error_and_the_zygote_goes_on() {
    let served = Served::with(None, "children = 500", |command| {
        use std::os::unix::process::CommandExt;
        // SAFETY: setrlimit takes a structure that lives as long as the call.
        unsafe {
            command.pre_exec(|| {
                let limit = libc::rlimit { rlim_cur: 40, rlim_max: 40 };
                if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 {
                    Ok(())
                } else {
                    Err(std::io::Error::last_os_error())
                }
            });
        }
    });
    let mut alive = Vec::new();
    let mut refused = 0;
    for _ in 0..60 {
        match served.spawn(job(&["sleep"])) {
            Ok(child) => alive.push(child),
            Err(SpawnError::Refused(refusal)) => {
                assert_eq!(refusal.kind, RefusalKind::Busy, "{refusal}");
                refused += 1;
            }
            Err(SpawnError::Failed { errno, .. }) => {
                assert_eq!(errno, libc::EMFILE);
                refused += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(alive.len() >= 5 && refused >= 20, "{} alive, {refused} refused", alive.len());
    drop(alive);
    eventually(|| served.children().is_empty());
    assert_eq!(served.spawn(job(&["exit", "3"])).unwrap().wait().unwrap(), Ending::Exited(3));
}

#[test]
fn a_limit_that_falls_below_what_is_open_ends_no_child_and_new_ones_are_refused_until_it_rises() {
    let served = Served::new(None, "");
    let alive = [(); 20].map(|()| served.spawn(job(&["sleep"])).unwrap());
    let limited = |soft: u64| {
        let pid = served.pid().cast_signed();
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: structures that live as long as the calls; the process is this test's own.
        unsafe {
            assert_eq!(libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut limit), 0);
            let before = limit.rlim_cur;
            limit.rlim_cur = soft;
            assert_eq!(libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()), 0);
            before
        }
    };
    // It waits for some 40 descriptors.
    let before = limited(16);
    match served.spawn(job(&["exit", "4"])) {
        Err(SpawnError::Refused(refusal)) => assert_eq!(refusal.kind, RefusalKind::Busy, "{refusal}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(served.children().len(), 20);
    limited(before);
    assert_eq!(served.spawn(job(&["exit", "4"])).unwrap().wait().unwrap(), Ending::Exited(4));
    // All that it may have are open, the one for refusals among them: it serves those that it has.
    let is_open = |number: &u64| std::path::Path::new(&format!("/proc/{}/fd/{number}", served.pid())).exists();
    limited((0..before).find(|number| !is_open(number)).unwrap());
    match served.spawn(job(&["exit", "4"])) {
        Err(SpawnError::Refused(refusal)) => assert_eq!(refusal.kind, RefusalKind::Busy, "{refusal}"),
        other => panic!("{other:?}"),
    }
    alive[0].signal(libc::SIGTERM).unwrap();
    assert_eq!(alive[0].wait().unwrap(), Ending::Killed(libc::SIGTERM));
    limited(before);
    for child in &alive[1..] {
        child.signal(libc::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap(), Ending::Killed(libc::SIGTERM));
    }
}

#[test]
fn no_more_children_live_than_the_policy_has() {
    let served = Served::new(None, "children = 2");
    let two = [(); 2].map(|()| served.spawn(job(&["sleep"])).unwrap());
    match served.spawn(job(&["sleep"])).unwrap_err() {
        SpawnError::Refused(refusal) => assert!(refusal.why.contains("2 children are alive"), "{refusal}"),
        other => panic!("{other:?}"),
    }
    drop(two);
    eventually(|| served.children().is_empty());
    served.spawn(job(&["exit", "0"])).unwrap();
}

#[test]
fn a_client_hands_nothing_to_a_stranger_who_listens_unless_it_names_that_user() {
    if !is_root() {
        return;
    }
    let served = Served::new(Some(65534), "");
    for named in [None, Some(1)] {
        let refused = Client::connect_to(&served.socket(), named).unwrap_err();
        assert!(matches!(refused, SpawnError::Stranger { uid: 65534, own: 0, .. }), "{refused}");
    }
    let child = Client::connect_to(&served.socket(), Some(65534)).unwrap().spawn(job(&["exit", "3"]), &[]).unwrap();
    assert_eq!(child.wait().unwrap(), Ending::Exited(3));
}

/// FLUSH of include/uapi/linux/fuse.h: what closing a file asks its file system.
const FLUSH: &str = "25";

#[test]
fn a_descriptor_that_cannot_be_closed_does_not_stop_the_zygote() {
    let served = Served::new(None, "");
    let unannounced = FromClient::Spawn(Box::new(job(&["exit", "0"])));
    let announced = FromClient::Spawn(Box::new(SpawnRequest { descriptors: vec![3], ..job(&["exit", "0"]) }));
    for message in [FromClient::Status, FromClient::Hold, unannounced, announced] {
        let bytes = encoded(&message).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let socket = served.socket();
        let Some(hanging) = Hanging::start("hanging_file.py", &[FLUSH, socket.to_str().unwrap(), &hex]) else { return };
        assert!(hanging.line.ends_with('\n'), "it was sent: {:?}", hanging.line);
        let other = connected(&served);
        send_packet(&other, &encoded(&FromClient::Status).unwrap(), &[]).unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let heard = loop {
            match receive_packet(&other, MOST_BYTES) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && std::time::Instant::now() < until => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                heard => break heard,
            }
        };
        drop(hanging);
        assert!(matches!(heard, Ok(Some(_))), "{message:?}: {heard:?}");
    }
    assert_eq!(served.spawn(job(&["exit", "7"])).unwrap().wait().unwrap(), Ending::Exited(7));
}
