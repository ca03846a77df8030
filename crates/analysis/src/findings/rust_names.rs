//! Names of Rust's own library, as they are demangled from its v0 mangling (RFC 2603) and from the older one.
//!
//! `core::slice::sort` begins with the name of its crate; functions of `impl` blocks do not: `<[u8]>::copy_from_slice`,
//! `<alloc::vec::Vec<u8>>::reserve`, `<&str as core::fmt::Display>::fmt`. Which crate they are of follows from the rule that an `impl` is
//! in the crate of its type or of its trait (the reference, "Trait implementation coherence").

/// The crates that come with the compiler, which programs link.
const CRATES: [&str; 3] = ["core", "alloc", "std"];

/// Types with a name of one word that have functions in the library.
const PRIMITIVES: [&str; 19] = [
    "str", "bool", "char", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
    "f16", "f32", "f64", "f128",
];

/// Whether it is a function of an `impl` block in Rust's own library. Only for names that begin with `<`.
pub(super) fn is_of_library(name: &str) -> bool {
    let Some((own, of_trait)) = parts(name) else { return false };
    match of_trait {
        // Slices, references, pointers and tuples have inherent functions in the library alone, whatever they hold.
        None => {
            let is_path = own.contains("::") && is_library_path(own);
            own.starts_with(['[', '&', '*', '(', '!']) || PRIMITIVES.contains(&own) || is_path
        }
        Some(of_trait) => is_library_path(of_trait) && is_library_path(without_references(own)),
    }
}

/// The type of an `impl`, and its trait where there is one.
fn parts(name: &str) -> Option<(&str, Option<&str>)> {
    let inner = name.strip_prefix('<')?;
    let (mut depth, mut before) = (0u32, ' ');
    let mut of_trait = None;
    for (at, letter) in inner.char_indices() {
        match letter {
            '<' | '(' | '[' | '{' => depth += 1,
            // The arrow of a function's type closes nothing.
            '>' if before == '-' => {}
            '>' if depth == 0 => {
                let own = inner.get(..of_trait.unwrap_or(at))?;
                return Some((own.trim_end(), of_trait.and_then(|from: usize| inner.get(from + AS.len()..at))));
            }
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && of_trait.is_none() && inner.get(at..)?.starts_with(AS) => of_trait = Some(at),
            _ => {}
        }
        before = letter;
    }
    None
}

const AS: &str = " as ";

/// References are of the crate of what they refer to.
fn without_references(mut own: &str) -> &str {
    while let Some(rest) =
        own.strip_prefix('&').or_else(|| own.strip_prefix("mut ")).or_else(|| own.strip_prefix("dyn "))
    {
        own = rest;
    }
    own
}

/// Whether a type or trait is of the library: by its path, or as one without a path (`u8`, `[u8]`, `*const T`, a parameter).
fn is_library_path(path: &str) -> bool {
    match path.split_once("::") {
        // What a slice, a pointer or a tuple holds says nothing.
        Some((first, _)) if !first.starts_with(['[', '*', '(']) => {
            // v0 can write the crate's hash: `core[9e1b8a]`.
            let name = first.split('[').next().unwrap_or(first);
            CRATES.contains(&name)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impl_blocks_of_the_library_are_distinguished_from_the_programs() {
        for library in [
            "<[u8]>::copy_from_slice",
            "<[game::Frame]>::sort_unstable",
            "<u64>::wrapping_add",
            "<*const u8>::add",
            "<str>::to_owned",
            "<alloc::vec::Vec<game::Frame>>::reserve",
            "<core[9e1b8a]::option::Option<u8>>::map::<u8, fn(u8) -> u8>",
            "<&str as core::fmt::Display>::fmt",
            "<[game::Frame] as core::slice::index::Index<usize>>::index",
            "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop",
            "<&dyn core::ops::function::Fn<(), Output = i32> + core::marker::Sync as core::ops::function::FnOnce<()>>::call_once",
            "<core::iter::adapters::map::Map<core::ops::range::Range<usize>, game::main::{closure#1}> as core::iter::Iterator>::fold",
            "<T as core::convert::Into<U>>::into",
        ] {
            assert!(is_of_library(library), "{library}");
        }
        for own in [
            "<game::Frame>::new",
            "<game::Frame as core::clone::Clone>::clone",
            "<&game::Frame as core::fmt::Debug>::fmt",
            "<alloc::vec::Vec<u8> as game::Encode>::encode",
            "<[u8] as game::Encode>::encode",
            "<corelib::X>::f",
            "<strange>::copy",
            "game::main",
            "core::slice::sort",
            "<unbalanced",
            "<",
            "",
        ] {
            assert!(!is_of_library(own), "{own}");
        }
    }
}
