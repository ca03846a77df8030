//! Registers of machines on which no breakpoints are made: there are none, and `slowpath layout trace` says so before it launches.

use crate::tracer::ptrace::Registers;
use std::io;

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "breakpoints are known for x86-64 only")
}

pub fn stopped_at(_tid: i32) -> io::Result<u64> {
    Err(unsupported())
}

pub fn go_on_at(_tid: i32, _address: u64) -> io::Result<()> {
    Err(unsupported())
}

pub fn mapped_code(_registers: &Registers) -> Option<u64> {
    None
}

pub fn go_on_to_set(_tid: i32, _place: u64) -> io::Result<()> {
    Err(unsupported())
}

pub fn sets_action(_registers: &Registers, _signal: i32) -> Option<u64> {
    None
}

pub fn call_to_set_action(before: &Registers, _call: u64, _signal: i32) -> (Registers, u64) {
    (*before, 0)
}
