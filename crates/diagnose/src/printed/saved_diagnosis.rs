//! A diagnosis, back from its JSON. It may come from anybody: any bytes give a diagnosis or an error.

use super::diagnosis::{DIAGNOSE_SCHEMA, Diagnosis};

/// Bytes of a diagnosis that are read back at most. That of a browser has some 300 KB: arms, findings and launches are few.
pub const MOST_DIAGNOSIS_BYTES: u64 = 32 << 20;

/// Why a text is no diagnosis.
#[derive(Debug, thiserror::Error)]
pub enum DiagnosisError {
    /// It is not JSON, or not with the fields of a diagnosis.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It is of another version, or something else.
    #[error("its schema is {found:?}, not {DIAGNOSE_SCHEMA}")]
    Schema {
        /// What it says.
        found: String,
    },
}

impl Diagnosis {
    /// Reads what `diagnose` wrote.
    ///
    /// # Errors
    /// See [`DiagnosisError`].
    pub fn of_json(bytes: &[u8]) -> Result<Self, DiagnosisError> {
        let diagnosis: Self = serde_json::from_slice(bytes)?;
        if diagnosis.schema != DIAGNOSE_SCHEMA {
            return Err(DiagnosisError::Schema { found: diagnosis.schema });
        }
        Ok(diagnosis)
    }
}
