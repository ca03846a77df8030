//! The parsers of this crate as functions of bytes, for the fuzzers.

use crate::message::{FromClient, ToClient, decoded, encoded, request};
use crate::policy::Policy;

/// A message of a client, and one of a zygote. A request is within the limits and the same after a way through its bytes.
pub fn message(bytes: &[u8]) {
    match request(bytes) {
        Ok(asked) => {
            if let FromClient::Spawn(spawn) = &asked {
                assert!(spawn.check().is_ok(), "{spawn:?}");
            }
            let again = encoded(&asked).map(|bytes| request(&bytes));
            assert!(again.is_err() || again == Ok(Ok(asked)));
        }
        Err(refusal) => drop(refusal.to_string()),
    }
    drop(decoded::<ToClient>(bytes));
}

/// A policy, which is the same after a way through its text.
pub fn policy(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Policy::parse(text) {
        Ok(policy) => assert_eq!(Policy::parse(&policy.text()).ok().as_ref(), Some(&policy)),
        Err(error) => drop(error.to_string()),
    }
}
