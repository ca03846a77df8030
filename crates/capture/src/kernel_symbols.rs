//! Where the kernel's code is concerns root alone: it changes from boot to boot so that nobody knows (KASLR). In a recording that
//! belongs to a user, frames of the kernel are numbered functions, and their names go along.
//!
//! Owns the list of the kernel's functions and the numbers. Works with privilege, before records leave the recorder, on what only
//! the kernel has written.

use crate::events::{
    EVENT_KERNEL_SYMBOL, EVENT_STACK, KERNEL_SYMBOL_BYTES, STACK_KERNEL, event_header, kernel_symbol_event, record,
    stack_event, view,
};
use crate::record_kinds::size_of_record;
use crate::stack::stack_of;
use std::collections::HashMap;
use std::io::Read;

/// Frames of numbered functions: this, the number from bit 16 on, and how far into the function the instruction is. No kernel has
/// code here (Documentation/arch/x86/x86_64/mm.rst: the guard hole). Number 0 stands for all that has no name.
const NUMBERED: u64 = 0xffff_8000_0000_0000;

/// Functions are hardly ever longer; what is beyond counts as their end.
const LONGEST: u64 = 0xffff;

/// Bytes of the kernel's list that are read; lists of large kernels have 20 MiB.
const MAX_LIST: u64 = 256 << 20;

/// The kernel's functions, and those of them that were reported.
#[derive(Default)]
pub(crate) struct KernelSymbols {
    text: Vec<u8>,
    /// Addresses in their order, with the name's place in the text; none where something else than a function begins.
    symbols: Vec<(u64, Option<(u32, u32)>)>,
    /// By address.
    numbers: HashMap<u64, u64>,
}

impl KernelSymbols {
    /// Those of this kernel; none where it shows no addresses.
    pub(crate) fn of_this_kernel() -> Self {
        let mut text = Vec::new();
        let read = std::fs::File::open("/proc/kallsyms").and_then(|list| list.take(MAX_LIST).read_to_end(&mut text));
        if read.is_ok() { Self::parse(text) } else { Self::default() }
    }

    fn parse(text: Vec<u8>) -> Self {
        let mut symbols: Vec<(u64, Option<(u32, u32)>)> = Vec::new();
        let mut at = 0;
        for line in text.split(|byte| *byte == b'\n') {
            let begin = at;
            at += line.len() + 1;
            let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
            let address = std::str::from_utf8(address).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
            let Some(address) = address.filter(|address| *address != 0) else { continue };
            // The end of the kernel's text is marked by symbols of the text (include/asm-generic/sections.h).
            let is_function = matches!(kind, b"t" | b"T" | b"w" | b"W") && !matches!(name, b"_etext" | b"_einittext");
            let from = begin + address_and_kind(line);
            let place = u32::try_from(from).ok().zip(u32::try_from(name.len()).ok());
            symbols.push((address, place.filter(|_| is_function)));
        }
        // Of several at one address the first function names it.
        symbols.sort_by_key(|(address, place)| (*address, place.is_none()));
        symbols.dedup_by_key(|(address, _)| *address);
        Self { text, symbols, numbers: HashMap::new() }
    }

    /// Whether there is any function.
    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.iter().all(|(_, place)| place.is_none())
    }

    /// The record as it may leave the recorder: a kernel stack by numbers, behind the names that were not sent yet; `None` for every
    /// other record, which may leave as it is.
    pub(crate) fn hide(&mut self, record: &[u8]) -> Option<Vec<u8>> {
        let header = self::record::<event_header>(record)?;
        if u32::from(header.kind) != EVENT_STACK {
            return None;
        }
        let mut stack = stack_of(record)?;
        if stack.end != STACK_KERNEL {
            return None;
        }
        let mut out = Vec::with_capacity(record.len());
        for frame in stack.frames.iter_mut().take(stack.depth as usize) {
            *frame = self.numbered(*frame, &header, &mut out);
        }
        // Behind the last frame nothing is.
        let whole = view::<stack_event>(&stack);
        out.extend_from_slice(&whole[..size_of_record(whole)?]);
        Some(out)
    }

    /// The number for an address; reports the name of a function that is met for the first time.
    fn numbered(&mut self, address: u64, header: &event_header, out: &mut Vec<u8>) -> u64 {
        let next = self.symbols.partition_point(|(start, _)| *start <= address);
        let Some(&(start, Some((from, length)))) = next.checked_sub(1).and_then(|at| self.symbols.get(at)) else {
            return NUMBERED;
        };
        let fresh = self.numbers.len() as u64 + 1;
        let number = *self.numbers.entry(start).or_insert(fresh);
        let function = NUMBERED + (number << 16);
        if number == fresh {
            let header = event_header { kind: EVENT_KERNEL_SYMBOL as u16, ..*header };
            let mut event = kernel_symbol_event { header, address: function, ..Default::default() };
            let name = &self.text[from as usize..(from + length) as usize];
            // The last byte ends it.
            for (place, byte) in event.name.iter_mut().zip(name).take(KERNEL_SYMBOL_BYTES as usize - 1) {
                *place = *byte as std::os::raw::c_char;
            }
            out.extend_from_slice(view(&event));
        }
        function + (address - start).min(LONGEST)
    }
}

/// Bytes of a line before its name: two words with a blank each.
fn address_and_kind(line: &[u8]) -> usize {
    let mut blanks = line.iter().enumerate().filter(|(_, byte)| matches!(byte, b' ' | b'\t'));
    blanks.nth(1).map_or(line.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Decoder, for_each_record};
    use crate::events::{bytes_of, text};

    const LIST: &str = "ffffffff93000000 D data_here_too\n\
        ffffffff93000000 T first\n\
        ffffffff93000100 t second\n\
        ffffffff93000200 T _etext\n\
        ffffffffc0000000 t in_module\t[a_module]\n\
        ffffffffc0000080 d data\t[a_module]\n";

    fn stack(end: u32, frames: &[u64]) -> Vec<u8> {
        let header = event_header { kind: EVENT_STACK as u16, pid: 7, ..Default::default() };
        let mut event = stack_event { header, number: 3, end, depth: frames.len() as u32, ..Default::default() };
        event.frames[..frames.len()].copy_from_slice(frames);
        let mut bytes = bytes_of(&event);
        bytes.truncate(size_of_record(&bytes).unwrap());
        bytes
    }

    #[test]
    fn a_kernel_stack_leaves_as_numbered_functions_whose_names_are_sent_once() {
        let mut symbols = KernelSymbols::parse(LIST.as_bytes().to_vec());
        let addresses = [
            0xffff_ffff_9300_0104,
            0xffff_ffff_9300_0001,
            0xffff_ffff_c000_0007,
            0xffff_ffff_9300_0250,
            0xffff_ffff_9300_0108,
        ];
        let sent = symbols.hide(&stack(STACK_KERNEL, &addresses)).unwrap();
        let (mut names, mut frames) = (Vec::new(), Vec::new());
        for_each_record(&sent, |kind, bytes| match kind {
            EVENT_KERNEL_SYMBOL => {
                let event: kernel_symbol_event = record(bytes).unwrap();
                names.push((event.address, text(&event.name)));
            }
            _ => frames = stack_of(bytes).unwrap().frames[..5].to_vec(),
        });
        let at = |number: u64, offset: u64| NUMBERED + (number << 16) + offset;
        let name = |number: u64, name: &str| (at(number, 0), name.to_owned());
        assert_eq!(names, [name(1, "second"), name(2, "first"), name(3, "in_module")]);
        assert_eq!(frames, [at(1, 4), at(2, 1), at(3, 7), NUMBERED, at(1, 8)]);
        for address in addresses {
            assert!(!sent.windows(8).any(|bytes| bytes == address.to_ne_bytes()), "{address:x} left the recorder");
        }
        let again = symbols.hide(&stack(STACK_KERNEL, &addresses[..1])).unwrap();
        assert_eq!(again, stack(STACK_KERNEL, &[at(1, 4)]));
        let mut decoder = Decoder::default();
        decoder.feed(&sent);
        let listed = decoder.kernel_symbols();
        assert_eq!(listed[0], (at(1, 0), "second".to_owned()));
    }

    #[test]
    fn without_a_list_no_address_is_sent_and_other_records_stay_as_they_are() {
        let mut symbols = KernelSymbols::default();
        assert!(symbols.is_empty());
        assert_eq!(symbols.hide(&stack(STACK_KERNEL, &[u64::MAX])).unwrap(), stack(STACK_KERNEL, &[NUMBERED]));
        assert_eq!(symbols.hide(&stack(0, &[5])), None);
        assert_eq!(symbols.hide(b"short"), None);
    }

    #[test]
    fn the_list_of_this_kernel_has_functions() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: only root sees the kernel's addresses");
            return;
        }
        let symbols = KernelSymbols::of_this_kernel();
        assert!(symbols.symbols.len() > 10_000 && !symbols.is_empty());
    }
}
