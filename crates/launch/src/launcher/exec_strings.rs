//! The arguments and the environment of a target, as execve(2) takes them.

use std::ffi::c_char;
use std::io;

/// Strings that end with a zero, and the list of them that ends with a null pointer. All lie in one piece of memory: dozens of small ones
/// take longer to make and to free than to fill, and every launch waits for that.
pub(super) struct ExecStrings {
    /// What the list points into.
    _bytes: Vec<u8>,
    list: Vec<*const c_char>,
}

impl ExecStrings {
    /// Of strings that are given in their parts.
    ///
    /// # Errors
    /// A zero in one of them.
    pub(super) fn new<'a, const PARTS: usize>(
        strings: impl ExactSizeIterator<Item = [&'a [u8]; PARTS]> + Clone,
    ) -> io::Result<Self> {
        let length: usize = strings.clone().flatten().map(<[u8]>::len).sum();
        let mut bytes = Vec::with_capacity(length + strings.len());
        let mut starts = Vec::with_capacity(strings.len());
        for parts in strings {
            let start = bytes.len();
            parts.iter().for_each(|part| bytes.extend_from_slice(part));
            if bytes[start..].contains(&0) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "a string with a zero byte"));
            }
            bytes.push(0);
            starts.push(start);
        }
        let pointers = starts.iter().map(|start| bytes[*start..].as_ptr().cast());
        let list = pointers.chain([std::ptr::null()]).collect();
        Ok(Self { _bytes: bytes, list })
    }

    /// The list, valid as long as this is.
    pub(super) fn list(&self) -> &[*const c_char] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn each_string_is_whole_and_the_list_ends() {
        let variables = [("A", ""), ("LONG", &*"x".repeat(5000)), ("B", "c=d")];
        let parts = variables.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()]);
        let strings = ExecStrings::new(parts.iter().copied()).unwrap();
        let (last, pointers) = strings.list().split_last().unwrap();
        assert!(last.is_null());
        // SAFETY: strings with a zero at the end, which live as long as `strings`.
        let read = pointers.iter().map(|one| unsafe { CStr::from_ptr(*one) }.to_str().unwrap());
        assert!(read.eq(variables.map(|(name, value)| format!("{name}={value}"))));
        let none: [[&[u8]; 1]; 0] = [];
        assert_eq!(ExecStrings::new(none.into_iter()).unwrap().list().len(), 1);
    }

    #[test]
    fn a_zero_inside_a_string_is_refused() {
        let error = ExecStrings::new([[&b"a\0b"[..]]].into_iter()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
