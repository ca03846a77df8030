//! The files with code that a process has mapped: which build, and how they are linked.
//!
//! Owns what is mapped ([`LOADED_LIBRARIES`]) and what a file says of itself ([`examine`]). ELF files are foreign: the caller of
//! [`examine`] does so as the user whose files they are.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, Outcome, Toggle};
use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{FileKind, ReadCache, ReadCacheOps, ReadRef};
use slowpath_process::{Mapping, mappings};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

/// The factor: path and what [`examine`] found in the file.
pub const LOADED_LIBRARIES: Factor = Factor {
    name: "loaded_libraries",
    former: Former { names: &["objects"], ..Former::NONE },
    title: "loaded executable and libraries",
    what: "The files that the process has mapped executable, and of each which build it is and how it is linked: \
           symbol binding, relocations, fixed address.",
    why: "A library that only one side loads can replace any function (malloc), and another build is other code. \
          Symbols that are bound at start and relocations that are not packed cost at each start.",
    by_hand: "`grep r-xp /proc/PID/maps`, then `readelf -n FILE` for the build",
    scope: Scope::Process,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "load the libraries of the fast context",
        "what the other libraries were installed for",
    )]),
    toggle: Toggle::Parts(parts),
};

/// What stands for a file before it was looked at, with its device and inode.
const NOT_EXAMINED: &str = "not examined ";

/// Files that are looked at, at most.
const MOST_FILES: usize = 1000;

fn read(task: &TaskFiles<'_>) -> Reading {
    let maps = task.file("maps").map(|text| Value::Table(mapped(&text)));
    Reading::of(maps, "this kernel does not report it")
}

/// Paths of the files that are mapped executable (proc_pid_maps(5)), with device and inode.
fn mapped(text: &str) -> BTreeMap<String, String> {
    let is_code = |one: &Mapping<'_>| one.is_executable() && one.name.starts_with(b"/");
    let not_examined = |one: &Mapping<'_>| format!("{NOT_EXAMINED}{}", identity(one.device, one.inode));
    // As the kernel writes them, newlines escaped: they are read on terminals.
    let file = |one: Mapping<'_>| (String::from_utf8_lossy(one.name).into_owned(), not_examined(&one));
    mappings(text.as_bytes()).filter(is_code).take(MOST_FILES).map(file).collect()
}

/// Device and inode, as the list of mappings has them.
fn identity((major, minor): (u32, u32), inode: u64) -> String {
    format!("{major:02x}:{minor:02x} {inode}")
}

/// What the files say of themselves: those of `value` that were not looked at yet. Paths that show another file by now, or in this
/// mount namespace, are reported as such.
pub fn examine(value: &mut Value) {
    let Value::Table(parts) = value else { return };
    for (path, text) in parts {
        if let Some(identity) = text.strip_prefix(NOT_EXAMINED) {
            *text = examined(path, identity).unwrap_or_else(|reason| format!("not examined: {reason}"));
        }
    }
}

fn examined(path: &str, mapped: &str) -> Result<String, String> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let device = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
    if identity(device, metadata.ino()) != mapped {
        return Err("another file has this path here".to_owned());
    }
    described(file).ok_or_else(|| "no ELF file".to_owned())
}

/// One line about an ELF file.
pub(crate) fn described(file: File) -> Option<String> {
    let cache = ReadCache::new(file);
    match FileKind::parse(&cache).ok()? {
        FileKind::Elf64 => of_header::<elf::FileHeader64<object::Endianness>, _>(&cache),
        FileKind::Elf32 => of_header::<elf::FileHeader32<object::Endianness>, _>(&cache),
        _ => None,
    }
}

fn of_header<'data, Elf, R>(data: &'data ReadCache<R>) -> Option<String>
where
    Elf: FileHeader<Endian = object::Endianness>,
    R: ReadCacheOps,
    &'data ReadCache<R>: ReadRef<'data>,
{
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let mut words = Vec::new();
    let notes = segments.iter().filter_map(|segment| segment.notes(endian, data).ok()?);
    for mut notes in notes {
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                words.push(format!("build {}", hexadecimal(note.desc())));
            }
        }
    }
    let dynamic = segments.iter().find_map(|segment| segment.dynamic(endian, data).ok().flatten());
    let value = |tag: elf::DynamicTag| {
        let mut entries = dynamic.unwrap_or_default().iter();
        entries.find(|entry| entry.tag(endian) == tag).map(|entry| entry.val(endian))
    };
    let flags_1 = value(elf::DT_FLAGS_1).unwrap_or(0);
    let flags = value(elf::DT_FLAGS).unwrap_or(0);
    words.push(
        match header.e_type(endian) {
            elf::ET_EXEC => "at a fixed address",
            _ if flags_1 & elf::DF_1_PIE.0 != 0 => "position-independent program",
            _ => "shared library",
        }
        .to_owned(),
    );
    let size = |entries: elf::DynamicTag, each: u64| value(entries).unwrap_or(0) / each.max(1);
    let wide = header.is_type_64();
    let relocations = size(elf::DT_RELASZ, if wide { 24 } else { 12 }) + size(elf::DT_RELSZ, if wide { 16 } else { 8 });
    words.push(format!("{relocations} relocations"));
    if value(elf::DT_RELR).is_some() {
        words.push("packed relocations".to_owned());
    }
    let now = value(elf::DT_BIND_NOW).is_some() || flags & elf::DF_BIND_NOW.0 != 0 || flags_1 & elf::DF_1_NOW.0 != 0;
    words.push(if now { "bound at start" } else { "bound at first call" }.to_owned());
    if segments.iter().any(|segment| segment.p_type(endian) == elf::PT_GNU_RELRO) {
        words.push("RELRO".to_owned());
    }
    words.push(
        match (value(elf::DT_GNU_HASH).is_some(), value(elf::DT_HASH).is_some()) {
            (true, _) => "GNU hash",
            (false, true) => "System V hash",
            (false, false) => "no hash",
        }
        .to_owned(),
    );
    if value(elf::DT_TEXTREL).is_some() {
        words.push("relocations in code".to_owned());
    }
    Some(words.join(", "))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn known(a: &Value, b: &Value) -> Known {
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let names = |value: &Value| value.parts().map(|(path, _)| file(path)).collect::<std::collections::BTreeSet<_>>();
    if names(a) != names(b) {
        return Known::new(
            Weight::Heavy,
            "libraries that only one side loads: a preloaded one can replace any function (malloc), others are features that only one \
             side uses",
            "ld.so(8)",
        );
    }
    Known::new(
        Weight::Heavy,
        "another build of the same code: other compiler, options or version; in the links, symbols that are bound at start and relocations that \
         are not packed cost at each start, a fixed address saves them",
        "ld(1), -z now, -z pack-relative-relocs, -no-pie",
    )
}

/// Names of files that are shown of a difference.
const MOST_NAMES: usize = 5;

/// What is mapped follows from the command, and from variables and files that are factors themselves.
fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    let differing = contrast.differing();
    if differing.is_empty() {
        return Vec::new();
    }
    let (fast, slow) = contrast.other("environment");
    let of_linker = |name: &str| ["LD_", "GLIBC_TUNABLES", "PATH", "PYTHON"].iter().any(|word| name.starts_with(word));
    let names = fast.into_iter().chain(slow).flat_map(Value::parts).map(|(name, _)| name);
    let variable = names.filter(|name| of_linker(name)).find(|name| contrast.differs("environment", Some(name)));
    let outcome = match variable {
        Some(name) => Outcome::Follows(format!("what is mapped follows from the environment ({name})")),
        None if contrast.differs("credentials", None) => {
            Outcome::Follows("it can follow from the user: other files may be read".to_owned())
        }
        None => Outcome::Not(
            "other files are mapped, or files that are linked differently: install the same on both sides, and compare again"
                .to_owned(),
        ),
    };
    let in_words = |names: Vec<&str>| {
        let more = names.len().saturating_sub(MOST_NAMES);
        let shown = names.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
        match (names.is_empty(), more) {
            (true, _) => "none of the others".to_owned(),
            (_, 0) => shown,
            (_, more) => format!("{shown} and {more} more"),
        }
    };
    let fast = differing.iter().filter(|one| one.1.is_some()).map(|one| one.0).collect();
    let slow = differing.iter().filter(|one| one.2.is_some()).map(|one| one.0).collect();
    vec![DifferingPart::whole(in_words(fast), in_words(slow), outcome)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mapped_code_of_files_counts_and_paths_may_hold_spaces() {
        let maps = "55d0-55d1 r--p 00000000 fe:00 42                 /usr/bin/cat\n\
                    55d1-55d2 r-xp 00001000 fe:00 42                 /usr/bin/a cat\n\
                    7ffd-7ffe r-xp 00000000 00:00 0                  [vdso]\n\
                    7ffe-7fff r-xp 00000000 00:00 0 \n";
        let expected = BTreeMap::from([("/usr/bin/a cat".to_owned(), "not examined fe:00 42".to_owned())]);
        assert_eq!(mapped(maps), expected);
        assert!(mapped("nonsense").is_empty());
    }

    #[test]
    fn this_program_shows_how_it_is_linked() {
        let text = described(File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(text.contains("position-independent program") && text.contains(" relocations, "), "{text}");
        assert!(text.contains("GNU hash") && text.contains("RELRO"), "{text}");
        assert_eq!(described(File::open("/proc/self/status").unwrap()), None);
    }

    #[test]
    fn a_path_that_shows_another_file_is_not_examined() {
        let mut value = Value::table([("/proc/self/exe", "not examined 00:01 1"), ("/none", "not examined 00:01 1")]);
        examine(&mut value);
        assert_eq!(value.part("/proc/self/exe"), Some("not examined: another file has this path here"));
        assert!(value.part("/none").unwrap().starts_with("not examined: No such file"));
    }
}
