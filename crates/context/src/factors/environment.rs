//! What of its environment makes a program run otherwise: the dynamic linker's and malloc's variables, the language, and how large
//! all of it is.
//!
//! Other variables are not kept: they can hold secrets.

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;

/// The factor.
pub const ENVIRONMENT: Factor =
    Factor { name: "environment", title: "environment", scope: Scope::Process, moves: false, read, known };

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

/// The part that tells the size of everything, names that begin with a small letter cannot be a variable above.
pub(crate) const BYTES: &str = "bytes of all";

fn read(subject: &Subject<'_>) -> Reading {
    Reading::of(subject.file("environ").map(|text| Value::table(parts(&text))), "this kernel does not tell it")
}

fn parts(text: &str) -> Vec<(String, String)> {
    let kept = |name: &str| KEPT.iter().any(|beginning| name.starts_with(beginning));
    let variables = text.split('\0').filter_map(|variable| variable.split_once('='));
    let mut parts: Vec<(String, String)> =
        variables.filter(|(name, _)| kept(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    parts.push((BYTES.to_owned(), text.len().to_string()));
    parts
}

fn known(a: &Value, b: &Value) -> Known {
    let differs = |name: &str| a.part(name) != b.part(name);
    let any = |beginnings: &[&str]| {
        let names = a.parts().chain(b.parts()).map(|(name, _)| name);
        names.filter(|name| differs(name)).any(|name| beginnings.iter().any(|beginning| name.starts_with(beginning)))
    };
    if any(&["LD_", "MALLOC_", "GLIBC_TUNABLES", "_RJEM", "GO", "OMP_", "PYTHON", "JAVA", "JDK", "NODE"]) {
        return Known::new(
            Weight::Heavy,
            "settings of the dynamic linker, of malloc and of run-time systems: from nothing to many times the processor time \
             (glibc.malloc.mmap_threshold 84x, MALLOC_PERTURB_ 1.63x, tcache_count=0 1.21x of programs that only allocate)",
            "ld.so(8); mallopt(3); measured by slowpath's authors",
        );
    }
    if any(&["PATH", "TMPDIR", "TZ", "LANG", "LC_"]) {
        return Known::new(
            Weight::Light,
            "a longer way to each command, other directories for temporary files, time zones read anew; collation and upper case of other \
             languages cost programs that sort and compare text",
            "environ(7); locale(7); tzset(3)",
        );
    }
    Known::new(
        Weight::Light,
        "the size of the environment moves the stack: below 1 % mostly, some percent in tight loops",
        "T. Mytkowicz and others, \"Producing Wrong Data Without Doing Anything Obviously Wrong\", ASPLOS 2009",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_a_secret_is_not_kept_and_counts_in_the_size() {
        let text = "HOME=/root\0LD_PRELOAD=a.so\0API_KEY=secret\0LC_ALL=C\0";
        let parts = parts(text);
        let expected = [("LD_PRELOAD", "a.so"), ("LC_ALL", "C"), (BYTES, &text.len().to_string())];
        assert_eq!(parts, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn settings_of_malloc_weigh_more_than_the_language_and_that_more_than_the_size() {
        let of = |text: &str| Value::table(parts(text));
        assert_eq!(known(&of("MALLOC_ARENA_MAX=1\0"), &of("")).weight, Weight::Heavy);
        assert_eq!(known(&of("LANG=C\0"), &of("LANG=de\0")).weight, Weight::Light);
        assert!(known(&of("X=1\0"), &of("")).cost.contains("moves the stack"));
    }
}
