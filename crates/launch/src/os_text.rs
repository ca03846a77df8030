//! Serde for operating-system strings: a JSON string where the bytes are UTF-8, `{"bytes": [...]}` where not.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::de::Visitor;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Between main and launcher, which speak a binary format, the bytes as they are.
struct Borrowed<'a>(&'a OsStr);

impl Serialize for Borrowed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(self.0.as_bytes());
        }
        match self.0.to_str() {
            Some(plain) => serializer.serialize_str(plain),
            None => Text::Raw { bytes: self.0.as_bytes().to_vec() }.serialize(serializer),
        }
    }
}

/// The text form.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Plain(String),
    Raw { bytes: Vec<u8> },
}

struct Owned(OsString);

impl<'de> Deserialize<'de> for Owned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_byte_buf(Raw);
        }
        Ok(Self(match Text::deserialize(deserializer)? {
            Text::Plain(plain) => plain.into(),
            Text::Raw { bytes } => OsString::from_vec(bytes),
        }))
    }
}

/// Takes bytes.
struct Raw;

impl Visitor<'_> for Raw {
    type Value = Owned;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the bytes of a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Owned, E> {
        Ok(Owned(OsString::from_vec(bytes.to_vec())))
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Owned, E> {
        Ok(Owned(OsString::from_vec(bytes)))
    }
}

/// For `Vec<OsString>`.
pub(crate) mod list {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(words: &[OsString], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(words.iter().map(|word| Borrowed(word)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<OsString>, D::Error> {
        Ok(Vec::<Owned>::deserialize(deserializer)?.into_iter().map(|word| word.0).collect())
    }
}

/// For `Vec<(OsString, OsString)>`.
pub(crate) mod pairs {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(pairs: &[(OsString, OsString)], serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.collect_seq(pairs.iter().map(|(a, b)| (Borrowed(a), Borrowed(b))));
        }
        serializer.serialize_bytes(&packed(pairs).ok_or_else(|| S::Error::custom("a string of 4 GiB"))?)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(OsString, OsString)>, D::Error> {
        if deserializer.is_human_readable() {
            let pairs = Vec::<(Owned, Owned)>::deserialize(deserializer)?;
            return Ok(pairs.into_iter().map(|(a, b)| (a.0, b.0)).collect());
        }
        deserializer.deserialize_bytes(Packed)
    }

    /// Takes what [`packed`] made, from where the bytes are.
    struct Packed;

    impl Visitor<'_> for Packed {
        type Value = Vec<(OsString, OsString)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("pairs of strings, packed")
        }

        fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
            unpacked(bytes).ok_or_else(|| E::custom("pairs of strings that end too early"))
        }
    }

    /// All strings in one, each behind its length: every launch waits for its environment to be written and read, and taking its
    /// variables one by one takes a serializer longer than all the rest of an order.
    fn packed(pairs: &[(OsString, OsString)]) -> Option<Vec<u8>> {
        let mut packed = Vec::with_capacity(pairs.iter().map(|(a, b)| a.len() + b.len() + 8).sum());
        for text in pairs.iter().flat_map(|(a, b)| [a, b]) {
            packed.extend_from_slice(&u32::try_from(text.len()).ok()?.to_le_bytes());
            packed.extend_from_slice(text.as_bytes());
        }
        Some(packed)
    }

    fn unpacked(mut packed: &[u8]) -> Option<Vec<(OsString, OsString)>> {
        let mut next = || {
            let (length, rest) = packed.split_first_chunk::<4>()?;
            let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            packed = rest;
            Some(OsStr::from_bytes(text).to_owned())
        };
        let mut pairs = Vec::new();
        while let Some(first) = next() {
            pairs.push((first, next()?));
        }
        packed.is_empty().then_some(pairs)
    }
}

/// For `PathBuf`.
pub(crate) mod path {
    use std::path::{Path, PathBuf};

    use super::*;

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        Borrowed(path.as_os_str()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(Owned::deserialize(deserializer)?.0.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_pass_through_text_and_through_the_wire() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Words(#[serde(with = "list")] Vec<OsString>, #[serde(with = "pairs")] Vec<(OsString, OsString)>);
        let odd = OsString::from_vec(vec![b'a', 0xff, b'"']);
        let words = Words(vec!["plain".into(), odd.clone(), "".into()], vec![("N".into(), odd)]);
        let text = serde_json::to_string(&words).unwrap();
        assert!(text.starts_with("[[\"plain\",{\"bytes\":[97,255,34]},\"\"]"), "{text}");
        assert_eq!(serde_json::from_str::<Words>(&text).unwrap(), words);
        let bytes = crate::wire::encoded(&words).unwrap();
        assert_eq!(crate::wire::decoded::<Words>(&bytes).unwrap(), words);
        assert!(crate::wire::decoded::<Words>(&bytes[..bytes.len() - 1]).is_err());
        let none = Words(Vec::new(), Vec::new());
        assert_eq!(crate::wire::decoded::<Words>(&crate::wire::encoded(&none).unwrap()).unwrap(), none);
    }

    #[test]
    fn pairs_whose_lengths_do_not_fit_are_refused() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Pairs(#[serde(with = "pairs")] Vec<(OsString, OsString)>);
        #[derive(Serialize)]
        struct Bytes<'a>(#[serde(serialize_with = "raw")] &'a [u8]);
        fn raw<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(bytes)
        }
        let read = |bytes: &[u8]| crate::wire::decoded::<Pairs>(&crate::wire::encoded(&Bytes(bytes)).unwrap());
        assert_eq!(read(b"\x01\0\0\0a\x02\0\0\0bc").unwrap(), Pairs(vec![("a".into(), "bc".into())]));
        for wrong in [&b"\x01"[..], b"\x02\0\0\0a", b"\x01\0\0\0a", b"\x01\0\0\0a\x02\0\0\0b", b"\xff\xff\xff\xff"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
