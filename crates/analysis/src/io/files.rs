//! Which files a recording names, under one identity each.
//!
//! Owns: [`FileId`], the index from kernel keys to files, and the sections of a file by page. In a lab one file has
//! several kernel keys (the overlay's inode in `reads`, the image's inode in `page_cache`); they share a path and are
//! one file here. Leaves paths of files nobody named to the recorder: such a file shows its key instead.

use crate::integer_hash::IntegerMap;
use slowpath_tables::{File, FileKey, PAGE_SIZE, Section, SectionKind};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A file of one recording: an index into [`Files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

impl FileId {
    /// The value as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a file.
#[derive(Clone, Debug)]
pub struct FileInfo {
    /// Canonical path on the host; where the recorder found none, the last name it saw and the kernel's key.
    pub path: String,
    /// False when `path` is no path.
    pub named: bool,
    /// True for a directory.
    pub directory: bool,
    /// Size in bytes, where known.
    pub size: Option<u64>,
    /// Modification time, ns since 1970, where known.
    pub mtime: Option<i64>,
    /// ELF build-id in hexadecimal.
    pub build_id: Option<String>,
    /// Every kernel key under which the file occurs.
    pub keys: Vec<FileKey>,
    /// Sections of the file, by offset; empty for what is not ELF.
    pub sections: Vec<Section>,
}

impl FileInfo {
    /// Kind and name of the section that begins last on or before the end of `page` and reaches into it.
    ///
    /// A page can hold the end of one section and the start of another; the one that covers most of the page wins.
    pub fn section_of_page(&self, page: u64) -> Option<&Section> {
        let from = page.saturating_mul(PAGE_SIZE);
        let to = from.saturating_add(PAGE_SIZE);
        let end = self.sections.partition_point(|section| section.offset.0 < to);
        let covered = |section: &Section| {
            section.offset.0.saturating_add(section.size.0).min(to).saturating_sub(section.offset.0.max(from))
        };
        // Sections are sorted by offset and do not nest, so only the last few can reach into the page.
        self.sections[..end].iter().rev().take(16).filter(|s| covered(s) > 0).max_by_key(|section| covered(section))
    }

    /// All pages that are of a section, in order, as [`Self::section_of_page`] says of every single one.
    ///
    /// Looks at the pages in which a section begins or ends, and not at those between them: a section can claim any size.
    pub fn sections_of_pages(&self) -> impl Iterator<Item = (&Section, Range<u64>)> {
        let edge = |byte: u64| [byte / PAGE_SIZE, byte / PAGE_SIZE + 1];
        let of = |section: &Section| {
            let (offset, size) = (section.offset.0, section.size.0);
            // The page that holds an edge belongs to one side of it, and the next page to the other.
            edge(offset).into_iter().chain(edge(offset.saturating_add(size)))
        };
        let mut edges: Vec<u64> = self.sections.iter().flat_map(of).collect();
        edges.sort_unstable();
        edges.dedup();
        (1..edges.len()).filter_map(move |next| {
            let part = edges[next - 1]..edges[next];
            self.section_of_page(part.start).map(|section| (section, part))
        })
    }

    /// Kind of mapping or section that `page` belongs to, if the file is ELF.
    pub fn kind_of_page(&self, page: u64) -> Option<SectionKind> {
        self.section_of_page(page).map(|section| section.kind)
    }
}

/// All files of a recording.
#[derive(Clone, Debug, Default)]
pub struct Files {
    infos: Vec<FileInfo>,
    by_key: IntegerMap<FileKey, FileId>,
    by_path: HashMap<String, FileId>,
}

impl Files {
    /// Indexes the rows of `files` and `sections`.
    pub fn new(rows: &[File], sections: &[Section]) -> Self {
        let mut files = Self::default();
        for row in rows {
            // The recorder calls a file without a path by its last name in brackets; such names are not unique. Imported traces
            // have paths of Windows and relative ones.
            let named = !row.path.starts_with('[') && !row.path.is_empty();
            let id = match files.by_path.get(&row.path) {
                Some(&id) => id,
                None => {
                    let path = if named { row.path.clone() } else { format!("{} {}", row.path, row.file()) };
                    let id = files.push(FileInfo {
                        path,
                        named,
                        directory: row.directory,
                        size: None,
                        mtime: None,
                        build_id: None,
                        keys: Vec::new(),
                        sections: Vec::new(),
                    });
                    if named {
                        files.by_path.insert(row.path.clone(), id);
                    }
                    id
                }
            };
            files.by_key.insert(row.file(), id);
            let info = &mut files.infos[id.index()];
            info.keys.push(row.file());
            info.size = info.size.or(row.size.map(|size| size.0));
            info.mtime = info.mtime.or(row.mtime);
            info.build_id = info.build_id.take().or_else(|| row.build_id.clone());
        }
        for section in sections {
            let id = files.id(section.file());
            files.infos[id.index()].sections.push(section.clone());
        }
        for info in &mut files.infos {
            // The same file under two keys brings its sections twice.
            info.sections.sort_by(|a, b| (a.offset, a.size, &a.name).cmp(&(b.offset, b.size, &b.name)));
            let mut seen = HashSet::new();
            info.sections.retain(|section| seen.insert((section.offset, section.size, section.name.clone())));
        }
        files
    }

    fn push(&mut self, info: FileInfo) -> FileId {
        let id = FileId(u32::try_from(self.infos.len()).unwrap_or(u32::MAX));
        self.infos.push(info);
        id
    }

    /// The file of a key; a key nobody named becomes a file of its own, shown by its key.
    pub fn id(&mut self, key: FileKey) -> FileId {
        if let Some(&id) = self.by_key.get(&key) {
            return id;
        }
        let id = self.push(FileInfo {
            path: key.to_string(),
            named: false,
            directory: false,
            size: None,
            mtime: None,
            build_id: None,
            keys: vec![key],
            sections: Vec::new(),
        });
        self.by_key.insert(key, id);
        id
    }

    /// The file of a key, if it is known.
    pub fn find(&self, key: FileKey) -> Option<FileId> {
        self.by_key.get(&key).copied()
    }

    /// What is known of a file.
    pub fn get(&self, id: FileId) -> &FileInfo {
        &self.infos[id.index()]
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// True when no file is known.
    pub fn is_empty(&self) -> bool {
        self.infos.is_empty()
    }

    /// All files with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &FileInfo)> {
        (0u32..).map(FileId).zip(&self.infos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::Bytes;

    fn file(dev: u64, ino: u64, path: &str, size: Option<u64>) -> File {
        File {
            dev,
            ino,
            path: path.to_owned(),
            directory: false,
            size: size.map(Bytes),
            mtime: None,
            build_id: None,
            host_dev: None,
            host_ino: None,
        }
    }

    fn section(name: &str, kind: SectionKind, offset: u64, size: u64) -> Section {
        Section { dev: 1, ino: 1, name: name.to_owned(), kind, offset: Bytes(offset), size: Bytes(size) }
    }

    #[test]
    fn two_keys_of_one_path_are_one_file() {
        let mut files = Files::new(&[file(1, 7, "/usr/a", None), file(9, 3, "/usr/a", Some(10))], &[]);
        assert_eq!(files.id(FileKey { dev: 1, ino: 7 }), files.id(FileKey { dev: 9, ino: 3 }));
        assert_eq!(files.get(FileId(0)).size, Some(10));
        assert_eq!(files.len(), 1);
    }

    #[test]
    fn an_unnamed_file_shows_its_key() {
        let mut files = Files::new(&[], &[]);
        let id = files.id(FileKey { dev: (8 << 20) | 1, ino: 42 });
        assert_eq!(files.get(id).path, "8:1/42");
        assert!(!files.get(id).named);
    }

    #[test]
    fn files_without_a_path_stay_apart_though_they_share_a_name() {
        let files = Files::new(&[file(1, 7, "[unnamed]", None), file(1, 8, "[unnamed]", None)], &[]);
        assert_eq!(files.len(), 2);
        assert_eq!(files.get(FileId(1)).path, "[unnamed] 0:1/8");
        assert!(!files.get(FileId(1)).named);
    }

    #[test]
    fn a_page_belongs_to_the_section_that_covers_most_of_it() {
        let files = Files::new(
            &[file(1, 1, "/a", Some(12288))],
            &[section(".text", SectionKind::Text, 0, 5000), section(".rodata", SectionKind::Rodata, 5000, 7000)],
        );
        let info = files.get(FileId(0));
        assert_eq!(info.section_of_page(0).unwrap().name, ".text");
        assert_eq!(info.section_of_page(1).unwrap().name, ".rodata");
        assert!(info.section_of_page(3).is_none());
    }

    #[test]
    fn parts_of_any_length_have_the_sections_of_their_pages() {
        let sections = [
            section(".text", SectionKind::Text, 0, 5000),
            section(".rodata", SectionKind::Rodata, 5000, 27000),
            section(".data", SectionKind::Data, 50000, 9000),
        ];
        let files = Files::new(&[file(1, 1, "/a", None)], &sections);
        let info = files.get(FileId(0));
        let parts =
            info.sections_of_pages().flat_map(|(section, pages)| pages.map(|page| (page, section.name.as_str())));
        let name = |page| info.section_of_page(page).map(|section| (page, section.name.as_str()));
        assert_eq!(parts.collect::<Vec<_>>(), (0..16).filter_map(name).collect::<Vec<_>>());
        let files = Files::new(&[file(1, 1, "/a", None)], &[section(".text", SectionKind::Text, 0, u64::MAX)]);
        let pages = files.get(FileId(0)).sections_of_pages().map(|(_, pages)| pages.end - pages.start);
        assert_eq!(pages.sum::<u64>(), (u64::MAX / 4096) + 1);
    }
}
