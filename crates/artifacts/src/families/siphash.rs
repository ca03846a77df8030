//! SipHash (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012), with any number of rounds.
//!
//! CPython hashes sources with SipHash-1-3 from 3.11 on and with SipHash-2-4 before (`_Py_KeyedHash`, Python/pyhash.c). The standard library
//! has 1-3 without a key and 2-4 deprecated.

/// The hash of `bytes` under the key (`k0`, `k1`), with `compress` rounds a word and `finish` rounds at the end.
pub(super) fn siphash((k0, k1): (u64, u64), bytes: &[u8], compress: u32, finish: u32) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let mut take = |word: u64| {
        v[3] ^= word;
        (0..compress).for_each(|_| round(&mut v));
        v[0] ^= word;
    };
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|word| take(u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = (bytes.len() & 0xff) as u8;
    take(u64::from_le_bytes(last));
    v[2] ^= 0xff;
    (0..finish).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_the_paper_comes_out() {
        let key = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(siphash(key, &message, 2, 4), 0xa129_ca61_49be_45e5);
    }
}
