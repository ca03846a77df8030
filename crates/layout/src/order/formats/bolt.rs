//! BOLT: names of functions, one a line. Of a name that several files have for a local function, BOLT takes all.

use super::format::{Format, OrderedFunction, lines, plain};

pub(super) const FORMAT: Format = Format {
    name: "bolt",
    usage: "link with -Wl,--emit-relocs; llvm-bolt BINARY -o NEW --reorder-functions=user --function-order=ORDER",
    flag: "",
    write,
};

fn write(functions: &[OrderedFunction]) -> String {
    lines(plain(functions).filter(|name| !name.ends_with(".cold")))
}
