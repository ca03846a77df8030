//! Every parser of this crate that reads what others wrote, as functions of bytes, for the fuzzers.

use crate::adb;
use crate::format::{Dex, DexMetadata, Oat, Profile, Vdex, members, stored};
use crate::startup;
use crate::text;

/// A file of ART: oat, vdex, dex, dm, profile. Returns how many parsers took it for theirs.
pub fn art_file(bytes: &[u8]) -> usize {
    let vdex = Vdex::parse(bytes);
    if let Ok(vdex) = &vdex {
        assert!(vdex.dex.len() <= vdex.dex_files as usize, "more DEX headers than files");
    }
    for member in members(bytes).unwrap_or_default() {
        let data = stored(bytes, &member).unwrap_or_default();
        assert!(data.len() <= member.size as usize, "{member:?}");
    }
    usize::from(Oat::parse(bytes).is_ok())
        + usize::from(vdex.is_ok())
        + usize::from(Dex::parse(bytes).is_ok())
        + usize::from(DexMetadata::parse(bytes).is_ok())
        + usize::from(Profile::parse(bytes).is_ok())
}

/// A Perfetto trace of launches. Returns how many startups and child starts it has.
pub fn startup_trace(mut bytes: &[u8]) -> usize {
    let found = startup::read("trace", &mut slowpath_import::Input::new("trace", &mut bytes, &|| true));
    for startup in &found.startups {
        assert!(startup.first_frame >= startup.intent_received, "{startup:?}");
        let main = &startup.main_thread;
        assert!(main.storage_ns <= main.uninterruptible_ns, "{main:?}");
    }
    found.startups.len() + found.children.len()
}

/// A text that a device or adb printed. Returns how many states of dexopt it has.
pub fn device_text(text: &str) -> usize {
    let states = text::dexopt_states(text);
    for state in &states {
        assert!(text::is_package_name(&state.package) && text::is_device_path(&state.apk), "{state:?}");
    }
    for path in text::code_paths(text).iter().chain(&text::package(text).library_files) {
        assert!(text::is_device_path(path), "{path}");
    }
    text::properties(text).instruction_sets();
    text::processes(text);
    text::am_start(text);
    text::apk_members(text);
    adb::devices(text);
    states.len()
}
