/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Where a process has executable code: kept in the kernel so that a stack can be walked at the event. The areas are
 * sorted by address and stand in the storage of the process's first thread, which lives as long as the process. */
#ifndef SLOWPATH_ADDRESS_SPACE_BPF_H
#define SLOWPATH_ADDRESS_SPACE_BPF_H

#include "tree.bpf.h"

struct area {
	u64 start;
	u64 end;
	u32 file_page;
	u32 module;
};

struct space {
	/* Odd while it is changed. */
	u32 version;
	u32 count;
	struct area areas[AREAS];
};

/* The area that holds the address, as its index, or -1. */
__attribute__((noinline)) int find_area(struct space *space, u64 address)
{
	if (!space)
		return -1;
	u32 at = 0, count = space->count;
	/* Without branches, which the verifier would follow in all combinations: all bits are set where the step is taken. */
#pragma clang loop unroll(full)
	for (u32 step = AREAS / 2; step; step >>= 1) {
		u32 next = (at + step) & (AREAS - 1);
		u32 is_there = (int)(next - count) >> 31;
		u32 is_above = (long long)(address - space->areas[next].start) >> 63;
		at += step & is_there & ~is_above;
	}
	at &= AREAS - 1;
	if (at >= count)
		return -1;
	return address >= space->areas[at].start && address < space->areas[at].end ? (int)at : -1;
}

/* The same, where it may be the area with this index: the caller of a function is in the same file, mostly. */
__attribute__((noinline)) int find_area_from(struct space *space, u32 index, u64 address)
{
	u32 at = index & (AREAS - 1);
	if (space && at < space->count && address >= space->areas[at].start && address < space->areas[at].end)
		return at;
	return find_area(space, address);
}

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct space);
} spaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk_settings);
} walk_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk_counts);
} walk_counts SEC(".maps");

static __always_inline struct walk_settings *settings(void)
{
	u32 key = 0;
	return bpf_map_lookup_elem(&walk_settings, &key);
}

static __always_inline struct walk_counts *counts(void)
{
	u32 key = 0;
	return bpf_map_lookup_elem(&walk_counts, &key);
}

#endif
