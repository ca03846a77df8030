//! Which artifacts a command is to find unreadable, stale or missing: the file of `slowpath artifacts age`.
//!
//! Owns its form, strict TOML that people write, and taking the same from an audit's JSON of another machine. Leaves opening the file, and
//! what a state means for files that are here, to the command.
//!
//! ```toml
//! [[artifact]]
//! path = "/srv/app/shop/__pycache__"   # absolute
//! state = "unreadable"                 # or "stale", "missing"
//! mode = "0700"                        # unreadable only: its permissions then; without it only the owner keeps his
//!
//! [[artifact]]
//! path = "/srv/app/app.jsa"
//! state = "stale"
//! made_from = "/srv/app/app.jar"       # stale only: what is newer; known without it for Python's bytecode
//! ```

use crate::audit::State;
use crate::families;
use serde::{Deserialize, Serialize};
use slowpath_tables::FileProblem;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The largest file that is read, in bytes: an audit of a distribution has some MiB.
pub const MOST_BYTES: u64 = 64 << 20;

/// Artifacts of one file at most: each takes a mount of the launch.
pub const MOST_ARTIFACTS: usize = 512;

/// The schema of an audit that is taken for a file of states.
const AUDIT_SCHEMA: &str = "slowpath-artifacts-audit/1";

/// The states of artifacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldState {
    /// Each path once.
    pub artifacts: Vec<FieldArtifact>,
}

/// One artifact, and how it is to be found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldArtifact {
    /// Its path, absolute; of an unreadable one maybe the directory that denies.
    pub path: PathBuf,
    /// Its state.
    pub state: Aged,
}

/// How an artifact is to be found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Aged {
    /// It may not be read.
    Unreadable {
        /// Its permission bits; `None` leaves the owner's.
        mode: Option<u32>,
    },
    /// What it was made from is newer.
    Stale {
        /// What it was made from.
        made_from: PathBuf,
    },
    /// It is not there.
    Missing,
}

/// What is wrong with a file of states.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldStateError {
    /// It is not UTF-8.
    #[error("it is not UTF-8")]
    NotText,
    /// It has another form.
    #[error(transparent)]
    Form(#[from] FileProblem),
    /// It is JSON, and no audit.
    #[error("it is JSON, but not what `slowpath artifacts audit --json` prints ({AUDIT_SCHEMA})")]
    NoAudit,
    /// A path is not one.
    #[error("{0:?} is no absolute path of a file without `.` and `..`")]
    Path(PathBuf),
    /// A path stands twice in it.
    #[error("{0:?} stands in it twice")]
    Twice(PathBuf),
    /// A mode is none.
    #[error("mode {0:?}: write the permission bits in octal, as \"0600\"")]
    Mode(String),
    /// A key belongs to another state.
    #[error("{path:?}: `{key}` is for artifacts that are {state}")]
    Key {
        /// The artifact.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// The state that has it.
        state: &'static str,
    },
    /// What it was made from is not known.
    #[error("{0:?} is to be stale: say with `made_from` what it was made from, which is then seen as newer")]
    MadeFrom(PathBuf),
    /// It names nothing.
    #[error("it names no artifact that is unreadable, stale or missing")]
    Empty,
    /// It names too much.
    #[error("it names {0} artifacts, and a launch can have {MOST_ARTIFACTS}")]
    TooMany(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    artifact: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: PathBuf,
    state: Written,
    mode: Option<String>,
    made_from: Option<PathBuf>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Written {
    Unreadable,
    Stale,
    Missing,
}

/// The part of an audit that is taken.
#[derive(Deserialize)]
struct Audit {
    schema: String,
    artifacts: Vec<Audited>,
}

#[derive(Deserialize)]
struct Audited {
    path: PathBuf,
    state: State,
    denied_by: Option<Denier>,
}

#[derive(Deserialize)]
struct Denier {
    path: PathBuf,
}

impl FieldState {
    /// Reads a file: TOML, or where it begins with `{` an audit.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, FieldStateError> {
        let text = std::str::from_utf8(bytes).map_err(|_| FieldStateError::NotText)?;
        let artifacts = if text.trim_start().starts_with('{') { of_audit(text)? } else { of_toml(text)? };
        match artifacts.len() {
            0 => Err(FieldStateError::Empty),
            count if count > MOST_ARTIFACTS => Err(FieldStateError::TooMany(count)),
            _ => Ok(Self { artifacts }),
        }
    }
}

fn of_toml(text: &str) -> Result<Vec<FieldArtifact>, FieldStateError> {
    let document: Document = toml::from_str(text)
        .map_err(|error| FileProblem::of_parser(text, error.span().map(|span| span.start), error.message()))?;
    let mut artifacts: Vec<FieldArtifact> = Vec::new();
    for entry in document.artifact {
        let artifact = of_entry(entry)?;
        if artifacts.iter().any(|known| known.path == artifact.path) {
            return Err(FieldStateError::Twice(artifact.path));
        }
        artifacts.push(artifact);
        if artifacts.len() > MOST_ARTIFACTS {
            return Err(FieldStateError::TooMany(artifacts.len()));
        }
    }
    Ok(artifacts)
}

fn of_entry(Entry { path, state, mode, made_from }: Entry) -> Result<FieldArtifact, FieldStateError> {
    let path = plain(path)?;
    let only = |key, state| FieldStateError::Key { path: path.clone(), key, state };
    if mode.is_some() && !matches!(state, Written::Unreadable) {
        return Err(only("mode", "unreadable"));
    }
    if made_from.is_some() && !matches!(state, Written::Stale) {
        return Err(only("made_from", "stale"));
    }
    let state = match state {
        Written::Unreadable => Aged::Unreadable { mode: mode.as_deref().map(octal).transpose()? },
        Written::Stale => stale(&path, made_from)?,
        Written::Missing => Aged::Missing,
    };
    Ok(FieldArtifact { path, state })
}

fn of_audit(text: &str) -> Result<Vec<FieldArtifact>, FieldStateError> {
    let audit: Audit = serde_json::from_str(text).map_err(|_| FieldStateError::NoAudit)?;
    if audit.schema != AUDIT_SCHEMA {
        return Err(FieldStateError::NoAudit);
    }
    // A directory denies all that is in it, and stands in the list once.
    let mut found: BTreeMap<PathBuf, Aged> = BTreeMap::new();
    for artifact in audit.artifacts {
        let path = match (artifact.state, artifact.denied_by) {
            (State::Unreadable, Some(denier)) => denier.path,
            _ => artifact.path,
        };
        let state = match artifact.state {
            State::Unreadable => Aged::Unreadable { mode: None },
            State::Stale => match stale(&path, None) {
                Ok(state) => state,
                // Of other families the audit does not say what is newer.
                Err(_) => continue,
            },
            State::Missing => Aged::Missing,
            State::Unknown | State::Usable => continue,
        };
        found.entry(plain(path)?).or_insert(state);
    }
    Ok(found.into_iter().map(|(path, state)| FieldArtifact { path, state }).collect())
}

fn stale(path: &Path, made_from: Option<PathBuf>) -> Result<Aged, FieldStateError> {
    let made_from = made_from.or_else(|| families::made_from(path));
    let made_from = made_from.ok_or_else(|| FieldStateError::MadeFrom(path.to_owned()))?;
    Ok(Aged::Stale { made_from: plain(made_from)? })
}

/// An absolute path that names a file by names alone.
fn plain(path: PathBuf) -> Result<PathBuf, FieldStateError> {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    let has_nul = path.as_os_str().as_encoded_bytes().contains(&0);
    if path.is_absolute() && path.file_name().is_some() && path.components().all(is_plain) && !has_nul {
        // Without doubled and trailing slashes, so that one file has one path.
        return Ok(path.components().collect());
    }
    Err(FieldStateError::Path(path))
}

fn octal(text: &str) -> Result<u32, FieldStateError> {
    let is_octal = (3..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| is_octal && *mode <= 0o777);
    mode.ok_or_else(|| FieldStateError::Mode(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<(String, Aged)>, FieldStateError> {
        let state = FieldState::parse(text.as_bytes())?;
        let artifacts = state.artifacts.into_iter().map(|one| (one.path.to_string_lossy().into_owned(), one.state));
        Ok(artifacts.collect())
    }

    #[test]
    fn each_state_is_read_with_what_belongs_to_it() {
        let text = "[[artifact]]\npath = \"/a/__pycache__\"\nstate = \"unreadable\"\nmode = \"0700\"\n\
            [[artifact]]\npath = \"/a//__pycache__/m.cpython-311.pyc\"\nstate = \"stale\"\n\
            [[artifact]]\npath = \"/a/app.jsa\"\nstate = \"stale\"\nmade_from = \"/a/app.jar\"\n\
            [[artifact]]\npath = \"/a/cache\"\nstate = \"missing\"\n";
        let stale = |path: &str| Aged::Stale { made_from: path.into() };
        let expected = [
            ("/a/__pycache__", Aged::Unreadable { mode: Some(0o700) }),
            ("/a/__pycache__/m.cpython-311.pyc", stale("/a/m.py")),
            ("/a/app.jsa", stale("/a/app.jar")),
            ("/a/cache", Aged::Missing),
        ];
        assert_eq!(parsed(text).unwrap(), expected.map(|(path, state)| (path.to_owned(), state)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let one = |rest: &str| parsed(&format!("[[artifact]]\npath = \"/a\"\n{rest}"));
        assert!(matches!(one("state = \"old\""), Err(FieldStateError::Form(problem)) if problem.line == Some(3)));
        assert!(matches!(one("state = \"missing\"\nwhom = 3"), Err(FieldStateError::Form(_))));
        assert!(matches!(one("state = \"unreadable\"\nmode = \"4755\""), Err(FieldStateError::Mode(_))));
        assert!(matches!(one("state = \"unreadable\"\nmode = \"u+r\""), Err(FieldStateError::Mode(_))));
        assert!(matches!(one("state = \"missing\"\nmode = \"0600\""), Err(FieldStateError::Key { key: "mode", .. })));
        assert!(matches!(one("state = \"stale\""), Err(FieldStateError::MadeFrom(_))));
        assert!(matches!(
            one("state = \"missing\"\n[[artifact]]\npath = \"/a/\"\nstate = \"missing\""),
            Err(FieldStateError::Twice(_))
        ));
        for path in ["a", "/", "/a/../b", ""] {
            let text = format!("[[artifact]]\npath = \"{path}\"\nstate = \"missing\"");
            assert!(matches!(parsed(&text), Err(FieldStateError::Path(_))), "{path}");
        }
        assert_eq!(parsed(""), Err(FieldStateError::Empty));
        assert_eq!(FieldState::parse(b"\xff"), Err(FieldStateError::NotText));
        let many = "[[artifact]]\npath = \"/aNUMBER\"\nstate = \"missing\"\n";
        let many: String = (0..=MOST_ARTIFACTS).map(|number| many.replace("NUMBER", &number.to_string())).collect();
        assert_eq!(parsed(&many), Err(FieldStateError::TooMany(MOST_ARTIFACTS + 1)));
    }

    #[test]
    fn of_an_audit_the_file_that_denies_is_unreadable_once_and_what_is_usable_stays() {
        let artifact = |path: &str, state: &str, denier: &str| {
            format!("{{\"path\": \"{path}\", \"family\": \"x\", \"state\": \"{state}\", \"denied_by\": {denier}}}")
        };
        let denier = "{\"path\": \"/a/c\", \"access\": \"search\"}";
        let artifacts = [
            artifact("/a/c/1", "unreadable", denier),
            artifact("/a/c/2", "unreadable", denier),
            artifact("/a/__pycache__/m.cpython-311.pyc", "stale", "null"),
            artifact("/a/app.jsa", "stale", "null"),
            artifact("/b", "missing", "null"),
            artifact("/c", "usable", "null"),
        ];
        let text = |schema: &str| format!("{{\"schema\": \"{schema}\", \"artifacts\": [{}]}}", artifacts.join(", "));
        let expected = [
            ("/a/__pycache__/m.cpython-311.pyc", Aged::Stale { made_from: "/a/m.py".into() }),
            ("/a/c", Aged::Unreadable { mode: None }),
            ("/b", Aged::Missing),
        ];
        assert_eq!(parsed(&text(AUDIT_SCHEMA)).unwrap(), expected.map(|(path, state)| (path.to_owned(), state)));
        assert_eq!(parsed(&text("other")), Err(FieldStateError::NoAudit));
        assert_eq!(parsed("{\"a\": 1}"), Err(FieldStateError::NoAudit));
    }
}
