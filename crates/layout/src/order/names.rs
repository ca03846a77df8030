//! Names that a rebuild changes: what compilers append, and how an order finds its functions again.

use std::collections::{HashMap, HashSet};

/// A name without what differs between two builds of the same source: the module of ThinLTO (`.llvm.123`), numbers of GCC's copies
/// (`.part.0`, `.constprop.1`, `.isra.2`, `.lto_priv.3`), and the hash of Rust's legacy mangling (`17h` and 16 hexadecimal digits).
///
/// `.cold` stays: it is another part of the function, in another section.
pub fn canonical(name: &str) -> String {
    let (mut rest, mut is_cold) = (name, false);
    loop {
        if let Some(head) = rest.strip_suffix(".cold").or_else(|| numbered(rest, "cold")) {
            (rest, is_cold) = (head, true);
        } else if let Some(head) = COPIES.iter().find_map(|kind| numbered(rest, kind)) {
            rest = head;
        } else {
            break;
        }
    }
    let without_hash = without_rust_hash(rest);
    if is_cold { format!("{without_hash}.cold") } else { without_hash }
}

/// What compilers call the copies that they number.
const COPIES: [&str; 5] = ["llvm", "lto_priv", "part", "constprop", "isra"];

/// A name without `.KIND.NUMBER` at its end.
fn numbered<'a>(name: &'a str, kind: &str) -> Option<&'a str> {
    let (before, number) = name.rsplit_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    before.strip_suffix(kind)?.strip_suffix('.').filter(|_| is_number)
}

/// `_ZN4main3foo17h0123456789abcdefE` without the hash.
fn without_rust_hash(name: &str) -> String {
    const LENGTH: usize = "17h0123456789abcdefE".len();
    let mut name = name.to_owned();
    while name.starts_with("_ZN")
        && let Some(at) = name.len().checked_sub(LENGTH)
        && let Some(hash) = name.get(at..)
        && hash.strip_prefix("17h").and_then(|rest| rest.strip_suffix('E')).is_some_and(is_hexadecimal)
    {
        name.truncate(at);
        name.push('E');
    }
    name
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
            ("f.cold.0.cold.part.0", "f.cold"),
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
