//! The list of image loaders of GdkPixbuf (gdk-pixbuf-query-loaders(1)).

use super::family::{Family, Freshness, FreshnessOf, Missing, Regeneration, Trace, everybody, holds, lies_in, name};
use crate::access::FileKind;
use crate::disk;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The family.
pub const GDK_PIXBUF_LOADERS: Family = Family {
    name: "gdk_pixbuf_loaders",
    title: "GdkPixbuf's list of image loaders",
    recognised_by: "`loaders.cache` below `gdk-pixbuf-2.0`",
    derives_from: "the modules in `loaders` beside it",
    stale_when: "it lists a module that is gone. Unknown where `loaders` holds a module that it does not list: a module that does not load \
                 is not listed",
    fallback: "none: images of these kinds are not shown, or a program ends for want of an icon: `gdk-pixbuf-query-loaders`",
    by_hand: "`gdk-pixbuf-query-loaders --update-cache` as root, with a umask that leaves it readable (022)",
    regeneration: Regeneration { words: "`gdk-pixbuf-query-loaders --update-cache`", commands },
    shared_by: "`GDK_PIXBUF_MODULE_FILE=FILE`, made with `gdk-pixbuf-query-loaders`",
    trace: Trace::NoWork,
    recognises,
    is_needed_by: everybody,
    freshness: FreshnessOf::Looking(freshness),
    missing,
};

/// The largest list that is read: one has some kB.
const MOST: u64 = 4 << 20;

fn commands(_: &[&Path]) -> Vec<Vec<OsString>> {
    vec![vec!["gdk-pixbuf-query-loaders".into(), "--update-cache".into()]]
}

fn recognises(path: &Path, kind: FileKind) -> bool {
    kind == FileKind::Regular && name(path) == "loaders.cache" && lies_in(path, &["gdk-pixbuf-2.0"])
}

/// The modules that a list names: lines of one absolute path in quotation marks (`gdk_pixbuf_io_init_modules`, gdk-pixbuf-io.c).
pub fn modules(text: &[u8]) -> Vec<PathBuf> {
    let lines = text.split(|byte| *byte == b'\n');
    let paths = lines.filter_map(|line| line.strip_prefix(b"\"")?.strip_suffix(b"\""));
    let absolute = paths.filter(|path| path.starts_with(b"/") && !path.contains(&b'"'));
    absolute.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

fn freshness(path: &Path) -> Freshness {
    let modules = match disk::whole(path, MOST) {
        Ok(text) => modules(&text),
        Err(error) => return Freshness::Unknown(format!("it cannot be read: {error}")),
    };
    // Where none lies beside the list, it was made for another root directory (a container, a Flatpak).
    let beside = path.with_file_name("loaders");
    if !modules.is_empty() && !modules.iter().any(|module| module.parent() == Some(beside.as_path())) {
        return Freshness::Unknown("it lists modules of another root directory".to_owned());
    }
    if let Some(gone) = modules.iter().find(|module| disk::is_gone(module)) {
        return Freshness::Stale(format!("it lists {}, which is gone", gone.display()));
    }
    let directory = path.with_file_name("loaders");
    let present = match disk::names(&directory) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Freshness::Unknown(format!("{} cannot be listed: {error}", directory.display())),
    };
    let is_listed = |name: &OsString| modules.iter().any(|module| module.file_name() == Some(name));
    let is_module = |name: &OsString| Path::new(name).extension().is_some_and(|end| end == "so");
    match present.iter().find(|name| is_module(name) && !is_listed(name)) {
        Some(other) => Freshness::Unknown(format!("it does not list {}", directory.join(other).display())),
        None => Freshness::Current,
    }
}

fn missing(directory: &Path, names: &[OsString]) -> Option<Missing> {
    let has_modules = || disk::names(&directory.join("loaders")).is_ok_and(|modules| !modules.is_empty());
    let is_place = lies_in(directory, &["gdk-pixbuf-2.0"]) && holds(names, "loaders") && !holds(names, "loaders.cache");
    (is_place && has_modules()).then(|| Missing {
        name: "loaders.cache".into(),
        why: "GdkPixbuf loads no module that is not listed",
        is_made_at_first_use: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_list_is_stale_where_a_module_is_gone_and_unknown_where_one_is_not_listed() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("gdk-pixbuf-2.0/2.10.0");
        let (module, list) = (directory.join("loaders/a.so"), directory.join("loaders.cache"));
        fs::create_dir_all(directory.join("loaders")).unwrap();
        fs::write(&module, "").unwrap();
        assert!(missing(&directory, &disk::names(&directory).unwrap()).is_some());
        fs::write(&list, format!("# GdkPixbuf\n\"{}\"\n\"ani\" 4 \"gdk-pixbuf\"\n\"ani\" \"\"\n", module.display()))
            .unwrap();
        assert_eq!(freshness(&list), Freshness::Current);
        fs::write(directory.join("loaders/b.so"), "").unwrap();
        assert!(matches!(freshness(&list), Freshness::Unknown(why) if why.contains("b.so")));
        fs::remove_file(&module).unwrap();
        assert!(matches!(freshness(&list), Freshness::Stale(why) if why.contains("a.so")));
    }
}
