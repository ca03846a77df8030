//! How work fails: its kind, the chain of causes, and a hint that fits. It crosses process borders, because what parses foreign data
//! and what writes output runs in processes of their own; so causes are text. Leaves printing, and the exit code, to the command.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Unavailable;
use std::error::Error;

/// Kind of a failure, which is also the exit code of a command that ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A verdict or a check failed.
    Check = 1,
    /// Wrong usage or unusable input.
    Usage = 2,
    /// This machine cannot do it.
    Machine = 3,
    /// The target failed.
    Target = 4,
    /// Interrupted by the user.
    Interrupted = 130,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Its kind.
    kind: Kind,
    /// What failed. May have foreign text in it, as the causes may.
    message: String,
    /// What is behind it, the next cause first.
    causes: Vec<String>,
    /// What the user can do about it.
    hint: Option<String>,
}

/// Name and version of the JSON of a failure.
pub const ERROR_SCHEMA: &str = "slowpath-error/1";

/// What any command with `--json` prints when it fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrintedFailure {
    /// `slowpath-error/1`.
    #[schemars(extend("const" = ERROR_SCHEMA))]
    schema: &'static str,
    /// Why.
    error: Failure,
}

impl From<&Failure> for PrintedFailure {
    fn from(failure: &Failure) -> Self {
        Self { schema: ERROR_SCHEMA, error: failure.clone() }
    }
}

impl Failure {
    /// A failure with nothing behind it.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), causes: Vec::new(), hint: None }
    }

    /// Whether the user ended it.
    pub fn is_interruption(&self) -> bool {
        self.kind == Kind::Interrupted
    }

    /// A failure with the chain of `error`.
    pub fn from_error(kind: Kind, error: &(dyn Error + 'static)) -> Self {
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        Self { kind, message: error.to_string(), causes, hint: None }
    }

    /// Adds what the user can do about it, after what was said before.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        self.hint = Some(match self.hint {
            Some(before) => format!("{before}; {hint}"),
            None => hint,
        });
        self
    }

    /// The same, where there is something.
    #[must_use]
    pub fn hint_if_any(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// What was being done when it happened.
    #[must_use]
    pub fn during(mut self, what: impl Into<String>) -> Self {
        let message = std::mem::replace(&mut self.message, what.into());
        self.causes.insert(0, message);
        self
    }

    /// What is behind it, or itself where there is nothing.
    pub fn cause(&self) -> &str {
        self.causes.first().unwrap_or(&self.message)
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The message and its causes in one line.
    pub fn chain(&self) -> String {
        std::iter::once(&self.message).chain(&self.causes).map(String::as_str).collect::<Vec<_>>().join(": ")
    }

    /// The same failure when the user had asked to stop: ctrl-C at a terminal also ends the programs that slowpath runs,
    /// and what fails then is not the cause.
    #[must_use]
    pub fn after_interrupt(mut self) -> Self {
        if self.kind != Kind::Interrupted {
            self.causes.insert(0, self.message);
            self = Self { kind: Kind::Interrupted, message: "interrupted".to_owned(), causes: self.causes, hint: None };
        }
        self
    }

    /// A machine that lacks something: all gaps with their remedies.
    pub fn unavailable(what: &str, gaps: &[Unavailable]) -> Self {
        let causes = gaps.iter().map(|gap| format!("{}: {} (remedy: {})", gap.what, gap.reason, gap.remedy)).collect();
        let message = format!("this machine cannot {what} now");
        Self { kind: Kind::Machine, message, causes, hint: Some("`slowpath doctor` lists everything".to_owned()) }
    }

    /// The message without its causes.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What is behind it, the next cause first.
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// What the user can do about it.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// The error of a library, as the kind given.
pub fn failed<E: Error + 'static>(kind: Kind) -> impl Fn(E) -> Failure {
    move |error| Failure::from_error(kind, &error)
}
