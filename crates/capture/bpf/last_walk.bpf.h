/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Where a thread's last walk is kept, with all the words that it read. Leaves walking, and whether it still holds, to stack.bpf.h. */
#ifndef SLOWPATH_LAST_WALK_BPF_H
#define SLOWPATH_LAST_WALK_BPF_H

#include "tree.bpf.h"

/* Words that a walk may read to be kept: a return address and a frame pointer a frame. */
#define WORDS 256

struct last_walk {
	u64 generation;
	u64 ip;
	u64 sp;
	u64 bp;
	u64 lr;
	u32 stack;
	u32 words;
	u64 addresses[WORDS];
	u64 values[WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct last_walk);
} walks SEC(".maps");

/* In place of a thread's, where the kernel makes none: it does not while it is interrupted in its own work on what it keeps for tasks
 * (bpf_task_storage_trylock in kernel/bpf/bpf_task_storage.c), nor without memory. Such a walk is as good, and is forgotten. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct last_walk);
} forgotten_walks SEC(".maps");

/* Makes what a task's walks need, where walks themselves must not allocate. */
static __always_inline void prepare_walks(struct task_struct *task)
{
	bpf_task_storage_get(&walks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Where a task's walk is kept. */
static __always_inline struct last_walk *last_walk_of(struct task_struct *task, u64 flags)
{
	struct last_walk *last = bpf_task_storage_get(&walks, task, 0, flags);
	if (last)
		return last;
	u32 key = 0;
	last = bpf_map_lookup_elem(&forgotten_walks, &key);
	if (last)
		last->stack = 0;
	return last;
}

#endif
