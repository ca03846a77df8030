/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Changes of an address space, without the tracepoints of system calls: those make the system calls of all tasks of the machine
 * slower. The kernel keeps the areas of an address space in a tree and tells each write to it (maple_tree:ma_write). Two things are
 * no write, and are found where the call that does them gives the lock of the address space back (mmap_lock:mmap_lock_released):
 * - the end of an area that lies between two others without a gap (only of munmap: an area that mremap moves away from between two
 *   others stays reported where it was, until something else is mapped there; before that nobody can use its addresses);
 * - other protections for the whole of an area. */
#ifndef SLOWPATH_AREA_TREE_BPF_H
#define SLOWPATH_AREA_TREE_BPF_H

#include "system_calls.bpf.h"

/* The first letters of the functions that store: mas_store, mas_store_prealloc. What they call tells the same once more, with the
 * part of the tree that is rewritten. */
#define MAS_STOR 0x726f74735f73616dULL

/* Whether a write concerns the address space that the task runs in: not that of a child in the making, not that of a program that
 * is being loaded, which is recorded at once, and none of the kernel's other trees. A VMA is recorded once; the free space that is left
 * where one ended (`area` is 0) as often as the kernel tells it. */
static __always_inline bool is_own_write(struct task_struct *task, const char *function, struct ma_state *tree, u64 area)
{
	struct mm_struct *mm = POINTER(task_struct, task, mm);
	if (!mm || (u64)POINTER(ma_state, tree, tree) != (u64)mm + bpf_core_field_offset(struct mm_struct, mm_mt))
		return false;
	if (bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve))
		return false;
	u64 name = 0;
	return !area || (!bpf_probe_read_kernel(&name, sizeof(name), function) && name == MAS_STOR);
}

/* Whether the lock that is given back was held for writing. The argument moved in kernel 6.14. In assembly, because the compiler
 * would make one load of both, at an address that it computes, which the verifier refuses. */
static __always_inline bool was_for_writing(unsigned long long *arguments)
{
	u64 for_writing;
	if (bpf_core_field_exists(struct trace_event_raw_mmap_lock, memcg_id))
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(for_writing) : "r"(arguments));
	else
		asm volatile("%0 = *(u64 *)(%1 + 16)" : "=r"(for_writing) : "r"(arguments));
	return for_writing & 0xff;
}

/* Whether the task is in an munmap that has done what it should: it goes on with the lock for reading only. Before, another probe
 * may have held the lock so. */
static __always_inline bool has_unmapped(struct task_struct *task, struct task_state *state, unsigned long long *arguments)
{
	return current_syscall(task) == NUMBER_MUNMAP && !was_for_writing(arguments) && !state->looks_up;
}

/* An argument that is a length, in whole pages. */
static __always_inline u64 whole_pages(u64 length)
{
	return (length + page_bytes() - 1) & ~(page_bytes() - 1);
}

#endif
