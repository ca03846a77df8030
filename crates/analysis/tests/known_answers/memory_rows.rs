//! Rows about memory for tests, with what a test does not care about filled in. Unit tests of the crate take it in too.

use slowpath_tables::{Bytes, Fault, FaultKind, MemoryCall, MemoryCallKind, Nanos};

/// A call of the only thread of process 7, without a call stack, that takes no time.
pub fn memory_call(call: MemoryCallKind, ts: u64, address: u64, length: u64) -> MemoryCall {
    MemoryCall {
        ts: Nanos(ts),
        duration: Nanos(0),
        pid: 7,
        start: Nanos(1),
        tid: 7,
        call,
        address,
        length: Bytes(length),
        old_length: None,
        old_address: None,
        shrinks: false,
        argument: 0,
        result: 0,
        stack: None,
    }
}

/// A minor fault of the same thread, of unknown duration.
pub fn fault(ts: u64, address: u64) -> Fault {
    Fault {
        ts: Nanos(ts),
        duration: None,
        pid: 7,
        start: Nanos(1),
        tid: 7,
        address,
        ip: 0,
        kind: FaultKind::Minor,
        kernel: false,
        stack: None,
        recording: None,
    }
}
