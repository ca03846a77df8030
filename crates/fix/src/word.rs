//! A word of a command line or of an environment: any bytes without NUL. Most are text and are written as such in JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Bytes that are usually text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Word {
    /// Text.
    Text(String),
    /// What is not UTF-8.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
    },
}

impl Word {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes { bytes } => bytes,
        }
    }

    /// For the system.
    pub fn to_os_string(&self) -> OsString {
        OsString::from_vec(self.as_bytes().to_vec())
    }
}

impl From<Vec<u8>> for Word {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Bytes { bytes: error.into_bytes() },
        }
    }
}

impl From<&[u8]> for Word {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<&OsStr> for Word {
    fn from(word: &OsStr) -> Self {
        word.as_bytes().into()
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_survive_the_way_through_json(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let word = Word::from(bytes.clone());
            let read: Word = serde_json::from_str(&serde_json::to_string(&word).unwrap()).unwrap();
            prop_assert_eq!(read.as_bytes(), bytes.as_slice());
            prop_assert_eq!(read, word);
        }
    }

    #[test]
    fn text_is_written_as_text() {
        assert_eq!(serde_json::to_string(&Word::from("a b")).unwrap(), "\"a b\"");
        assert_eq!(serde_json::to_string(&Word::from(&b"\xff"[..])).unwrap(), r#"{"bytes":[255]}"#);
    }
}
