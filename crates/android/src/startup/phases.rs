//! What slices say of a launch, by their names: one row a kind. The names without `time_` are those of Perfetto's `android_startup`.

use super::printed::{OpenedCode, Phase};

/// A kind of slices.
struct SliceKind {
    name: &'static str,
    is_one: fn(&str) -> bool,
}

const fn kind(name: &'static str, is_one: fn(&str) -> bool) -> SliceKind {
    SliceKind { name, is_one }
}

/// Of ART's verifier; the name of the class follows.
pub const VERIFY: &str = "VerifyClass ";
/// Of the dynamic linker; the library follows.
const DLOPEN: &str = "dlopen: ";

const KINDS: [SliceKind; 16] = [
    kind("post_fork", |name| name == "PostFork"),
    kind("activity_thread_main", |name| name == "ActivityThreadMain"),
    kind("bind_application", |name| name == "bindApplication"),
    kind("activity_start", |name| name == "activityStart"),
    kind("activity_resume", |name| name == "activityResume"),
    kind("activity_restart", |name| name == "activityRestart"),
    kind("choreographer", |name| name.starts_with("Choreographer#doFrame")),
    kind("inflate", |name| name == "inflate"),
    kind("get_resources", |name| name == "ResourcesManager#getResources"),
    kind("class_initialization", is_class),
    kind("dex_open", |name| name.starts_with("OpenDexFilesFromOat")),
    kind("verify_class", |name| name.starts_with("VerifyClass")),
    kind("gc", is_gc),
    kind("dlopen", |name| name.starts_with("dlopen:") && name.ends_with(".so")),
    kind("lock_contention", |name| name.starts_with("Lock contention on")),
    kind("monitor_contention", |name| name.starts_with("Lock contention on a monitor")),
];

/// Moments: the last begin of such a slice on the main thread.
pub const MILESTONES: [(&str, &str); 3] = [
    ("post_fork", "PostFork"),
    ("activity_thread_main", "ActivityThreadMain"),
    ("bind_application", "bindApplication"),
];

/// A class in the form of ART: `Lcom/example/Main;`.
fn is_class(name: &str) -> bool {
    name.starts_with('L') && name.ends_with(';') && name.contains('/')
}

/// A garbage collection.
pub fn is_gc(name: &str) -> bool {
    ["semispace GC", "mark sweep GC", "concurrent copying GC"].iter().any(|end| name.ends_with(end))
}

/// The library that is loaded.
pub fn library(name: &str) -> Option<&str> {
    name.strip_prefix(DLOPEN).filter(|file| file.ends_with(".so"))
}

/// `location=FILE status=S filter=F reason=R`.
pub fn opened_code(name: &str) -> Option<OpenedCode> {
    let (location, rest) = name.strip_prefix("location=")?.split_once(" status=")?;
    let (status, rest) = rest.split_once(" filter=")?;
    let (filter, reason) = rest.split_once(" reason=")?;
    let own = str::to_owned;
    Some(OpenedCode { location: own(location), status: own(status), filter: own(filter), reason: own(reason) })
}

/// Sums of slices by kind.
#[derive(Debug, Default)]
pub struct PhaseSums([(u64, u64, u64); KINDS.len()]);

impl PhaseSums {
    /// Adds a slice.
    pub fn add(&mut self, name: &str, duration: u64, is_main: bool) {
        for (sums, kind) in self.0.iter_mut().zip(&KINDS) {
            if (kind.is_one)(name) {
                sums.0 += 1;
                sums.1 = sums.1.saturating_add(duration);
                sums.2 = sums.2.saturating_add(if is_main { duration } else { 0 });
            }
        }
    }

    /// The kinds of which there was a slice.
    pub fn finish(&self) -> Vec<Phase> {
        let phase = |(kind, (count, duration_ns, main_thread_ns)): (&SliceKind, &(u64, u64, u64))| Phase {
            name: kind.name.to_owned(),
            count: *count,
            duration_ns: *duration_ns,
            main_thread_ns: *main_thread_ns,
        };
        KINDS.iter().zip(&self.0).filter(|(_, sums)| sums.0 > 0).map(phase).collect()
    }
}
