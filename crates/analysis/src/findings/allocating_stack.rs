//! The call stack of a call that maps memory or gives it back: who asked for it, past the allocator.
//!
//! Owns which frames are the allocator's, and which allocator it is: those of the C and C++ libraries, of the dynamic loader and of allocators that are
//! libraries of their own, by the name of the mapped file; and functions that allocate or free wherever they are linked (`malloc`,
//! `operator delete`, containers of the standard libraries), by their names. A program's own wrapper (`xmalloc`) is not known to be
//! one: it is named, and its callers stand in the stack.

use super::rust_names;
use crate::stacks::call_stacks::{CallStacks, FramePlace};
use std::collections::HashMap;

/// Beginnings of the names of libraries that allocate for others: glibc, musl, the dynamic loader, the C++ libraries, jemalloc,
/// tcmalloc, mimalloc and sanitizers.
const ALLOCATING_FILES: [&str; 15] = [
    "libc.so",
    "libc-2.",
    "libc.musl-",
    "ld-linux",
    "ld-musl-",
    "ld-2.",
    "ld.so",
    "libpthread",
    "libstdc++.so",
    "libc++.so",
    "libc++abi.so",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
    "libasan.so",
];

/// System calls that map memory or give it back, as the C library calls them.
const CALLS: [&str; 7] = ["mmap", "mmap64", "mremap", "munmap", "brk", "sbrk", "madvise"];

/// Functions that allocate and free for their callers, as they are called in C.
const ALLOCATING_FUNCTIONS: [&str; 18] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "libc_malloc",
    "libc_calloc",
    "libc_realloc",
    "libc_memalign",
    "free",
    "cfree",
    "free_sized",
    "libc_free",
    "malloc_trim",
];

/// Functions inside musl's allocator, which static programs have in their own file.
const MUSL_FUNCTIONS: [&str; 7] = [
    "libc_malloc_impl",
    "default_malloc",
    "simple_malloc",
    "nontrivial_free",
    "alloc_slot",
    "alloc_group",
    "malloc_alloc_meta",
];

/// Functions inside glibc's allocator.
const GLIBC_FUNCTIONS: [&str; 15] = [
    "int_malloc",
    "int_realloc",
    "int_memalign",
    "mid_memalign",
    "sysmalloc",
    "int_free",
    "int_free_chunk",
    "int_free_maybe_consolidate",
    "int_free_merge_chunk",
    "malloc_consolidate",
    "systrim",
    "mtrim",
    "heap_trim",
    "shrink_heap",
    "glibc_morecore",
];

/// Beginnings of the names of functions of allocators that are linked into programs.
const LINKED_ALLOCATORS: [(&str, Allocator); 8] = [
    ("je_", Allocator::Jemalloc),
    ("_rjem_", Allocator::Jemalloc),
    ("_mi_", Allocator::Mimalloc),
    ("mi_free", Allocator::Mimalloc),
    ("mi_malloc", Allocator::Mimalloc),
    ("tcmalloc::", Allocator::Tcmalloc),
    ("runtime.", Allocator::Go),
    ("runtime/debug.", Allocator::Go),
];

/// Beginnings of the names of libraries that are one allocator.
const ALLOCATOR_LIBRARIES: [(&str, Allocator); 7] = [
    ("libjemalloc", Allocator::Jemalloc),
    ("libmimalloc", Allocator::Mimalloc),
    ("libtcmalloc", Allocator::Tcmalloc),
    ("libc.so.6", Allocator::Glibc),
    ("libc-2.", Allocator::Glibc),
    ("ld-musl-", Allocator::Musl),
    ("libc.musl-", Allocator::Musl),
];

/// Beginnings of the names of functions that allocate for their callers: C++, then Rust ([`rust_names`] has more of it).
const ALLOCATING_PREFIXES: [&str; 10] = [
    "operator new",
    "operator delete",
    "std::",
    "__gnu_cxx::",
    "sysmalloc_",
    "alloc::",
    "core::",
    "__rust_",
    "__rustc::",
    "__rdl_",
];

/// An allocator whose settings are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Allocator {
    /// That of glibc.
    Glibc,
    /// jemalloc, also as a crate of Rust.
    Jemalloc,
    /// mimalloc.
    Mimalloc,
    /// tcmalloc of gperftools.
    Tcmalloc,
    /// That of Go.
    Go,
    /// That of musl.
    Musl,
}

/// A function of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Its name, or what stands for it. Foreign text.
    pub function: String,
    /// Whether that is a name: symbols of the file tell it.
    pub is_named: bool,
    /// Name of the file that it is in, or the kind of code. Foreign text.
    pub file: String,
    /// Source file and line, where they are known.
    pub source: Option<(String, Option<u32>)>,
}

impl Caller {
    fn key(&self) -> (String, String) {
        (self.function.clone(), self.file.clone())
    }
}

/// What distinguishes stacks: the functions and their files, the innermost first.
pub(crate) type Functions = Vec<(String, String)>;

/// The functions of a stack, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllocatingStack {
    /// The functions; empty where no stack was recorded.
    pub callers: Vec<Caller>,
    /// Which of them asked for the memory: the first one that is not the allocator's; `None` where all are, or where the stack ends before
    /// it.
    pub asked: Option<usize>,
    /// Whether an allocator of a library stands between it and the kernel.
    pub through_allocator: bool,
    /// Which allocator that is, where it is one of those.
    pub allocator: Option<Allocator>,
    /// Whether the stack ends before its outermost function.
    pub is_truncated: bool,
}

impl AllocatingStack {
    /// Who asked for the memory; `None` without a stack, and where it ends inside the allocator.
    pub fn who_asked(&self) -> Option<&Caller> {
        self.callers.get(self.asked?)
    }

    /// Where who asked has no name: the first function with one that called it, through others or not.
    pub fn named_caller(&self) -> Option<&Caller> {
        self.callers.iter().skip(self.asked?.saturating_add(1)).find(|caller| caller.is_named)
    }

    /// What distinguishes it from others.
    pub fn functions(&self) -> Functions {
        self.callers.iter().map(Caller::key).collect()
    }

    /// Outermost to innermost with semicolons between, as flame graph tools read it.
    pub fn folded(&self) -> String {
        let names: Vec<&str> = self.callers.iter().rev().map(|caller| caller.function.as_str()).collect();
        names.join(";")
    }
}

/// The distinct stacks of a recording's allocations. Stacks of the same functions are one, whichever lines they are at.
#[derive(Debug)]
pub(crate) struct AllocatingStacks<'a> {
    call_stacks: &'a CallStacks<'a>,
    of_row: HashMap<Option<u32>, usize>,
    of_functions: HashMap<Functions, usize>,
    stacks: Vec<AllocatingStack>,
}

impl<'a> AllocatingStacks<'a> {
    /// None yet.
    pub fn new(call_stacks: &'a CallStacks<'a>) -> Self {
        Self { call_stacks, of_row: HashMap::new(), of_functions: HashMap::new(), stacks: Vec::new() }
    }

    /// Number of the stack of a row's column `stack`.
    pub fn number(&mut self, stack: Option<u32>) -> usize {
        if let Some(number) = self.of_row.get(&stack) {
            return *number;
        }
        let made = allocating_stack(self.call_stacks, stack);
        let number = *self.of_functions.entry(made.functions()).or_insert_with(|| {
            self.stacks.push(made);
            self.stacks.len() - 1
        });
        self.of_row.insert(stack, number);
        number
    }

    /// A stack by its number.
    pub fn get(&self, number: usize) -> AllocatingStack {
        self.stacks.get(number).cloned().unwrap_or_default()
    }

    /// Whether a stack was recorded with its outermost function.
    pub fn is_whole(&self, number: usize) -> bool {
        self.stacks.get(number).is_some_and(|stack| !stack.callers.is_empty() && !stack.is_truncated)
    }

    /// The functions of a stack that ends before its outermost one, but after who asked; `None` for others, and where code between
    /// them is unknown.
    pub fn known_part(&self, number: usize) -> Option<Functions> {
        let stack = self.stacks.get(number)?;
        let (end, known) = stack.callers.split_last()?;
        let is_cut = is_end(end) && !known.iter().any(is_end) && stack.asked.is_some();
        is_cut.then(|| known.iter().map(Caller::key).collect())
    }

    /// The stack of a row's column `stack`, with its own lines.
    pub fn of_row(&self, stack: Option<u32>) -> AllocatingStack {
        allocating_stack(self.call_stacks, stack)
    }

    /// The allocator that a stack goes through; the inner one is `None` where it is none of those that are known.
    pub fn allocator(&self, number: usize) -> Option<Option<Allocator>> {
        let stack = self.stacks.get(number)?;
        stack.through_allocator.then_some(stack.allocator)
    }
}

fn allocating_stack(call_stacks: &CallStacks<'_>, stack: Option<u32>) -> AllocatingStack {
    let Some(path) = call_stacks.path(stack) else { return AllocatingStack::default() };
    let mut made = AllocatingStack::default();
    let mut is_named = None;
    for number in call_stacks.outermost_first(path).into_iter().rev() {
        let Some(frame) = call_stacks.frames().get(number as usize) else { continue };
        if matches!(frame.place, FramePlace::Kernel(_)) {
            continue;
        }
        let file = frame.place.name();
        made.is_truncated |= !frame.place.is_code();
        is_named = is_named.or_else(|| frame.functions.first().map(|function| function.named));
        made.callers.extend(frame.functions.iter().map(|function| Caller {
            function: function.name.to_string(),
            is_named: function.named,
            file: file.to_string(),
            source: function.source_file.map(|source| (source.to_owned(), function.source_line)),
        }));
    }
    let asked = made.callers.iter().position(|caller| !is_allocator(caller) || is_end(caller));
    // Where the call itself stands in code without a name, an allocator without names may be linked into the program.
    let is_nameless = is_named == Some(false) && asked == Some(0);
    made.asked = asked.filter(|asked| !is_nameless && !is_end(&made.callers[*asked]));
    let allocator = &made.callers[..asked.unwrap_or(made.callers.len())];
    // The call itself is one of the C library too, also where the program makes it; it can be inlined into itself.
    let own = || allocator.iter().skip(1).filter(|caller| !CALLS.contains(&bare(&caller.function)));
    made.through_allocator = own().next().is_some();
    made.allocator = own().find_map(which);
    made
}

/// Whether what was walked ends here.
fn is_end(caller: &Caller) -> bool {
    matches!(caller.file.as_str(), "[truncated]" | "[unknown]")
}

fn which(caller: &Caller) -> Option<Allocator> {
    let starting = |name: &str, with: &[(&str, Allocator)]| {
        with.iter().find(|(start, _)| name.starts_with(start)).map(|(_, allocator)| *allocator)
    };
    let is_one_of = |names: &[&str]| names.contains(&bare(&caller.function));
    starting(&caller.file, &ALLOCATOR_LIBRARIES)
        .or_else(|| starting(&caller.function, &LINKED_ALLOCATORS))
        .or_else(|| is_one_of(&GLIBC_FUNCTIONS).then_some(Allocator::Glibc))
        .or_else(|| is_one_of(&MUSL_FUNCTIONS).then_some(Allocator::Musl))
}

fn is_allocator(caller: &Caller) -> bool {
    works_for_others(&caller.function, &caller.file)
}

/// Whether a function of a file is one of the C or C++ library, the dynamic loader or an allocator: what it does is done for its
/// caller.
pub(crate) fn works_for_others(function: &str, file: &str) -> bool {
    if ALLOCATING_FILES.iter().any(|name| file.starts_with(name)) {
        return true;
    }
    // Functions that are made from templates are reported with their results.
    let name = function.strip_prefix("void* ").or_else(|| function.strip_prefix("void ")).unwrap_or(function);
    ALLOCATING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || rust_names::is_of_library(name)
        || LINKED_ALLOCATORS.iter().any(|(prefix, _)| name.starts_with(prefix))
        || [&ALLOCATING_FUNCTIONS[..], &GLIBC_FUNCTIONS[..], &MUSL_FUNCTIONS[..], &CALLS[..]]
            .iter()
            .any(|names| names.contains(&bare(name)))
}

/// A name without what glibc puts before it for its own use, and the compiler behind it: `__GI___libc_malloc`,
/// `systrim.constprop.0`.
fn bare(name: &str) -> &str {
    let name = name.split('.').next().unwrap_or(name);
    name.trim_start_matches('_').trim_start_matches("GI_").trim_start_matches('_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Tables;

    fn stack(rows: &[(&str, &str)]) -> AllocatingStack {
        let mut text = "== stacks\nid parent frame\n".to_owned();
        for id in 0..rows.len() {
            let parent = if id == 0 { "-".to_owned() } else { (id - 1).to_string() };
            text += &format!("{id} {parent} {id}\n");
        }
        text += "== frames\nid kind dev ino offset\n";
        for (id, (file, _)) in rows.iter().enumerate() {
            text += &match *file {
                "[truncated]" => format!("{id} truncated - - -\n"),
                _ => format!("{id} file 1 {id} {id}\n"),
            };
        }
        text += "== symbols\nframe level function\n";
        for (id, (_, function)) in rows.iter().enumerate().filter(|(_, row)| !row.1.is_empty()) {
            text += &format!("{id} 0 {function:?}\n");
        }
        text += "== files\ndev ino path\n";
        for (id, (file, _)) in rows.iter().enumerate() {
            text += &format!("1 {id} /usr/lib/{file}\n");
        }
        let tables = Tables::from_text(&text).unwrap();
        let call_stacks = CallStacks::new(&tables);
        let mut stacks = AllocatingStacks::new(&call_stacks);
        let number = stacks.number(Some(rows.len() as u32 - 1));
        stacks.get(number)
    }

    fn asked(rows: &[(&str, &str)]) -> (Option<String>, bool) {
        let stack = stack(rows);
        (stack.who_asked().map(|caller| caller.function.clone()), stack.through_allocator)
    }

    #[test]
    fn who_asked_stands_before_the_allocator_wherever_that_is() {
        let main = ("program", "main");
        let copy = ("program", "copy_frame(Frame const&)");
        let own = Some("copy_frame(Frame const&)".to_owned());
        let libc = [("libc.so.6", "malloc"), ("libc.so.6", ""), ("libc.so.6", "__mmap64")];
        assert_eq!(asked(&[main, copy, libc[0], libc[1], libc[2]]), (own.clone(), true));
        assert_eq!(
            asked(&[main, copy, ("libstdc++.so.6.0.30", "operator new(unsigned long)"), libc[0]]),
            (own.clone(), true)
        );
        let grows = "void std::vector<char, std::allocator<char> >::_M_realloc_insert<char>(char&&)";
        assert_eq!(asked(&[main, copy, ("program", grows), libc[0]]), (own.clone(), true));
        assert_eq!(asked(&[main, copy, ("program", "__libc_malloc"), ("program", "__mmap64")]), (own.clone(), true));
        let static_libc = [("program", "__GI___libc_malloc"), ("program", "__GI___mmap64")];
        assert_eq!(asked(&[main, copy, static_libc[0], static_libc[1]]), (own.clone(), true));
        for of_rust in ["<[u8]>::copy_from_slice", "<str>::to_owned", "<*const u8>::copy_to", "core::ptr::copy::<u8>"] {
            assert_eq!(asked(&[main, copy, ("program", of_rust), libc[0]]), (own.clone(), true), "{of_rust}");
        }
        for of_program in ["<[u8] as program::Copies>::copy", "<program::Frame>::copy", "<strange>::copy"] {
            let named = Some(of_program.to_owned());
            assert_eq!(asked(&[main, copy, ("program", of_program), libc[0]]), (named, false), "{of_program}");
        }
        assert_eq!(asked(&[main, copy, ("libc.so.6", "mmap64")]), (own.clone(), false));
        assert_eq!(asked(&[main, copy, ("libc.so.6", "__GI___mmap64"), ("libc.so.6", "__GI___mmap64")]), (own, false));
    }

    #[test]
    fn memory_that_is_given_back_has_its_allocator_and_who_freed() {
        let freed_by = |rows: &[(&str, &str)]| {
            let stack = stack(rows);
            (stack.who_asked().map(|caller| caller.function.clone()), stack.allocator)
        };
        let (main, own) = (("program", "main"), Some("main".to_owned()));
        let libc = [("libc.so.6", "cfree"), ("libc.so.6", ""), ("libc.so.6", "__sbrk"), ("libc.so.6", "brk")];
        assert_eq!(freed_by(&[main, libc[0], libc[1], libc[2], libc[3]]), (own.clone(), Some(Allocator::Glibc)));
        let linked = [("program", "_int_free"), ("program", "systrim.constprop.0"), ("program", "__brk")];
        assert_eq!(freed_by(&[main, linked[0], linked[1], linked[2]]), (own.clone(), Some(Allocator::Glibc)));
        let jemalloc = [("libjemalloc.so.2", "free"), ("libjemalloc.so.2", ""), ("libc.so.6", "__madvise")];
        assert_eq!(freed_by(&[main, jemalloc[0], jemalloc[1], jemalloc[2]]), (own.clone(), Some(Allocator::Jemalloc)));
        let go = [("program", "runtime.mallocgc"), ("program", "runtime.madvise")];
        assert_eq!(freed_by(&[main, go[0], go[1], ("program", "runtime.madvise")]), (own.clone(), Some(Allocator::Go)));
        assert_eq!(freed_by(&[main, ("libc.so.6", "__madvise")]), (own, None));
    }

    #[test]
    fn a_stack_that_ends_inside_the_allocator_names_nobody() {
        assert_eq!(asked(&[("[truncated]", ""), ("libc.so.6", "malloc"), ("libc.so.6", "mmap")]), (None, true));
        assert_eq!(asked(&[("libc.so.6", "mmap")]), (None, false));
        let tables = Tables::default();
        let call_stacks = CallStacks::new(&tables);
        let mut stacks = AllocatingStacks::new(&call_stacks);
        let none = stacks.number(None);
        assert_eq!(stacks.get(none), AllocatingStack::default());
        assert!(stacks.get(none).who_asked().is_none());
    }

    #[test]
    fn functions_of_one_name_in_two_libraries_are_two() {
        let of = |library| stack(&[("program", "main"), (library, "process"), ("libc.so.6", "malloc")]);
        let (one, other) = (of("libone.so"), of("libother.so"));
        assert_eq!(one.folded(), other.folded());
        assert_ne!(one.functions(), other.functions());
    }

    #[test]
    fn a_stripped_program_that_makes_the_call_itself_may_have_its_allocator_in_it() {
        let stripped = [("server", ""), ("server", "")];
        assert_eq!(asked(&stripped), (None, false));
        assert_eq!(stack(&stripped).folded(), "server+0x0;server+0x1");
        assert_eq!(asked(&[("server", ""), ("server", "serve")]), (Some("serve".to_owned()), false));
    }

    #[test]
    fn musl_and_go_have_their_allocators_in_the_program() {
        let of = |rows: &[(&str, &str)]| {
            (stack(rows).who_asked().map(|caller| caller.function.clone()), stack(rows).allocator)
        };
        let (main, own) = (("program", "main"), Some("main".to_owned()));
        let musl = [("program", "default_malloc"), ("program", "__libc_malloc_impl"), ("program", "__mmap")];
        assert_eq!(of(&[main, musl[0], musl[1], musl[2]]), (own.clone(), Some(Allocator::Musl)));
        let library = ("ld-musl-x86_64.so.1", "");
        assert_eq!(of(&[main, library, library]), (own.clone(), Some(Allocator::Musl)));
        let go = [
            ("program", "runtime/debug.FreeOSMemory"),
            ("program", "runtime.sysUnused"),
            ("program", "runtime.madvise"),
        ];
        assert_eq!(of(&[main, go[0], go[1], go[2]]), (own, Some(Allocator::Go)));
    }

    #[test]
    fn code_without_a_name_is_named_by_its_place() {
        let (name, _) = asked(&[("libvideo.so", ""), ("libc.so.6", "malloc"), ("libc.so.6", "mmap")]);
        assert_eq!(name.as_deref(), Some("libvideo.so+0x0"));
    }
}
