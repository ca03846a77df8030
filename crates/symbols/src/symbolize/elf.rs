//! The sources of one ELF file, asked one after the other.
//!
//! The parser (`blazesym`) opens what it is given by path: here always the path of a descriptor that was checked. It follows
//! links to debug files by itself and without our checks, so it gets no file with such a link, unless an administrator put the
//! file into a debug directory.

use super::image::{Image, NoImage};
use super::names::{Function, Names, refuse};
use super::{Depth, Located, Options, Reason, debug_files, debuginfod, opened};
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Builder, CodeInfo, Input, Sym, Symbolized};
use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Looks up names in files, one after the other. What was parsed of one is given up before the next, so that only the largest
/// file decides how much memory is needed.
pub(super) struct Lookup<'a> {
    options: &'a Options,
    debuginfod: Option<debuginfod::Asked<'a>>,
}

/// One source of a file.
struct Layer<'a> {
    file: &'a File,
    debug_information: bool,
    /// Where a file that it names may be looked for.
    debug_dirs: &'a [PathBuf],
}

impl<'a> Lookup<'a> {
    pub fn new(options: &'a Options) -> Self {
        Self { options, debuginfod: options.debuginfod.as_ref().map(debuginfod::Asked::new) }
    }

    /// Names what stands at these offsets of the file: of the one at its path, or of a file with its build-id in a directory of such.
    pub fn file(&mut self, located: Option<&Located>, places: &mut BTreeMap<u64, Names>) {
        let Some(located) = located else { return refuse(places, Reason::UnknownFile) };
        let reason = match at_path(located) {
            Ok((file, image)) => return self.image(&file, &image, Some(&located.path), places),
            Err(reason) => reason,
        };
        let id = located.build_id.as_deref();
        match id.and_then(|id| debug_files::of_build_id(id, &located.path, self.options)) {
            Some((file, image)) => self.image(&file, &image, None, places),
            None => refuse(places, reason),
        }
    }

    /// Names what stands at these offsets of an image. `path` says beside what a debug file may stand.
    pub fn image(&mut self, file: &File, image: &Image, path: Option<&Path>, places: &mut BTreeMap<u64, Names>) {
        let parse = self.options.depth != Depth::Names;
        let mut has_symbols = image.has_symbols;
        let no_dirs: &[PathBuf] = &[];
        if image.has_debug_information && !image.names_others {
            has_symbols = true;
            self.ask(&Layer { file, debug_information: parse, debug_dirs: no_dirs }, image, places);
        } else if let Some(debug) = debug_files::find(image, file, path, self.options, self.debuginfod.as_mut()) {
            has_symbols = true;
            let follow = debug.administered || !debug.image.names_others;
            let layer = Layer {
                file: &debug.file,
                debug_information: parse && follow && debug.image.has_debug_information,
                debug_dirs: if debug.administered { &self.options.debug_dirs } else { no_dirs },
            };
            self.ask(&layer, image, places);
        }
        self.ask(&Layer { file, debug_information: false, debug_dirs: no_dirs }, image, places);
        for (offset, names) in places.iter_mut().filter(|(_, names)| matches!(names, Err(Reason::NotCovered))) {
            *names = Err(match image.address_of(*offset) {
                Some(address) if image.is_linkage_stub(address) => Reason::LinkageStub,
                _ if has_symbols => Reason::NotCovered,
                _ if image.exports => Reason::OnlyExported,
                _ => Reason::NoSymbols,
            });
        }
    }

    /// Asks one source for all that has no name yet.
    fn ask(&self, layer: &Layer<'_>, image: &Image, places: &mut BTreeMap<u64, Names>) {
        let mut open: Vec<(&mut Names, u64)> = places
            .iter_mut()
            .filter(|(_, names)| names.is_err())
            .filter_map(|(offset, names)| image.address_of(*offset).map(|address| (names, address)))
            .collect();
        if open.is_empty() {
            return;
        }
        let addresses: Vec<u64> = open.iter().map(|(_, address)| *address).collect();
        // The parser checks what it reads, but it is large and what it reads is foreign: a panic is a damaged file.
        let found = catch_unwind(AssertUnwindSafe(|| self.look_up(layer, image, &addresses)));
        match found {
            Ok(Some(found)) => {
                for ((names, _), found) in open.iter_mut().zip(found) {
                    if found.is_ok() || found == Err(Reason::Damaged) {
                        **names = found;
                    }
                }
            }
            Ok(None) | Err(_) => open.iter_mut().for_each(|(names, _)| **names = Err(Reason::Damaged)),
        }
    }

    fn look_up(&self, layer: &Layer<'_>, image: &Image, addresses: &[u64]) -> Option<Vec<Names>> {
        let symbolizer = Builder::default()
            .enable_auto_reload(false)
            .enable_code_info(layer.debug_information)
            .enable_inlined_fns(layer.debug_information && self.options.depth == Depth::Inlined)
            .set_debug_dirs(Some(layer.debug_dirs))
            .build();
        let mut elf = Elf::new(opened::path_of(layer.file));
        elf.debug_syms = layer.debug_information;
        let found = symbolizer.symbolize(&Source::Elf(elf), Input::VirtOffset(addresses)).ok()?;
        Some(addresses.iter().zip(found).map(|(address, found)| named(*address, &found, image)).collect())
    }
}

/// The file at the recorded path, if it is the recorded one.
fn at_path(located: &Located) -> Result<(File, Image), Reason> {
    let file = opened::open(&located.path)?;
    let image = Image::of(&file);
    let build_id = image.as_ref().ok().and_then(|image| image.build_id.as_deref());
    if !opened::is_unchanged(located, &file, build_id) {
        return Err(Reason::FileChanged);
    }
    match image {
        Ok(image) => Ok((file, image)),
        Err(NoImage::NotElf) => Err(Reason::NotElf),
        Err(NoImage::Damaged) => Err(Reason::Damaged),
    }
}

fn named(address: u64, found: &Symbolized<'_>, image: &Image) -> Names {
    match found {
        Symbolized::Sym(symbol) => {
            // An entry of a symbol table without a size is held to reach up to the next one; not beyond its section, or the
            // first stubs of a linkage table would all be called `_init`. A function that debug information has in several
            // pieces comes without a size too, and with address 0.
            let reaches = symbol.size.is_some() || symbol.addr == 0 || image.same_section(symbol.addr, address);
            if symbol.name.is_empty() || !reaches { Err(Reason::NotCovered) } else { Ok(functions(symbol)) }
        }
        Symbolized::Unknown(blazesym::symbolize::Reason::IgnoredError) => Err(Reason::Damaged),
        Symbolized::Unknown(_) => Err(Reason::NotCovered),
    }
}

/// The functions of an instruction from the innermost; the parser has them from the outermost.
pub(super) fn functions(symbol: &Sym<'_>) -> Vec<Function> {
    let function = |name: &str, code: Option<&CodeInfo<'_>>| Function {
        name: without_empty_packs(name),
        source_file: code.map(|code| code.to_path().to_string_lossy().into_owned()),
        source_line: code.and_then(|code| code.line).filter(|line| *line != 0),
    };
    let inlined = symbol.inlined.iter().rev().map(|inlined| function(&inlined.name, inlined.code_info.as_ref()));
    inlined.chain([function(&symbol.name, symbol.code_info.as_deref())]).collect()
}

/// An empty pack of template arguments stands as nothing in a C++ name; the demangler leaves its comma (`Map<int, >`).
fn without_empty_packs(name: &str) -> String {
    name.replace(", >", ">")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pack_leaves_no_comma() {
        assert_eq!(
            without_empty_packs("run(Manager<Function, >&, std::pair<int, long>)"),
            "run(Manager<Function>&, std::pair<int, long>)"
        );
    }
}
