//! As many fonts as a desktop has, in a place of their own, and a directory for their cache that only root writes.

use crate::artifact_case::ArtifactCase;
use std::fs;
use std::path::{Path, PathBuf};

/// The case, which goes with this.
pub struct FontCase {
    /// Where it lies.
    pub artifacts: ArtifactCase,
    /// The fonts.
    pub own: PathBuf,
    /// The directory for their cache, empty.
    pub cache: PathBuf,
    /// fonts.conf, which names both.
    pub settings: PathBuf,
}

impl FontCase {
    /// Copies fonts of this machine; `None`, with the reason printed, where there are none, or no fontconfig.
    pub fn new() -> Option<Self> {
        if !is_installed("fc-match") {
            return None;
        }
        let mut found = Vec::new();
        fonts(Path::new("/usr/share/fonts"), &mut found);
        if found.is_empty() {
            println!("skipped: no font is installed");
            return None;
        }
        let artifacts = ArtifactCase::new();
        let (own, cache, settings) =
            (artifacts.path("fonts"), artifacts.path("cache/fontconfig"), artifacts.path("fonts.conf"));
        fs::create_dir(&own).unwrap();
        fs::create_dir(&cache).unwrap();
        for (number, font) in found.iter().cycle().take(200).enumerate() {
            fs::copy(font, own.join(format!("{number}-{}", font.file_name().unwrap().display()))).unwrap();
        }
        let (from, to) = (own.display(), cache.display());
        let text = format!("<fontconfig><dir>{from}</dir><cachedir>{to}</cachedir></fontconfig>\n");
        fs::write(&settings, text).unwrap();
        Some(Self { artifacts, own, cache, settings })
    }

    /// The variable that names the settings.
    pub fn variable(&self) -> String {
        format!("FONTCONFIG_FILE={}", self.settings.display())
    }
}

/// Whether a program is in the search path.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let is_there = std::env::split_paths(&path).any(|place| place.join(program).exists());
    if !is_there {
        println!("skipped: {program} is not installed");
    }
    is_there
}

/// Fonts of this machine.
fn fonts(place: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => fonts(&path, found),
            kind if kind.is_file() && path.extension().is_some_and(|end| end == "ttf" || end == "otf") => {
                found.push(path);
            }
            _ => {}
        }
    }
}
