//! How allocators other than that of glibc are configured to keep memory.

use super::allocating_stack::Allocator;

/// How allocators other than glibc's are configured to give pages back later, or never; their own documentation says more.
pub(crate) fn keeping_pages(allocator: Allocator) -> Option<&'static str> {
    match allocator {
        Allocator::Glibc | Allocator::Musl => None,
        Allocator::Jemalloc => Some(
            "MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1 has jemalloc keep unused pages, a number of ms longer than they \
             are away has it keep them for that time, but for blocks of 8 MiB and more, which it gives back at once then \
             (_RJEM_MALLOC_CONF in programs of Rust that link it)",
        ),
        Allocator::Mimalloc => Some(
            "MIMALLOC_PURGE_DELAY=-1 has mimalloc keep unused pages, a number of ms longer than they are away has it keep \
             them for that time (version 2.0: MIMALLOC_ALLOW_DECOMMIT=0, or MIMALLOC_DECOMMIT_DELAY in ms)",
        ),
        Allocator::Tcmalloc => {
            Some("TCMALLOC_RELEASE_RATE=0 has tcmalloc keep unused pages, a small number most of them")
        }
        Allocator::Go => Some(
            "GODEBUG=madvdontneed=0 leaves unused pages of Go to the kernel until it needs them; a higher GOGC lets the \
             heap oscillate less",
        ),
    }
}
