//! One transaction as plain data, and the shared memory into which clients write them: what was measured survives the
//! death of who measured it.

use crate::memory::SharedMemory;
use crate::trace::beside::Beside;
use std::cmp::Reverse;
use std::io;
use std::sync::atomic::Ordering;

/// Above this share of transactions on one CPU, the scheduler respects synchronous wake-ups (`GOOD_SYNC_MIN` of the
/// original).
pub const GOOD_SYNC: f64 = 0.6;

/// Who called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A new SCHED_FIFO thread.
    Fifo,
    /// The process's main thread.
    Normal,
}

/// A transaction. Times are CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Who called.
    pub caller: Caller,
    /// When it should have begun; the same as `start` in a closed loop.
    pub intended: u64,
    /// When the caller called.
    pub start: u64,
    /// When the server began to serve.
    pub served: u64,
    /// When the caller had the reply.
    pub end: u64,
    /// Of the calling thread.
    pub client_thread: u32,
    /// Of the serving thread.
    pub server_thread: u32,
    /// Where the call was made.
    pub client_cpu: u16,
    /// Where it was served.
    pub server_cpu: u16,
    /// Policy of the serving thread as it asked for it.
    pub server_policy: u8,
    /// Real-time priority of the serving thread as it asked for it.
    pub server_priority: u8,
    /// Nice of the serving thread.
    pub server_nice: i8,
}

const BYTES: usize = 56;

impl Sample {
    /// From the intended start to the reply, in ns: a late start is part of it.
    pub fn latency(&self) -> u64 {
        self.end.saturating_sub(self.intended)
    }

    /// Whether both sides ran on one CPU.
    pub fn same_cpu(&self) -> bool {
        self.client_cpu == self.server_cpu
    }

    fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = u8::from(self.caller == Caller::Fifo);
        bytes[1] = self.server_policy;
        bytes[2] = self.server_priority;
        bytes[3..4].copy_from_slice(&self.server_nice.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.client_cpu.to_ne_bytes());
        bytes[6..8].copy_from_slice(&self.server_cpu.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.client_thread.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.server_thread.to_ne_bytes());
        for (index, time) in [self.intended, self.start, self.served, self.end].into_iter().enumerate() {
            bytes[16 + index * 8..24 + index * 8].copy_from_slice(&time.to_ne_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let half = |at: usize| bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes);
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let time = |index: usize| bytes.get(16 + index * 8..24 + index * 8)?.try_into().ok().map(u64::from_ne_bytes);
        Some(Self {
            caller: if *bytes.first()? == 0 { Caller::Normal } else { Caller::Fifo },
            server_policy: *bytes.get(1)?,
            server_priority: *bytes.get(2)?,
            server_nice: bytes.get(3)?.cast_signed(),
            client_cpu: half(4)?,
            server_cpu: half(6)?,
            client_thread: word(8)?,
            server_thread: word(12)?,
            intended: time(0)?,
            start: time(1)?,
            served: time(2)?,
            end: time(3)?,
        })
    }
}

/// The samples of one client, in memory that parent and client share.
#[derive(Debug)]
pub(super) struct Notebook {
    memory: SharedMemory,
    most: usize,
}

const WRITTEN: usize = 0;
/// Why the last SCHED_FIFO thread could not become one: an errno, 0 when it did.
const REFUSED: usize = 4;
/// Set by the client whose miss stopped the trace.
const MISSED: usize = 8;
/// What grew beside that transaction, in us: how many CPUs have steal time, throttled time, and the list of CPU and steal time.
const STOLEN: usize = 12;
const THROTTLED: usize = 16;
const STOLEN_LIST: usize = 64;
/// CPUs in that list; of more, those with the most. One that is left out is not taken for a cause.
const MOST_STOLEN: usize = 64;
const SAMPLES: usize = STOLEN_LIST + 8 * MOST_STOLEN;

impl Notebook {
    /// Room for `most` samples.
    pub(super) fn new(most: usize) -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::new(SAMPLES + most * BYTES)?, most })
    }

    /// Bytes of memory for `most` samples.
    pub(super) fn bytes(most: u64) -> u64 {
        most.saturating_mul(BYTES as u64).saturating_add(SAMPLES as u64)
    }

    /// Adds a sample; one beyond the room is an error.
    pub(super) fn push(&self, sample: Sample) -> io::Result<()> {
        let written = self.memory.word(WRITTEN).load(Ordering::Relaxed);
        self.memory.write(SAMPLES + written as usize * BYTES, &sample.to_bytes())?;
        // Whoever reads the number sees the sample.
        self.memory.word(WRITTEN).store(written + 1, Ordering::Release);
        Ok(())
    }

    /// Everything so far.
    pub(super) fn samples(&self) -> Vec<Sample> {
        let written = (self.memory.word(WRITTEN).load(Ordering::Acquire) as usize).min(self.most);
        let mut bytes = Vec::new();
        match self.memory.read(SAMPLES, written * BYTES, &mut bytes) {
            Ok(()) => bytes.chunks_exact(BYTES).filter_map(Sample::from_bytes).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Notes why a thread could not become SCHED_FIFO.
    pub(super) fn refuse(&self, error: &io::Error) {
        let number = error.raw_os_error().unwrap_or(libc::EINVAL).unsigned_abs();
        self.memory.word(REFUSED).store(number, Ordering::Release);
    }

    /// Why, if so.
    pub(super) fn refused(&self) -> Option<io::Error> {
        match self.memory.word(REFUSED).load(Ordering::Acquire) {
            0 => None,
            number => Some(io::Error::from_raw_os_error(number.cast_signed())),
        }
    }

    /// Notes that the last sample is the miss that stopped the trace, and what grew meanwhile.
    pub(super) fn miss(&self, beside: &Beside) {
        let us = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX);
        let mut stolen: Vec<(u32, u64)> = beside.stolen.iter().map(|(cpu, ns)| (*cpu, *ns)).collect();
        stolen.sort_by_key(|(_, ns)| Reverse(*ns));
        stolen.truncate(MOST_STOLEN);
        for (index, (cpu, ns)) in stolen.iter().enumerate() {
            self.memory.word(STOLEN_LIST + 8 * index).store(*cpu, Ordering::Relaxed);
            self.memory.word(STOLEN_LIST + 8 * index + 4).store(us(*ns), Ordering::Relaxed);
        }
        self.memory.word(STOLEN).store(u32::try_from(stolen.len()).unwrap_or(0), Ordering::Relaxed);
        self.memory.word(THROTTLED).store(us(beside.throttled), Ordering::Relaxed);
        self.memory.word(MISSED).store(1, Ordering::Release);
    }

    /// The sample that stopped the trace.
    pub(super) fn missed(&self) -> Option<(Sample, Beside)> {
        let word = |at: usize| self.memory.word(at).load(Ordering::Relaxed);
        let ns = |at: usize| u64::from(word(at)) * 1000;
        let missed = self.memory.word(MISSED).load(Ordering::Acquire) == 1;
        let sample = missed.then(|| self.samples().pop()).flatten()?;
        let listed = (word(STOLEN) as usize).min(MOST_STOLEN);
        let places = (0..listed).map(|index| STOLEN_LIST + 8 * index);
        let stolen = places.map(|at| (word(at), ns(at + 4))).collect();
        Some((sample, Beside { stolen, throttled: ns(THROTTLED) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back_as_they_were_and_no_more_than_there_is_room_for() {
        let sample = Sample {
            caller: Caller::Fifo,
            intended: 1,
            start: 2,
            served: 3,
            end: u64::MAX,
            client_thread: 4,
            server_thread: 5,
            client_cpu: 6,
            server_cpu: 7,
            server_policy: 1,
            server_priority: 99,
            server_nice: -20,
        };
        let notebook = Notebook::new(2).unwrap();
        notebook.push(sample).unwrap();
        notebook.push(Sample { caller: Caller::Normal, ..sample }).unwrap();
        assert!(notebook.push(sample).is_err());
        assert_eq!(notebook.samples(), [sample, Sample { caller: Caller::Normal, ..sample }]);
        assert_eq!(notebook.missed(), None);
        let beside = Beside { stolen: [(3, 5000), (700, 10_000_000)].into(), throttled: 7000 };
        notebook.miss(&beside);
        assert_eq!(notebook.missed().map(|(sample, beside)| (sample.caller, beside)), Some((Caller::Normal, beside)));
        let many: Beside = Beside { stolen: (0..1000).map(|cpu| (cpu, u64::from(cpu) * 1000)).collect(), throttled: 0 };
        notebook.miss(&many);
        let kept = notebook.missed().unwrap().1.stolen;
        assert_eq!((kept.len(), kept.keys().min()), (MOST_STOLEN, Some(&(1000 - MOST_STOLEN as u32))));
        assert_eq!(notebook.samples().len(), 2, "the list lies beside the samples");
        assert!(notebook.refused().is_none());
        notebook.refuse(&io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(notebook.refused().and_then(|error| error.raw_os_error()), Some(libc::EPERM));
    }
}
