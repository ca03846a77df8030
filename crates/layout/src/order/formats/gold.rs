//! gold: names of sections, one a line.

use super::format::{Format, OrderedFunction, plain};
use super::sections::sections_of;

pub(super) const FORMAT: Format = Format {
    name: "gold",
    usage: "compile with -ffunction-sections; link with -fuse-ld=gold -Wl,--section-ordering-file=ORDER",
    flag: "-Wl,--section-ordering-file=",
    write,
};

fn write(functions: &[OrderedFunction]) -> String {
    plain(functions).flat_map(sections_of).flat_map(|section| [section, "\n".to_owned()]).collect()
}
