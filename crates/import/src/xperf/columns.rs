//! Columns by name, as the begin of a dump or a table lists them.

use std::collections::HashMap;

/// Events that are listed at most; a dump lists some 200.
const MOST_EVENTS: usize = 4096;

/// Columns of each event.
#[derive(Debug, Default)]
pub struct Columns(HashMap<Box<str>, List>);

/// Columns of one event, behind its name.
#[derive(Debug)]
pub struct List {
    names: Vec<Box<str>>,
    /// The column that may hold commas: the last with the name of a function, or the last one.
    free: Option<usize>,
}

/// A line with its columns.
pub struct Row<'a> {
    list: &'a List,
    values: Vec<&'a str>,
}

impl Columns {
    /// Name and columns of an event, for a line that lists them: its second column is called TimeStamp.
    pub fn of_header(line: &str) -> Option<(&str, Vec<&str>)> {
        let mut words = line.split(',').map(str::trim);
        let name = words.next().filter(|name| !name.is_empty())?;
        let list: Vec<&str> = words.collect();
        (list.first() == Some(&"TimeStamp")).then_some((name, list))
    }

    /// An event has these columns.
    pub fn add(&mut self, name: &str, list: Vec<&str>) {
        if self.0.len() < MOST_EVENTS {
            let free = list.iter().rposition(|name| name.ends_with("Function"));
            let free = free.or(list.len().checked_sub(1));
            self.0.insert(name.into(), List::new(list, free));
        }
    }

    /// The columns of an event.
    pub fn of(&self, name: &str) -> Option<&List> {
        self.0.get(name)
    }
}

impl List {
    /// Columns of these names; commas that nothing quotes are in the value of the one with number `free`.
    pub fn new(names: Vec<&str>, free: Option<usize>) -> Self {
        Self { names: names.into_iter().map(Box::from).collect(), free }
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// The fields of `line`, the name of the event first, as columns. Null where there are too few.
    pub fn row<'a>(&'a self, line: &'a str, fields: &[&'a str]) -> Option<Row<'a>> {
        self.values(line, fields.get(1..)?.to_vec())
    }

    /// The fields of `line` as columns. Null where there are too few.
    pub fn values<'a>(&'a self, line: &'a str, mut values: Vec<&'a str>) -> Option<Row<'a>> {
        let surplus = values.len().saturating_sub(self.names.len());
        if let Some(free) = self.free.filter(|_| surplus > 0) {
            let place = |piece: &str| (piece.as_ptr() as usize).checked_sub(line.as_ptr() as usize);
            let (first, last) = (values[free], values[free + surplus]);
            let whole = line.get(place(first)?..place(last)? + last.len())?;
            values.splice(free..=free + surplus, [whole]);
        }
        // xperf leaves out columns at the end that are empty.
        (values.len() >= self.names.len().min(3)).then_some(Row { list: self, values })
    }
}

impl<'a> Row<'a> {
    /// The text of a column; null where there is none.
    pub fn text(&self, column: &str) -> Option<&'a str> {
        let at = self.list.names.iter().position(|name| **name == *column)?;
        self.values.get(at).copied()
    }

    /// The number of a column.
    pub fn number(&self, column: &str) -> Option<u64> {
        crate::moment::number(self.text(column)?)
    }

    /// The same, as an id.
    pub fn id(&self, column: &str) -> Option<u32> {
        u32::try_from(self.number(column)?).ok()
    }

    /// Name and id of `chrome.exe (1234)`. The id of the idle process is 0; of one that is not known, -1.
    pub fn process(&self, column: &str) -> Option<(&'a str, u32)> {
        let text = self.text(column)?.trim();
        let (name, id) = text.strip_suffix(')')?.rsplit_once('(')?;
        Some((name.trim(), id.trim().parse().unwrap_or(0)))
    }
}

/// The fields of a line; commas in quotes end none, and the quotes are left out.
pub fn split(line: &str) -> Vec<&str> {
    split_by(line, b',')
}

/// The same with another byte between fields.
pub fn split_by(line: &str, separator: u8) -> Vec<&str> {
    let (mut fields, mut from, mut in_quotes) = (Vec::new(), 0, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => in_quotes = !in_quotes,
            _ if byte == separator && !in_quotes => {
                fields.push(unquoted(&line[from..at]));
                from = at + 1;
            }
            _ => {}
        }
    }
    fields.push(unquoted(&line[from..]));
    fields
}

fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_and_quotes_keep_commas() {
        let mut columns = Columns::default();
        let (name, list) = Columns::of_header("HardFault,  TimeStamp,  Process Name ( PID), IOSize, FileName").unwrap();
        columns.add(name, list);
        let line = "   HardFault,   8729,   a b.exe ( 39), 0x00001000, \"C:\\a, b\"";
        let fields = split(line);
        let row = columns.of("HardFault").unwrap().row(line, &fields).unwrap();
        assert_eq!((row.number("IOSize"), row.text("FileName")), (Some(4096), Some("C:\\a, b")));
        assert_eq!(row.process("Process Name ( PID)"), Some(("a b.exe", 39)));
        assert_eq!(row.text("Other"), None);
        assert!(columns.of("HardFault").unwrap().row("", &["HardFault", "1"]).is_none());
        assert!(Columns::of_header("HardFault, 8729, a").is_none());
    }

    #[test]
    fn commas_in_the_name_of_a_function_move_no_other_column() {
        let mut columns = Columns::default();
        let (name, list) = Columns::of_header("SampledProfile, TimeStamp, ThreadID, Image!Function, Count").unwrap();
        columns.add(name, list);
        let line = "SampledProfile, 5, 7, a.dll!std::map<int, long, x>::find, 3";
        let fields = split(line);
        let row = columns.of("SampledProfile").unwrap().row(line, &fields).unwrap();
        assert_eq!(
            (row.text("Image!Function"), row.number("Count")),
            (Some("a.dll!std::map<int, long, x>::find"), Some(3))
        );
    }
}
