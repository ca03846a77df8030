//! How an order is given to a linker: one file a form.

mod bfd;
mod bolt;
mod format;
mod gold;
mod lld;
mod sections;

pub use format::{Format, OrderedFunction};

/// All of them.
pub const FORMATS: &[Format] = &[lld::FORMAT, gold::FORMAT, bfd::FORMAT, bolt::FORMAT];

/// The longest name that is read.
const MAX_NAME: usize = 16 << 10;
/// Names that are read at most.
const MAX_NAMES: usize = 8 << 20;

/// The names of functions in an order of any form, in order and each once. Lines that name none are passed over.
pub fn read_names(text: &str) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let named = text.lines().take(MAX_NAMES).filter_map(|line| {
        let line = line.trim();
        if line.len() > MAX_NAME || line.is_empty() || line.starts_with('#') || line.starts_with("/*") {
            return None;
        }
        sections::name_in(line)
    });
    named.filter(|name| seen.insert(name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_again_with_its_names_in_order() {
        let names = ["main", "f.cold", "_ZN1xC2Ev", "g.part.0", "g.part.0.cold"];
        let functions: Vec<_> =
            names.iter().map(|name| OrderedFunction { name: (*name).to_owned(), size: 16 }).collect();
        for format in FORMATS {
            let text = (format.write)(&functions);
            // BOLT splits functions itself.
            let kept = names.iter().filter(|name| format.name != "bolt" || !name.ends_with(".cold"));
            assert_eq!(read_names(&text), kept.copied().collect::<Vec<_>>(), "{}: {text}", format.name);
        }
    }

    #[test]
    fn a_name_that_would_be_another_line_is_in_none() {
        let hostile = [OrderedFunction { name: "a\nINPUT(x)".to_owned(), size: 1 }];
        for format in FORMATS {
            assert!(!(format.write)(&hostile).contains("INPUT"), "{}", format.name);
        }
    }

    #[test]
    fn other_lines_are_passed_over() {
        assert_eq!(read_names("# a comment\n\n  f  \nf\n{\n*(.text.g)\n"), ["f", "g"]);
    }
}
