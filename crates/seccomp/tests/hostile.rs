//! Foreign bytes as filters: an error or a program, never a panic.

use proptest::prelude::*;
use slowpath_seccomp::parse;

/// A profile of which single words are exchanged.
const PROFILE: &str = r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":1,"syscalls":[
 {"names":["read","clone"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":2114060288,"valueTwo":3,"op":"SCMP_CMP_MASKED_EQ"}]},
 {"names":["write"],"action":"SCMP_ACT_TRACE","errnoRet":7,"includes":{"caps":["CAP_KILL"]},"excludes":{"arches":["arm"]}}]}"#;
const SECCOMPILER: &str = r#"{"a":{"mismatch_action":{"errno":1},"match_action":"allow","filter":[
 {"syscall":"read","args":[{"index":1,"type":"dword","op":{"masked_eq":5},"val":9}]},{"syscall":"write"}]}}"#;

/// Words that stand in such files, and numbers at the ends of their ranges.
const WORDS: [&str; 18] = [
    "null",
    "{}",
    "[]",
    "0",
    "-1",
    "5",
    "6",
    "255",
    "256",
    "4294967295",
    "18446744073709551615",
    "1e999",
    "\"\"",
    "\"read\"",
    "\"SCMP_ACT_KILL\"",
    "\"SCMP_CMP_GT\"",
    "\"masked_eq\"",
    "\"qword\"",
];

/// Where values begin and end in a JSON text.
fn values(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices([':', '[', ',']) {
        let rest = &text[at + 1..];
        let trimmed = rest.len() - rest.trim_start().len();
        let from = at + 1 + trimmed;
        let end = text[from..].find([',', '}', ']', ':']).map_or(text.len(), |end| from + end);
        found.push((from, end));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_an_error_or_a_program(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(parsed) = parse(&bytes, None) {
            prop_assert_eq!(parsed.program.bytes(), bytes);
        }
    }

    #[test]
    fn exchanged_words_of_a_profile_are_an_error_or_a_program(
        which in 0usize..2, changes in proptest::collection::vec((any::<prop::sample::Index>(), 0..WORDS.len()), 1..4)
    ) {
        let mut text = [PROFILE, SECCOMPILER][which].to_owned();
        for (place, word) in changes {
            let all = values(&text);
            let (from, to) = all[place.index(all.len())];
            text.replace_range(from..to, WORDS[word]);
        }
        let _ = parse(text.as_bytes(), None);
        let _ = parse(text.as_bytes(), Some("a"));
    }

    #[test]
    fn cut_files_are_an_error_or_a_program(which in 0usize..2, at in any::<prop::sample::Index>()) {
        let text = [PROFILE, SECCOMPILER][which];
        let _ = parse(&text.as_bytes()[..at.index(text.len())], None);
    }

    #[test]
    fn many_conditions_compile_or_are_too_many(conditions in 1usize..1500, same in any::<bool>()) {
        let one = |number: usize| {
            let index = if same { 0 } else { number % 6 };
            format!(r#"{{"index":{index},"value":{},"op":"SCMP_CMP_GE"}}"#, number << 31)
        };
        let all: Vec<String> = (0..conditions).map(one).collect();
        let text = format!(
            r#"{{"defaultAction":"SCMP_ACT_KILL","syscalls":[{{"names":["read"],"action":"SCMP_ACT_ALLOW","args":[{}]}}]}}"#,
            all.join(",")
        );
        if let Ok(parsed) = parse(text.as_bytes(), None) {
            prop_assert!(parsed.program.instructions().len() <= 4096);
        }
    }
}
