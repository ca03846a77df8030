//! `dumpsys package dexopt`, and the part `Dexopt state:` of `dumpsys package`.
//!
//! Three forms: Android 7 and 8 (`Instruction Set:`, `path:`, `status: FILE [compilation_filter=..., status=...]`, broken at 80 columns);
//! 9 to 13 (`path:`, `ISA: [status=FILTER] [reason=REASON]`); ART Service since 14, which adds `[primary-abi]` and `[location is FILE]`
//! (libartservice, DumpHelper.java). Secondary DEX files, which an app loads itself, are left out.

use super::{is_device_path, is_package_name, lines};
use std::collections::BTreeSet;

/// What is compiled of one APK for one instruction set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DexoptState {
    /// The package.
    pub package: String,
    /// The APK.
    pub apk: String,
    /// ART's name of the instruction set (`arm64`).
    pub isa: String,
    /// The compiler filter, or `run-from-apk` and the like.
    pub status: String,
    /// Why it was compiled; `None` before Android 9.
    pub reason: Option<String>,
    /// The instruction set that the app runs in first; `None` where the text does not say.
    pub is_primary: Option<bool>,
    /// The file that ART would open; `None` where the text does not say, or it is none.
    pub location: Option<String>,
}

/// All states of a text, in its order.
pub fn dexopt_states(text: &str) -> Vec<DexoptState> {
    let mut reader = Reader::default();
    let mut lines = lines(text).peekable();
    while let Some(line) = lines.next() {
        let mut line = line.trim().to_owned();
        // A line that is broken at the width of the writer goes on in the next one.
        if line.starts_with("status: ") && !line.ends_with(']') && line.contains('[') {
            line.push_str(lines.next_if(|next| next.trim().ends_with(']')).unwrap_or_default().trim());
        }
        reader.line(&line);
    }
    // Where one is marked, the others of its APK are not the first.
    let primary: BTreeSet<String> =
        reader.states.iter().filter(|state| state.is_primary == Some(true)).map(|state| state.apk.clone()).collect();
    for state in reader.states.iter_mut().filter(|state| primary.contains(&state.apk)) {
        state.is_primary = Some(state.is_primary == Some(true));
    }
    reader.states
}

#[derive(Default)]
struct Reader {
    states: Vec<DexoptState>,
    package: Option<String>,
    apk: Option<String>,
    /// Of Android 7 and 8, where it stands above the path.
    isa: Option<String>,
    is_secondary: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if let Some(name) =
            line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|name| is_package_name(name))
        {
            *self =
                Self { states: std::mem::take(&mut self.states), package: Some(name.to_owned()), ..Self::default() };
        } else if line == "known secondary dex files:" {
            self.is_secondary = true;
        } else if let Some(path) = line.strip_prefix("path: ") {
            self.is_secondary = false;
            self.apk = is_device_path(path).then(|| path.to_owned());
        } else if let Some(isa) = line.strip_prefix("Instruction Set: ") {
            self.isa = is_word(isa).then(|| isa.to_owned());
        } else if let Some(location) = line.strip_prefix("[location is ").and_then(|rest| rest.strip_suffix(']')) {
            let last = self.states.last_mut().filter(|_| !self.is_secondary);
            if let Some(last) = last.filter(|last| Some(&last.apk) == self.apk.as_ref()) {
                last.location = is_device_path(location).then(|| location.to_owned());
            }
        } else if let Some(rest) = line.strip_prefix("status: ") {
            self.of_android_8(rest);
        } else if let Some((isa, rest)) = line.split_once(": [status=") {
            self.of_android_9(isa, rest);
        }
    }

    fn of_android_9(&mut self, isa: &str, rest: &str) {
        let Some((status, rest)) = rest.split_once(']') else { return };
        let of = |name: &str| {
            let (_, rest) = rest.split_once(name)?;
            Some(rest.split_once(']')?.0.to_owned())
        };
        let is_service = rest.contains("[primary-abi]").then_some(true);
        self.add(isa, status, of("[reason="), is_service, None);
    }

    fn of_android_8(&mut self, rest: &str) {
        let Some(isa) = self.isa.clone() else { return };
        let Some((file, parts)) = rest.rsplit_once('[') else { return };
        let parts = parts.trim_end_matches(']');
        let of = |name: &str| parts.split(", ").find_map(|part| part.strip_prefix(name));
        let filter = of("compilation_filter=").unwrap_or("unknown");
        let status = match of("status=") {
            None | Some("kOatUpToDate") => filter,
            // Out of date, or of another boot image: ART does not run it.
            Some(_) => "run-from-apk",
        };
        let file = file.trim();
        self.add(&isa, status, None, None, is_device_path(file).then(|| file.to_owned()));
    }

    fn add(
        &mut self,
        isa: &str,
        status: &str,
        reason: Option<String>,
        is_primary: Option<bool>,
        location: Option<String>,
    ) {
        let (Some(package), Some(apk), false) = (&self.package, &self.apk, self.is_secondary) else { return };
        if is_word(isa) && is_word(status) {
            let (package, apk, isa, status) = (package.clone(), apk.clone(), isa.to_owned(), status.to_owned());
            self.states.push(DexoptState { package, apk, isa, status, reason, is_primary, location });
        }
    }
}

/// A filter, a reason or an instruction set.
fn is_word(word: &str) -> bool {
    !word.is_empty()
        && word.len() < 64
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Package, instruction set, status, reason, location.
    type Row = (String, String, String, Option<String>, Option<String>);

    fn rows(text: &str) -> Vec<Row> {
        let states = dexopt_states(text).into_iter();
        states.map(|state| (state.package, state.isa, state.status, state.reason, state.location)).collect()
    }

    fn row(p: &str, isa: &str, status: &str, reason: Option<&str>, at: Option<&str>) -> Row {
        (p.to_owned(), isa.to_owned(), status.to_owned(), reason.map(str::to_owned), at.map(str::to_owned))
    }

    #[test]
    fn android_7_and_8_name_the_file_and_break_long_lines() {
        let text = "Dexopt state:\n  [org.a]\n    Instruction Set: arm64\n      path: /data/app/org.a-2/base.apk\n      status: \
                    /data/app/org.a-2/oat/arm64/base.odex [compilation_filter=speed-profile, status=kOatUpToDa\n      te]\n  [org.b]\n    \
                    Instruction Set: arm\n      path: /data/app/org.b-1/base.apk\n      status: \
                    /data/app/org.b-1/oat/arm/base.odex[status=kOatBootImageOutOfDate, compilation_filter=quicken]\n";
        assert_eq!(
            rows(text),
            [
                row("org.a", "arm64", "speed-profile", None, Some("/data/app/org.a-2/oat/arm64/base.odex")),
                row("org.b", "arm", "run-from-apk", None, Some("/data/app/org.b-1/oat/arm/base.odex")),
            ]
        );
    }

    #[test]
    fn android_9_to_13_have_filter_and_reason_and_what_an_app_loads_itself_is_left_out() {
        let text = "Dexopt state:\n  [com.android.chrome]\n    path: /data/app/~~a==/c-b==/base.apk\n      arm64: [status=speed-profile] \
                    [reason=bg-dexopt]\n      arm: [status=run-from-apk] [reason=unknown]\n      used by other apps: [com.x]\n      known \
                    secondary dex files:\n        /data/user/0/com.android.chrome/x.dex\n          arm64: [status=verify] [reason=vdex]\n";
        let chrome = "com.android.chrome";
        assert_eq!(
            rows(text),
            [
                row(chrome, "arm64", "speed-profile", Some("bg-dexopt"), None),
                row(chrome, "arm", "run-from-apk", Some("unknown"), None)
            ]
        );
    }

    #[test]
    fn art_service_names_the_location_and_the_primary_abi() {
        let text = "[a.b]\n  path: /data/app/b/base.apk\n    arm64: [status=speed-profile] [reason=bg-dexopt] [primary-abi]\n      \
                    [location is /data/app/b/oat/arm64/base.odex]\n    arm: [status=run-from-apk] [reason=unknown]\n      [location is \
                    error]\n  path: /data/app/b/split_0.apk\n    arm64: [status=verify] [reason=vdex] [primary-abi]\n      [location is \
                    primary.vdex in /data/app/b/split_0.dm]\n\nCurrent GC: CollectorTypeCMC\n";
        let states = dexopt_states(text);
        let at: Vec<_> = states.iter().map(|state| (state.is_primary, state.location.as_deref())).collect();
        assert_eq!(
            at,
            [(Some(true), Some("/data/app/b/oat/arm64/base.odex")), (Some(false), None), (Some(true), None)]
        );
        assert_eq!(states[2].apk, "/data/app/b/split_0.apk");
    }
}
