// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Page faults with their duration, from the kernel's software perf events: PAGE_FAULTS fires when a fault begins,
 * PAGE_FAULTS_MIN or _MAJ when it is complete (mm_account_fault in mm/memory.c). A fault that is retried begins again at
 * the same address, so its first beginning is kept.
 *
 * The events are opened per processor and filtered here by the tree. Events of the task, inherited by its children,
 * would cost other processes nothing, but the target itself at each of its context switches and forks (1.2 us a switch,
 * measured on a pipe between two processes), and the kernel ends them silently at the exec of a set-uid program. */
#include "../../bpf/tree.bpf.h"

static __always_inline int begin(struct bpf_perf_event_data *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	if (!state || !state->running)
		return 0;
	/* A fault that is retried (lock dropped for I/O) begins again at the same address: keep the first beginning. */
	if (state->fault_ts && state->fault_address == context->addr)
		return 0;
	state->fault_ts = bpf_ktime_get_ns();
	state->fault_address = context->addr;
	return 0;
}

/* Whether the fault was taken in kernel mode: kernel code stands in the upper half of the address space on every
 * architecture that is supported, user code never does. One event serves both modes. */
static __always_inline u32 mode(u64 ip)
{
	return (long long)ip < 0 ? FLAG_KERNEL : 0;
}

static __always_inline int end(struct bpf_perf_event_data *context, u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	if (!state || !state->running)
		return 0;
	u64 now = bpf_ktime_get_ns();
	u64 began = state->fault_ts;
	bool known = began && state->fault_address == context->addr;
	state->fault_ts = 0;
#if defined(__TARGET_ARCH_x86)
	u64 ip = context->regs.ip;
#else
	u64 ip = context->regs.pc;
#endif
	flags |= mode(ip);
	struct fault_event *event = reserve(EVENT_FAULT, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = known ? began : now;
	event->header.flags = known ? flags : flags | FLAG_NO_START;
	event->duration = known ? now - began : 0;
	event->address = context->addr;
	event->ip = ip;
	submit(event);
	return 0;
}

SEC("perf_event")
int fault_begin(struct bpf_perf_event_data *context)
{
	return begin(context);
}

SEC("perf_event")
int fault_minor(struct bpf_perf_event_data *context)
{
	return end(context, 0);
}

SEC("perf_event")
int fault_major(struct bpf_perf_event_data *context)
{
	return end(context, FLAG_MAJOR);
}
