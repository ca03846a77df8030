//! Which variables count, and which of these a stranger's context may set.

/// Beginnings of names that are kept (ld.so(8), mallopt(3), locale(7), and those of common run-time systems).
const KEPT: [&str; 17] = [
    "LD_",
    "MALLOC_",
    "GLIBC_TUNABLES",
    "LANG",
    "LC_",
    "PATH",
    "TMPDIR",
    "TZ",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "OMP_",
    "PYTHON",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "NODE_OPTIONS",
    "_RJEM_MALLOC_CONF",
];

/// Whether a variable is read, of all that a process has.
pub(super) fn is_kept(name: &str) -> bool {
    KEPT.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether this variable with this value changes how fast a program runs, and neither what it runs nor where it writes: such are taken
/// from anybody's context. Settings of malloc, Go and OpenMP that are plain numbers or words, languages and time zones by name.
pub(super) fn is_harmless(name: &str, value: &str) -> bool {
    let all = |allowed: &str| value.chars().all(|one| one.is_ascii_alphanumeric() || allowed.contains(one));
    let is_hidden = value.starts_with(['.', '/', ':']) || value.contains("..");
    is_harmless_name(name)
        && !is_hidden
        && match name {
            "TZ" => all("_+-,./<>:"),
            _ if name.starts_with("LANG") || name.starts_with("LC_") => all("_.@:-"),
            _ => all("_,+-"),
        }
}

/// Whether a variable of this name can be harmless.
pub(super) fn is_harmless_name(name: &str) -> bool {
    // MALLOC_TRACE names a file to write (mtrace(3)), MALLOC_CONF is another allocator's and names some; OMP_TOOL_LIBRARIES are loaded.
    let is_other = ["MALLOC_TRACE", "MALLOC_CONF"].contains(&name) || name.starts_with("OMP_TOOL");
    let beginnings = ["MALLOC_", "OMP_", "LANG", "LC_"];
    let names = ["GOGC", "GOMAXPROCS", "GOMEMLIMIT", "TZ"];
    is_kept(name) && !is_other && (names.contains(&name) || beginnings.iter().any(|one| name.starts_with(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_languages_and_time_zones_are_harmless_and_what_names_code_or_files_is_not() {
        let harmless = [
            ("MALLOC_PERTURB_", "165"),
            ("MALLOC_ARENA_MAX", "2"),
            ("GOGC", "off"),
            ("GOMEMLIMIT", "2GiB"),
            ("OMP_NUM_THREADS", "4,2"),
            ("LANG", "de_DE.UTF-8"),
            ("LC_ALL", "C"),
            ("TZ", "Europe/Berlin"),
            ("TZ", "CET-1CEST,M3.5.0,M10.5.0/3"),
        ];
        for (name, value) in harmless {
            assert!(is_harmless(name, value), "{name}={value}");
        }
        let others = [
            ("LD_PRELOAD", "a.so"),
            ("LD_LIBRARY_PATH", "x"),
            ("LD_AUDIT", "a"),
            ("GLIBC_TUNABLES", "glibc.malloc.check=3"),
            ("PATH", "/tmp"),
            ("TMPDIR", "/tmp/x"),
            ("PYTHONPATH", "x"),
            ("NODE_OPTIONS", "--require=x"),
            ("JAVA_TOOL_OPTIONS", "-agentpath:x"),
            ("MALLOC_TRACE", "1"),
            ("MALLOC_CONF", "1"),
            ("_RJEM_MALLOC_CONF", "prof_final:true"),
            ("OMP_TOOL_LIBRARIES", "a"),
            ("LANG", "/tmp/locale"),
            ("LC_ALL", ".."),
            ("TZ", ":/tmp/zone"),
            ("TZ", "a/../../x"),
            ("HOME", "x"),
        ];
        for (name, value) in others {
            assert!(!is_harmless(name, value), "{name}={value}");
        }
    }
}
