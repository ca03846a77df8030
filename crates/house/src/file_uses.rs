//! Which source file of a crate uses an item of which other.
//!
//! Owns the answer; [`modules`] reads the tree of modules and finds the file that declares a path, [`mentions`] takes the
//! paths from syntax. What may follow from it is for [`crate::circles`].
//!
//! A use is a path that leads to an item of another file: in an import, an expression, a type, a pattern, a macro's
//! arguments, or a text inside an attribute (`with = "crate::bytes"`). Re-exports are followed to the declaration. None
//! is the declaration of a module, nor a re-export by an ancestor, which is how a folder shows what is in it. What only
//! tests compile does not count.
//!
//! Not seen: which methods a value has, for that needs types; names that a macro makes up.

mod mentions;
mod modules;

pub use modules::Sources;

use mentions::Mention;
use modules::{Target, Tree};
use std::collections::BTreeMap;

/// Of each file that uses others, these, and a path that it says so with.
pub type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// Files that a crate begins with, each with a tree of modules of its own.
fn is_root(path: &str) -> bool {
    matches!(path, "lib.rs" | "main.rs") || path.strip_prefix("bin/").is_some_and(|name| !name.contains('/'))
}

/// The uses between the files of a crate.
///
/// # Errors
/// A file is no Rust, or declares a module that has no file; with its name.
pub fn uses(sources: &Sources) -> Result<Uses, String> {
    let mut tree = Tree::default();
    for root in sources.keys().filter(|path| is_root(path)) {
        tree.read_crate(root, sources)?;
    }
    let mut found = Uses::new();
    for (at, module) in tree.modules() {
        for mention in &module.mentions {
            let Some(file) = used_file(&tree, at, mention) else { continue };
            if file != module.file {
                let used = found.entry(module.file.clone()).or_default();
                used.entry(file.to_owned()).or_insert_with(|| mention.path.join("::"));
            }
        }
    }
    Ok(found)
}

/// The file whose item a mention is about.
fn used_file<'a>(tree: &'a Tree, at: usize, mention: &Mention) -> Option<&'a str> {
    let file = match tree.resolve(at, mention) {
        Target::Item(declared_in) => declared_in,
        // The name of a module alone uses nothing of it.
        Target::Module(module) if mention.uses_module => module,
        Target::Module(_) | Target::Elsewhere => return None,
    };
    if mention.re_exports && tree.is_within(file, at) {
        return None;
    }
    Some(&tree.module(file).file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let uses = uses(&sources).unwrap();
        uses.iter().flat_map(|(from, to)| to.keys().map(move |to| format!("{from} -> {to}"))).collect()
    }

    #[test]
    fn imports_and_paths_lead_to_the_file_that_declares() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; fn f() -> super::c::C { todo!() }"),
            ("b.rs", "pub struct B;"),
            ("c.rs", "pub struct C;"),
        ];
        assert_eq!(used(&files), ["a.rs -> b.rs", "a.rs -> c.rs"]);
    }

    #[test]
    fn a_re_export_is_followed_and_is_no_use_by_the_folder_that_shows_it() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A;"),
            ("a/mod.rs", "mod inner; pub use inner::A; pub(crate) use inner::twice as two;"),
            ("a/inner.rs", "pub struct A; pub fn twice() {}"),
            ("b.rs", "use crate::A; use crate::a; fn f() { a::two() }"),
        ];
        assert_eq!(used(&files), ["b.rs -> a/inner.rs"]);
    }

    #[test]
    fn a_parent_uses_what_it_shows_when_its_own_code_names_it() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a.rs", "mod inner; pub use inner::Inner; pub struct A(Inner); pub struct B;"),
            ("a/inner.rs", "pub struct Inner { b: Option<Box<super::B>> }"),
        ];
        assert_eq!(used(&files), ["a.rs -> a/inner.rs", "a/inner.rs -> a.rs"]);
    }

    #[test]
    fn a_re_export_by_a_file_that_is_no_ancestor_is_a_use() {
        let files = [("lib.rs", "mod a; mod b;"), ("a.rs", "pub use crate::b::B;"), ("b.rs", "pub struct B;")];
        assert_eq!(used(&files), ["a.rs -> b.rs"]);
    }

    #[test]
    fn macros_globs_and_attributes_are_read() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d; macro_rules! own { () => {} } mod e;"),
            ("a.rs", "use crate::b::*; fn f() { println!(\"{}\", crate::c::seven()) }"),
            ("b.rs", "#[derive(Serialize)] struct B { #[serde(with = \"crate::d::hex\")] x: u8 }"),
            ("c.rs", "pub fn seven() {}"),
            ("d.rs", "pub mod hex { pub fn serialize() {} }"),
            ("e.rs", "own!(); fn f(x: X) { log!(x.f, seven: 1) }"),
        ];
        assert_eq!(used(&files), ["a.rs -> b.rs", "a.rs -> c.rs", "b.rs -> d.rs", "e.rs -> lib.rs"]);
    }

    #[test]
    fn items_that_a_macro_declares_are_found() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::{Row, Made};"),
            ("b.rs", "table! { /// A row.\n pub struct Row { x: u8 } }\ninclude!(\"made.rs\");"),
        ];
        assert_eq!(used(&files), ["a.rs -> b.rs"]);
    }

    #[test]
    fn what_only_tests_compile_does_not_count() {
        let files = [
            ("lib.rs", "mod a; #[cfg(test)] mod tests; #[cfg(not(test))] mod b;"),
            ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::B; } #[test] fn t() { crate::B; }"),
            ("b.rs", "use crate::a::A; pub struct B; pub use crate::a::A as C;"),
        ];
        assert_eq!(used(&files), ["b.rs -> a.rs"]);
    }

    #[test]
    fn a_module_may_have_a_file_for_each_machine() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a.rs", "#[cfg_attr(x, path = \"x86.rs\")] #[cfg_attr(y, path = \"arm.rs\")] mod m; fn f() { m::f() }"),
            ("arm.rs", "use crate::a::f;"),
            ("x86.rs", "pub fn f() {}"),
        ];
        assert_eq!(used(&files), ["a.rs -> x86.rs", "arm.rs -> a.rs"]);
    }

    #[test]
    fn names_of_other_crates_and_of_the_file_itself_are_no_use() {
        let files = [
            ("lib.rs", "mod a; pub struct A;"),
            ("a.rs", "use serde::A; use ::lib::B; struct C; impl C { fn f(&self) { Self::g(); C; self.h } }"),
        ];
        assert_eq!(used(&files), Vec::<String>::new());
    }

    #[test]
    fn a_module_without_a_file_is_an_error_and_so_is_no_rust() {
        let sources = |text: &str| [("lib.rs".to_owned(), text.to_owned())].into();
        assert_eq!(uses(&sources("mod gone;")).unwrap_err(), "lib.rs declares `gone`, which has no file");
        assert!(uses(&sources("fn {")).unwrap_err().starts_with("lib.rs: "));
    }
}
