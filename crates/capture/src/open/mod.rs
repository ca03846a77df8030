//! Probe `open`: attempts to open a file, with their result; and calls that look at a path or make a directory, where they are refused.
//! A program may ask before it opens (access(2)), and is refused nothing then that an open would show.
//!
//! A relative path is reported with the directory that it starts from, the working directory or the one of openat(2), and made absolute
//! where the path of that directory is known. One that climbs out of it (`..`) stays as it is where the directory's file system is mounted
//! in several places: through which of them the process works is not known.

use crate::context::Context;
use crate::events::{EVENT_OPEN, FILENAME_BYTES, PATH_LOOK, PATH_MAKE_DIRECTORY, open_event, record, text};
use crate::file_rows::HostPaths;
use crate::names::Names;
use crate::probe::{Probe, SYSTEM_CALLS};
use crate::records::{RecordKind, Text};
use slowpath_tables::{FileKey, Nanos, Open, RefusedCall};
use std::mem::offset_of;

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "open",
    title: "opens of files",
    what: "Each attempt to open a file, with its result.",
    asked_for: "of a command always, but with `--no-files`; of processes that run already with `--files`",
    price: "that of `system_calls`, and some 0.5 us for each recorded call",
    is_handed_calls: true,
    is_wanted: |options| options.files && !options.processes_only,
    records: &[RecordKind::of::<open_event>(EVENT_OPEN, "opens", |bytes, to| {
        to.out.opens.extend(decode(bytes, to.context, to.host_paths, to.names));
    })
    .with_texts(&[Text::ended(offset_of!(open_event, path), FILENAME_BYTES)])],
    tracepoints: SYSTEM_CALLS,
    ..Probe::USUAL
};

pub(crate) fn decode(bytes: &[u8], context: &Context, host_paths: &HostPaths, names: &Names) -> Option<Open> {
    let event: open_event = record(bytes)?;
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    let opened = event.ino != 0;
    let base = FileKey { dev: event.base_dev, ino: event.base_ino };
    let path = text(&event.path);
    let starts_there = base.ino != 0 && !path.is_empty() && !path.starts_with('/');
    let is_certain = starts_there && (!climbs(&path) || host_paths.is_mounted_once(base.dev));
    let base = is_certain.then(|| host_paths.path(names, base)).flatten();
    Some(Open {
        ts: Nanos(event.header.ts),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        path: base.map_or_else(|| path.clone(), |base| beneath(&base, &path)),
        flags: event.open_flags,
        call: match event.call {
            PATH_LOOK => Some(RefusedCall::Look),
            PATH_MAKE_DIRECTORY => Some(RefusedCall::MakeDirectory),
            _ => None,
        },
        result: event.result,
        dev: opened.then_some(event.dev),
        ino: opened.then_some(event.ino),
    })
}

/// Whether a relative path leaves its directory at once. `a/..` does not.
fn climbs(path: &str) -> bool {
    path.split('/').find(|part| !matches!(*part, "" | ".")) == Some("..")
}

/// A relative path from a directory whose own path has no symbolic link, so that `..` at its begin is the part before. Behind a name it
/// may be another: that name can be a link.
fn beneath(base: &str, path: &str) -> String {
    let mut base = base.trim_end_matches('/');
    let mut rest = path;
    loop {
        rest = match rest.split_once('/').unwrap_or((rest, "")) {
            (".", after) => after.trim_start_matches('/'),
            ("..", after) => {
                base = base.rsplit_once('/').map_or("", |(above, _)| above);
                after.trim_start_matches('/')
            }
            _ => break,
        };
    }
    match rest {
        "" if base.is_empty() => "/".to_owned(),
        "" => base.to_owned(),
        rest => format!("{base}/{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_climbs_where_it_leaves_its_directory_at_once() {
        assert!(["..", "../a", "./../a", ".//.."].into_iter().all(climbs));
        assert!(!["a", "./a", "a/../..", "..a", ""].into_iter().any(climbs));
    }

    #[test]
    fn a_relative_path_starts_from_its_directory() {
        for (base, path, whole) in [
            ("/a/b", "c", "/a/b/c"),
            ("/a/b", "./c/../d", "/a/b/c/../d"),
            ("/a/b", "../c", "/a/c"),
            ("/a/b", ".././/../../c", "/c"),
            ("/a/b", ".", "/a/b"),
            ("/a/b", "..", "/a"),
            ("/", "c/", "/c/"),
            ("/", "..", "/"),
        ] {
            assert_eq!(beneath(base, path), whole, "{base} {path}");
        }
    }
}
