//! Where artifacts lie when nobody names a path.

use std::path::{Path, PathBuf};

/// Places of a distribution (hier(7), and the documentation of each family).
const OF_THE_MACHINE: [&str; 8] =
    ["/etc/ld.so.cache", "/opt", "/srv", "/usr/lib", "/usr/lib64", "/usr/local", "/usr/share", "/var/cache/fontconfig"];

/// Places in a home directory (XDG Base Directory Specification).
const OF_A_USER: [&str; 4] = [".cache", ".config", ".local/lib", ".local/share"];

/// Those of the machine and of the user with this home directory that exist.
pub fn standard_places(home: &Path) -> Vec<PathBuf> {
    let own = OF_A_USER.iter().map(|place| home.join(place));
    let all = OF_THE_MACHINE.iter().map(PathBuf::from).chain(own);
    all.filter(|place| place.symlink_metadata().is_ok()).collect()
}
