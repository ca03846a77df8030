//! What identifies a file's content, read after the recording as the user: size, time, build-id, ELF sections, relocations.
//! Never run with privilege: the files belong to the target.

mod relocations;

use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, elf};
use slowpath_tables::{Bytes, File, FileRelocations, Section, SectionKind};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

/// Section headers that are read at most; a hostile file may claim more.
const MAX_SECTIONS: u64 = 4096;

/// What the ELF files among those examined hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Examined {
    /// Their sections.
    pub sections: Vec<Section>,
    /// What the run-time linker has to do for them.
    pub relocations: Vec<FileRelocations>,
}

/// Fills size, time, build-id and host identity of each file, and lists what those that are ELF hold.
/// Files that are gone, unreadable or no regular files keep their gaps.
pub fn examine(files: &mut [File]) -> Examined {
    let mut examined = Examined::default();
    for file in files.iter_mut().filter(|file| file.path.starts_with('/') && !file.directory) {
        let Ok(metadata) = fs::symlink_metadata(&file.path) else { continue };
        if !metadata.is_file() {
            continue;
        }
        file.size = Some(Bytes(metadata.size()));
        file.mtime = Some(metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()));
        let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
        file.host_dev = Some(u64::from(major) << 20 | u64::from(minor));
        file.host_ino = Some(metadata.ino());
        let opened = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(&file.path);
        let Ok(opened) = opened else { continue };
        let found = elf_facts(&opened, file.dev, file.ino).unwrap_or_default();
        file.build_id = found.build_id;
        examined.sections.extend(found.sections);
        examined.relocations.extend(found.relocations);
    }
    examined
}

/// What a section is for, from its name and flags.
fn kind_of(name: &str, flags: elf::SectionFlags, section_type: elf::SectionType) -> SectionKind {
    let name_is = |names: &[&str]| names.contains(&name);
    if flags & elf::SHF_ALLOC == elf::SectionFlags(0) {
        SectionKind::Metadata
    } else if flags & elf::SHF_EXECINSTR != elf::SectionFlags(0) {
        SectionKind::Text
    } else if matches!(section_type, elf::SHT_RELA | elf::SHT_REL)
        || section_type == elf::SHT_RELR
        || name_is(&[".dynsym", ".dynstr", ".gnu.hash", ".hash", ".gnu.version", ".gnu.version_r", ".dynamic"])
    {
        SectionKind::Relocations
    } else if flags & elf::SHF_WRITE != elf::SectionFlags(0) {
        SectionKind::Data
    } else if name.starts_with(".rodata") {
        SectionKind::Rodata
    } else if name.starts_with(".eh_frame") || name.starts_with(".note") || name_is(&[".gcc_except_table", ".interp"]) {
        SectionKind::Metadata
    } else {
        SectionKind::Other
    }
}

/// What one ELF file holds.
#[derive(Default)]
pub(crate) struct ElfFacts {
    build_id: Option<String>,
    sections: Vec<Section>,
    relocations: Option<FileRelocations>,
}

pub(crate) fn elf_facts(file: &fs::File, dev: u64, ino: u64) -> Option<ElfFacts> {
    let mut magic = [0u8; 64];
    file.take_ref(&mut magic)?;
    if &magic[..4] != b"\x7fELF" || magic[4] != 2 {
        return None;
    }
    let header = elf::FileHeader64::<Endianness>::parse(&magic[..]).ok()?;
    let endian = header.endian().ok()?;
    let count = u64::from(header.e_shnum.get(endian)).min(MAX_SECTIONS);
    let size = u64::from(header.e_shentsize.get(endian));
    if size != 64 || count == 0 {
        return Some(ElfFacts::default());
    }
    let mut table = vec![0u8; usize::try_from(count * size).ok()?];
    file.read_exact_at(&mut table, header.e_shoff.get(endian)).ok()?;
    let (headers, _) =
        object::pod::slice_from_bytes::<elf::SectionHeader64<Endianness>>(&table, usize::try_from(count).ok()?).ok()?;
    let names = headers.get(usize::from(header.e_shstrndx.get(endian).0))?;
    let mut strings = vec![0u8; usize::try_from(names.sh_size.get(endian).min(1 << 20)).ok()?];
    file.read_exact_at(&mut strings, names.sh_offset.get(endian)).ok()?;
    let mut build_id = None;
    let mut sections = Vec::new();
    for section in headers {
        let at = section.sh_name.get(endian) as usize;
        let name: Vec<u8> = strings.iter().skip(at).copied().take_while(|byte| *byte != 0).take(128).collect();
        let name = String::from_utf8_lossy(&name).into_owned();
        let (offset, bytes) = (section.sh_offset.get(endian), section.sh_size.get(endian));
        if name == ".note.gnu.build-id" {
            build_id = read_build_id(file, offset, bytes);
        }
        let section_type = section.sh_type(endian);
        if matches!(section_type, elf::SHT_NULL | elf::SHT_NOBITS) {
            continue;
        }
        sections.push(Section {
            dev,
            ino,
            kind: kind_of(&name, section.sh_flags(endian), section_type),
            name,
            offset: Bytes(offset),
            size: Bytes(bytes),
        });
    }
    let found = relocations::of_file(file, header, endian, headers);
    let relocations = found.map(|found| FileRelocations { dev, ino, ..found });
    Some(ElfFacts { build_id, sections, relocations })
}

/// A note is name size, descriptor size, type, name, descriptor (elf(5)); the build-id's name is `GNU\0`.
fn read_build_id(file: &fs::File, offset: u64, size: u64) -> Option<String> {
    let mut note = vec![0u8; usize::try_from(size.min(256)).ok()?];
    file.read_exact_at(&mut note, offset).ok()?;
    let length = u32::from_le_bytes(note.get(4..8)?.try_into().ok()?) as usize;
    Some(note.get(16..16 + length)?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads the first bytes of a file without moving a shared position.
trait TakeRef {
    fn take_ref(&self, buffer: &mut [u8]) -> Option<()>;
}

impl TakeRef for fs::File {
    fn take_ref(&self, buffer: &mut [u8]) -> Option<()> {
        let mut reader: &fs::File = self;
        reader.read_exact(buffer).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sections_of_a_real_program_are_listed_with_its_build_id() {
        let path = fs::canonicalize("/bin/ls").unwrap().to_string_lossy().into_owned();
        let mut files = [File {
            dev: 1,
            ino: 2,
            path,
            directory: false,
            size: None,
            mtime: None,
            build_id: None,
            host_dev: None,
            host_ino: None,
        }];
        let Examined { sections, relocations } = examine(&mut files);
        let text = sections.iter().find(|section| section.name == ".text").unwrap();
        assert_eq!(text.kind, SectionKind::Text);
        assert!(text.size.0 > 4096 && files[0].size.unwrap().0 > text.size.0);
        assert_eq!(files[0].build_id.as_ref().unwrap().len(), 40);
        assert!(sections.iter().any(|section| section.kind == SectionKind::Relocations));
        assert!(relocations[0].program && relocations[0].libraries > 0, "{relocations:?}");
    }

    #[test]
    fn a_file_that_is_no_elf_has_size_and_no_sections() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, b"\x7fELF but short").unwrap();
        let mut files = [File {
            dev: 1,
            ino: 2,
            path: path.to_string_lossy().into_owned(),
            directory: false,
            size: None,
            mtime: None,
            build_id: None,
            host_dev: None,
            host_ino: None,
        }];
        assert_eq!(examine(&mut files), Examined::default());
        assert_eq!(files[0].size, Some(Bytes(14)));
    }
}
