//! Which function of a call stack answers for what happened at its end.
//!
//! The innermost function says what ran: `memcpy`, `munmap`, the kernel's page fault. Who wanted it stands further out. A row is
//! *charged* to the innermost function that is not the kernel's, nor one of the C and C++ libraries, of the dynamic loader or of an
//! allocator: with all that these did for it, and without what other functions of the program did that it called. So a row has one
//! function, and the functions of a recording add up to it. Where stacks end before there is such a function, the row is charged
//! to what there is: `[truncated]`, `[unknown]`, `[kernel]` for kernel threads, `[no stack]`.
//!
//! Owns that choice. Leaves which code works for others to
//! [`allocating_stack`](crate::findings::allocating_stack), and the innermost function itself to
//! [`crate::stacks::function_weights`].

use crate::findings::allocating_stack::works_for_others;
use crate::stacks::call_stacks::{CallStacks, CodeFrame, FramePlace};
use std::collections::HashMap;

/// A function that rows are charged to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributedFunction {
    /// Its name; `None` for all functions of `place` together whose names are not known. Foreign text.
    pub function: Option<String>,
    /// Name of its file, or in brackets why there is none. Foreign text.
    pub place: String,
}

/// The charged function of every call stack of a recording.
#[derive(Debug)]
pub struct Attribution<'a> {
    stacks: &'a CallStacks<'a>,
    /// Number of the function of each path.
    of_path: Vec<usize>,
    functions: Vec<AttributedFunction>,
}

/// Number of the function of rows without a stack.
const NO_STACK: usize = 0;

impl<'a> Attribution<'a> {
    /// Decides for all stacks.
    pub fn new(stacks: &'a CallStacks<'a>) -> Self {
        let none = AttributedFunction { function: None, place: "[no stack]".to_owned() };
        let mut numbers = HashMap::from([(none.clone(), NO_STACK)]);
        let mut functions = vec![none];
        let mut of_path: Vec<usize> = Vec::with_capacity(stacks.len());
        // What is innermost of a frame that answers for itself; frames are shared by many paths.
        let own: Vec<Option<AttributedFunction>> = stacks.frames().iter().map(own).collect();
        for path in 0..stacks.len() {
            let path = path as u32;
            let frame = stacks.frame_number(path) as usize;
            // Callers have smaller numbers.
            let inherited = stacks.caller(path).and_then(|caller| of_path.get(caller as usize)).copied();
            let charged = match (own.get(frame).and_then(Option::as_ref), inherited) {
                (None, Some(number)) => {
                    of_path.push(number);
                    continue;
                }
                (Some(own), _) => own.clone(),
                (None, None) => stacks.frames().get(frame).map_or_else(|| functions[NO_STACK].clone(), outermost),
            };
            let number = *numbers.entry(charged).or_insert_with_key(|charged| {
                functions.push(charged.clone());
                functions.len() - 1
            });
            of_path.push(number);
        }
        Self { stacks, of_path, functions }
    }

    /// Adds up `rows` (`stack` and weight) by charged function, those without weight left out. `None` where there are rows and none
    /// has a stack.
    pub fn add_up(&self, rows: impl Iterator<Item = (Option<u32>, u64)>) -> Option<Vec<(&AttributedFunction, u64)>> {
        let mut sums = vec![0u64; self.functions.len()];
        let (mut is_any, mut has_stacks) = (false, false);
        for (stack, weight) in rows {
            let path = self.stacks.path(stack);
            is_any = true;
            has_stacks |= path.is_some();
            let number = path.map_or(NO_STACK, |path| self.of_path.get(path as usize).copied().unwrap_or(NO_STACK));
            sums[number] = sums[number].saturating_add(weight);
        }
        let sums = self.functions.iter().zip(sums).filter(|(_, sum)| *sum > 0);
        (has_stacks || !is_any).then(|| sums.collect())
    }
}

/// The innermost function of a frame that does not work for others; `None` where its caller answers.
fn own(frame: &CodeFrame<'_>) -> Option<AttributedFunction> {
    match frame.place {
        FramePlace::Kernel(_) | FramePlace::Vdso(_) => return None,
        FramePlace::Truncated(_) | FramePlace::Unknown => {
            return Some(AttributedFunction { function: None, place: frame.place.name().into_owned() });
        }
        FramePlace::File { .. } | FramePlace::Generated(_) => {}
    }
    let place = frame.place.name().into_owned();
    let name = |named: bool, name: &str| if named { name.to_owned() } else { String::new() };
    let mut functions = frame.functions.iter().map(|function| name(function.named, &function.name));
    // A file of which only the name is known stands in brackets.
    let file = place.trim_start_matches('[').trim_end_matches(']');
    let own = functions.find(|name| !works_for_others(name, file))?;
    Some(AttributedFunction { function: (!own.is_empty()).then_some(own), place })
}

/// What stands for a stack in which everything works for others.
fn outermost(frame: &CodeFrame<'_>) -> AttributedFunction {
    let named = frame.functions.last().filter(|function| function.named);
    let is_kernel = matches!(frame.place, FramePlace::Kernel(_));
    let function = named.filter(|_| !is_kernel).map(|function| function.name.to_string());
    AttributedFunction { function, place: frame.place.name().into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Tables;

    /// 0 main, 1 its `copy_frame` (with `reserve` of a vector inlined), 2 memcpy called there, 3 a fault of it, 5 the kernel in
    /// the `free` of main, 6 a thread of the kernel, 7 only the C library, 9 memcpy behind a truncation, 10 code without a name,
    /// 11 memcpy called there, 12 what the vdso did for main, 13 a library without a path called by `copy_frame`.
    const STACKS: &str = r#"
== stacks
id parent frame
0  -      0
1  0      1
2  1      2
3  2      3
4  0      4
5  4      3
6  -      3
7  -      2
8  -      5
9  8      2
10 0      6
11 10     2
12 0      7
13 1      8
== frames
id kind      dev ino offset address
0  file      1   42  0x10   -
1  file      1   42  0x20   -
2  file      1   43  0x30   -
3  kernel    -   -   -      99
4  file      1   43  0x40   -
5  truncated -   -   -      -
6  file      1   44  0x50   -
7  vdso      -   -   0x60   -
8  file      1   45  0x70   -
== symbols
frame level function
0     0     main
1     0     "std::vector<char>::reserve(unsigned long)"
1     1     copy_frame
2     0     memcpy
3     0     clear_page
4     0     free
== files
dev ino path
1   42  /usr/bin/video
1   43  /usr/lib/libc.so.6
1   44  /usr/lib/libstripped.so
1   45  "[libc.so.6]"
"#;

    #[test]
    fn what_libraries_and_the_kernel_do_is_charged_to_the_function_of_the_program_that_wanted_it() {
        let tables = Tables::from_text(STACKS).unwrap();
        let stacks = CallStacks::new(&tables);
        let charged = Attribution::new(&stacks);
        let of = |stack: Option<u32>| {
            let sums = charged.add_up([(stack, 7), (Some(0), 0)].into_iter()).unwrap();
            assert_eq!((sums.len(), sums[0].1), (1, 7));
            (sums[0].0.function.as_deref().unwrap_or("-").to_owned(), sums[0].0.place.clone())
        };
        let is = |stack: u32, function: &str, place: &str| {
            assert_eq!(of(Some(stack)), (function.to_owned(), place.to_owned()), "stack {stack}");
        };
        is(0, "main", "video");
        (1..4).for_each(|stack| is(stack, "copy_frame", "video"));
        (4..6).for_each(|stack| is(stack, "main", "video"));
        is(6, "-", "[kernel]");
        is(7, "memcpy", "libc.so.6");
        (8..10).for_each(|stack| is(stack, "-", "[truncated]"));
        (10..12).for_each(|stack| is(stack, "-", "libstripped.so"));
        is(12, "main", "video");
        is(13, "copy_frame", "video");
        is(999, "-", "[unknown]");
        assert_eq!(of(None), ("-".to_owned(), "[no stack]".to_owned()));
    }

    #[test]
    fn functions_add_up_to_the_rows_and_without_a_stack_there_is_no_answer() {
        let tables = Tables::from_text(STACKS).unwrap();
        let stacks = CallStacks::new(&tables);
        let charged = Attribution::new(&stacks);
        let rows = (0..13u32).map(|stack| (Some(stack), u64::from(stack) + 1)).chain([(None, 100)]);
        let sum: u64 = charged.add_up(rows).unwrap().iter().map(|(_, weight)| weight).sum();
        assert_eq!(sum, 191);
        assert_eq!(charged.add_up([(None, 1)].into_iter()), None);
        assert_eq!(charged.add_up(std::iter::empty()), Some(Vec::new()));
    }
}
