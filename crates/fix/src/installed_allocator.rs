//! The allocators that this machine has besides the C library's: which libraries are looked for and how, in the dynamic linker's own cache,
//! as `ldconfig -p` prints it.

use std::process::{Command, Stdio};

/// Allocators that replace malloc by being loaded first, by the name that programs link with, the preferred first: jemalloc
/// keeps freed pages for 10 s (`dirty_decay_ms`), mimalloc for 10 ms (`purge_delay`), tcmalloc as long as nobody asks.
const LIBRARIES: [&str; 4] = ["libjemalloc.so.", "libtcmalloc_minimal.so.", "libtcmalloc.so.", "libmimalloc.so."];

/// Where ldconfig is; users have these directories not always in their path.
const PLACES: [&str; 2] = ["/sbin/ldconfig", "/usr/sbin/ldconfig"];

/// The library of the preferred allocator that is installed.
pub(crate) fn preferred() -> Option<String> {
    let run = |place: &&str| Command::new(place).arg("-p").stdin(Stdio::null()).stderr(Stdio::null()).output().ok();
    let printed = PLACES.iter().find_map(run)?;
    in_cache(&String::from_utf8_lossy(&printed.stdout), std::env::consts::ARCH)
}

/// Word for an architecture in the list of `ldconfig -p`.
fn word_of(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "x86-64",
        "aarch64" => "AArch64",
        other => other,
    }
}

/// Lines are `name (libc6,x86-64) => path`.
fn in_cache(printed: &str, architecture: &str) -> Option<String> {
    let lines = || {
        let parts = printed.lines().filter_map(|line| line.trim().split_once(" => "));
        let named = parts.filter_map(|(left, path)| Some((left.split_once(" (")?, path)));
        named.filter(|((_, kind), _)| kind.contains(word_of(architecture)))
    };
    let path_of = |library: &&str| lines().find(|((name, _), _)| name.starts_with(library)).map(|(_, path)| path);
    LIBRARIES.iter().find_map(path_of).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHE: &str = "1306 libs found in cache `/etc/ld.so.cache'\n\
        \tlibtcmalloc.so.4 (libc6,x86-64) => /lib/x86_64-linux-gnu/libtcmalloc.so.4\n\
        \tlibjemalloc.so.2 (libc6) => /lib/i386-linux-gnu/libjemalloc.so.2\n\
        \tlibjemalloc.so.2 (libc6,x86-64) => /lib/x86_64-linux-gnu/libjemalloc.so.2\n\
        \tlibjemalloc.so.2 (libc6,AArch64) => /lib/aarch64-linux-gnu/libjemalloc.so.2\n";

    #[test]
    fn the_preferred_library_of_this_architecture_is_found_in_the_cache() {
        let found = |text: &str, architecture| in_cache(text, architecture);
        assert_eq!(found(CACHE, "x86_64").as_deref(), Some("/lib/x86_64-linux-gnu/libjemalloc.so.2"));
        assert_eq!(found(CACHE, "aarch64").as_deref(), Some("/lib/aarch64-linux-gnu/libjemalloc.so.2"));
        let without = CACHE.replace("libjemalloc", "libother");
        assert_eq!(found(&without, "x86_64").as_deref(), Some("/lib/x86_64-linux-gnu/libtcmalloc.so.4"));
        assert_eq!(found("nonsense => \n => x\n", "x86_64"), None);
        assert_eq!(found("", "x86_64"), None);
    }
}
