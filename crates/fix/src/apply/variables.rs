//! The variables of a treatment, and which values a file can hold: checked before they are quoted.

use super::refusal::Refusal;
use crate::plan::FixPlan;
use crate::treatment::Treatment;

/// The variables of a treatment, each of a name that every shell and service manager takes.
pub(super) fn variables(plan: &FixPlan) -> Result<Vec<(&str, &[u8])>, Refusal> {
    let Treatment::Environment { variables } = &plan.treatment else { return Ok(Vec::new()) };
    let checked = variables.iter().map(|(name, value)| {
        let mut bytes = name.bytes();
        let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if !starts || !bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(Refusal::new(format!("{name:?} is no name of a variable"), "diagnose again"));
        }
        no_nul(value.as_bytes())?;
        Ok((name.as_str(), value.as_bytes()))
    });
    checked.collect()
}

/// Refuses a value with a NUL byte.
pub(super) fn no_nul(bytes: &[u8]) -> Result<(), Refusal> {
    match bytes.contains(&0) {
        true => Err(Refusal::new(
            "a value holds a NUL byte, which command lines and environments cannot hold",
            "diagnose again",
        )),
        false => Ok(()),
    }
}

/// The value as text of which every character can stand in a file of systemd or of a desktop: no control characters but tab and
/// line feed.
pub(super) fn plain_text<'a>(name: &str, value: &'a [u8]) -> Result<&'a str, Refusal> {
    let remedy = "--wrapper PATH takes any value";
    let text =
        std::str::from_utf8(value).map_err(|_| Refusal::new(format!("the value of {name} is not UTF-8"), remedy))?;
    match text.chars().find(|c| c.is_ascii_control() && !matches!(c, '\t' | '\n')) {
        Some(found) => Err(Refusal::new(format!("the value of {name} holds the control character {found:?}"), remedy)),
        None => Ok(text),
    }
}
