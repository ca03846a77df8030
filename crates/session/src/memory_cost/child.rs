//! The child: alone in its process, as the user whose target it is, it maps, writes and unmaps blocks, and writes the same into a
//! block that it keeps.
//!
//! Where the machine gives huge pages it does that for blocks that ask for them too, aligned as they must be.
//!
//! Writing is copying whole chunks, which is the C library's `memcpy` however this program was compiled. CPU time is that of the
//! thread, so that nobody else's is in it.

use memmap2::{Advice, MmapMut};
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::ops::Range;
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
    /// Whether blocks ask for huge pages.
    advised: bool,
}

/// Six pairs are the fewest from which there is an interval; from sixteen on one that was disturbed does not move its ends. The
/// smallest and the largest size come early: between two sizes their costs are laid, beyond them they are guessed. When time is over,
/// what was not done is left out. Warm and displaced ones take turns: of a size both are known, or neither.
const PLAN: [Size; 6] = [
    Size { bytes: WATCHED, warm: 16, displaced: 16, advised: false },
    Size { bytes: ADVISED as u64, warm: 6, displaced: 6, advised: true },
    Size { bytes: 128 << 10, warm: 8, displaced: 8, advised: false },
    // So large a block displaces caches itself.
    Size { bytes: LARGEST as u64, warm: 6, displaced: 0, advised: false },
    Size { bytes: 4 << 20, warm: 6, displaced: 6, advised: false },
    Size { bytes: 512 << 10, warm: 8, displaced: 0, advised: false },
];

/// How long measuring may take; the last pair is finished. The first [`ENOUGH`] pairs of the first sizes, without which nothing can be
/// said of one sort of pages and of the other, are given [`PERSISTENCE`] times as much on a busy machine.
const LIMIT: Duration = Duration::from_millis(170);

/// How much longer these may take.
const PERSISTENCE: u32 = 4;
/// How many those are.
const INDISPENSABLE: usize = 2;

/// Pairs that make an interval which one disturbed pair does not make useless.
const ENOUGH: usize = 8;

/// Largest block.
const LARGEST: usize = 16 << 20;
/// Largest block that asks for huge pages: two of them.
const ADVISED: usize = 4 << 20;
/// What is copied from: it stays in the caches.
const SOURCE: usize = 64 << 10;
/// What is written to displace a block from caches: more than the second level of any CPU of today has.
const DISPLACING: usize = 4 << 20;

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Size of a block.
    pub bytes: u64,
    /// Whether other memory was written before each operation.
    pub displaced: bool,
    /// Whether the blocks asked for huge pages.
    pub advised: bool,
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

/// Asks for all of [`Measured`], as a line of JSON.
pub const MEASURE: u8 = b'm';
/// What the recorder asks for while it watches.
pub const WARM: u8 = b'w';
/// The same with displaced caches.
pub const DISPLACED: u8 = b'd';
/// The answer where another thread ran instead in between: durations by the clock say nothing then. Else it is what was asked for.
pub const INTERRUPTED: u8 = b'i';

/// Measures, or does single operations, for as long as it is asked for.
///
/// # Errors
/// There is no memory, or nobody reads the answer.
pub fn serve(mut socket: UnixStream) -> io::Result<()> {
    let huge = slowpath_recording::HugePages::of_this_machine().filter(|setting| setting.enabled != "never");
    let mut blocks = Blocks::new(huge.map_or(0, |setting| setting.size.0 as usize))?;
    let mut asked = [0];
    while socket.read(&mut asked)? == 1 {
        if asked[0] == MEASURE {
            let mut line = serde_json::to_vec(&blocks.measure(&PLAN, LIMIT)?)?;
            line.push(b'\n');
            socket.write_all(&line)?;
            continue;
        }
        if asked[0] == DISPLACED {
            blocks.displace();
        }
        let before = interruptions()?;
        blocks.each(WATCHED as usize, false)?;
        let answer = if interruptions()? == before { asked } else { [INTERRUPTED] };
        socket.write_all(&answer)?;
    }
    Ok(())
}

struct Blocks {
    source: Vec<u8>,
    kept: MmapMut,
    /// A kept block that asked for huge pages, with its aligned part; made when it is needed.
    advised: Option<(MmapMut, Range<usize>)>,
    /// Size of a huge page; 0 where the machine gives none.
    huge: usize,
}

impl Blocks {
    fn new(huge: usize) -> io::Result<Self> {
        let source = vec![0x5a; SOURCE];
        let mut kept = MmapMut::map_anon(LARGEST)?;
        write(&mut kept, &source);
        Ok(Self { source, kept, advised: None, huge })
    }

    fn measure(&mut self, plan: &[Size], limit: Duration) -> io::Result<Measured> {
        let began = Instant::now();
        let mut series = Vec::new();
        for (place, size) in plan.iter().enumerate() {
            if size.advised && !(1..=ADVISED).contains(&self.huge) {
                continue;
            }
            let empty = |displaced| Series { bytes: size.bytes, displaced, advised: size.advised, ..Series::default() };
            let (mut warm, mut displaced) = (empty(false), empty(true));
            for number in 0..size.warm.max(size.displaced) {
                let limit = if place < INDISPENSABLE && number < ENOUGH { limit * PERSISTENCE } else { limit };
                if began.elapsed() >= limit {
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
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
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
                (pair.each, pair.calls) = self.each(bytes, series.advised)?;
                series.faults += faults()?.saturating_sub(before);
            } else {
                pair.kept = self.keep(bytes, series.advised)?;
            }
        }
        series.pairs.push(pair);
        Ok(())
    }

    /// CPU time of an operation, and of its calls.
    fn each(&mut self, bytes: usize, advised: bool) -> io::Result<(u64, u64)> {
        let began = cpu_time()?;
        let (mut block, range) = map(bytes, advised.then_some(self.huge))?;
        let mapped = cpu_time()?;
        write(&mut block[range], &self.source);
        let unmapping = cpu_time()?;
        drop(block);
        let ended = cpu_time()?;
        Ok((ended - began, (mapped - began) + (ended - unmapping)))
    }

    fn keep(&mut self, bytes: usize, advised: bool) -> io::Result<u64> {
        if advised && self.advised.is_none() {
            let (mut block, range) = map(ADVISED, Some(self.huge))?;
            write(&mut block[range.clone()], &self.source);
            self.advised = Some((block, range));
        }
        let began = cpu_time()?;
        // As many looks at the clock as an operation takes.
        black_box(cpu_time()? + cpu_time()?);
        match self.advised.as_mut().filter(|_| advised) {
            Some((block, range)) => write(&mut block[range.clone()][..bytes.min(ADVISED)], &self.source),
            None => write(&mut self.kept[..bytes.min(LARGEST)], &self.source),
        }
        Ok(cpu_time()? - began)
    }

    /// Writes memory that belongs to no block which is displaced: those are smaller.
    fn displace(&mut self) {
        write(&mut self.kept[LARGEST - DISPLACING..], &self.source);
    }
}

/// Maps so many bytes; where they ask for huge pages of a size, they are the part of the mapping that is aligned to it.
fn map(bytes: usize, huge: Option<usize>) -> io::Result<(MmapMut, Range<usize>)> {
    let Some(huge) = huge.filter(|size| *size > 0) else { return Ok((MmapMut::map_anon(bytes)?, 0..bytes)) };
    let block = MmapMut::map_anon(bytes + huge)?;
    let from = block.as_ptr().align_offset(huge);
    block.advise_range(Advice::HugePage, from, bytes)?;
    Ok((block, from..from + bytes))
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

/// How often another thread was given the CPU of this one.
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
    use crate::unprivileged::{Work, Worker};
    use slowpath_launch::Identity;
    use slowpath_process::Duty;

    #[test]
    fn an_operation_takes_faults_and_a_kept_block_takes_none() {
        // In a process of its own, as it is meant: a fork of another test would make every page of the kept block fault.
        let variables = std::env::vars_os().collect::<Vec<_>>();
        let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let me = Identity::for_invocation(None, borrowed).unwrap().0;
        let work = || {
            let mut blocks = Blocks::new(0).unwrap();
            let plan = [Size { bytes: WATCHED, warm: 4, displaced: 2, advised: false }];
            let measured = blocks.measure(&plan, Duration::from_secs(60)).unwrap();
            let before = faults().unwrap();
            blocks.keep(LARGEST, false).unwrap();
            blocks.displace();
            Ok((measured, faults().unwrap() - before))
        };
        let (measured, of_kept) =
            Worker::start(&me, &Work::new("measuring", Duty::Measure), work).unwrap().wait().unwrap();
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
    fn a_block_that_asks_is_aligned_and_has_huge_pages_where_there_are_any() {
        let Some(huge) = slowpath_recording::HugePages::of_this_machine().filter(|setting| setting.enabled != "never")
        else {
            println!("skipped: this machine gives no huge pages");
            return;
        };
        let size = huge.size.0 as usize;
        let mut blocks = Blocks::new(size).unwrap();
        let (block, range) = map(ADVISED, Some(size)).unwrap();
        assert_eq!((range.len(), block[range].as_ptr().align_offset(size)), (ADVISED, 0));
        let plan = [Size { bytes: ADVISED as u64, warm: 3, displaced: 3, advised: true }];
        let measured = blocks.measure(&plan, Duration::from_secs(60)).unwrap();
        let [warm, displaced] = measured.series.as_slice() else { panic!("{measured:?}") };
        assert!(warm.advised && displaced.advised && warm.pairs.len() == 3, "{measured:?}");
        // One a block at least, and no more than one a page: the kernel decides whether it has huge pages left.
        assert!((3..=3 * (ADVISED as u64 / 4096) + 40).contains(&warm.faults), "{warm:?}");
        // Without a size there is nothing to ask for.
        let without = Blocks::new(0).unwrap().measure(&plan, Duration::from_secs(60)).unwrap();
        assert!(without.series.is_empty(), "{without:?}");
    }

    #[test]
    fn when_time_is_over_the_rest_is_left_out() {
        let measured = Blocks::new(0).unwrap().measure(&PLAN, Duration::ZERO).unwrap();
        assert!(measured.series.is_empty(), "{measured:?}");
    }
}
