//! The modules of a crate and what paths in them lead to. Owns finding files and names; [`super::mentions`] reads syntax.

use super::mentions::{Mention, attributes, declared_in, mentions, only_tests};
use std::collections::{BTreeMap, BTreeSet};
use syn::{Attribute, Item};

/// Sources below a crate's `src`: path relative to it, with `/`, and text.
pub type Sources = BTreeMap<String, String>;

/// Re-exports that are followed from one path. Chains have two or three; a name that imports itself would have no end.
const MOST_RE_EXPORTS: usize = 8;

/// A module: a file, or braces in one.
pub struct Module {
    /// Where its text stands.
    pub file: String,
    /// The paths in it.
    pub mentions: Vec<Mention>,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Vec<Vec<String>>>,
    globs: Vec<Vec<String>>,
}

impl Module {
    fn new(file: &str, parent: Option<usize>) -> Self {
        let (mentions, children, items) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Self { file: file.to_owned(), mentions, parent, children, items, imports: BTreeMap::new(), globs: Vec::new() }
    }

    fn add(&mut self, item: &Item) {
        self.items.extend(declared_names(item));
        for mention in mentions(item) {
            if let Some(name) = &mention.bound_as {
                self.imports.entry(name.clone()).or_default().push(mention.path.clone());
            } else if mention.is_glob {
                self.globs.push(mention.path.clone());
            }
            self.mentions.push(mention);
        }
    }
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// An item that this module declares.
    Item(usize),
    /// A module itself.
    Module(usize),
    /// Another crate, a local name, a type's parameter.
    Elsewhere,
}

/// All modules of a crate.
#[derive(Default)]
pub struct Tree {
    modules: Vec<Module>,
}

impl Tree {
    /// Reads the file that a crate begins with, and the modules that it declares.
    ///
    /// # Errors
    /// A file is no Rust, or a declared module has none.
    pub fn read_crate(&mut self, root: &str, sources: &Sources) -> Result<(), String> {
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.read_file(root, folder, None, sources).map(|_| ())
    }

    /// All modules, with their numbers.
    pub fn modules(&self) -> impl Iterator<Item = (usize, &Module)> {
        self.modules.iter().enumerate()
    }

    /// One of them.
    pub fn module(&self, at: usize) -> &Module {
        &self.modules[at]
    }

    /// Whether a module is another or below it.
    pub fn is_within(&self, inner: usize, outer: usize) -> bool {
        std::iter::successors(Some(inner), |at| self.modules[*at].parent).any(|at| at == outer)
    }

    /// `folder` is where the files of its modules are looked for.
    fn read_file(
        &mut self,
        path: &str,
        folder: &str,
        parent: Option<usize>,
        sources: &Sources,
    ) -> Result<usize, String> {
        let text = sources.get(path).ok_or_else(|| format!("{path} does not exist"))?;
        let file = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
        self.read_items(&file.items, path, folder, parent, sources)
    }

    fn read_items(
        &mut self,
        items: &[Item],
        path: &str,
        folder: &str,
        parent: Option<usize>,
        sources: &Sources,
    ) -> Result<usize, String> {
        let at = self.modules.len();
        self.modules.push(Module::new(path, parent));
        for item in items.iter().filter(|item| !only_tests(attributes(item))) {
            match item {
                Item::Mod(module) => self.read_module(module, at, folder, sources)?,
                _ => self.modules[at].add(item),
            }
        }
        Ok(at)
    }

    fn read_module(&mut self, module: &syn::ItemMod, at: usize, folder: &str, sources: &Sources) -> Result<(), String> {
        let name = module.ident.to_string();
        let below = joined(folder, &name);
        let path = self.modules[at].file.clone();
        let mut read = Vec::new();
        if let Some((_, items)) = &module.content {
            read.push(self.read_items(items, &path, &below, Some(at), sources)?);
        } else {
            let own_folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let named: Vec<String> = named_files(&module.attrs).iter().map(|name| joined(own_folder, name)).collect();
            let usual = [format!("{below}.rs"), format!("{below}/mod.rs")];
            let files = if named.is_empty() { usual.to_vec() } else { named };
            for file in files.iter().filter(|file| sources.contains_key(*file)) {
                read.push(self.read_file(file, &below, Some(at), sources)?);
            }
        }
        let first = *read.first().ok_or_else(|| format!("{path} declares `{name}`, which has no file"))?;
        self.modules[at].children.entry(name).or_insert(first);
        Ok(())
    }

    /// What a path in a module leads to.
    pub fn resolve(&self, at: usize, mention: &Mention) -> Target {
        self.follow(at, &mention.path, mention.is_glob, MOST_RE_EXPORTS)
    }

    /// `to_module`: where a module and a function have the same name, the module is meant.
    fn follow(&self, from: usize, path: &[String], to_module: bool, left: usize) -> Target {
        let mut at = from;
        let mut is_inside = false;
        for (index, name) in path.iter().enumerate() {
            let parent = self.modules[at].parent;
            match name.as_str() {
                "crate" => at = std::iter::successors(Some(at), |at| self.modules[*at].parent).last().unwrap_or(at),
                "self" => {}
                "super" => match parent {
                    Some(parent) => at = parent,
                    None => return Target::Elsewhere,
                },
                name => match self.look_up(at, name, to_module || index + 1 < path.len(), left) {
                    Target::Module(module) => at = module,
                    // What follows belongs to the item: a variant, a function of a type.
                    Target::Item(declared_in) => return Target::Item(declared_in),
                    // A macro made it, or it belongs to a crate whose everything is shown here.
                    Target::Elsewhere if is_inside => return Target::Item(at),
                    Target::Elsewhere => return self.macro_above(at, name, path.len()),
                },
            }
            is_inside = true;
        }
        Target::Module(at)
    }

    /// What a name means in a module.
    fn look_up(&self, at: usize, name: &str, to_module: bool, left: usize) -> Target {
        let module = &self.modules[at];
        let child = module.children.get(name).map(|child| Target::Module(*child));
        if let Some(child) = child.filter(|_| to_module) {
            return child;
        }
        // A macro has its own name space: no path goes through it.
        if module.items.contains(name) || (!to_module && module.items.contains(&format!("{name}!"))) {
            return Target::Item(at);
        }
        let Some(left) = left.checked_sub(1) else { return Target::Elsewhere };
        let imports = module.imports.get(name).into_iter().flatten();
        let mut imported = imports.map(|path| self.follow(at, path, to_module, left));
        if let Some(imported) = imported.find(|target| *target != Target::Elsewhere) {
            return imported;
        }
        if let Some(child) = child {
            return child;
        }
        let mut through = module.globs.iter().filter_map(|glob| match self.follow(at, glob, true, left) {
            Target::Module(of) if of != at => Some(self.look_up(of, name, to_module, left)),
            _ => None,
        });
        through.find(|target| *target != Target::Elsewhere).unwrap_or(Target::Elsewhere)
    }

    /// Macros of a file are known in the modules that it declares below them.
    fn macro_above(&self, at: usize, name: &str, names: usize) -> Target {
        let macro_name = format!("{name}!");
        let mut above = std::iter::successors(Some(at), |at| self.modules[*at].parent);
        let declared_in = above.find(|at| names == 1 && self.modules[*at].items.contains(&macro_name));
        declared_in.map_or(Target::Elsewhere, Target::Item)
    }
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Files that attributes name for a module: `#[path = "x.rs"]`, and `cfg_attr` for one machine.
fn named_files(attributes: &[Attribute]) -> Vec<String> {
    let text = |value: &syn::Expr| match value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    };
    let mut files = Vec::new();
    for attribute in attributes {
        match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => files.extend(text(&pair.value)),
            syn::Meta::List(list) if list.path.is_ident("cfg_attr") => {
                let parts =
                    list.parse_args_with(syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated);
                let pairs = parts.into_iter().flatten().filter_map(|part| match part {
                    syn::Meta::NameValue(pair) if pair.path.is_ident("path") => text(&pair.value),
                    _ => None,
                });
                files.extend(pairs);
            }
            _ => {}
        }
    }
    files
}

/// Names that an item declares in its module; a macro's with `!`.
fn declared_names(item: &Item) -> Vec<String> {
    use syn::ext::IdentExt;
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => match &item.ident {
            Some(name) => return vec![format!("{name}!")],
            None => return declared_in(&item.mac),
        },
        _ => return Vec::new(),
    };
    vec![name.unraw().to_string()]
}
