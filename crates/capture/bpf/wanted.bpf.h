/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Processes that run already and are to be followed. */
#ifndef SLOWPATH_WANTED_BPF_H
#define SLOWPATH_WANTED_BPF_H

#include "tree.bpf.h"

/* 0 stands for all. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u8_flag);
} wanted SEC(".maps");

/* Whether the process itself was named. */
static __always_inline bool is_named(u32 process)
{
	u32 all = 0;
	return bpf_map_lookup_elem(&wanted, &process) || bpf_map_lookup_elem(&wanted, &all);
}

#endif
