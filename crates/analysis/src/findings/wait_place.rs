//! Where in a program a thread waits, by the stack that the recorder took: the functions, and which of them asked the C library to wait.

use crate::stacks::call_stacks::{CallStacks, Place, StackPath};
use crate::time::ledger::Category;

/// Functions of a stack that are shown, or more where the one that asked the C library to wait is further out: with its debug information
/// a name lookup alone is ten of them.
const MOST_FUNCTIONS: usize = 8;

/// Beginnings of the names of files with the C library, whose functions wait for their callers.
const WAITING_FILES: [&str; 7] =
    ["libc.so", "libc-2.", "libpthread", "ld-linux", "ld-musl-", "libc.musl-", "libresolv"];

/// Where a thread waits.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitPlace {
    /// What it waits for, in words.
    pub category: String,
    /// Number of the system call.
    pub syscall: i32,
    /// The functions, the innermost first; empty without a stack.
    pub functions: Vec<String>,
    /// Which of them asked the C library to wait.
    caller: Option<usize>,
    /// Whether that one is known by a name and not by its address.
    has_name: bool,
}

impl WaitPlace {
    pub fn of(
        category: Category,
        syscall: i32,
        stack: Option<StackPath>,
        call_stacks: Option<&CallStacks<'_>>,
    ) -> Self {
        let mut place = Self { category: category.words().to_owned(), syscall, ..Self::default() };
        let (Some(stacks), mut path) = (call_stacks, stack) else { return place };
        while let Some(at) = path.filter(|_| place.caller.is_none() || place.functions.len() < MOST_FUNCTIONS) {
            let frame = &stacks.frames()[stacks.frame_number(at) as usize];
            path = stacks.caller(at);
            if matches!(frame.place, Place::Kernel(_)) {
                continue;
            }
            let file = frame.place.name();
            let is_library = WAITING_FILES.iter().any(|start| file.starts_with(start));
            for function in &frame.functions {
                if place.caller.is_none() && !is_library {
                    place.caller = Some(place.functions.len());
                    place.has_name = function.named;
                }
                place.functions.push(function.name.clone().into_owned());
            }
        }
        if place.caller.is_none() {
            place.functions.truncate(MOST_FUNCTIONS);
        }
        place
    }

    /// The same, where it has a name: an address names no function.
    pub fn by_name(&self) -> Option<&str> {
        self.named().filter(|_| self.has_name)
    }

    /// The function that asked the C library to wait.
    pub fn named(&self) -> Option<&str> {
        self.functions.get(self.caller?).map(String::as_str)
    }
}
