//! The records of the ring as Rust types, generated from `events.h`, and the one place that reads them from bytes.

#![allow(missing_docs, dead_code, non_camel_case_types)]

/// What bindgen made.
mod generated {
    #![allow(clippy::all, clippy::undocumented_unsafe_blocks)]
    include!(concat!(env!("OUT_DIR"), "/events.rs"));
}
pub use generated::*;

/// A record that is plain bytes: any bit pattern is a value.
///
/// # Safety
/// Implemented for the `repr(C)` structs of `events.h`, which hold only integers and arrays of integers.
pub unsafe trait Record: Copy {}

macro_rules! records {
    ($($record:ty),*) => { $(
        // SAFETY: integers and arrays of integers only, see events.h.
        unsafe impl Record for $record {}
    )* };
}
records!(
    event_header,
    fork_event,
    exec_event,
    exit_event,
    fault_event,
    mapping_event,
    page_cache_event,
    readahead_event,
    block_event,
    open_event,
    read_event,
    name_event,
    first_wait_event,
    off_cpu_event,
    memory_call_event,
    memory_work_event,
    thread_counters_event,
    page_content_event,
    module_event,
    stack_event,
    stack_copy_event,
    kernel_symbol_event,
    cpu_sample_event,
    walk_counts,
    walk_settings,
    task_state,
    fault_clock
);

/// The record at the beginning of `bytes`, or `None` when they are too few.
pub fn record<T: Record>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the length was checked, `read_unaligned` asks for no alignment, and any bit pattern is a `Record`.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The bytes of a record.
pub fn view<T: Record>(record: &T) -> &[u8] {
    // SAFETY: a `Record` has no padding that is not declared, and the slice lives as long as the borrow.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(record).cast::<u8>(), size_of::<T>()) }
}

/// The bytes of a record, for what is reported in the kernel's place.
pub fn bytes_of<T: Record>(record: &T) -> Vec<u8> {
    view(record).to_vec()
}

/// A stack record ends behind its last frame. Its number and then its depth follow the header.
pub(crate) fn size_of_stack(bytes: &[u8]) -> Option<usize> {
    let at = size_of::<event_header>() + size_of::<u32>();
    let depth = u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
    let frames = (depth <= STACK_FRAMES).then_some(depth as usize * size_of::<u64>())?;
    Some(std::mem::offset_of!(stack_event, frames) + frames)
}

/// The memory follows its registers.
pub(crate) fn size_of_copy(bytes: &[u8]) -> Option<usize> {
    let copied = record::<stack_copy_event>(bytes)?.bytes;
    (copied <= COPY_BYTES).then_some(size_of::<stack_copy_event>() + copied as usize)
}

/// Text up to the first NUL, with what is not UTF-8 replaced.
pub fn text(bytes: &[std::os::raw::c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().flat_map(|byte| byte.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
