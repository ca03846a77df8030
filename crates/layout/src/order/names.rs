//! Names that a rebuild changes: what compilers append, and how an order finds its functions again.

use std::collections::{HashMap, HashSet};

/// A name without what differs between two builds of the same source: the module of ThinLTO (`.llvm.123`), numbers of GCC's copies
/// (`.part.0`, `.constprop.1`, `.isra.2`, `.lto_priv.3`), and the hash of Rust's legacy mangling (`17h` and 16 hexadecimal digits).
///
/// `.cold` stays: it is another part of the function, in another section.
pub fn canonical(name: &str) -> String {
    let cold = name.ends_with(".cold");
    let mut rest = name.strip_suffix(".cold").unwrap_or(name);
    while let Some((before, last)) = rest.rsplit_once('.') {
        if !last.bytes().all(|byte| byte.is_ascii_digit()) || last.is_empty() {
            break;
        }
        let Some((head, kind)) = before.rsplit_once('.') else { break };
        match kind {
            "llvm" | "lto_priv" | "part" | "constprop" | "isra" | "cold" => rest = head,
            _ => break,
        }
        if kind == "cold" {
            return canonical(&format!("{rest}.cold"));
        }
    }
    let rest = without_rust_hash(rest);
    if cold { format!("{rest}.cold") } else { rest.into_owned() }
}

/// `_ZN4main3foo17h0123456789abcdefE` without the hash.
fn without_rust_hash(name: &str) -> std::borrow::Cow<'_, str> {
    const LENGTH: usize = "17h0123456789abcdefE".len();
    let hashed = name.len().checked_sub(LENGTH).and_then(|at| Some((name.get(..at)?, name.get(at..)?)));
    if let Some((before, hash)) = hashed
        && before.starts_with("_ZN")
        && hash.strip_prefix("17h").and_then(|rest| rest.strip_suffix('E')).is_some_and(is_hexadecimal)
    {
        return format!("{before}E").into();
    }
    name.into()
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
}

/// Finds names of another build of the same program.
#[derive(Debug)]
pub struct Rebuilt<'a> {
    exact: HashSet<&'a str>,
    /// None where several functions have it.
    by_canonical: HashMap<String, Option<&'a str>>,
}

impl<'a> Rebuilt<'a> {
    /// A build with functions of these names.
    pub fn new(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut exact = HashSet::new();
        let mut by_canonical: HashMap<String, Option<&'a str>> = HashMap::new();
        for name in names {
            if exact.insert(name) {
                by_canonical.entry(canonical(name)).and_modify(|found| *found = None).or_insert(Some(name));
            }
        }
        Self { exact, by_canonical }
    }

    /// What a function is called in this build: the same, or the only one that differs in what builds change.
    pub fn find(&self, name: &str) -> Option<&'a str> {
        match self.exact.get(name) {
            Some(same) => Some(same),
            None => self.by_canonical.get(&canonical(name)).copied().flatten(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_builds_change_is_taken_off_and_nothing_else() {
        for (name, expected) in [
            ("f.llvm.1234567", "f"),
            ("f.part.0", "f"),
            ("f.constprop.0.isra.3", "f"),
            ("f.part.0.cold", "f.cold"),
            ("f.cold", "f.cold"),
            ("f.cold.1", "f.cold"),
            ("f.resolver", "f.resolver"),
            ("f.42", "f.42"),
            ("_ZN4main3foo17h0123456789abcdefE", "_ZN4main3fooE"),
            ("_ZN4main3foo17h0123456789abcdefE.llvm.77", "_ZN4main3fooE"),
            ("_ZN4main3foo17h0123456789abcdeE", "_ZN4main3foo17h0123456789abcdeE"),
            (".llvm.1", ""),
            ("", ""),
        ] {
            assert_eq!(canonical(name), expected, "{name}");
        }
    }

    #[test]
    fn a_function_is_found_again_unless_several_could_be_it() {
        let rebuilt = Rebuilt::new(["f", "g.llvm.9", "h.llvm.1", "h.llvm.2", "_ZN1x17haaaaaaaaaaaaaaaaE"]);
        assert_eq!(rebuilt.find("f"), Some("f"));
        assert_eq!(rebuilt.find("g.llvm.4"), Some("g.llvm.9"));
        assert_eq!(rebuilt.find("h.llvm.3"), None);
        assert_eq!(rebuilt.find("h.llvm.2"), Some("h.llvm.2"));
        assert_eq!(rebuilt.find("_ZN1x17hbbbbbbbbbbbbbbbbE"), Some("_ZN1x17haaaaaaaaaaaaaaaaE"));
        assert_eq!(rebuilt.find("gone"), None);
    }
}
