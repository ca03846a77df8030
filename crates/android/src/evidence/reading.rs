//! Reading evidence: with limits, regular files only, and no link out of the directory in the last name.

use super::{
    ABSENT, DEXOPT, EvidenceManifest, LISTING, MANIFEST, PROCESSES, PROPERTIES, file_name, members_text, package_text,
    path_text,
};
use crate::text::{
    self, ApkMembers, DexoptState, Package, Process, Properties, apk_members, code_paths, dexopt_states,
    is_device_path, is_package_name,
};
use nix::fcntl::OFlag;
use slowpath_artifacts::gather::Listing;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of a text. `dumpsys package` of all packages of a phone has some 20 MB.
const MOST_TEXT: u64 = 128 << 20;
/// Bytes of a file of the device that are looked at: headers and the section table, which is at the end.
pub const MOST_FILE: u64 = 256 << 20;
/// Packages of one evidence.
const MOST_PACKAGES: usize = 4096;

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is nothing in it that could be audited.
    #[error("{} holds neither dexopt.txt nor listing.txt", .0.display())]
    Nothing(PathBuf),
    /// Its manifest is none.
    #[error("{}: {why}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// What evidence has of one package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageEvidence {
    /// Its APKs.
    pub apks: Vec<String>,
    /// Version and libraries.
    pub about: Package,
}

/// Evidence.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Where it was read from; `None` of one that a test made.
    directory: Option<PathBuf>,
    /// How it was collected, where it was by slowpath.
    pub manifest: Option<EvidenceManifest>,
    /// Properties of the device.
    pub properties: Properties,
    /// What is compiled.
    pub dexopt: Vec<DexoptState>,
    /// Its files.
    pub listing: Listing,
    /// Paths that are known not to be there.
    pub absent: BTreeSet<String>,
    /// Its processes; `None` where they were not listed.
    pub processes: Option<Vec<Process>>,
    /// What is to be audited.
    pub packages: BTreeMap<String, PackageEvidence>,
}

impl Evidence {
    /// Reads a directory.
    ///
    /// # Errors
    /// [`EvidenceError`].
    pub fn read(directory: &Path) -> Result<Self, EvidenceError> {
        let text = |name: &str| optional(directory, name);
        let (dexopt, listing) = (text(DEXOPT)?, optional_bytes(directory, LISTING, MOST_TEXT)?);
        if dexopt.is_none() && listing.is_none() {
            return Err(EvidenceError::Nothing(directory.to_owned()));
        }
        let manifest = text(MANIFEST)?.map(|text| manifest(directory, &text)).transpose()?;
        let mut evidence = Self {
            directory: Some(directory.to_owned()),
            manifest,
            properties: text::properties(&text(PROPERTIES)?.unwrap_or_default()),
            dexopt: dexopt_states(&dexopt.unwrap_or_default()),
            listing: Listing::parse(&listing.unwrap_or_default()),
            absent: text(ABSENT)?.iter().flat_map(|text| text.lines()).map(str::to_owned).collect(),
            processes: text(PROCESSES)?.map(|text| text::processes(&text)),
            packages: BTreeMap::new(),
        };
        for name in evidence.names(directory) {
            let about = text(&package_text(&name))?.map(|text| text::package(&text)).unwrap_or_default();
            let mut apks = code_paths(&text(&path_text(&name))?.unwrap_or_default());
            if apks.is_empty() {
                let states = evidence.dexopt.iter().filter(|state| state.package == name);
                apks = states.map(|state| state.apk.clone()).collect();
                apks.dedup();
            }
            evidence.packages.insert(name, PackageEvidence { apks, about });
        }
        Ok(evidence)
    }

    /// The packages to audit: those that were asked for, else those with a folder, else all that dexopt names.
    fn names(&self, directory: &Path) -> Vec<String> {
        let of_folder = || {
            let entries = std::fs::read_dir(directory.join("packages")).into_iter().flatten();
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect::<Vec<_>>()
        };
        let mut names = self.manifest.as_ref().map_or_else(of_folder, |manifest| manifest.packages.clone());
        if names.is_empty() {
            names = self.dexopt.iter().map(|state| state.package.clone()).collect();
        }
        names.retain(|name| is_package_name(name));
        names.sort();
        names.dedup();
        names.truncate(MOST_PACKAGES);
        names
    }

    /// The DEX files of an APK, where its members were listed.
    pub fn members(&self, apk: &str) -> Option<ApkMembers> {
        apk_members(&optional(self.directory.as_deref()?, &members_text(checked(apk)?)).ok()??)
    }

    /// The bytes of a file of the device, or its head; `None` where it is not in the evidence.
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        optional_bytes(self.directory.as_deref()?, &file_name(checked(path)?), MOST_FILE).ok()?
    }
}

/// A path that becomes a name below the directory.
fn checked(path: &str) -> Option<&str> {
    is_device_path(path).then_some(path)
}

fn manifest(directory: &Path, text: &str) -> Result<EvidenceManifest, EvidenceError> {
    let wrong = |why: String| EvidenceError::Manifest { path: directory.join(MANIFEST), why };
    let manifest: EvidenceManifest = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    match manifest.schema.as_str() {
        super::EVIDENCE_SCHEMA => Ok(manifest),
        other => Err(wrong(format!("it is of schema {other:?}, which this version does not support"))),
    }
}

fn optional(directory: &Path, name: &str) -> Result<Option<String>, EvidenceError> {
    let bytes = optional_bytes(directory, name, MOST_TEXT)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn optional_bytes(directory: &Path, name: &str, most: u64) -> Result<Option<Vec<u8>>, EvidenceError> {
    let path = directory.join(name);
    match bytes(&path, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(EvidenceError::Unreadable { path, source }),
    }
}

fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_somebody_put_together_is_read_and_its_packages_are_those_of_dexopt() {
        let place = tempfile::tempdir().unwrap();
        let said = "[a.b]\n  path: /data/app/a/base.apk\n    arm64: [status=verify] [reason=install]\n";
        std::fs::write(place.path().join(DEXOPT), said).unwrap();
        let evidence = Evidence::read(place.path()).unwrap();
        assert_eq!(evidence.packages["a.b"].apks, ["/data/app/a/base.apk"]);
        assert_eq!((evidence.manifest.is_none(), evidence.processes.is_none()), (true, true));
        assert_eq!(evidence.file("/data/app/../../x"), None);
    }

    #[test]
    fn what_is_no_evidence_or_no_regular_file_is_an_error_that_names_it() {
        let place = tempfile::tempdir().unwrap();
        assert!(Evidence::read(place.path()).unwrap_err().to_string().contains("neither dexopt.txt nor listing.txt"));
        nix::unistd::mkfifo(&place.path().join(DEXOPT), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(Evidence::read(place.path()).unwrap_err().to_string().contains("dexopt.txt cannot be read"));
        std::fs::remove_file(place.path().join(DEXOPT)).unwrap();
        std::fs::write(place.path().join(LISTING), "").unwrap();
        std::fs::write(place.path().join(MANIFEST), "{\"schema\":\"x\"}").unwrap();
        assert!(Evidence::read(place.path()).unwrap_err().to_string().contains("evidence.json"));
    }
}
