//! What a form declares, the functions that it writes, and their names in lines, which most forms are made of.

/// A function in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedFunction {
    /// Its name as the linker knows it.
    pub name: String,
    /// Bytes.
    pub size: u64,
}

/// A form of an order.
#[derive(Debug)]
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// How the file is used.
    pub usage: &'static str,
    /// The flag of a link, up to the path of the file; empty for what is no linker.
    pub flag: &'static str,
    /// The file.
    pub write: fn(&[OrderedFunction]) -> String,
}

impl Format {
    /// The flag of a link that uses the file at `path`.
    pub fn flag_of(&self, path: &str) -> String {
        format!("{}{path}", self.flag)
    }
}

/// Names that can stand in a line of their own.
pub(super) fn plain(functions: &[OrderedFunction]) -> impl Iterator<Item = &str> {
    let names = functions.iter().map(|function| function.name.as_str());
    names.filter(|name| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control()))
}

/// A line for each.
pub(super) fn lines<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.flat_map(|name| [name, "\n"]).collect()
}
