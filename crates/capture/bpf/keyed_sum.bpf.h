/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A sum over words under the secret of a recording: SipHash-1-3 (Aumasson, Bernstein: SipHash, a fast short-input PRF; as Rust's hash
 * maps use it). Who does not know the secret cannot find two inputs with one sum, however frames are chosen. */
#ifndef SLOWPATH_KEYED_SUM_BPF_H
#define SLOWPATH_KEYED_SUM_BPF_H

#include "tree.bpf.h"

struct keyed_sum {
	u64 a;
	u64 b;
	u64 c;
	u64 d;
	/* Words so far. */
	u64 words;
};

#define ROTATED(word, bits) ((word) << (bits) | (word) >> (64 - (bits)))

static __always_inline void stir(struct keyed_sum *sum)
{
	u64 a = sum->a, b = sum->b, c = sum->c, d = sum->d;
	a += b;
	c += d;
	b = ROTATED(b, 13) ^ a;
	d = ROTATED(d, 16) ^ c;
	a = ROTATED(a, 32);
	c += b;
	a += d;
	b = ROTATED(b, 17) ^ c;
	d = ROTATED(d, 21) ^ a;
	c = ROTATED(c, 32);
	sum->a = a;
	sum->b = b;
	sum->c = c;
	sum->d = d;
}

static __always_inline void begin_sum(struct keyed_sum *sum)
{
	sum->a = recording.secret[0] ^ 0x736f6d6570736575ULL;
	sum->b = recording.secret[1] ^ 0x646f72616e646f6dULL;
	sum->c = recording.secret[0] ^ 0x6c7967656e657261ULL;
	sum->d = recording.secret[1] ^ 0x7465646279746573ULL;
	sum->words = 0;
}

static __always_inline void add_word(struct keyed_sum *sum, u64 word)
{
	sum->d ^= word;
	stir(sum);
	sum->a ^= word;
	sum->words++;
}

static __always_inline u64 end_sum(struct keyed_sum *sum)
{
	/* The last word of the input: its length in bytes in the upper 8 bits. */
	add_word(sum, sum->words << 59);
	sum->c ^= 0xff;
	stir(sum);
	stir(sum);
	stir(sum);
	return sum->a ^ sum->b ^ sum->c ^ sum->d;
}

#endif
