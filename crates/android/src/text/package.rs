//! `pm path PACKAGE` and `dumpsys package PACKAGE`.

use super::{is_device_path, lines};

/// APKs of one package: the base and its splits, of which an app bundle has some dozen.
const MOST_PATHS: usize = 256;

/// What is taken from `dumpsys package PACKAGE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    /// Its version, as its users see it.
    pub version: Option<String>,
    /// Files of the shared libraries that it uses: of Chrome and WebView, Trichrome's.
    pub library_files: Vec<String>,
}

/// The APKs that `pm path` names (`package:/data/app/.../base.apk`).
pub fn code_paths(text: &str) -> Vec<String> {
    let paths = lines(text).filter_map(|line| line.trim().strip_prefix("package:")).filter(|path| is_device_path(path));
    paths.take(MOST_PATHS).map(str::to_owned).collect()
}

/// Reads `dumpsys package PACKAGE`: of the part `Packages:` alone, for what is hidden by an update stands below.
pub fn package(text: &str) -> Package {
    let mut found = Package::default();
    let mut is_listing = false;
    for line in lines(text).map(str::trim).take_while(|line| *line != "Hidden system packages:") {
        if is_listing && is_device_path(line) {
            if found.library_files.len() < MOST_PATHS && !found.library_files.iter().any(|file| file == line) {
                found.library_files.push(line.to_owned());
            }
            continue;
        }
        is_listing = line == "usesLibraryFiles:";
        if let (Some(version), None) = (line.strip_prefix("versionName="), &found.version) {
            found.version = Some(version.chars().take(128).collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apks_and_the_files_of_libraries_are_named_once() {
        assert_eq!(
            code_paths(
                "package:/data/app/~~a==/b-c==/base.apk\r\npackage:/data/app/~~a==/b-c==/split.apk\npackage:../x\n"
            ),
            ["/data/app/~~a==/b-c==/base.apk", "/data/app/~~a==/b-c==/split.apk"]
        );
        let text = "Packages:\n  Package [com.android.chrome] (1a):\n    versionName=120.0\n    usesStaticLibraries:\n      \
                    com.google.android.trichromelibrary version:1\n    usesLibraryFiles:\n      /data/app/t/base.apk\n      \
                    /system/framework/x.jar\n    timeStamp=2024\n      /not/a/library\nHidden system packages:\n    versionName=1\n    \
                    usesLibraryFiles:\n      /product/t.apk\n";
        let package = package(text);
        assert_eq!(package.version.as_deref(), Some("120.0"));
        assert_eq!(package.library_files, ["/data/app/t/base.apk", "/system/framework/x.jar"]);
    }
}
