//! The text of a policy, strictly: what is not known is an error with its line.

use super::{Policy, PolicyArtifact, PolicyUser, Repair};
use serde::Deserialize;
use slowpath_artifacts::audit::FitsBy;
use slowpath_artifacts::families;
use slowpath_process::NO_ID;
use slowpath_tables::FileProblem;
use slowpath_tables::written::duration;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use toml::{Spanned, Value};

/// Lines that one start writes at most: what is looked at while a product waits is bounded.
const MOST_CHECKS: usize = 10_000;
/// Bytes of a name, which becomes one of a file, and of a version.
const MOST_NAME: usize = 64;
/// Bytes of a path (`PATH_MAX`, include/uapi/linux/limits.h).
const MOST_PATH: usize = 4096;
/// Words of a command, and groups of a user (a quarter of `NGROUPS_MAX`).
const MOST_WORDS: usize = 1024;
const MOST_GROUPS: usize = 16_384;
/// A repair that the policy gives no time.
const TIMEOUT: Duration = Duration::from_secs(60);
/// No repair has more.
const MOST_TIMEOUT: Duration = Duration::from_secs(3600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Spanned<String>,
    version: Spanned<String>,
    state: Option<Spanned<PathBuf>>,
    #[serde(default)]
    artifact: Vec<Spanned<ArtifactTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArtifactTable {
    name: Spanned<String>,
    paths: Spanned<Vec<Spanned<PathBuf>>>,
    #[serde(rename = "for")]
    users: Vec<Spanned<Value>>,
    only_if_exists: Option<Spanned<PathBuf>>,
    source: Option<Spanned<PathBuf>>,
    fresh: Option<Spanned<Fresh>>,
    repair: Option<RepairTable>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fresh {
    Family,
    NotOlderThanSource,
    Readable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepairTable {
    command: Spanned<Vec<String>>,
    #[serde(rename = "as")]
    user: Spanned<Value>,
    timeout: Option<Spanned<String>>,
}

/// Where in the text, and what.
type Wrong = (usize, String);

/// Reads a policy from the text of its file.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn parse(text: &str) -> Result<Policy, FileProblem> {
    let document: Document = toml::from_str(text)
        .map_err(|error| FileProblem::of_parser(text, error.span().map(|span| span.start), error.message()))?;
    policy(document).map_err(|(offset, words)| FileProblem::at(text, offset, words))
}

fn policy(document: Document) -> Result<Policy, Wrong> {
    let name = named(&document.name)?;
    let version = document.version.get_ref().clone();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+~:".contains(&byte);
    if version.is_empty() || version.len() > MOST_NAME || !version.bytes().all(is_plain) {
        let rule = format!("version has 1 to {MOST_NAME} letters, digits, `-`, `_`, `.`, `+`, `~` and `:`");
        return wrong(&document.version, rule);
    }
    let state = document.state.as_ref().map(absolute).transpose()?;
    let (mut names, mut checks) = (BTreeSet::new(), 0usize);
    let mut artifacts = Vec::with_capacity(document.artifact.len());
    for table in document.artifact {
        let start = table.span().start;
        let artifact = artifact(table.into_inner())?;
        if !names.insert(artifact.name.clone()) {
            return Err((start, format!("there are two artifacts {:?}", artifact.name)));
        }
        if artifact.repair.is_some() && state.is_none() {
            let why = "with a `repair`, the policy needs a directory `state` that records what was tried";
            return Err((start, why.to_owned()));
        }
        checks += artifact.paths.len() * artifact.users.len().max(1);
        if checks > MOST_CHECKS {
            return Err((start, format!("more than {MOST_CHECKS} files and users are too many for a start")));
        }
        artifacts.push(artifact);
    }
    if artifacts.is_empty() {
        return wrong(&document.name, "there is nothing to guard: no [[artifact]]");
    }
    Ok(Policy { name, version, state, artifacts })
}

fn artifact(table: ArtifactTable) -> Result<PolicyArtifact, Wrong> {
    let name = named(&table.name)?;
    let paths = table.paths.get_ref().iter().map(absolute).collect::<Result<Vec<PathBuf>, Wrong>>()?;
    if paths.is_empty() {
        return wrong(&table.paths, "paths names no file");
    }
    let source = table.source.as_ref().map(absolute).transpose()?;
    let fits_by = fits_by(&table, &paths, source)?;
    let mut users = table.users.iter().map(user).collect::<Result<Vec<PolicyUser>, Wrong>>()?;
    // Named twice, counted once.
    let mut seen = BTreeSet::new();
    users.retain(|user| seen.insert(user.clone()));
    let only_if_exists = table.only_if_exists.as_ref().map(absolute).transpose()?;
    let repair = table.repair.map(repair).transpose()?;
    Ok(PolicyArtifact { name, paths, users, only_if_exists, fits_by, repair })
}

fn fits_by(table: &ArtifactTable, paths: &[PathBuf], source: Option<PathBuf>) -> Result<FitsBy, Wrong> {
    let stranger = paths.iter().find(|path| families::of_file(path).is_none());
    let fresh = table.fresh.as_ref().map(|fresh| (*fresh.get_ref(), fresh.span().start));
    match (fresh, source, stranger) {
        (Some((Fresh::Family, at)), None, Some(path)) => {
            Err((at, format!("no family knows {}: `slowpath explain` lists the families", path.display())))
        }
        (Some((Fresh::NotOlderThanSource, at)), None, _) => Err((at, "there is no `source`".to_owned())),
        (Some((Fresh::Family | Fresh::Readable, at)), Some(_), _) => {
            Err((at, "`source` goes with fresh = \"not_older_than_source\"".to_owned()))
        }
        (Some((Fresh::Readable, _)), None, _) => Ok(FitsBy::Reading),
        (None | Some((Fresh::NotOlderThanSource, _)), Some(source), _) => Ok(FitsBy::NotOlderThan(source)),
        (None | Some((Fresh::Family, _)), None, None) => Ok(FitsBy::Family),
        (None, None, Some(path)) => wrong(
            &table.paths,
            format!("no family knows {}: name its `source`, or say fresh = \"readable\"", path.display()),
        ),
    }
}

fn repair(table: RepairTable) -> Result<Repair, Wrong> {
    let words = table.command.get_ref();
    let Some(program) = words.first() else { return wrong(&table.command, "command names no program") };
    if !Path::new(program).is_absolute() {
        return wrong(&table.command, format!("{program:?} is no absolute path: no PATH is searched"));
    }
    if words.len() > MOST_WORDS || words.iter().any(|word| word.contains('\0')) {
        return wrong(&table.command, format!("command has at most {MOST_WORDS} words, without a null byte"));
    }
    let user = match user(&table.user)? {
        PolicyUser::Known(user) => user,
        PolicyUser::Ids { .. } => return wrong(&table.user, "as is the name or the uid of a user"),
    };
    let timeout = match &table.timeout {
        Some(text) => {
            let has_unit = text.get_ref().ends_with(|last: char| last.is_ascii_alphabetic());
            let timeout = duration(text.get_ref()).ok().filter(|timeout| has_unit && *timeout <= MOST_TIMEOUT);
            timeout.ok_or_else(|| {
                (text.span().start, "timeout is a time up to an hour: \"300ms\", \"60s\", \"5min\"".into())
            })?
        }
        None => TIMEOUT,
    };
    Ok(Repair { command: table.command.into_inner(), user, timeout })
}

fn wrong<T, U>(place: &Spanned<T>, words: impl Into<String>) -> Result<U, Wrong> {
    Err((place.span().start, words.into()))
}

fn named(name: &Spanned<String>) -> Result<String, Wrong> {
    let text = name.get_ref();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text.is_empty() || text.len() > MOST_NAME || text.starts_with('.') || !text.bytes().all(is_word) {
        let rule = format!("name has 1 to {MOST_NAME} letters, digits, `-`, `_` and `.`, and begins with no dot");
        return wrong(name, rule);
    }
    Ok(text.clone())
}

fn absolute(path: &Spanned<PathBuf>) -> Result<PathBuf, Wrong> {
    let text = path.get_ref();
    let is_plain = text.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let bytes = text.as_os_str().as_encoded_bytes();
    if !text.is_absolute() || !is_plain || bytes.len() > MOST_PATH || bytes.contains(&0) {
        return wrong(path, format!("{:?} is no absolute path without `..`", text.display().to_string()));
    }
    Ok(text.clone())
}

fn user(value: &Spanned<Value>) -> Result<PolicyUser, Wrong> {
    let at = value.span().start;
    match value.get_ref() {
        Value::String(name) if !name.is_empty() && !name.chars().any(char::is_control) => {
            Ok(PolicyUser::Known(name.clone()))
        }
        Value::Integer(uid) => Ok(PolicyUser::Known(id(*uid, at)?.to_string())),
        Value::Table(table) => ids(table, at),
        _ => Err((at, "a user is a name, a uid, or { uid = N, gid = N, groups = [N, ...] }".to_owned())),
    }
}

fn ids(table: &toml::Table, at: usize) -> Result<PolicyUser, Wrong> {
    if let Some(key) = table.keys().find(|key| !["uid", "gid", "groups"].contains(&key.as_str())) {
        return Err((at, format!("a user has no {key:?}, but uid, gid and groups")));
    }
    let number = |key: &str| match table.get(key) {
        Some(Value::Integer(number)) => id(*number, at),
        _ => Err((at, format!("a user in braces has a number {key}"))),
    };
    let (uid, gid) = (number("uid")?, number("gid")?);
    let groups = match table.get("groups") {
        None => Vec::new(),
        Some(Value::Array(groups)) if groups.len() <= MOST_GROUPS => {
            let group = |group: &Value| match group {
                Value::Integer(group) => id(*group, at),
                _ => Err((at, "groups are numbers".to_owned())),
            };
            groups.iter().map(group).collect::<Result<Vec<u32>, Wrong>>()?
        }
        Some(_) => return Err((at, format!("groups is a list of at most {MOST_GROUPS} numbers"))),
    };
    Ok(PolicyUser::Ids { uid, gid, groups })
}

fn id(number: i64, at: usize) -> Result<u32, Wrong> {
    let id = u32::try_from(number).ok().filter(|id| *id != NO_ID);
    id.ok_or_else(|| (at, format!("{number} is no id of a user or group")))
}

#[cfg(test)]
mod tests;
