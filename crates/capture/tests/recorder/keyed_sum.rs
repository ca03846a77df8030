//! The sum by which stacks get their numbers is SipHash-1-3 under the recording's secret: who does not know the secret cannot make a
//! stack that shares the number of another's. The probes' own code, compiled for this machine.

use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::process::Command;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
typedef unsigned long long u64;
#undef __always_inline
#define __always_inline inline
/* What the sum needs of it is the secret. */
#define SLOWPATH_TREE_BPF_H
static struct { u64 secret[2]; } recording;
#include "keyed_sum.bpf.h"
int main(int count, char **words)
{
	struct keyed_sum sum;
	recording.secret[0] = strtoull(words[1], 0, 10);
	recording.secret[1] = strtoull(words[2], 0, 10);
	begin_sum(&sum);
	for (int at = 3; at < count; ++at)
		add_word(&sum, strtoull(words[at], 0, 10));
	printf("%llu\n", end_sum(&sum));
	return 0;
}
"#;

#[test]
fn the_sum_of_a_stack_is_siphash_under_the_secret_of_the_recording() {
    let place = tempfile::tempdir().unwrap();
    let (source, program) = (place.path().join("sum.c"), place.path().join("sum"));
    std::fs::write(&source, PROGRAM).unwrap();
    let bpf = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
    let built = Command::new("cc").args(["-O1", "-I", bpf, "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(built.success());
    let sum = |secret: [u64; 2], words: &[u64]| {
        let numbers: Vec<String> = secret.iter().chain(words).map(u64::to_string).collect();
        let done = Command::new(&program).args(numbers).output().unwrap();
        String::from_utf8(done.stdout).unwrap().trim().parse::<u64>().unwrap()
    };
    for secret in [[0, 0], [1, 0], [0, 1], [0x0123_4567_89ab_cdef, u64::MAX]] {
        for words in [&[][..], &[0], &[1, u64::MAX, 0x7fff_1234_5678], &[7; 127]] {
            let mut known = SipHasher13::new_with_keys(secret[0], secret[1]);
            words.iter().for_each(|word| known.write(&word.to_le_bytes()));
            assert_eq!(sum(secret, words), known.finish(), "{secret:?} {words:?}");
        }
    }
}
