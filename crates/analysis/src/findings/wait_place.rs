//! Where in a program a thread waits, by the stack that the recorder took: the functions, and which of them asked the C library to wait.

use crate::stacks::call_stacks::{CallStacks, CodeFrame, FramePlace, StackPath};
use crate::time::ledger::Category;

/// Functions of a stack that are shown. Where the caller is further out, all up to it: with the debug information of the C library a name
/// lookup alone is ten functions.
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
        let Some(stacks) = call_stacks else { return place };
        let path = std::iter::successors(stack, |at| stacks.caller(*at));
        let frames = path.map(|at| &stacks.frames()[stacks.frame_number(at) as usize]);
        let frames = frames.filter(|frame| !matches!(frame.place, FramePlace::Kernel(_)));
        let caller = frames.clone().enumerate().find(|(_, frame)| !waits_for_its_caller(frame));
        // What a cut stack ends with, and a damaged row, are nobody's functions.
        let caller = caller.filter(|(_, frame)| frame.place.is_code()).map(|(number, _)| number);
        for (number, frame) in frames.enumerate() {
            if caller == Some(number)
                && let Some(function) = frame.functions.first()
            {
                place.caller = Some(place.functions.len());
                place.has_name = function.named;
            }
            place.functions.extend(frame.functions.iter().map(|function| function.name.clone().into_owned()));
            if place.functions.len() >= MOST_FUNCTIONS && caller.is_none_or(|caller| caller <= number) {
                break;
            }
        }
        place.functions.truncate(place.caller.map_or(MOST_FUNCTIONS, |caller| MOST_FUNCTIONS.max(caller + 1)));
        place
    }

    /// The function that asked the C library to wait.
    pub fn named(&self) -> Option<&str> {
        self.functions.get(self.caller?).map(String::as_str)
    }

    /// The same, where it has a name: an address names no function.
    pub fn by_name(&self) -> Option<&str> {
        self.named().filter(|_| self.has_name)
    }
}

/// Whether it is in the C library.
fn waits_for_its_caller(frame: &CodeFrame<'_>) -> bool {
    let file = frame.place.name();
    WAITING_FILES.iter().any(|start| file.starts_with(start))
}
