//! The walk below a directory: names first, and only what a family knows is opened, as a path.

use super::Auditor;
use super::artifact::{State, text};
use crate::access::{Access, Component, Decision, FileKind, Lookup, LookupEnd, decide};
use crate::families;
use crate::gather::{LookupError, Machine};
use rustix::fd::OwnedFd;
use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How often progress is shown, in names.
const OFTEN: u64 = 4096;

/// A name in a directory.
struct Name {
    name: OsString,
    kind: FileType,
}

impl Auditor<'_> {
    /// What lies in a directory, and below.
    pub(super) fn directory(&mut self, path: &Path, lookup: &Lookup, directory: &OwnedFd, depth: usize) {
        let names = match self.names(directory) {
            Ok(names) => names,
            Err(_) => return self.unlisted(path, lookup),
        };
        // Of names that were not read nothing is missing.
        if !self.is_cut {
            self.missing(path, lookup, &names);
        }
        for Name { name, kind } in names {
            let at = path.join(&name);
            let is_wanted = match kind {
                FileType::Directory | FileType::Unknown => true,
                FileType::RegularFile => families::of(&at, FileKind::Regular).is_some(),
                _ => false,
            };
            if is_wanted {
                self.entry(&at, &name, lookup, directory, depth);
            }
        }
    }

    /// Artifacts in a directory, and in directories there of which a family owns all.
    pub(super) fn beside(&mut self, path: &Path) {
        let Ok(found) = self.machine.look_up(path) else { return };
        let (LookupEnd::File(facts), Some((at, directory))) = (&found.lookup.end, &found.file) else {
            return self.unlisted.push(text(path));
        };
        if facts.kind != FileKind::Directory || facts.mount.undecidable.is_some() {
            return;
        }
        let Ok(names) = self.names(directory) else { return self.unlisted.push(text(at)) };
        if !self.is_cut {
            self.missing(at, &found.lookup, &names);
        }
        for Name { name, kind } in names {
            let path = at.join(&name);
            let of_file = kind == FileType::RegularFile && families::of(&path, FileKind::Regular).is_some();
            if of_file || kind == FileType::Directory && families::of(&path, FileKind::Directory).is_some() {
                self.entry(&path, &name, &found.lookup, directory, 0);
            }
        }
    }

    fn entry(&mut self, path: &Path, name: &OsStr, lookup: &Lookup, directory: &OwnedFd, depth: usize) {
        let opened = Machine::open(directory, path, name);
        let opened = opened.and_then(|file| Ok((self.machine.facts(path, &file)?.1, file)));
        match opened {
            Ok((facts, file)) if facts.kind == FileKind::Directory => self.below(path, facts, lookup, &file, depth),
            Ok((facts, _)) => {
                if let Some(family) = families::of(path, facts.kind) {
                    self.judge(path, family, &lookup.below(facts), Access::Read);
                }
            }
            // It went since its name was read.
            Err(LookupError::Missing { .. }) => {}
            // The directory may be listed and not searched by the calling process.
            Err(_) => self.unlisted(path, lookup),
        }
    }

    fn below(&mut self, path: &Path, facts: Component, lookup: &Lookup, file: &OwnedFd, depth: usize) {
        if let Some(why) = &facts.mount.undecidable {
            let reason = format!("not looked at: {why}");
            self.gap(text(path), reason, "none: only there can be said who may do what");
        } else if depth >= self.limits.depth || self.found.entries >= self.limits.entries {
            self.is_cut = true;
        } else {
            self.directory(path, &lookup.below(facts), file, depth + 1);
        }
    }

    /// The names in a directory, sorted, as far as the limit goes.
    fn names(&mut self, directory: &OwnedFd) -> rustix::io::Result<Vec<Name>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(directory, ".", flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::new(opened)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if self.found.entries >= self.limits.entries {
                self.is_cut = true;
                break;
            }
            self.found.entries += 1;
            if self.found.entries.is_multiple_of(OFTEN) {
                (self.progress)(self.found.entries);
            }
            names.push(Name { name: OsStr::from_bytes(name).to_owned(), kind: entry.file_type() });
        }
        names.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(names)
    }

    /// A directory that the calling process may not list. Where all below it is of one family, it stands for what it holds.
    fn unlisted(&mut self, path: &Path, lookup: &Lookup) {
        match families::of(path, FileKind::Directory) {
            Some(family) => self.judge(path, family, lookup, Access::Search),
            None => self.unlisted.push(text(path)),
        }
    }

    /// What families say should be in this directory.
    fn missing(&mut self, path: &Path, lookup: &Lookup, names: &[Name]) {
        // Who cannot enter the directory uses nothing of it.
        if decide(self.identity, lookup, Access::Search) != Decision::Allowed {
            return;
        }
        let names: Vec<OsString> = names.iter().map(|name| name.name.clone()).collect();
        for family in &families::ALL {
            let Some(missing) = (family.missing)(path, &names) else { continue };
            let may_make = || decide(self.identity, lookup, Access::Write) == Decision::Allowed;
            if !missing.is_made_at_first_use || !may_make() {
                let reason = Some(missing.why.to_owned());
                self.add(&path.join(&missing.name), family, State::Missing, None, None, reason);
            }
        }
    }
}
