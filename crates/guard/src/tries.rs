//! What was tried: the record in the state directory, its text, and how it stays small. Pure.

use serde::{Deserialize, Serialize};

/// Name and version of the record.
pub const SCHEMA: &str = "slowpath-guard-state/1";

/// Tries that are kept, the last ones. A version of which all are forgotten would be repaired again.
const MOST_TRIES: usize = 200;

/// One repair that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Try {
    /// Version of the policy.
    pub version: String,
    /// Name of the artifact.
    pub artifact: String,
    /// When, RFC 3339, UTC.
    pub began: String,
    /// How the command ended; `None` where whoever ran it did not live to say so.
    pub ended: Option<Ended>,
}

/// How a repair ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// When, RFC 3339, UTC.
    pub time: String,
    /// Exit status of the command, where it exited.
    pub status: Option<i32>,
    /// Whether all users could use the artifact then.
    pub is_usable: bool,
}

/// All that was tried for one policy, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tries {
    schema: String,
    tries: Vec<Try>,
}

impl Default for Tries {
    fn default() -> Self {
        Self { schema: SCHEMA.to_owned(), tries: Vec::new() }
    }
}

impl Tries {
    /// Reads a record.
    ///
    /// # Errors
    /// What is wrong with it. Then nothing is known of what was tried, and so nothing may be.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let read: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match read.schema == SCHEMA {
            true => Ok(read),
            false => Err(format!("it is a {:?} and no {SCHEMA}", read.schema)),
        }
    }

    /// Its text.
    pub fn text(&self) -> Vec<u8> {
        // Strings and numbers are always JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The last try of an artifact at a version.
    pub fn of(&self, version: &str, artifact: &str) -> Option<&Try> {
        self.tries.iter().rev().find(|one| one.version == version && one.artifact == artifact)
    }

    /// Notes that a repair begins, and forgets the oldest where there are too many.
    pub fn begin(&mut self, version: &str, artifact: &str, now: String) {
        let (version, artifact) = (version.to_owned(), artifact.to_owned());
        self.tries.push(Try { version, artifact, began: now, ended: None });
        let extra = self.tries.len().saturating_sub(MOST_TRIES);
        self.tries.drain(..extra);
    }

    /// Notes how the repair ended that began last.
    pub fn end(&mut self, ended: Ended) {
        if let Some(last) = self.tries.last_mut() {
            last.ended = Some(ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ended(status: i32) -> Ended {
        Ended { time: "2026-03-01T00:00:01Z".to_owned(), status: Some(status), is_usable: status == 0 }
    }

    #[test]
    fn a_try_counts_for_its_version_and_artifact_also_when_its_end_was_never_noted() {
        let mut tries = Tries::default();
        tries.begin("1", "a", "2026-03-01T00:00:00Z".to_owned());
        tries.end(ended(0));
        tries.begin("1", "b", "2026-03-01T00:00:02Z".to_owned());
        let read = Tries::parse(&tries.text()).unwrap();
        assert_eq!(read, tries);
        assert_eq!(read.of("1", "a").unwrap().ended, Some(ended(0)));
        assert_eq!(read.of("1", "b").unwrap().ended, None);
        assert!(read.of("2", "a").is_none() && read.of("1", "c").is_none());
    }

    #[test]
    fn the_oldest_tries_are_forgotten_and_the_largest_record_fits_into_a_state_file() {
        let mut tries = Tries::default();
        let (version, artifact) = ("v".repeat(64), "a".repeat(64));
        for _ in 0..MOST_TRIES + 3 {
            tries.begin(&version, &artifact, "2026-03-01T00:00:00Z".to_owned());
            tries.end(ended(i32::MIN));
        }
        assert_eq!(tries.tries.len(), MOST_TRIES);
        assert!(tries.text().len() < 64 << 10, "{} bytes", tries.text().len());
    }

    #[test]
    fn what_is_no_record_of_this_version_is_an_error() {
        for text in ["", "{}", "[]", "{\"schema\":\"slowpath-guard-state/2\",\"tries\":[]}"] {
            assert!(Tries::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Tries::parse(&bytes);
        }
    }
}
