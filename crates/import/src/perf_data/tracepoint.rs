//! The formats of the kernel's events that a file was recorded with (`/sys/kernel/tracing/events/*/format`), and their fields in samples.
//!
//! `perf record` copies them into the file in one piece (perf's `trace-event-info.c` writes it), so that numbers are read by the kernel
//! that counted them.

use super::little_endian::{Fields, number, text};
use crate::kernel_event::{Circumstances, KernelEvents};
use crate::problem::ImportError;
use crate::trace::Trace;
use crate::wait_reason::state;
use slowpath_tables::PageCacheOp;
use std::collections::HashMap;

/// Formats at most; a kernel has some 2,000.
const MOST_FORMATS: usize = 1 << 14;
/// Fields of one.
const MOST_FIELDS: usize = 256;
/// Pages that one event of the page cache stands for, as a power of two (`MAX_PAGECACHE_ORDER` is less).
const LARGEST_ORDER: u64 = 18;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Bytes of a sector, in which requests to block devices are counted.
const SECTOR: u64 = 512;

/// Where a field is.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    size: u64,
    /// Whether it says where its text is instead of holding it.
    is_elsewhere: bool,
}

/// An event of the kernel.
#[derive(Debug)]
pub struct Tracepoint {
    name: String,
    fields: HashMap<String, Place>,
}

/// The formats of a file by their number.
#[derive(Debug, Default)]
pub struct Formats {
    by_id: HashMap<u64, Tracepoint>,
    /// Bytes of a page, where the file says it.
    pub page_size: Option<u64>,
}

impl Formats {
    /// The event of this number.
    pub fn get(&self, id: u64) -> Option<&Tracepoint> {
        self.by_id.get(&id)
    }

    /// Takes the formats of a file; none where they are cut or something else.
    pub fn read(&mut self, bytes: &[u8]) -> Option<()> {
        let mut fields = Fields(bytes);
        if fields.take(MAGIC.len() as u64)? != MAGIC {
            return None;
        }
        let _version = fields.text()?;
        // Order of bytes and size of a long.
        if fields.take(1)? != [0] {
            return None;
        }
        fields.take(1)?;
        self.page_size = Some(u64::from(fields.u32()?)).filter(|size| size.is_power_of_two());
        for _ in ["header_page", "header_event"] {
            fields.text()?;
            let size = fields.u64()?;
            fields.take(size)?;
        }
        for _ in 0..fields.u32()? {
            let size = fields.u64()?;
            self.add(fields.take(size)?);
        }
        for _ in 0..fields.u32()? {
            let _system = fields.text()?;
            for _ in 0..fields.u32()? {
                let size = fields.u64()?;
                self.add(fields.take(size)?);
            }
        }
        Some(())
    }

    fn add(&mut self, format: &[u8]) {
        if self.by_id.len() < MOST_FORMATS
            && let Some((id, tracepoint)) = Tracepoint::of(&text(format))
        {
            self.by_id.insert(id, tracepoint);
        }
    }
}

impl Tracepoint {
    /// Number and fields of a format as the kernel prints it.
    fn of(format: &str) -> Option<(u64, Self)> {
        let mut lines = format.lines();
        let name = lines.next()?.strip_prefix("name: ")?.trim().to_owned();
        let id = lines.next()?.strip_prefix("ID: ")?.trim().parse().ok()?;
        let fields = lines.filter_map(field).take(MOST_FIELDS).collect();
        Some((id, Self { name, fields }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn bytes<'a>(&self, raw: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let place = self.fields.get(name)?;
        let mut fields = Fields(raw);
        fields.take(place.offset)?;
        let held = fields.take(place.size)?;
        if !place.is_elsewhere {
            return Some(held);
        }
        // Length and offset of the text.
        let both = number(held)?;
        let mut fields = Fields(raw);
        fields.take(both & 0xffff)?;
        fields.take(both >> 16)
    }

    fn number(&self, raw: &[u8], name: &str) -> Option<u64> {
        number(self.bytes(raw, name)?)
    }

    fn text(&self, raw: &[u8], name: &str) -> Option<String> {
        self.bytes(raw, name).map(text)
    }

    fn task(&self, raw: &[u8], name: &str) -> Option<u32> {
        u32::try_from(self.number(raw, name)?).ok()
    }

    /// Device, inode, first page and pages, both in the kernel's own.
    fn page(&self, raw: &[u8]) -> Option<(u64, u64, u64, u64)> {
        let order = self.number(raw, "order").unwrap_or(0);
        let pages = (order <= LARGEST_ORDER).then(|| 1 << order)?;
        Some((self.number(raw, "s_dev")?, self.number(raw, "i_ino")?, self.number(raw, "index")?, pages))
    }

    fn request(&self, raw: &[u8]) -> Option<(u64, u64, u64, bool)> {
        let bytes = self.number(raw, "nr_sector")?.checked_mul(SECTOR)?;
        let read = self.text(raw, "rwbs")?.contains('R');
        Some((self.number(raw, "dev")?, self.number(raw, "sector")?, bytes, read))
    }

    /// Hands on an event with these fields. False where it has not those that its kernel gives it.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn emit(
        &self,
        raw: &[u8],
        events: &mut KernelEvents,
        trace: &mut Trace<'_>,
        at: &Circumstances,
    ) -> Result<bool, ImportError> {
        let done = match self.name.as_str() {
            "sched_switch" => {
                let state_of = self.number(raw, "prev_state");
                match state_of.zip(self.task(raw, "next_pid")).zip(self.text(raw, "next_comm")) {
                    Some(((bits, next), name)) => Some(events.switched(trace, at, state(bits as i64), next, &name)?),
                    None => None,
                }
            }
            "sched_wakeup" | "sched_wakeup_new" | "sched_waking" => {
                self.task(raw, "pid").map(|tid| events.woken(trace, at, tid))
            }
            "sched_process_fork" => match self.task(raw, "child_pid") {
                Some(child) => Some(events.forked(trace, at, child)?),
                None => None,
            },
            "sched_process_exec" => match self.text(raw, "filename") {
                Some(file) => Some(events.executed(trace, at, &file)?),
                None => None,
            },
            "sched_process_exit" => self.task(raw, "pid").map(|tid| {
                events.left(at);
                trace.end(at.ts, tid);
            }),
            "page_fault_user" | "page_fault_kernel" => match self.number(raw, "address").zip(self.number(raw, "ip")) {
                Some((address, ip)) => Some(events.fault(trace, at, address, ip, self.name == "page_fault_kernel")?),
                None => None,
            },
            "mm_filemap_add_to_page_cache" => match self.page(raw) {
                Some(page) => Some(events.page_cache(trace, at, PageCacheOp::Add, page)?),
                None => None,
            },
            "mm_filemap_delete_from_page_cache" => match self.page(raw) {
                Some(page) => Some(events.page_cache(trace, at, PageCacheOp::Delete, page)?),
                None => None,
            },
            "block_rq_issue" => self.request(raw).map(|request| events.issued(trace, at, request)),
            "block_rq_complete" => match self.request(raw) {
                Some(request) => Some(events.completed(trace, at, request)?),
                None => None,
            },
            name => {
                match name.strip_prefix("sys_enter_") {
                    Some(call) => events.entered(at, call),
                    None if name.starts_with("sys_exit") => events.left(at),
                    None => trace.facts.leave_out(name),
                }
                Some(())
            }
        };
        Ok(done.is_some())
    }
}

/// The field of a line such as `field:__data_loc char[] filename; offset:8; size:4; signed:0;`.
fn field(line: &str) -> Option<(String, Place)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';');
    let declared = parts.next()?;
    let name = declared.rsplit([' ', '*']).next()?.split('[').next()?;
    let mut of = |key: &str| parts.next()?.trim().strip_prefix(key)?.parse().ok();
    let (offset, size) = (of("offset:")?, of("size:")?);
    Some((name.to_owned(), Place { offset, size, is_elsewhere: declared.starts_with("__data_loc ") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_says_where_numbers_and_texts_are() {
        let format = "name: sched_process_exec\nID: 312\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\
            \tfield:char comm[4];\toffset:16;\tsize:4;\tsigned:0;\n\nprint fmt: \"x\"\n";
        let (id, exec) = Tracepoint::of(format).unwrap();
        assert_eq!((id, exec.name()), (312, "sched_process_exec"));
        let mut raw = vec![0; 8];
        raw.extend((20u32 | 5 << 16).to_le_bytes());
        raw.extend(77u32.to_le_bytes());
        raw.extend(b"ab\0x/a/b\0");
        assert_eq!(exec.text(&raw, "filename").as_deref(), Some("/a/b"));
        assert_eq!((exec.number(&raw, "pid"), exec.text(&raw, "comm").as_deref()), (Some(77), Some("ab")));
        assert_eq!((exec.number(&raw, "comm2"), exec.text(&raw[..22], "filename")), (None, None));
        assert!(Tracepoint::of("ID: 1\n").is_none());
    }
}
