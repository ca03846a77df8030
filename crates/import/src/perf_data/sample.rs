//! The fields of a sample (`PERF_RECORD_SAMPLE` of `perf_event_open(2)`), as far as rows are made of them, and its call chain.

use super::event::{Layout, field};
use super::little_endian::Fields;

/// `PERF_FORMAT_*`: counters that a sample holds.
const TOTAL_TIMES: u64 = 1 | 1 << 1;
const COUNTER_ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const COUNTER_LOST: u64 = 1 << 4;

/// `PERF_CONTEXT_MAX`: from here on an entry of a call chain is no address and says where those after it are.
const MARKERS: u64 = -4095i64 as u64;
const IN_HYPERVISOR: u64 = -32i64 as u64;
const IN_KERNEL: u64 = -128i64 as u64;
const IN_USER: u64 = -512i64 as u64;
/// The user's part comes in another record, when the thread returns to it.
const DEFERRED: u64 = -640i64 as u64;

/// A sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Address of the instruction.
    pub ip: Option<u64>,
    /// Process and thread; 0 for the idle task and for those that are gone.
    pub task: Option<(u32, u32)>,
    /// The address that was accessed.
    pub address: u64,
    /// Where.
    pub cpu: Option<u32>,
    /// What it counts for.
    pub period: Option<u64>,
    /// The fields of a tracepoint.
    pub raw: Option<&'a [u8]>,
    /// The call chain, numbers of 64 bits.
    chain: &'a [u8],
}

/// Where an address of a call chain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the kernel or a hypervisor.
    Kernel,
    /// In a program.
    User,
}

impl<'a> Sample<'a> {
    /// The sample of a record; none where it is shorter than its fields.
    pub fn of(body: &'a [u8], layout: Layout) -> Option<Self> {
        let mut fields = Fields(body);
        let has = |one: u64| layout.fields & one != 0;
        let mut number = |one: u64| if has(one) { fields.u64().map(Some) } else { Some(None) };
        number(field::IDENTIFIER)?;
        let ip = number(field::IP)?;
        let task = number(field::TID)?;
        number(field::TIME)?;
        let address = number(field::ADDR)?.unwrap_or(0);
        number(field::ID)?;
        number(field::STREAM_ID)?;
        let cpu = number(field::CPU)?.map(|cpu| cpu as u32);
        let period = number(field::PERIOD)?;
        if has(field::READ) {
            counters(&mut fields, layout.counters)?;
        }
        let chain = if has(field::CALLCHAIN) {
            let count = fields.u64()?;
            fields.take(count.checked_mul(8)?)?
        } else {
            &[]
        };
        let raw = if has(field::RAW) {
            let size = fields.u32()?;
            Some(fields.take(u64::from(size))?)
        } else {
            None
        };
        let task = match task.map(u64::to_le_bytes) {
            Some(both) => {
                let mut both = Fields(&both);
                Some((both.task()?, both.task()?))
            }
            None => None,
        };
        Some(Self { ip, task, address, cpu, period, raw, chain })
    }

    /// The addresses of its call chain, the innermost first; the instruction alone where none was recorded. `begin` is where the
    /// instruction is. And whether the user's part is in another record.
    pub fn addresses(&self, begin: Mode) -> (Vec<(Mode, u64)>, bool) {
        let mut found = Vec::with_capacity(self.chain.len() / 8);
        let (mut mode, mut is_deferred) = (Some(begin), false);
        let mut chain = Fields(self.chain);
        while let Some(entry) = chain.u64() {
            match entry {
                IN_KERNEL | IN_HYPERVISOR => mode = Some(Mode::Kernel),
                IN_USER => mode = Some(Mode::User),
                DEFERRED => {
                    is_deferred = true;
                    break;
                }
                // Those of guests, whose code is not this machine's, and what a register held that is no frame pointer.
                MARKERS.. => mode = None,
                address => found.extend(mode.map(|mode| (mode, address))),
            }
        }
        if found.is_empty() {
            found.extend(self.ip.map(|ip| (begin, ip)));
        }
        (found, is_deferred)
    }
}

/// Leaves out the counters of a sample.
fn counters(fields: &mut Fields<'_>, format: u64) -> Option<()> {
    let each = 1 + u64::from((format & (COUNTER_ID | COUNTER_LOST)).count_ones());
    let times = u64::from((format & TOTAL_TIMES).count_ones());
    let count = if format & GROUP != 0 { fields.u64()? } else { 1 };
    fields.skip_numbers(count.checked_mul(each)?.checked_add(times)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_chain_says_where_its_addresses_are() {
        let layout = Layout { fields: field::IP | field::CALLCHAIN, counters: 0, all: false };
        let body = words(&[0xf1, 7, IN_KERNEL, 0xf1, IN_USER, 0x41, -2048i64 as u64, 0x99, DEFERRED]);
        let sample = Sample::of(&body, layout).unwrap();
        let (addresses, is_deferred) = sample.addresses(Mode::Kernel);
        assert_eq!((addresses, is_deferred), (vec![(Mode::Kernel, 0xf1), (Mode::User, 0x41)], true));
        let empty = words(&[0xf1, 0]);
        let sample = Sample::of(&empty, layout).unwrap();
        assert_eq!(sample.addresses(Mode::User), (vec![(Mode::User, 0xf1)], false));
        // More addresses than there are, and more than numbers can hold.
        assert!(Sample::of(&words(&[1, 2, 3]), layout).is_none());
        assert!(Sample::of(&words(&[1, u64::MAX]), layout).is_none());
    }

    #[test]
    fn counters_of_one_event_and_of_a_group_are_left_out() {
        let fields = field::READ | field::RAW;
        let raw = words(&[4 | 0xaabb_ccdd << 32]);
        for (counters, before) in [(0, vec![9]), (0x17, vec![9, 1, 1, 5, 0]), (0xf, vec![2, 1, 1, 9, 5, 9, 6])] {
            let body = [words(&before), raw.clone()].concat();
            let sample = Sample::of(&body, Layout { fields, counters, all: false }).unwrap();
            assert_eq!(sample.raw, Some(&[0xdd, 0xcc, 0xbb, 0xaa][..]), "{counters:#x}");
        }
    }
}
