//! Paths that stand in source text. Owns reading syntax; what a path leads to is for [`super::modules`].

use syn::buffer::{Cursor, TokenBuffer};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, UseTree, Visibility};

/// A path as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Its names, generics left out.
    pub path: Vec<String>,
    /// The name that it gets here, of an import.
    pub bound_as: Option<String>,
    /// An import of everything below it.
    pub is_glob: bool,
    /// Uses the module that it leads to, where that is one: an import of everything, a text in an attribute.
    pub uses_module: bool,
    /// An import that others see (`pub use`).
    pub re_exports: bool,
}

impl Mention {
    /// A path outside imports.
    pub fn of(path: Vec<String>) -> Self {
        Self { path, bound_as: None, is_glob: false, uses_module: false, re_exports: false }
    }
}

/// Whether only tests compile what has these attributes.
pub fn only_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        let syn::Meta::List(list) = &attribute.meta else { return false };
        if !list.path.is_ident("cfg") {
            return false;
        }
        let mut words = Collector::default();
        words.visit_meta_list(list);
        let has = |word: &str| words.mentions.iter().any(|mention| mention.path == [word]);
        has("test") && !has("not")
    })
}

/// The attributes of an item; none of what syntax does not name.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(syn::ItemConst { attrs, .. })
        | Item::Enum(syn::ItemEnum { attrs, .. })
        | Item::ExternCrate(syn::ItemExternCrate { attrs, .. })
        | Item::Fn(syn::ItemFn { attrs, .. })
        | Item::ForeignMod(syn::ItemForeignMod { attrs, .. })
        | Item::Impl(syn::ItemImpl { attrs, .. })
        | Item::Macro(syn::ItemMacro { attrs, .. })
        | Item::Mod(syn::ItemMod { attrs, .. })
        | Item::Static(syn::ItemStatic { attrs, .. })
        | Item::Struct(syn::ItemStruct { attrs, .. })
        | Item::Trait(syn::ItemTrait { attrs, .. })
        | Item::TraitAlias(syn::ItemTraitAlias { attrs, .. })
        | Item::Type(syn::ItemType { attrs, .. })
        | Item::Union(syn::ItemUnion { attrs, .. })
        | Item::Use(syn::ItemUse { attrs, .. }) => attrs,
        _ => &[],
    }
}

/// Every path of an item, those inside its functions included.
pub fn mentions(item: &Item) -> Vec<Mention> {
    let mut collector = Collector::default();
    collector.visit_item(item);
    collector.mentions
}

/// Names of the items that a macro's arguments declare: `table! { pub struct Row { … } }`.
pub fn declared_in(arguments: &syn::Macro) -> Vec<String> {
    const DECLARES: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];
    let tokens = TokenBuffer::new2(arguments.tokens.clone());
    let mut names = Vec::new();
    let mut at = tokens.begin();
    while !at.eof() {
        if let Some((word, rest)) = at.ident()
            && DECLARES.iter().any(|keyword| word == keyword)
            && let Some((name, _)) = rest.ident()
        {
            names.push(name.unraw().to_string());
        }
        at = after(at);
    }
    names
}

/// Behind one token; a group, which stands in brackets, is one.
fn after(at: Cursor<'_>) -> Cursor<'_> {
    let rest = at.any_group().map(|(_, _, _, rest)| rest);
    let rest = rest.or_else(|| at.ident().map(|(_, rest)| rest)).or_else(|| at.punct().map(|(_, rest)| rest));
    let rest = rest.or_else(|| at.literal().map(|(_, rest)| rest)).or_else(|| at.lifetime().map(|(_, rest)| rest));
    rest.unwrap_or_else(Cursor::empty)
}

/// Behind these punctuation marks, where they stand.
fn behind<'a>(at: Cursor<'a>, marks: &str) -> Option<Cursor<'a>> {
    marks.chars().try_fold(at, |at, mark| at.punct().filter(|(found, _)| found.as_char() == mark).map(|(_, rest)| rest))
}

/// Gathers the paths of what it visits.
#[derive(Default)]
struct Collector {
    mentions: Vec<Mention>,
}

impl Collector {
    /// Paths among tokens that no syntax is known for.
    fn scan(&mut self, begin: Cursor<'_>, in_attribute: bool) {
        let mut at = begin;
        // Dots before this token: one makes it a field or a method, two a range.
        let mut dots = 0;
        while !at.eof() {
            let is_member = dots == 1;
            dots = if behind(at, ".").is_some() { dots + 1 } else { 0 };
            if let Some((inside, _, _, rest)) = at.any_group() {
                self.scan(inside, in_attribute);
                at = rest;
            } else if at.ident().is_some() {
                let (path, rest) = path_at(at);
                let is_label = path.len() == 1 && labels_what_follows(rest);
                if !is_member && !is_label {
                    self.mentions.push(Mention::of(path));
                }
                at = rest;
            } else if let Some((literal, rest)) = at.literal().filter(|_| in_attribute) {
                let named = path_in(&literal.to_string()).map(Mention::of);
                self.mentions.extend(named.map(|mention| Mention { uses_module: true, ..mention }));
                at = rest;
            } else {
                at = after(at);
            }
        }
    }

    fn import(&mut self, tree: &UseTree, before: &[String], re_exports: bool) {
        let with = |name: &syn::Ident| -> Vec<String> {
            let name = name.unraw().to_string();
            // `a::{self, b}`: the module itself.
            if name == "self" && !before.is_empty() {
                return before.to_vec();
            }
            before.iter().cloned().chain([name]).collect()
        };
        let mut add = |path: Vec<String>, bound_as: Option<String>| {
            let is_glob = bound_as.is_none();
            self.mentions.push(Mention { path, bound_as, is_glob, uses_module: is_glob, re_exports });
        };
        match tree {
            UseTree::Path(part) => self.import(&part.tree, &with(&part.ident), re_exports),
            UseTree::Group(group) => group.items.iter().for_each(|part| self.import(part, before, re_exports)),
            UseTree::Name(name) => {
                let path = with(&name.ident);
                let bound_as = path.last().cloned();
                add(path, bound_as);
            }
            UseTree::Rename(name) => add(with(&name.ident), Some(name.rename.unraw().to_string())),
            UseTree::Glob(_) => add(before.to_vec(), None),
        }
    }
}

/// The path that begins with the word at a place, and what follows it.
fn path_at(at: Cursor<'_>) -> (Vec<String>, Cursor<'_>) {
    let mut path = Vec::new();
    let mut rest = at;
    let mut next = at.ident();
    while let Some((word, behind_word)) = next {
        path.push(word.unraw().to_string());
        rest = behind_word;
        next = behind(rest, "::").and_then(|rest| rest.ident());
    }
    (path, rest)
}

/// Whether the word before is the name of a field or of an argument: `name: value`, `name = value`.
fn labels_what_follows(rest: Cursor<'_>) -> bool {
    let is = |marks: &str| behind(rest, marks).is_some();
    (is(":") && !is("::")) || (is("=") && !is("==") && !is("=>"))
}

/// The path in a quoted text that is nothing else: `"crate::bytes"`.
fn path_in(literal: &str) -> Option<Vec<String>> {
    let text = literal.strip_prefix('"')?.strip_suffix('"')?;
    let path: Vec<String> = text.split("::").map(str::to_owned).collect();
    let is_name = |name: &String| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (path.len() > 1 && path.iter().all(is_name)).then_some(path)
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        if !only_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !matches!(item, ImplItem::Fn(function) if only_tests(&function.attrs)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // `::name` is another crate.
        if item.leading_colon.is_none() {
            self.import(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.mentions.push(Mention::of(path.segments.iter().map(|part| part.ident.unraw().to_string()).collect()));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.scan(TokenBuffer::new2(call.tokens.clone()).begin(), false);
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.scan(TokenBuffer::new2(list.tokens.clone()).begin(), true);
    }
}
