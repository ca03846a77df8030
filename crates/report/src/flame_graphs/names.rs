//! What the nodes of flame graphs are called, each name once.
//!
//! Owns the numbers of frames, and their columns in a page. A function is its name and the name of its file, so two
//! places in it are one frame; code without names is one frame for each file, because every address would be one of
//! its own otherwise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::stacks::call_stacks::{CallStacks, CodeFrame, FramePlace, Function, StackPath, file_name};
use std::borrow::Cow;
use std::collections::HashMap;

/// Columns of one length: an entry is a function in a file, or what stands for one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlameFrames {
    /// Its name; the name of a process; `[libfoo.so]` for code of which no name is known. Long names lack their middle.
    pub name: Vec<String>,
    /// Index into `places`.
    pub place: Vec<u32>,
}

/// Where code is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FlamePlace {
    /// Name of the file; empty for what is in none.
    pub name: String,
    /// What it is.
    pub kind: PlaceKind,
}

/// Kind of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// All rows: the root of a tree.
    Whole,
    /// What is too small to be shown, together.
    Folded,
    /// No code: the processes of one program.
    Process,
    /// A mapped file.
    File,
    /// Code that the kernel maps into processes.
    Vdso,
    /// Code that was generated at run time.
    Generated,
    /// The kernel.
    Kernel,
    /// Not known: no stack, a damaged one, or one that ends here because it could not be followed.
    Unknown,
}

/// The frame of what is folded away.
pub(super) const OTHER: u32 = 1;
/// The root.
pub(super) const WHOLE: u32 = 0;
const NO_STACK: u32 = 2;

/// Characters of a name in the page: names of C++ templates can have thousands.
const LONGEST_NAME: usize = 240;

/// Frames by number.
pub(super) struct Names {
    frames: Vec<(String, FlamePlace)>,
    numbers: HashMap<(String, FlamePlace), u32>,
}

/// The stacks of a recording, whose frames have numbers.
pub(super) struct NamedStacks<'s, 'a> {
    stacks: &'s CallStacks<'a>,
    /// The functions of each frame, outermost first.
    of_frame: Vec<Vec<u32>>,
}

impl NamedStacks<'_, '_> {
    /// Their path of a row's column `stack`.
    pub(super) fn path(&self, stack: Option<u32>) -> Option<StackPath> {
        self.stacks.path(stack)
    }

    /// The frames of a path, outermost first; of none, the one that says so.
    pub(super) fn frames(&self, path: Option<StackPath>) -> Vec<u32> {
        let Some(path) = path else { return vec![NO_STACK] };
        let frames = self.stacks.outermost_first(path);
        frames.iter().filter_map(|frame| self.of_frame.get(*frame as usize)).flatten().copied().collect()
    }
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self { frames: Vec::new(), numbers: HashMap::new() };
        let place = |kind| FlamePlace { name: String::new(), kind };
        names.number("all", place(PlaceKind::Whole));
        names.number("(other)", place(PlaceKind::Folded));
        names.number("[no stack]", place(PlaceKind::Unknown));
        names
    }
}

impl Names {
    /// Gives the frames of a recording their numbers; a function of another recording keeps its own.
    pub(super) fn of_stacks<'s, 'a>(&mut self, stacks: &'s CallStacks<'a>) -> NamedStacks<'s, 'a> {
        let functions = |frame: &CodeFrame<'_>| -> Vec<u32> {
            let place = place_of(frame);
            let outermost_first = frame.functions.iter().rev();
            outermost_first.map(|function| self.number(&name_of(function, &place), place.clone())).collect()
        };
        NamedStacks { stacks, of_frame: stacks.frames().iter().map(functions).collect() }
    }

    fn number(&mut self, name: &str, place: FlamePlace) -> u32 {
        let key = (shortened(name).into_owned(), place);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.frames.len() as u32;
        self.frames.push(key.clone());
        self.numbers.insert(key, number);
        number
    }

    /// The frame of all processes of this name.
    pub(super) fn process(&mut self, name: &str) -> u32 {
        self.number(name, FlamePlace { name: String::new(), kind: PlaceKind::Process })
    }

    /// The frames that the columns of trees name, which name them by their new numbers from now on.
    pub(super) fn used<'t>(self, columns: impl Iterator<Item = &'t mut Vec<u32>>) -> (FlameFrames, Vec<FlamePlace>) {
        let mut frames = FlameFrames::default();
        let mut places: Vec<FlamePlace> = Vec::new();
        let mut place_numbers: HashMap<&FlamePlace, u32> = HashMap::new();
        let mut new_numbers: HashMap<u32, u32> = HashMap::new();
        for number in columns.flatten() {
            *number = *new_numbers.entry(*number).or_insert_with(|| {
                let (name, place) = &self.frames[*number as usize];
                let place = *place_numbers.entry(place).or_insert_with(|| {
                    places.push(place.clone());
                    places.len() as u32 - 1
                });
                frames.name.push(name.clone());
                frames.place.push(place);
                frames.name.len() as u32 - 1
            });
        }
        (frames, places)
    }
}

fn place_of(frame: &CodeFrame<'_>) -> FlamePlace {
    let (name, kind) = match frame.place {
        FramePlace::File { key, file, .. } => (file_name(key, file), PlaceKind::File),
        FramePlace::Vdso(_) => (Cow::Borrowed("[vdso]"), PlaceKind::Vdso),
        FramePlace::Generated(_) => (Cow::Borrowed("[generated]"), PlaceKind::Generated),
        FramePlace::Kernel(_) => (Cow::Borrowed("[kernel]"), PlaceKind::Kernel),
        FramePlace::Truncated(_) | FramePlace::Unknown => (Cow::Borrowed(""), PlaceKind::Unknown),
    };
    FlamePlace { name: shortened(&name).into_owned(), kind }
}

fn name_of<'f>(function: &'f Function<'_>, place: &FlamePlace) -> Cow<'f, str> {
    match place.kind {
        PlaceKind::File if !function.named => Cow::Owned(format!("[{}]", place.name)),
        PlaceKind::Vdso | PlaceKind::Generated | PlaceKind::Kernel if !function.named => Cow::Owned(place.name.clone()),
        _ => Cow::Borrowed(&function.name),
    }
}

/// A name whose middle is left out where it is too long: both ends of a template's name tell it from others.
fn shortened(name: &str) -> Cow<'_, str> {
    let length = name.chars().count();
    if length <= LONGEST_NAME {
        return Cow::Borrowed(name);
    }
    let begin = LONGEST_NAME * 2 / 3;
    let end = LONGEST_NAME - 1 - begin;
    let head = name.chars().take(begin);
    Cow::Owned(head.chain(std::iter::once('…')).chain(name.chars().skip(length - end)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_ends_and_a_short_one_all() {
        let long = format!("begin{}end", "é".repeat(10_000));
        let short = shortened(&long);
        assert_eq!(short.chars().count(), LONGEST_NAME);
        assert!(short.starts_with("begin") && short.ends_with("end") && short.contains('…'));
        assert_eq!(shortened("main"), "main");
        let whole = "x".repeat(LONGEST_NAME);
        assert_eq!(shortened(&whole), whole);
    }
}
