//! The verdict on one APK, in words.

use super::dex_amount::DexAmount;
use super::filter::{is_compiled, is_profile_guided, is_verified};
use super::printed::{CodeAudit, CodeOutcome, FileAudit, ReadState};

/// Android 12: since then ART runs with a vdex file alone (`OatFile::OpenFromVdex` in runtime/oat_file_assistant.cc of 12, not of 11).
const VDEX_ALONE: u32 = 31;

/// Who cannot read what, and what follows.
pub(super) fn verdict(code: &CodeAudit, api_level: Option<u32>) -> String {
    let odex = name(&code.odex);
    match code.outcome {
        CodeOutcome::Unreadable => {
            let how = [
                code.odex.mode.clone(),
                code.filter.as_deref().map(guided),
                code.reason.as_ref().map(|reason| format!("reason {reason}")),
                denier(&code.odex),
            ];
            let how: Vec<String> = how.into_iter().flatten().collect();
            format!(
                "renderers (isolated uid) cannot read {odex} ({}): {}",
                how.join(", "),
                consequence(code, api_level)
            )
        }
        CodeOutcome::Missing => {
            format!(
                "nothing is compiled ({}): {}",
                code.filter.as_deref().unwrap_or("no odex"),
                each_verifies(code.dex)
            )
        }
        CodeOutcome::NotCompiled => {
            let filter = code.filter.as_deref().unwrap_or("unknown");
            let rest = if is_verified(filter) {
                "classes are verified, and every process interprets and compiles its code anew"
            } else {
                "nothing is verified"
            };
            match code.vdex.state {
                ReadState::Unreadable => format!(
                    "filter {filter}, and renderers (isolated uid) cannot read {}: {}",
                    name(&code.vdex),
                    each_verifies(code.dex)
                ),
                _ => format!("compiled with filter {filter}: {rest}"),
            }
        }
        CodeOutcome::Unknown => {
            let why = code.odex.reason.as_deref().unwrap_or("the evidence does not show it");
            format!("whether renderers (isolated uid) can read {odex} is unknown: {why}")
        }
        CodeOutcome::Usable => match code.vdex.state {
            ReadState::Unreadable => {
                format!("{odex} can be read, but {} cannot: {}", name(&code.vdex), each_verifies(code.dex))
            }
            _ => format!("renderers (isolated uid) may read {odex}, as far as permissions go"),
        },
    }
}

fn guided(filter: &str) -> String {
    if is_profile_guided(filter) { "profile-guided".to_owned() } else { format!("filter {filter}") }
}

/// The directory that denies, where it is not the file itself.
fn denier(file: &FileAudit) -> Option<String> {
    let denied_by = file.denied_by.as_ref()?;
    (denied_by.path != file.path).then(|| format!("{}: {}", denied_by.path, denied_by.words))
}

fn consequence(code: &CodeAudit, api_level: Option<u32>) -> String {
    let is_vdex_enough =
        api_level.is_some_and(|level| level >= VDEX_ALONE) && code.filter.as_deref().is_none_or(is_compiled);
    match code.vdex.state {
        ReadState::Readable if is_vdex_enough => {
            format!(
                "each interprets and compiles its code anew; {} can be read, so classes are not verified again",
                name(&code.vdex)
            )
        }
        _ => each_verifies(code.dex),
    }
}

fn each_verifies(dex: Option<DexAmount>) -> String {
    match dex {
        Some(dex) => format!("each verifies up to {} of DEX again (estimate: all DEX of the APK)", dex.words()),
        None => "each verifies the DEX of the APK again (how much, the evidence does not show)".to_owned(),
    }
}

/// The last name of a path.
fn name(file: &FileAudit) -> &str {
    file.path.rsplit('/').next().unwrap_or(&file.path)
}
