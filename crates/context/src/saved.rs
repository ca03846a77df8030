//! A saved context, back from its JSON. It may come from anybody: any bytes give a context or an error.

use crate::snapshot::{SCHEMA, Snapshot};
use serde::Deserialize;

/// Why a text is no saved context.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It is not JSON, or not with the fields of a context.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It is of another version, or something else.
    #[error("its schema is {0:?}, not {SCHEMA}")]
    Schema(String),
    /// It is JSON of something else.
    #[error("it has no schema")]
    NoSchema,
}

/// The version of a saved context, whatever else it holds.
#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    schema: Option<String>,
}

impl Snapshot {
    /// Reads what `context save` wrote.
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn of_json(bytes: &[u8]) -> Result<Self, SavedError> {
        // The schema first, and nothing else is kept meanwhile: as a tree of values a text takes sixteen times its size.
        let version: Version = serde_json::from_slice(bytes)?;
        match version.schema {
            Some(schema) if schema == SCHEMA => Ok(serde_json::from_slice(bytes)?),
            Some(other) => Err(SavedError::Schema(other)),
            None => Err(SavedError::NoSchema),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn a_context_survives_the_way_through_its_json_and_other_json_is_refused() {
        let own = Snapshot::of_process(std::process::id()).unwrap();
        let text = serde_json::to_vec(&own).unwrap();
        // Whoever wrote a file, it is not the process that it tells of.
        assert_eq!(Snapshot::of_json(&text).unwrap(), Snapshot { source: Source::Foreign, ..own });
        let of = |text: &str| Snapshot::of_json(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(of("{\"schema\": \"x\\u009b\"}"), "its schema is \"x\\u{9b}\", not slowpath-context/1");
        assert_eq!(of("{}"), "it has no schema");
        assert!(matches!(Snapshot::of_json(b"{\"schema\": \"slowpath-context/1\"}"), Err(SavedError::Json(_))));
    }
}
