/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Whether the current task does what happens, or was interrupted by it. */
#ifndef SLOWPATH_INTERRUPTS_BPF_H
#define SLOWPATH_INTERRUPTS_BPF_H

#include "tree.bpf.h"

/* Where a processor's count of nested interrupts stands, as a distance from its run queue: both are in the same section of its
 * own variables. The driver reads it from BTF, because kernels without CONFIG_KALLSYMS_ALL tell no addresses of variables. It is
 * the only read-only variable of the objects that include this. */
const volatile struct {
	long long preempt_count_from_queue;
	/* 0: not known; 1: a variable (x86); 2: a field of the variable pcpu_hot (x86 from 6.2 to 6.14). */
	u64 preempt_count_is;
} processor = {};
#if defined(__TARGET_ARCH_x86)
struct pcpu_hot {
	int preempt_count;
} __attribute__((preserve_access_index));
#endif

/* The run queue of the processor that a task runs on. */
static __always_inline struct rq *queue_of(struct task_struct *task)
{
	struct cfs_rq *fair = POINTER(task_struct, task, se.cfs_rq);
	return bpf_core_field_exists(fair->rq) ? fair->rq : 0;
}

/* Nested interrupts and the like of the processor that the task runs on; 0 where they are not known. */
static __always_inline u32 preempt_count(struct task_struct *current)
{
#if defined(__TARGET_ARCH_x86)
	u32 count = 0;
	char *at = (char *)queue_of(current);
	if (!at || !processor.preempt_count_is)
		return 0;
	at += processor.preempt_count_from_queue;
	if (processor.preempt_count_is == 2)
		at += bpf_core_field_offset(struct pcpu_hot, preempt_count);
	bpf_probe_read_kernel(&count, sizeof(count), at);
	return count;
#else
	return current->thread_info.preempt.count;
#endif
}

/* include/linux/preempt.h */
#define NMI_OR_HARDIRQ_MASK 0x00ff0000
#define SERVING_SOFTIRQ 0x00000100

/* Whether the current task was interrupted by what happens. */
static __always_inline bool is_interrupted(struct task_struct *current)
{
	return preempt_count(current) & (NMI_OR_HARDIRQ_MASK | SERVING_SOFTIRQ);
}

#endif
