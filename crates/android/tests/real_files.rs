//! Files of ART that came from devices, where there are some: each is read, and what it says agrees with where it lies.
//!
//!     SLOWPATH_ART_FILES=DIRECTORY cargo test -p slowpath-android --test real_files -- --nocapture
//!
//! Such files are not part of this repository. Read so far, all of them with success:
//!
//! | Repository, commit | Release | Files |
//! |---|---|---|
//! | github.com/lief-project/tutorials, 5bc8235: `10_android_formats/KeyChain.{odex,vdex}` | 8.1 (oat 131, vdex 010) | 2 |
//! | github.com/TadiT7/google_generic_arm64_ab_dump, efdac5e | a preview of 10 (oat 169, vdex 020, profile 010) | 444 |
//! | github.com/Jiovanni-dump/google_generic_dump, 220b16e | 14 (oat 230, vdex 027, profiles 010, 015, 016) | 431 |

use slowpath_android::format::{FormatError, Oat, Profile, Vdex};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: usize = 256 << 10;
const FILTERS: [&str; 8] =
    ["assume-verified", "extract", "verify", "quicken", "space-profile", "speed", "speed-profile", "everything"];

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match fs::symlink_metadata(&path).unwrap() {
            status if status.is_dir() => files(&path, found),
            status if status.is_file() => found.push(path),
            _ => {}
        }
    }
}

fn oat(path: &Path, bytes: &[u8]) -> Result<String, FormatError> {
    let oat = Oat::parse(bytes)?;
    // What is collected of a phone is the head of the file: it says the same.
    let head = Oat::parse(&bytes[..bytes.len().min(HEAD)])?;
    assert_eq!((oat.version, &oat.store), (head.version, &head.store), "{path:?}");
    let directory = path.parent().and_then(Path::file_name).unwrap().to_string_lossy();
    if ["arm", "arm64", "x86", "x86_64"].contains(&&*directory) {
        assert_eq!(oat.isa, Some(&*directory), "{path:?}");
    }
    // Of a boot image in several files only the first has a store.
    let is_part =
        oat.store.is_empty() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("boot-"));
    let filter = oat.store.get("compiler-filter").cloned().unwrap_or_default();
    assert!(is_part || FILTERS.contains(&filter.as_str()), "{path:?}: {filter}");
    assert!((1..1000).contains(&oat.dex_files), "{path:?}: {}", oat.dex_files);
    Ok(format!("oat {} {}", oat.version, if is_part { "of a boot image" } else { &filter }))
}

fn vdex(path: &Path, bytes: &[u8]) -> Result<String, FormatError> {
    let vdex = Vdex::parse(bytes)?;
    for section in &vdex.sections {
        assert!(section.offset + section.size <= bytes.len() as u64, "{path:?}: {section:?} of {}", bytes.len());
    }
    assert!((1..1000).contains(&vdex.dex_files), "{path:?}: {}", vdex.dex_files);
    let inside = if vdex.dex.is_empty() { "without DEX" } else { "with DEX" };
    assert!(vdex.dex.is_empty() || vdex.dex.len() == vdex.dex_files as usize, "{path:?}");
    Ok(format!("vdex {} {inside}", vdex.version))
}

#[test]
fn files_of_devices_are_read_where_there_are_some() {
    let Some(directory) = std::env::var_os("SLOWPATH_ART_FILES") else { return };
    let mut all = Vec::new();
    files(Path::new(&directory), &mut all);
    let (mut tally, mut wrong) = (BTreeMap::<String, u64>::new(), Vec::new());
    for path in all {
        let bytes = fs::read(&path).unwrap();
        let read = match path.extension().and_then(|end| end.to_str()) {
            // Some lists of files have symbolic links as files with their target.
            _ if bytes.len() < 128 || bytes.starts_with(b"../") => continue,
            Some("odex" | "oat") => oat(&path, &bytes),
            Some("vdex") => vdex(&path, &bytes),
            Some("prof") => Profile::parse(&bytes).map(|profile| format!("profile {}", profile.version)),
            _ => continue,
        };
        match read {
            Ok(kind) => *tally.entry(kind).or_default() += 1,
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
        }
    }
    println!("{tally:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(!tally.is_empty(), "no file of ART in {directory:?}");
}
