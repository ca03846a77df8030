//! Limits of a worker (getrlimit(2)).

use super::duty::Duty;
use crate::page_size;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};
use std::io;

/// What a parser of one file may have: a hundred times the table of Chromium, which is the largest known.
const PARSER: u64 = 1 << 30;

/// What all other work may have at least: of 5 million events an analysis takes 0.8 GB and the largest export 1.9 GB
/// (docs/measurements/2026-11-22-analyze-cost.md).
const LEAST: u64 = 2 << 30;

/// What a parser writes at most, which is a file in memory: 16 million rows of 8 bytes and as many pages of 4, and a margin.
const PARSED: u64 = 256 << 20;

/// Descriptors of a parser: standard ones, two sockets, a file and a result.
const PARSER_FILES: u64 = 32;

/// Descriptors of all others: symbols are looked up in some hundred files at a time.
const FILES: u64 = 4096;

/// Sets the limits that go with a duty. Memory is the worker's own (`RLIMIT_DATA` counts private memory that can be written, since Linux
/// 4.7, and no mapped files), beyond what it has from its parent: of a machine's memory hostile input takes half, and the machine
/// goes on.
pub(super) fn set(duty: Duty) -> io::Result<()> {
    lower(Resource::RLIMIT_CORE, 0)?;
    if duty == Duty::Measure {
        return Ok(());
    }
    let parses = duty == Duty::Parse;
    let memory = if parses { PARSER } else { (physical() / 2).max(LEAST) };
    lower(Resource::RLIMIT_DATA, inherited()?.saturating_add(memory))?;
    lower(Resource::RLIMIT_NOFILE, if parses { PARSER_FILES } else { FILES })?;
    if parses {
        lower(Resource::RLIMIT_FSIZE, PARSED)?;
        // Too large a result is an error of its writing then.
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }?;
    }
    Ok(())
}

/// Both limits; never more than there is.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    let limit = limit.min(hard);
    Ok(setrlimit(resource, limit, limit)?)
}

/// Memory of the machine, in bytes.
fn physical() -> u64 {
    // SAFETY: the kernel fills a structure of integers that is ours.
    let (mut info, done) = unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        let done = libc::sysinfo(&raw mut info);
        (info, done)
    };
    if done != 0 {
        info.totalram = 0;
    }
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

/// Bytes that this process has already, of what the limit counts (`data` of proc_pid_statm(5), with the stack).
fn inherited() -> io::Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split_ascii_whitespace().nth(5).and_then(|pages| pages.parse::<u64>().ok());
    pages
        .map(|pages| pages.saturating_mul(page_size()))
        .ok_or_else(|| io::Error::other("/proc/self/statm is not as documented"))
}
