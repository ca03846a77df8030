//! Probe `page_cache`: pages that enter or leave the page cache, and what the task was doing.

use crate::context::Context;
use crate::events::EVENT_PAGE_CACHE;
use crate::events::{FLAG_DELETE, page_cache_event, record};
use crate::probe::Probe;
use crate::records::RecordKind;
use slowpath_tables::missing::declared;
use slowpath_tables::{Asker, Nanos, PageCache, PageCacheOp, Pages};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "page_cache",
    title: "pages that enter and leave the page cache",
    what: "Each page that is read into the page cache or dropped from it for the followed processes, and what the task was doing; of a lab's \
           device for whomever.",
    is_essential: true,
    settings: Some(|_, options, _| {
        // The one read-only variable of the object: `watched_dev`.
        options.lab.as_ref().map_or(0, |lab| lab.dev).to_ne_bytes().into()
    }),
    records: &[RecordKind::of::<page_cache_event>(EVENT_PAGE_CACHE, "page_cache", |bytes, to| {
        to.out.page_cache.extend(decode(bytes, to.context));
    })],
    tracepoints: &[
        (&declared::PROCESSES, &["mm_filemap_add_to_page_cache"]),
        (&declared::BLOCK_IO, &["mm_filemap_delete_from_page_cache"]),
    ],
    ..Probe::USUAL
};

/// What a task in this system call is doing, seen from the page cache. -1 is a fault taken in user mode; a fault
/// inside a system call (a `write` from a mapped file) counts for the call.
pub(crate) fn asker(syscall: i32) -> Asker {
    match i64::from(syscall) {
        -1 => Asker::Fault,
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2
        | libc::SYS_sendfile
        | libc::SYS_splice
        | libc::SYS_copy_file_range
        | libc::SYS_io_uring_enter
        | libc::SYS_io_submit => Asker::Read,
        libc::SYS_madvise
        | libc::SYS_fadvise64
        | libc::SYS_readahead
        | libc::SYS_mmap
        | libc::SYS_mlock
        | libc::SYS_mlockall
        | libc::SYS_process_madvise => Asker::Advice,
        libc::SYS_execve | libc::SYS_execveat => Asker::Exec,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open
        | libc::SYS_stat
        | libc::SYS_lstat
        | libc::SYS_access
        | libc::SYS_readlink
        | libc::SYS_getdents => Asker::Metadata,
        libc::SYS_openat
        | libc::SYS_openat2
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_getdents64
        | libc::SYS_readlinkat
        | libc::SYS_faccessat
        | libc::SYS_faccessat2 => Asker::Metadata,
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_fallocate => Asker::Write,
        _ => Asker::Other,
    }
}

pub(crate) fn decode(bytes: &[u8], context: &Context) -> Option<PageCache> {
    let event: page_cache_event = record(bytes)?;
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    Some(PageCache {
        ts: Nanos(event.header.ts),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        op: if u32::from(event.header.flags) & FLAG_DELETE != 0 { PageCacheOp::Delete } else { PageCacheOp::Add },
        dev: event.dev,
        ino: event.ino,
        page: Pages(event.page),
        pages: Pages(u64::from(event.pages)),
        asker: asker(event.syscall),
        syscall: event.syscall,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_fault_a_read_and_an_advice_are_told_apart() {
        assert_eq!(asker(-1), Asker::Fault);
        assert_eq!(asker(libc::SYS_pread64 as i32), Asker::Read);
        assert_eq!(asker(libc::SYS_fadvise64 as i32), Asker::Advice);
        assert_eq!(asker(libc::SYS_execve as i32), Asker::Exec);
        assert_eq!(asker(libc::SYS_futex as i32), Asker::Other);
    }
}
