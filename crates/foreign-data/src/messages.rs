//! What comes through a ring or a socket from a process that others control.

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, socketpair};
use slowpath_capture::{Decoder, Mount, count_events, keep_reported_once};
use slowpath_process::Wait;
use slowpath_session::recording_writer::frames;
use slowpath_session::unwind_tables::wire;
use std::os::fd::AsRawFd;

/// Records of the ring, whole and in pieces: the same rows.
pub fn ring_records(bytes: &[u8]) {
    let mount = |mount_point: &str| Mount {
        dev: 1,
        root: "/".to_owned(),
        mount_point: mount_point.to_owned(),
        fs: "ext4".to_owned(),
        source: "x".to_owned(),
    };
    let mut decoder = Decoder::new(vec![mount("/"), mount("/home")], Some(1)).auditing();
    let mut rows = decoder.feed(bytes);
    rows.files.append(&mut decoder.files());
    decoder.stack_audit();
    rows.append(decoder.finish());
    rows.settle();
    let (kept, losses) = keep_reported_once(bytes);
    assert!(kept.len() <= bytes.len());
    count_events(bytes);
    count_events(&kept);
    drop(losses);
}

/// What a browser says.
pub fn devtools(bytes: &[u8]) {
    slowpath_browse::foreign::browser(bytes);
}

/// What a target says over HTTP.
pub fn http(bytes: &[u8]) {
    slowpath_launch::foreign::http(bytes);
}

/// Messages between slowpath and its launcher.
pub fn launcher(bytes: &[u8]) {
    slowpath_launch::foreign::message(bytes);
}

/// Messages of the child that makes unwind tables, through a socket as there.
pub fn unwind_table(bytes: &[u8]) {
    let Ok((one, other)) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC) else {
        return;
    };
    for _ in 0..2 {
        if send(one.as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT).is_err() {
            return;
        }
    }
    if let wire::Received::Message(_, Some(table)) = wire::receive::<wire::TableAnswer>(&other, Wait::Never) {
        let _ = (wire::is_sealed(&table), wire::seen(&table));
    }
    let _ = wire::receive::<wire::Mapped>(&other, Wait::Never);
}

/// Messages of the process that writes a recording, and those to it.
pub fn writer(bytes: &[u8]) {
    let mut answers = frames::Answers::default();
    for piece in bytes.chunks(64) {
        answers.extend(piece);
        while matches!(answers.next_answer(), Ok(Some(_))) {}
    }
    let mut rest = bytes;
    while let Ok(Some((_, content))) = frames::read(&mut rest) {
        let _ = serde_json::from_slice::<frames::Begin>(&content);
        let _ = serde_json::from_slice::<frames::SoFar>(&content);
    }
}
