/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Whether the exception unwinder's frame is a handler's already. Reads into the workspace of walk.bpf.h. */
#ifndef SLOWPATH_HAND_OVER_BPF_H
#define SLOWPATH_HAND_OVER_BPF_H

#include "walk.bpf.h"

/* Bytes above the exception unwinder's frame in which the frame of a handler is looked for. */
#define HANDLER_REACH 16384

struct search {
	struct workspace *work;
	u64 from;
	u64 word;
	u32 found;
	u32 is_over;
};

static long finds_word(u32 index, struct search *search)
{
	u64 *near = search->work->near;
	if (bpf_probe_read_user(near, sizeof(search->work->near), (void *)(search->from + index * sizeof(search->work->near)))) {
		search->is_over = 1;
		return 1;
	}
	u64 others = 1;
	/* No branches, as above. The compiler must not see that this tells whether the words differ: it would make a branch of it, and the
	 * verifier would follow 170,000 instructions more in each program that walks stacks. */
	for (int i = 0; i < NEAR_WORDS; i++) {
		u64 difference = near[i] ^ search->word, negative = -difference;
		asm volatile("" : "+r"(negative));
		others &= (difference | negative) >> 63;
	}
	asm volatile("" : "+r"(others));
	if (others)
		return 0;
	search->found = 1;
	return 1;
}

/* The unwinder copies the handler's return address over its own, from a place above: where it has done so, or where that place could
 * be farther away, the return address is not the caller's. */
__attribute__((noinline)) int is_handed_over(u64 cfa)
{
	struct search search = {.work = workspace(), .from = cfa};
	/* What is read here is not kept, so neither is the walk. */
	if (!search.work || bpf_probe_read_user(&search.word, sizeof(search.word), (void *)(cfa - 8)))
		return 1;
	search.work->passing = 1;
	search.work->has_near = 0;
	bpf_loop(HANDLER_REACH / (NEAR_WORDS * 8), finds_word, &search, 0);
	return search.found || !search.is_over;
}

#endif
