//! What this crate reads of others, as functions of bytes for the fuzzers.

use crate::order::names::{Rebuilt, canonical};
use crate::order::{ALGORITHMS, read_names};
use crate::repack;
use crate::score::{Code, current, held_out, train};
use crate::trace_file::Trace;
use crate::tracer;
use crate::work;

/// A trace, and everything that is made of one.
pub fn trace(bytes: &[u8]) {
    let Ok(trace) = Trace::parse(bytes) else { return };
    let Some(object) = trace.program().or((!trace.objects.is_empty()).then_some(0)) else { return };
    let all = work::of_trace(&trace, object);
    let (one, other) = all.split_at(all.len() / 2);
    let works = [one.to_vec(), other.to_vec()];
    let code = Code::of_works(&works).on_pages_of(trace.page());
    current(&code, &works);
    for algorithm in ALGORITHMS {
        let order = (algorithm.order)(&works);
        assert_eq!(order.len(), code.len(), "{}: every function once", algorithm.name);
        train(&code, &works, &order);
        held_out(&code, &works, algorithm.order);
    }
}

/// An order, and its names in another build.
pub fn order(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let names = read_names(text);
    let rebuilt = Rebuilt::new(names.iter().map(String::as_str));
    for name in &names {
        assert_eq!(rebuilt.find(name), Some(name.as_str()), "a name is found in its own build");
        assert_eq!(canonical(&canonical(name)), canonical(name), "a canonical name is its own");
    }
}

/// A file whose pages are put together; the first bytes choose them. What a loader maps of it is what it maps of the copy.
pub fn copy(bytes: &[u8]) {
    let (pages, file) = bytes.split_at(bytes.len().min(PAGES));
    let pages: Vec<u64> = pages.iter().map(|page| u64::from(*page)).collect();
    if let Ok(copy) = repack::repack(file, &pages, repack::USUAL_HEADERS) {
        assert!(repack::maps_the_same(file, &copy.bytes));
    }
    if let Ok(made) = repack::prelink::prelink(file) {
        assert_eq!(made.bytes.len(), file.len());
    }
}

/// Bytes that choose pages.
const PAGES: usize = 8;

/// What the tracer reads: a list of mappings, and answers of the process that reads files.
pub fn tracer_input(bytes: &[u8]) {
    tracer::foreign(bytes);
}

/// An ELF file, as the process that reads files has it.
pub fn elf(bytes: &[u8]) {
    tracer::foreign_elf(bytes);
}
