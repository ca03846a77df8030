//! What ELF files define for others and need from them: whether a program calls a function, and which libraries only one program can load
//! (plugins, which take functions and variables from it).
//!
//! The files are foreign, and are read as the target's user; what cannot be read defines and needs nothing.

use object::elf::VER_NDX_GLOBAL;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, ReadCache, ReadRef};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Whether a file takes a function of this name from elsewhere.
pub(crate) fn imports(path: &Path, function: &str) -> bool {
    let Some(file) = opened(path) else { return false };
    imports_in(&ReadCache::new(file), function)
}

fn imports_in<'a, R: ReadRef<'a>>(file: R, function: &str) -> bool {
    let Ok(parsed) = object::File::parse(file) else { return false };
    parsed.dynamic_symbols().any(|symbol| symbol.is_undefined() && symbol.name() == Ok(function))
}

/// Those of `libraries` that need what one of `executables` defines.
pub(crate) fn bound<'a>(
    executables: impl Iterator<Item = &'a String>,
    libraries: impl Iterator<Item = &'a String>,
) -> BTreeSet<String> {
    let defined: BTreeSet<Vec<u8>> = executables.filter_map(|path| defined_by(path)).flatten().collect();
    let needs = |path: &&String| needed_by(path).is_some_and(|names| names.iter().any(|name| defined.contains(name)));
    if defined.is_empty() { BTreeSet::new() } else { libraries.filter(needs).cloned().collect() }
}

fn defined_by(path: &str) -> Option<Vec<Vec<u8>>> {
    let cache = ReadCache::new(opened(Path::new(path))?);
    Some(defined_in(&ElfFile64::parse(&cache).ok()?))
}

fn needed_by(path: &str) -> Option<Vec<Vec<u8>>> {
    let cache = ReadCache::new(opened(Path::new(path))?);
    Some(needed_in(&ElfFile64::parse(&cache).ok()?))
}

/// A regular file. No other is opened, or waited for.
fn opened(path: &Path) -> Option<File> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    let is_regular = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    is_regular.then(|| File::options().read(true).custom_flags(flags).open(path).ok()).flatten()
}

fn defined_in<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, Endianness, R>) -> Vec<Vec<u8>> {
    let defined = elf.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.is_global());
    defined.filter_map(|symbol| Some(symbol.name_bytes().ok()?.to_vec())).collect()
}

/// What somebody else must define, and no library that has versions does. Weak symbols may be missing.
fn needed_in<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, Endianness, R>) -> Vec<Vec<u8>> {
    let versions = elf.elf_section_table().versions(elf.endian(), elf.data()).ok().flatten();
    let is_unversioned = |index| {
        versions.as_ref().is_none_or(|versions| versions.version_index(elf.endian(), index).index() <= VER_NDX_GLOBAL)
    };
    let needed = elf.dynamic_symbols().filter(|symbol| symbol.is_undefined() && !symbol.is_weak());
    needed
        .filter(|symbol| is_unversioned(symbol.index()))
        .filter_map(|symbol| Some(symbol.name_bytes().ok()?.to_vec()))
        .filter(|name| !name.is_empty())
        .collect()
}

/// All that is read of a file, from bytes of anybody: for fuzzers.
#[doc(hidden)]
pub fn foreign(bytes: &[u8]) {
    imports_in(bytes, "mallopt");
    if let Ok(elf) = ElfFile64::<Endianness, _>::parse(bytes) {
        defined_in(&elf);
        needed_in(&elf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Compiles C into `place`, with these options.
    fn compiled(place: &Path, name: &str, source: &str, options: &[&str]) -> String {
        let file = place.join(format!("{name}.c"));
        std::fs::write(&file, source).unwrap();
        let made = place.join(name);
        let done = Command::new("gcc").args(options).arg(&file).arg("-o").arg(&made).status().unwrap();
        assert!(done.success());
        made.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_plugin_is_bound_to_its_program_and_a_library_is_not() {
        let place = tempfile::tempdir().unwrap();
        let shared = ["-shared", "-fPIC"];
        let program =
            "#include <stdio.h>\nint plugins; int main(void) { return fprintf(stdout, \"%d\", plugins) < 0; }";
        // Not position-independent: stdout of the C library is defined in the program too, as a copy.
        let program = compiled(place.path(), "program", program, &["-rdynamic", "-no-pie", "-fno-pie"]);
        let plugin =
            compiled(place.path(), "plugin.so", "extern int plugins; int more(void) { return ++plugins; }", &shared);
        let library = "#include <stdio.h>\nint more(void) { return putc('x', stdout); }";
        let library = compiled(place.path(), "library.so", library, &shared);
        let weak = "extern int plugins __attribute__((weak)); int more(void) { return &plugins ? plugins : 0; }";
        let weak = compiled(place.path(), "weak.so", weak, &shared);
        let all = [plugin.clone(), library, weak, "/proc/self/status".to_owned(), "/nothing".to_owned()];
        assert_eq!(bound([program].iter(), all.iter()), BTreeSet::from([plugin]));
        assert_eq!(bound([].iter(), all.iter()), BTreeSet::new());
    }
}
