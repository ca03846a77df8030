/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Copies of the memory of some stacks, from which the recorder's other side checks what was walked. */
#ifndef SLOWPATH_STACK_COPY_BPF_H
#define SLOWPATH_STACK_COPY_BPF_H

#include "address_space.bpf.h"

#define COPY_PAGE 4096
#define SECOND_NS 1000000000ULL

struct copy {
	/* When the present second began, and copies in it. */
	u64 second;
	u32 copies;
	/* Stacks since the last copy. */
	u32 stacks;
	/* The record. */
	struct stack_copy_event event;
	unsigned char memory[COPY_BYTES];
};

/* One for each processor where copies are made (the driver sets the number), and of every object. Not a map per processor: the
 * values of those are 32 KiB at most. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct copy);
} copies SEC(".maps");

struct copying {
	struct copy *copy;
};

/* Adds memory up to the end of a page: a read over a page that is not there would fail as a whole. */
static long copy_page(u32 index, struct copying *copying)
{
	struct copy *copy = copying->copy;
	u32 bytes = copy->event.bytes;
	u64 from = copy->event.sp + bytes;
	u32 part = COPY_PAGE - (from & (COPY_PAGE - 1));
	if (bytes > COPY_BYTES - COPY_PAGE || bpf_probe_read_user(copy->memory + bytes, part, (void *)from))
		return 1;
	copy->event.bytes = bytes + part;
	return 0;
}

/* Whether this stack's turn has come. */
static __always_inline bool is_due(struct copy *copy, struct walk_settings *known)
{
	u32 stacks = copy->stacks + 1;
	if (stacks < known->copy_every) {
		copy->stacks = stacks;
		return false;
	}
	copy->stacks = 0;
	u64 now = bpf_ktime_get_ns();
	if (now - copy->second >= SECOND_NS) {
		copy->second = now;
		copy->copies = 0;
	}
	if (copy->copies >= known->copies_a_second)
		return false;
	/* A copy takes the room of hundreds of other records: none is made while the reader is behind. */
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 8)
		return false;
	copy->copies++;
	return true;
}

/* Tells a copy of the stack with this number, where it is its turn. */
static __always_inline void copy_stack(struct task_struct *task, struct walk_settings *known, u32 number, u64 ip, u64 sp,
				       u64 bp)
{
	u32 processor = bpf_get_smp_processor_id();
	struct copy *copy = bpf_map_lookup_elem(&copies, &processor);
	if (!copy || !is_due(copy, known))
		return;
	struct stack_copy_event *event = &copy->event;
	fill_header(&event->header, EVENT_STACK_COPY, task);
	event->header.ts = bpf_ktime_get_ns();
	event->ip = ip;
	event->sp = sp;
	event->bp = bp;
	event->stack = number;
	event->bytes = 0;
	/* The first part ends with its page, so that one more may fit. */
	struct copying copying = {.copy = copy};
	bpf_loop(COPY_BYTES / COPY_PAGE + 1, copy_page, &copying, 0);
	u64 bytes = event->bytes;
	if (bytes > COPY_BYTES || bpf_ringbuf_output(&ring, event, sizeof(*event) + bytes, BPF_RB_NO_WAKEUP))
		count_lost(EVENT_STACK_COPY, 1);
}

#endif
