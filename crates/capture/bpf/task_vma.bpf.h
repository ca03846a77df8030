/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The kernel's iterator over the mappings of a task (kernel 6.7), which its BTF has no header for. */
#ifndef SLOWPATH_TASK_VMA_BPF_H
#define SLOWPATH_TASK_VMA_BPF_H

#include "tree.bpf.h"

struct bpf_iter_task_vma {
	u64 __opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task, u64 addr) __ksym __weak;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym __weak;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym __weak;

#endif
