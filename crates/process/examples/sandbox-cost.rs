//! How long a worker takes from its start to its result, beside a bare fork that does the same: for `bench/sandbox-cost`.
//!
//! `sandbox-cost ROUNDS MEGABYTES UID`: a line a round with the nanoseconds of a bare fork and of each duty, in an order that turns. The
//! process has so many megabytes of its own, as a recorder has that holds records: a fork copies their page tables.

use nix::unistd::{ForkResult, fork, pipe};
use slowpath_process::{Credentials, Duty, Sandbox, Worker};
use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

const DUTIES: [(&str, Option<Duty>); 5] = [
    ("fork", None),
    ("parse", Some(Duty::Parse)),
    ("read", Some(Duty::Read)),
    ("write", Some(Duty::Write)),
    ("run", Some(Duty::Run)),
];

/// What the worker returns.
const RESULT: &[u8] = b"result";

fn bare() -> Vec<u8> {
    let (reader, writer) = pipe().expect("a pipe");
    // SAFETY: this process has one thread.
    match unsafe { fork() }.expect("a fork") {
        ForkResult::Child => {
            drop(reader);
            let sent = File::from(writer).write_all(RESULT);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(sent.is_err())) }
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut bytes = Vec::new();
            File::from(reader).read_to_end(&mut bytes).expect("a result");
            nix::sys::wait::waitpid(child, None).expect("an end");
            bytes
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u32>().expect("a number"));
    let mut next = || arguments.next().expect("ROUNDS MEGABYTES UID");
    let (rounds, megabytes, uid) = (next(), next(), next());
    let memory = vec![1u8; megabytes as usize * 1_000_000];
    println!("{}", DUTIES.map(|(name, _)| name).join(" "));
    for round in 0..rounds as usize {
        let mut took = [0; DUTIES.len()];
        for turn in 0..DUTIES.len() {
            let which = (turn + round) % DUTIES.len();
            let began = Instant::now();
            let result = match DUTIES[which].1 {
                None => bare(),
                Some(duty) => {
                    let sandbox = Sandbox::new(Credentials { uid, gid: uid, groups: Vec::new() }, duty).silent();
                    let worker = Worker::start(&sandbox, &[], || RESULT.to_vec()).expect("a worker");
                    worker.wait(Duration::from_secs(60), || true).expect("a result")
                }
            };
            took[which] = began.elapsed().as_nanos();
            assert_eq!(result, RESULT);
        }
        println!("{}", took.map(|one| one.to_string()).join(" "));
    }
    std::hint::black_box(memory);
}
