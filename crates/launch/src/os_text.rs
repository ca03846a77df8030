//! Serde for operating-system strings: a JSON string where the bytes are UTF-8, `{"bytes": [...]}` where not.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Plain(String),
    Raw { bytes: Vec<u8> },
}

impl From<&OsStr> for Text {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some(plain) => Text::Plain(plain.to_owned()),
            None => Text::Raw { bytes: text.as_bytes().to_vec() },
        }
    }
}

impl From<Text> for OsString {
    fn from(text: Text) -> Self {
        match text {
            Text::Plain(plain) => plain.into(),
            Text::Raw { bytes } => OsString::from_vec(bytes),
        }
    }
}

/// For `Vec<OsString>`.
pub(crate) mod list {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(words: &[OsString], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(words.iter().map(|word| Text::from(word.as_os_str())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<OsString>, D::Error> {
        Ok(Vec::<Text>::deserialize(deserializer)?.into_iter().map(OsString::from).collect())
    }
}

/// For `Vec<(OsString, OsString)>`.
pub(crate) mod pairs {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(pairs: &[(OsString, OsString)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(pairs.iter().map(|(a, b)| (Text::from(a.as_os_str()), Text::from(b.as_os_str()))))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(OsString, OsString)>, D::Error> {
        let pairs = Vec::<(Text, Text)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|(a, b)| (a.into(), b.into())).collect())
    }
}

/// For `PathBuf`.
pub(crate) mod path {
    use std::path::{Path, PathBuf};

    use super::*;

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        Text::from(path.as_os_str()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(OsString::from(Text::deserialize(deserializer)?).into())
    }
}
