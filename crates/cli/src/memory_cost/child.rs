//! The child: alone in its process, as the user whose target it is, it maps, writes and unmaps blocks, and writes the same into a
//! block that it keeps.
//!
//! Writing is copying whole chunks, which is the C library's `memcpy` however this program was compiled. CPU time is that of the
//! thread, so that nobody else's is in it.

use memmap2::MmapMut;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Size of the blocks that a recorder watches: a picture of 1280 x 720 points of 12 bits behind a header, the size that taught the
/// pattern.
pub const WATCHED: u64 = 338 * 4096;

/// What is measured of one size.
struct Size {
    bytes: u64,
    /// Pairs of operations with warm caches.
    warm: usize,
    /// Pairs before whose operations other memory is written.
    displaced: usize,
}

/// Six pairs are the fewest from which there is an interval; from sixteen on one that was disturbed does not move its ends. The
/// smallest and the largest size come early: between two sizes their costs are laid, beyond them they are guessed. When time is over,
/// what was not done is left out. Warm and displaced ones take turns: of a size both are known, or neither.
const PLAN: [Size; 5] = [
    Size { bytes: WATCHED, warm: 16, displaced: 16 },
    Size { bytes: 128 << 10, warm: 8, displaced: 8 },
    // So large a block displaces caches itself.
    Size { bytes: LARGEST as u64, warm: 6, displaced: 0 },
    Size { bytes: 4 << 20, warm: 6, displaced: 6 },
    Size { bytes: 512 << 10, warm: 8, displaced: 0 },
];

/// How long measuring may take; the last pair is finished. The first [`ENOUGH`] pairs of the first size, without which nothing can be
/// said, are given [`PERSISTENCE`] times as much on a busy machine.
const LIMIT: Duration = Duration::from_millis(160);

/// How much longer these may take.
const PERSISTENCE: u32 = 4;

/// Pairs that make an interval which one disturbed pair does not make useless.
const ENOUGH: usize = 8;

/// Largest block.
const LARGEST: usize = 16 << 20;
/// What is copied from: it stays in the caches.
const SOURCE: usize = 64 << 10;
/// What is written to displace a block from caches: more than the second level of any processor of today has.
const DISPLACING: usize = 4 << 20;

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Size of a block.
    pub bytes: u64,
    /// Whether other memory was written before each operation.
    pub displaced: bool,
    /// The operations.
    pub pairs: Vec<Pair>,
    /// Page faults in all of them.
    pub faults: u64,
}

/// An operation beside the same writes into a kept block, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// CPU time of mapping, writing and unmapping.
    pub each: u64,
    /// CPU time of writing into the kept block.
    pub kept: u64,
    /// CPU time of mapping and unmapping.
    pub calls: u64,
}

/// All series, and how long they took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The series; one that was not finished has fewer pairs, those that were not begun are missing.
    pub series: Vec<Series>,
    /// In ns.
    pub took: u64,
}

/// What the recorder asks for, once it watches.
pub const WARM: u8 = b'w';
/// The same with displaced caches.
pub const DISPLACED: u8 = b'd';
/// The answer where another thread ran instead in between: durations by the clock say nothing then. Else it is what was asked for.
pub const INTERRUPTED: u8 = b'i';

/// Measures, tells it as a line of JSON, and does single operations for as long as it is asked for.
///
/// # Errors
/// The recorder is gone, or there is no memory.
pub fn serve(mut socket: UnixStream) -> io::Result<()> {
    let mut blocks = Blocks::new()?;
    let measured = blocks.measure(&PLAN, LIMIT)?;
    let mut line = serde_json::to_vec(&measured)?;
    line.push(b'\n');
    socket.write_all(&line)?;
    let mut asked = [0];
    while socket.read(&mut asked)? == 1 {
        if asked[0] == DISPLACED {
            blocks.displace();
        }
        let before = interruptions()?;
        blocks.each(WATCHED as usize)?;
        let answer = if interruptions()? == before { asked } else { [INTERRUPTED] };
        socket.write_all(&answer)?;
    }
    Ok(())
}

struct Blocks {
    source: Vec<u8>,
    kept: MmapMut,
    began: Instant,
}

impl Blocks {
    fn new() -> io::Result<Self> {
        let began = Instant::now();
        let source = vec![0x5a; SOURCE];
        let mut kept = MmapMut::map_anon(LARGEST)?;
        write(&mut kept, &source);
        Ok(Self { source, kept, began })
    }

    fn measure(&mut self, plan: &[Size], limit: Duration) -> io::Result<Measured> {
        let mut series = Vec::new();
        for (place, size) in plan.iter().enumerate() {
            let empty = |displaced| Series { bytes: size.bytes, displaced, ..Series::default() };
            let (mut warm, mut displaced) = (empty(false), empty(true));
            for number in 0..size.warm.max(size.displaced) {
                let limit = if place == 0 && number < ENOUGH { limit * PERSISTENCE } else { limit };
                if self.began.elapsed() >= limit {
                    break;
                }
                if number < size.warm {
                    self.pair(number, &mut warm)?;
                }
                if number < size.displaced {
                    self.pair(number, &mut displaced)?;
                }
            }
            series.extend([warm, displaced].into_iter().filter(|series| !series.pairs.is_empty()));
        }
        let took = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(Measured { series, took })
    }

    /// One of each, in the order ABBA, so that what drifts adds to both.
    fn pair(&mut self, number: usize, series: &mut Series) -> io::Result<()> {
        let bytes = series.bytes as usize;
        let is_first = [true, false, false, true][number % 4];
        let mut pair = Pair::default();
        for is_each in [is_first, !is_first] {
            if series.displaced {
                self.displace();
            }
            if is_each {
                let before = faults()?;
                (pair.each, pair.calls) = self.each(bytes)?;
                series.faults += faults()?.saturating_sub(before);
            } else {
                pair.kept = self.keep(bytes)?;
            }
        }
        series.pairs.push(pair);
        Ok(())
    }

    /// CPU time of an operation, and of its calls.
    fn each(&mut self, bytes: usize) -> io::Result<(u64, u64)> {
        let began = cpu_time()?;
        let mut block = MmapMut::map_anon(bytes)?;
        let mapped = cpu_time()?;
        write(&mut block, &self.source);
        let unmapping = cpu_time()?;
        drop(block);
        let ended = cpu_time()?;
        Ok((ended - began, (mapped - began) + (ended - unmapping)))
    }

    fn keep(&mut self, bytes: usize) -> io::Result<u64> {
        let began = cpu_time()?;
        // As many looks at the clock as an operation takes.
        black_box(cpu_time()? + cpu_time()?);
        write(&mut self.kept[..bytes.min(LARGEST)], &self.source);
        Ok(cpu_time()? - began)
    }

    /// Writes memory that belongs to no block which is displaced: those are smaller.
    fn displace(&mut self) {
        write(&mut self.kept[LARGEST - DISPLACING..], &self.source);
    }
}

fn write(block: &mut [u8], source: &[u8]) {
    for chunk in block.chunks_mut(source.len()) {
        chunk.copy_from_slice(&source[..chunk.len()]);
    }
    black_box(block);
}

/// CPU time of this thread, in ns.
fn cpu_time() -> io::Result<u64> {
    let now = Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?);
    Ok(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// How often another thread was given the processor of this one.
fn interruptions() -> io::Result<i64> {
    Ok(getrusage(UsageWho::RUSAGE_THREAD)?.involuntary_context_switches())
}

/// Page faults of this thread.
fn faults() -> io::Result<u64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    Ok(usage.minor_page_faults().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged::Worker;
    use slowpath_launch::Identity;

    #[test]
    fn an_operation_takes_faults_and_a_kept_block_takes_none() {
        // In a process of its own, as it is meant: a fork of another test would make every page of the kept block fault.
        let variables = std::env::vars_os().collect::<Vec<_>>();
        let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let me = Identity::for_invocation(None, borrowed).unwrap().0;
        let work = || {
            let mut blocks = Blocks::new().unwrap();
            let plan = [Size { bytes: WATCHED, warm: 4, displaced: 2 }];
            let measured = blocks.measure(&plan, Duration::from_secs(60)).unwrap();
            let before = faults().unwrap();
            blocks.keep(LARGEST).unwrap();
            blocks.displace();
            Ok((measured, faults().unwrap() - before))
        };
        let (measured, of_kept) = Worker::start(&me, work).unwrap().wait().unwrap();
        let [large, displaced] = measured.series.as_slice() else { panic!("{measured:?}") };
        assert_eq!((large.pairs.len(), displaced.pairs.len()), (4, 2));
        assert_eq!((large.displaced, displaced.displaced), (false, true));
        // At least one a block, and no more than one a page and a few of this program's own.
        assert!((4..=4 * 338 + 40).contains(&large.faults), "{large:?}");
        for pair in large.pairs.iter().chain(&displaced.pairs) {
            assert!(pair.each > 0 && pair.kept > 0 && pair.calls > 0, "{pair:?}");
        }
        assert!(of_kept < 40, "{of_kept} faults");
    }

    #[test]
    fn when_time_is_over_the_rest_is_left_out() {
        let measured = Blocks::new().unwrap().measure(&PLAN, Duration::ZERO).unwrap();
        assert!(measured.series.is_empty(), "{measured:?}");
    }
}
