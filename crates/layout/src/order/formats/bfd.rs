//! GNU ld: a script that is read beside the default one, which works with every version. Functions stand in an output section of their
//! own, before `.text`.

use super::format::{Format, OrderedFunction, plain};
use super::sections::sections_of;

pub(super) const FORMAT: Format = Format {
    name: "bfd",
    usage: "compile with -ffunction-sections; link with -fuse-ld=bfd -Wl,-T,ORDER",
    flag: "-Wl,-T,",
    write,
};

fn write(functions: &[OrderedFunction]) -> String {
    let mut text = "SECTIONS\n{\n.text.ordered :\n{\n".to_owned();
    // What a script takes for syntax or a pattern is in no function's name that a compiler makes.
    let safe = plain(functions).filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "_.$".contains(c)));
    for section in safe.flat_map(sections_of) {
        text.push_str(&format!("*({section})\n"));
    }
    text.push_str("}\n}\nINSERT BEFORE .text;\n");
    text
}
