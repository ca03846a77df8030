//! Families of artifacts; one module each.
//!
//! Owns the declarations, the registry ([`ALL`]) and the readers of their files, which are foreign bytes. Leaves who may read a file to
//! [`crate::access`] and what is looked at to [`crate::audit`].

mod android_oat;
mod browser_code_cache;
mod family;
mod fontconfig_cache;
mod gdk_pixbuf_loaders;
mod glib_schemas;
mod jvm_cds;
mod ld_so_cache;
mod mesa_shader_cache;
mod node_compile_cache;
mod python_bytecode;
mod ruby_bootsnap;

pub use family::{Family, Freshness, Missing, Regeneration, Trace};

use crate::access::FileKind;
use std::path::{Path, PathBuf};

/// Every family, in the order in which they are shown.
pub static ALL: [Family; 11] = [
    python_bytecode::PYTHON_BYTECODE,
    jvm_cds::JVM_CDS,
    fontconfig_cache::FONTCONFIG_CACHE,
    ld_so_cache::LD_SO_CACHE,
    glib_schemas::GLIB_SCHEMAS,
    gdk_pixbuf_loaders::GDK_PIXBUF_LOADERS,
    node_compile_cache::NODE_COMPILE_CACHE,
    mesa_shader_cache::MESA_SHADER_CACHE,
    browser_code_cache::BROWSER_CODE_CACHE,
    ruby_bootsnap::RUBY_BOOTSNAP,
    android_oat::ANDROID_OAT,
];

/// Reads bytes as the file of each family that has a parser; how many take them.
pub(crate) fn read_as_each(bytes: &[u8]) -> usize {
    let taken = [
        python_bytecode::Header::of(bytes).is_some(),
        fontconfig_cache::Header::of(bytes).is_some(),
        ld_so_cache::libraries(bytes).is_some(),
        !gdk_pixbuf_loaders::modules(bytes).is_empty(),
        jvm_cds::identity(bytes).is_some(),
    ];
    taken.into_iter().filter(|taken| *taken).count()
}

/// Whether a file is an artifact of some family, by its path.
pub fn is_artifact(path: &Path) -> bool {
    of_file(path).is_some()
}

/// The family that a regular file of this path belongs to.
pub fn of_file(path: &Path) -> Option<&'static Family> {
    of(path, FileKind::Regular)
}

/// The family of which everything in a directory is, by its path.
pub fn of_directory(path: &Path) -> Option<&'static Family> {
    of(path, FileKind::Directory)
}

/// Whether everything in a directory is of one family, by its path.
pub fn owns_directory(path: &Path) -> bool {
    of_directory(path).is_some()
}

/// Whether two files are artifacts of one family, by their paths.
pub fn are_of_one_family(one: &Path, other: &Path) -> bool {
    let family = |path| of(path, FileKind::Regular).map(|family| family.name);
    family(one).is_some() && family(one) == family(other)
}

/// What an artifact was made from, where its path determines it.
pub fn made_from(path: &Path) -> Option<PathBuf> {
    let is_bytecode = (python_bytecode::PYTHON_BYTECODE.recognises)(path, FileKind::Regular);
    is_bytecode.then(|| python_bytecode::origin(path)).flatten().map(|(source, _)| source)
}

/// The family of a file or directory.
pub(crate) fn of(path: &Path, kind: FileKind) -> Option<&'static Family> {
    ALL.iter().find(|family| (family.recognises)(path, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_each_family_says_all_that_people_ask() {
        for family in &ALL {
            assert!(family.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", family.name);
            assert_eq!(ALL.iter().filter(|other| other.name == family.name).count(), 1, "{}", family.name);
            let texts = [family.title, family.recognised_by, family.derives_from, family.stale_when, family.fallback];
            assert!(texts.iter().chain([&family.by_hand]).all(|text| !text.is_empty()), "{}", family.name);
        }
    }

    #[test]
    fn a_path_belongs_to_the_family_of_its_name_and_ordinary_files_to_none() {
        let family = |path: &str| of(Path::new(path), FileKind::Regular).map(|family| family.name);
        for (path, name) in [
            ("/p/__pycache__/m.cpython-311.pyc", "python_bytecode"),
            ("/usr/lib/jvm/j/lib/server/classes.jsa", "jvm_cds"),
            ("/var/cache/fontconfig/3830d5c3ddfd5cd38a049b759396e72e-le64.cache-8", "fontconfig_cache"),
            ("/etc/ld.so.cache", "ld_so_cache"),
            ("/usr/share/glib-2.0/schemas/gschemas.compiled", "glib_schemas"),
            ("/usr/lib/gdk-pixbuf-2.0/2.10.0/loaders.cache", "gdk_pixbuf_loaders"),
            ("/c/v22.12.0-x64-b2c85b5e-1000/0a1b2c3d", "node_compile_cache"),
            ("/h/.cache/mesa_shader_cache/index", "mesa_shader_cache"),
            ("/h/.config/chromium/Default/Code Cache/js/index", "browser_code_cache"),
            ("/app/tmp/cache/bootsnap/load-path-cache", "ruby_bootsnap"),
            ("/data/app/x/oat/arm64/base.odex", "android_oat"),
        ] {
            assert_eq!(family(path), Some(name), "{path}");
        }
        for path in ["/p/m.pyc", "/p/m.py", "/x/loaders.cache", "/c/v22/0a1b2c3d", "/x/cache/index", "/x/base.art"] {
            assert_eq!(family(path), None, "{path}");
        }
        assert_eq!(of(Path::new("/p/__pycache__"), FileKind::Directory).unwrap().name, "python_bytecode");
        assert!(of(Path::new("/p/__pycache__/m.cpython-311.pyc"), FileKind::Special).is_none());
    }
}
