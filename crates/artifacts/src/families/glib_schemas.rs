//! Compiled schemas of GSettings (glib-compile-schemas(1)).

use super::family::{Family, Freshness, FreshnessOf, Missing, Regeneration, Trace, everybody, name, parent_name};
use crate::access::FileKind;
use crate::disk;
use std::ffi::OsString;
use std::path::Path;

/// The family.
pub const GLIB_SCHEMAS: Family = Family {
    name: "glib_schemas",
    title: "compiled schemas of GSettings",
    recognised_by: "`gschemas.compiled`, in `glib-2.0/schemas` of a data directory",
    derives_from: "`*.gschema.xml`, `*.enums.xml` and `*.gschema.override` beside it",
    stale_when: "one of these was modified after it",
    fallback: "none: GSettings finds no schema or the old ones; programs end (`Settings schema ... is not installed`) or use old defaults: \
               `gsettings list-schemas`",
    by_hand: "`glib-compile-schemas DIR` as the owner of the directory, with a umask that leaves it readable (022)",
    regeneration: Regeneration { words: "`glib-compile-schemas DIR`", commands },
    shared_by: "`GSETTINGS_SCHEMA_DIR=DIRECTORY`, made with `glib-compile-schemas`",
    trace: Trace::NoWork,
    recognises,
    is_needed_by: everybody,
    freshness: FreshnessOf::Looking(freshness),
    missing,
};

const COMPILED: &str = "gschemas.compiled";

fn commands(artifacts: &[&Path]) -> Vec<Vec<OsString>> {
    let directories = artifacts.iter().filter_map(|artifact| artifact.parent());
    directories.map(|directory| vec!["glib-compile-schemas".into(), directory.into()]).collect()
}

fn recognises(path: &Path, kind: FileKind) -> bool {
    kind == FileKind::Regular && name(path) == COMPILED
}

fn is_source(name: &OsString) -> bool {
    let endings = [".gschema.xml", ".enums.xml", ".gschema.override"];
    name.to_str().is_some_and(|name| endings.iter().any(|ending| name.ends_with(ending)))
}

fn freshness(path: &Path) -> Freshness {
    match newer(path) {
        Ok(None) => Freshness::Current,
        // GSettings compares nothing when it reads the file: the date is a hint, and copies change dates.
        Ok(Some(source)) => Freshness::Unknown(format!("{} was modified after it", source.display())),
        Err(error) => Freshness::Unknown(format!("its sources cannot be looked at: {error}")),
    }
}

/// A source that was modified after the compiled file.
fn newer(path: &Path) -> std::io::Result<Option<std::path::PathBuf>> {
    let Some(directory) = path.parent() else { return Ok(None) };
    let compiled = disk::stamp(path)?;
    let mut names = disk::names(directory)?;
    names.sort();
    for source in names.iter().filter(|name| is_source(name)).map(|name| directory.join(name)) {
        if disk::stamp(&source)?.modified > compiled.modified {
            return Ok(Some(source));
        }
    }
    Ok(None)
}

fn missing(directory: &Path, names: &[OsString]) -> Option<Missing> {
    let is_place = name(directory) == "schemas" && parent_name(directory) == "glib-2.0";
    let has_compiled = names.iter().any(|name| name == COMPILED);
    (is_place && !has_compiled && names.iter().any(is_source)).then(|| Missing {
        name: COMPILED.into(),
        why: "GSettings reads no schema from its source",
        is_made_at_first_use: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, SystemTime};

    #[test]
    fn schemas_are_stale_when_a_source_is_newer_and_missing_when_there_are_only_sources() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("glib-2.0/schemas");
        fs::create_dir_all(&directory).unwrap();
        let (source, compiled) = (directory.join("a.gschema.xml"), directory.join(COMPILED));
        fs::write(&source, "").unwrap();
        assert!(missing(&directory, &disk::names(&directory).unwrap()).is_some());
        fs::write(&compiled, "").unwrap();
        assert!(missing(&directory, &disk::names(&directory).unwrap()).is_none());
        assert_eq!(freshness(&compiled), Freshness::Current);
        let later = SystemTime::now() + Duration::from_secs(60);
        fs::File::options().write(true).open(&source).unwrap().set_modified(later).unwrap();
        assert!(matches!(freshness(&compiled), Freshness::Unknown(why) if why.contains("a.gschema.xml")));
    }
}
