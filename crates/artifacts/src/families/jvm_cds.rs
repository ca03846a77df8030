//! Class data sharing archives and AOT caches of HotSpot (JEP 310, JEP 341, JEP 350, JEP 483).

use super::family::{Family, Freshness, FreshnessOf, Missing, Regeneration, Trace, everybody, holds, name};
use crate::access::FileKind;
use crate::disk;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// The family.
pub const JVM_CDS: Family = Family {
    name: "jvm_cds",
    title: "class data sharing archives and AOT caches of the JVM",
    recognised_by: "`*.jsa`; the default ones are `classes*.jsa` beside `libjvm.so`. `*.aot` (JDK 24 and later)",
    derives_from: "the classes of the runtime image (`lib/modules`) or of an application's class path, and the very build of the JVM",
    stale_when: "it does not begin with the magic number of an archive; a default archive does not name the build of the `libjvm.so` beside \
                 it. Unknown for other archives and for AOT caches: which JVM and class path use it stands on a command line",
    fallback: "the JVM says nothing (`-Xshare:auto`; of an AOT cache it warns), parses and verifies the classes at each start and shares none of them between \
               processes: `java -Xlog:cds -version`, `java -Xshare:on -version`",
    by_hand: "default archive: `java -Xshare:dump` as the owner of the JVM; others: `java -XX:ArchiveClassesAtExit=FILE`, `java -XX:AOTCacheOutput=FILE`; `chmod o+r`",
    regeneration: Regeneration {
        words: "default archive: `java -Xshare:dump` of the same runtime image; others: the program itself, whose command line names them",
        commands,
    },
    shared_by: "`-XX:SharedArchiveFile=FILE` or `-XX:AOTCache=FILE` (in `JDK_JAVA_OPTIONS`), made as above",
    trace: Trace::AllAlong { library: "libjvm.so" },
    recognises,
    is_needed_by: everybody,
    freshness: FreshnessOf::Looking(freshness),
    missing,
};

/// `CDS_ARCHIVE_MAGIC` and `CDS_DYNAMIC_ARCHIVE_MAGIC` (src/hotspot/share/include/cds.h), in the byte order of the machine.
const MAGIC: [u32; 2] = [0xf00b_aba2, 0xf00b_aba8];

/// The ending of AOT caches, which other compilers ahead of time give to their files too.
const AOT: &str = "aot";

/// Where the header names the build: `JVM_IDENT_MAX` (256) bytes in the first page.
const HEADER: u64 = 4096;

/// The largest `libjvm.so` that is searched.
const MOST_LIBRARY: u64 = 256 << 20;

/// `JVM_IDENT_MAX`: the header keeps a hash instead of a longer name (`get_header_version`, src/hotspot/share/cds/filemap.cpp).
const LONGEST_IDENTITY: usize = 255;

/// The program of the runtime image to which a default archive belongs (`lib/server` or `lib`, below the image's own directory).
fn commands(artifacts: &[&Path]) -> Vec<Vec<OsString>> {
    let is_default = |artifact: &&&Path| name(artifact).starts_with("classes");
    let dump = |artifact: &&Path| {
        let library = artifact.ancestors().skip(1).find(|above| name(above) == "lib")?;
        let java = library.parent()?.join("bin/java");
        Some(vec![java.into_os_string(), "-Xshare:dump".into()])
    };
    artifacts.iter().filter(is_default).filter_map(dump).collect::<BTreeSet<_>>().into_iter().collect()
}

fn recognises(path: &Path, kind: FileKind) -> bool {
    kind == FileKind::Regular && path.extension().is_some_and(|end| end == "jsa" || end == AOT)
}

/// The name of the JVM's build in the header: printable text around ` VM (`.
pub(super) fn identity(header: &[u8]) -> Option<&[u8]> {
    let at = header.windows(5).position(|window| window == b" VM (")?;
    let is_text = |byte: &u8| (b' '..=b'~').contains(byte);
    let start = header[..at].iter().rposition(|byte| !is_text(byte)).map_or(0, |before| before + 1);
    let length = header[start..].iter().take_while(|byte| is_text(byte)).count();
    (length < LONGEST_IDENTITY - 8).then(|| &header[start..start + length])
}

fn freshness(path: &Path) -> Freshness {
    let header = match disk::head(path, HEADER) {
        Ok(header) => header,
        Err(error) => return Freshness::Unknown(format!("it cannot be read: {error}")),
    };
    if !header.first_chunk().is_some_and(|magic| MAGIC.contains(&u32::from_ne_bytes(*magic))) {
        return match path.extension().is_some_and(|end| end == AOT) {
            true => Freshness::Unknown(
                "it does not begin as an AOT cache of a JVM, and may be another program's".to_owned(),
            ),
            false => Freshness::Stale("it does not begin as an archive of class data".to_owned()),
        };
    }
    let library = path.with_file_name("libjvm.so");
    if disk::is_gone(&library) {
        return Freshness::Unknown(
            "which JVM and class path use it stands on a command line: java -Xshare:on checks both".to_owned(),
        );
    }
    let Some(identity) = identity(&header) else {
        return Freshness::Unknown("its header does not name the build of a JVM".to_owned());
    };
    match disk::whole(&library, MOST_LIBRARY) {
        Ok(bytes) if contains(&bytes, identity) => Freshness::Current,
        Ok(_) => Freshness::Stale(format!(
            "it was made by {}, not by the libjvm.so beside it",
            String::from_utf8_lossy(identity)
        )),
        Err(error) => Freshness::Unknown(format!("{} cannot be read: {error}", library.display())),
    }
}

/// Whether `text` stands in `bytes`, which are tens of megabytes.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let Some(first) = text.first() else { return false };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        if rest[at..].starts_with(text) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

fn missing(_: &Path, names: &[OsString]) -> Option<Missing> {
    let has_archive = names.iter().any(|name| Path::new(name).extension().is_some_and(|end| end == "jsa"));
    (holds(names, "libjvm.so") && !has_archive).then(|| Missing {
        name: "classes.jsa".into(),
        why: "a JVM without a default archive: each process parses the classes of the runtime",
        is_made_at_first_use: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const BUILD: &str = "OpenJDK 64-Bit Server VM (17.0.15+6) for linux-amd64";

    fn archive(magic: u32) -> Vec<u8> {
        [&magic.to_ne_bytes()[..], &[0; 600], BUILD.as_bytes(), &[0; 4000]].concat()
    }

    #[test]
    fn a_default_archive_is_dumped_by_its_own_runtime_image_and_others_by_the_program_that_names_them() {
        let of = |paths: &[&str]| commands(&paths.iter().map(Path::new).collect::<Vec<_>>());
        let dump = vec![vec![OsString::from("/usr/lib/jvm/j/bin/java"), OsString::from("-Xshare:dump")]];
        let (one, other) = ("/usr/lib/jvm/j/lib/server/classes.jsa", "/usr/lib/jvm/j/lib/server/classes_nocoops.jsa");
        assert_eq!(of(&[one, other]), dump);
        assert_eq!(of(&["/srv/app/lib/app.jsa", "/srv/app/classes.jsa"]), Vec::<Vec<OsString>>::new());
    }

    #[test]
    fn a_default_archive_fits_the_library_that_has_the_name_of_its_build() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("classes.jsa");
        fs::write(&path, archive(MAGIC[0])).unwrap();
        assert!(matches!(freshness(&path), Freshness::Unknown(why) if why.contains("command line")));
        fs::write(place.path().join("libjvm.so"), format!("\x7fELF OpenJDK{BUILD}\0")).unwrap();
        assert_eq!(freshness(&path), Freshness::Current);
        fs::write(place.path().join("libjvm.so"), "\x7fELF OpenJDK 64-Bit Server VM (17.0.16+8)").unwrap();
        assert!(matches!(freshness(&path), Freshness::Stale(why) if why.contains("17.0.15+6")));
        fs::write(&path, archive(7)).unwrap();
        assert!(matches!(freshness(&path), Freshness::Stale(why) if why.contains("does not begin")));
    }

    #[test]
    fn a_cache_of_another_compiler_is_not_called_stale() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("app.aot");
        assert!(recognises(&path, FileKind::Regular));
        fs::write(&path, "something else").unwrap();
        assert!(matches!(freshness(&path), Freshness::Unknown(why) if why.contains("another program")));
        fs::write(&path, archive(MAGIC[0])).unwrap();
        assert!(matches!(freshness(&path), Freshness::Unknown(why) if why.contains("command line")));
    }

    #[test]
    fn the_archives_of_an_installed_jvm_fit_it() {
        let server = Path::new("/usr/lib/jvm/java-17-openjdk-amd64/lib/server/classes.jsa");
        if !server.exists() {
            println!("skipped: there is no {}", server.display());
            return;
        }
        assert_eq!(freshness(server), Freshness::Current);
    }

    #[test]
    fn a_jvm_without_an_archive_misses_it() {
        assert!(missing(Path::new("/j"), &["libjvm.so".into()]).is_some());
        assert!(missing(Path::new("/j"), &["libjvm.so".into(), "classes_nocoops.jsa".into()]).is_none());
        assert!(missing(Path::new("/j"), &["libjava.so".into()]).is_none());
    }
}
