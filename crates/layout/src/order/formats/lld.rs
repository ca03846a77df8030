//! lld: names of symbols, one a line.

use super::format::{Format, OrderedFunction, lines, plain};

pub(super) const FORMAT: Format = Format {
    name: "lld",
    usage: "compile with -ffunction-sections; link with -fuse-ld=lld -Wl,--symbol-ordering-file=ORDER",
    flag: "-Wl,--symbol-ordering-file=",
    write,
};

fn write(functions: &[OrderedFunction]) -> String {
    lines(plain(functions))
}
