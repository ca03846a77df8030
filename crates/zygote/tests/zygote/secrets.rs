//! What a client asked for, in the memory of the zygote and of what it forks for others.

use crate::served::{Served, eventually, job};
use serde::Serialize;
use slowpath_process::send_packet;
use slowpath_zygote::message::{FromClient, encoded};
use slowpath_zygote::{Client, Ending, SpawnRequest, Word};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// In no file that a zygote maps, and in no variable of this test.
const TOKEN: &str = "token-of-one-client-7c41e0";

/// A word with the token many times: what is freed is overwritten in parts.
fn secret(before: &str, repeats: usize) -> Word {
    format!("{before}{}", TOKEN.repeat(repeats)).into()
}

/// Whether a process has the token in any memory that it can write.
fn has_token(pid: u32) -> bool {
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let ranges = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let ends = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
        rest.starts_with("rw").then_some(ends)
    });
    let mut read = 0;
    let mut has_token = false;
    for [from, to] in ranges {
        let mut bytes = vec![0; (to - from) as usize];
        read += usize::from(memory.read_exact_at(&mut bytes, from).is_ok());
        has_token |= bytes.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes());
    }
    assert!(read > 2, "{read} mappings can be read:\n{maps}");
    has_token
}

/// A request whose words are text, as no client of this crate sends it.
#[derive(Serialize)]
enum OtherClient {
    Spawn([String; 1], [u8; 0], Option<()>, [u8; 0], Option<()>, [u8; 0], bool),
}

/// Sends what is refused, and waits until the connection is over.
fn refused(served: &Served, bytes: &[u8]) {
    let before = served.status().refused;
    let client = served.client().unwrap();
    send_packet(client.as_fd(), bytes, &[]).unwrap();
    eventually(|| served.status().refused > before);
}

#[test]
fn neither_a_zygote_nor_a_later_child_has_the_arguments_and_variables_of_another_request() {
    for policy in ["", "spares = 2"] {
        let served = Served::new(None, policy);
        let wanted = if policy.is_empty() { 0 } else { 2 };
        let has_spares = |served: &Served| served.status().spares == wanted;
        for repeats in [1, 10, 200, 2000] {
            eventually(|| has_spares(&served));
            let mut request = job(&["sleep"]);
            request.arguments.push(secret("", repeats));
            request.environment = vec![secret("SECRET=", repeats)];
            let child = served.spawn(request).unwrap();
            assert_eq!(child.from_spare, wanted > 0);
            assert!(has_token(child.pid.cast_unsigned()), "it has its own");
            assert!(!has_token(served.pid()), "{policy:?}: the zygote has it after {repeats}");
            child.signal(libc::SIGTERM).unwrap();
            assert_eq!(child.wait().unwrap(), Ending::Killed(libc::SIGTERM));
        }
        // Nor from what is refused: no variable, no argument, no words, more than one message.
        let request = |change: fn(&mut SpawnRequest)| {
            let mut request = job(&["exit", "0"]);
            change(&mut request);
            encoded(&FromClient::Spawn(Box::new(request))).unwrap()
        };
        refused(&served, &request(|one| one.environment = vec![secret("", 10)]));
        refused(&served, &request(|one| one.arguments = vec![secret("\0", 10)]));
        refused(&served, &[request(|one| one.arguments = vec![secret("", 10)]), vec![0]].concat());
        let text = OtherClient::Spawn([TOKEN.repeat(10)], [], None, [], None, [], false);
        refused(&served, &encoded(&text).unwrap());
        assert!(!has_token(served.pid()), "{policy:?}: the zygote has it of what it refused");
        eventually(|| has_spares(&served));
        let other = Client::connect_to_anybody(&served.socket()).unwrap().spawn(job(&["sleep"]), &[]).unwrap();
        assert_eq!(other.from_spare, wanted > 0);
        assert!(!has_token(other.pid.cast_unsigned()), "{policy:?}: the child of another client has it");
    }
}
