//! The call stack that a block came from: who asked for it, past the allocator.
//!
//! Owns which frames are the allocator's: those of the C and C++ libraries, of the dynamic loader and of allocators that are
//! libraries of their own, by the name of the mapped file; and functions that allocate wherever they are linked (`malloc`,
//! `operator new`, containers of the standard libraries), by their names. A program's own wrapper (`xmalloc`) is not known to be
//! one: it is named, and its callers stand in the stack.

use crate::call_stacks::{CallStacks, Place, file_name};
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

/// System calls that map memory, as the C library calls them.
const CALLS: [&str; 3] = ["mmap", "mmap64", "mremap"];

/// Functions that allocate for their callers, as they are called in C and inside glibc.
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
    "int_malloc",
    "int_realloc",
    "int_memalign",
    "mid_memalign",
    "sysmalloc",
];

/// Beginnings of the names of functions that allocate for their callers: C++, then Rust.
const ALLOCATING_PREFIXES: [&str; 10] = [
    "operator new",
    "std::",
    "__gnu_cxx::",
    "sysmalloc_",
    "alloc::",
    "<alloc::",
    "core::",
    "<core::",
    "__rust_",
    "__rdl_",
];

/// A function of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Its name, or what stands for it. Foreign text.
    pub function: String,
    /// Name of the file that it is in, or the kind of code. Foreign text.
    pub file: String,
    /// Source file and line, where they are known.
    pub source: Option<(String, Option<u32>)>,
}

/// What tells stacks apart: the functions and their files, the innermost first.
pub(crate) type Functions = Vec<(String, String)>;

/// The functions of a stack, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllocatingStack {
    /// The functions; empty where no stack was recorded.
    pub callers: Vec<Caller>,
    /// Which of them asked for the memory: the first one that is not the allocator's.
    pub asked: usize,
    /// Whether an allocator of a library stands between it and the kernel.
    pub through_allocator: bool,
    /// Whether the stack ends before its outermost function.
    pub is_truncated: bool,
}

impl AllocatingStack {
    /// Who asked for the memory; `None` without a stack, and where it ends inside the allocator.
    pub fn who_asked(&self) -> Option<&Caller> {
        self.callers.get(self.asked)
    }

    /// What tells it from others.
    pub fn functions(&self) -> Functions {
        self.callers.iter().map(|caller| (caller.function.clone(), caller.file.clone())).collect()
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
}

fn allocating_stack(call_stacks: &CallStacks<'_>, stack: Option<u32>) -> AllocatingStack {
    let Some(path) = call_stacks.path(stack) else { return AllocatingStack::default() };
    let mut made = AllocatingStack::default();
    for number in call_stacks.outermost_first(path).into_iter().rev() {
        let Some(frame) = call_stacks.frames().get(number as usize) else { continue };
        let file = match frame.place {
            Place::Kernel(_) => continue,
            Place::File { key, file, .. } => file_name(key, file).into_owned(),
            Place::Vdso(_) => "[vdso]".to_owned(),
            Place::Generated(_) => "[generated]".to_owned(),
            Place::Truncated(_) => "[truncated]".to_owned(),
            Place::Unknown => "[unknown]".to_owned(),
        };
        made.is_truncated |= matches!(frame.place, Place::Truncated(_) | Place::Unknown);
        made.callers.extend(frame.functions.iter().map(|function| Caller {
            function: function.name.to_string(),
            file: file.clone(),
            source: function.source_file.map(|source| (source.to_owned(), function.source_line)),
        }));
    }
    let is_end = |caller: &Caller| matches!(caller.file.as_str(), "[truncated]" | "[unknown]");
    let asked = made.callers.iter().position(|caller| !is_allocator(caller) || is_end(caller));
    made.asked = match asked {
        Some(asked) if !is_end(&made.callers[asked]) => asked,
        _ => usize::MAX,
    };
    let allocator = &made.callers[..asked.unwrap_or(made.callers.len())];
    // The call itself is one of the C library too, also where the program makes it; it can be inlined into itself.
    made.through_allocator = allocator.iter().skip(1).any(|caller| !CALLS.contains(&bare(&caller.function)));
    made
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
    // Functions that are made from templates are told with their results.
    let name = function.strip_prefix("void* ").or_else(|| function.strip_prefix("void ")).unwrap_or(function);
    ALLOCATING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || ALLOCATING_FUNCTIONS.contains(&bare(name))
        || CALLS.contains(&bare(name))
}

/// A name without what glibc puts before it for its own use: `__GI___libc_malloc`.
fn bare(name: &str) -> &str {
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
        assert_eq!(asked(&[main, copy, ("libc.so.6", "mmap64")]), (own.clone(), false));
        assert_eq!(asked(&[main, copy, ("libc.so.6", "__GI___mmap64"), ("libc.so.6", "__GI___mmap64")]), (own, false));
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
    fn code_without_a_name_is_told_by_its_place() {
        let (name, _) = asked(&[("libvideo.so", ""), ("libc.so.6", "malloc"), ("libc.so.6", "mmap")]);
        assert_eq!(name.as_deref(), Some("libvideo.so+0x0"));
    }
}
