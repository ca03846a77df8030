// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Samples of running threads: the kernel's timer event (PERF_COUNT_SW_CPU_CLOCK) of each processor, filtered by the tree. */
#include "../../bpf/stack.bpf.h"

SEC("perf_event")
int cpu_sample(struct bpf_perf_event_data *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	if (!state || !state->running)
		return 0;
#if defined(__TARGET_ARCH_x86)
	u64 ip = context->regs.ip;
#else
	u64 ip = context->regs.pc;
#endif
	/* Kernel code stands in the upper half of the address space on every architecture that is supported. */
	bool in_kernel = (long long)ip < 0;
	u32 user = user_stack(BPF_LOCAL_STORAGE_GET_F_CREATE), kernel = in_kernel ? kernel_stack(context, task) : 0;
	struct cpu_sample_event *event = reserve(EVENT_CPU_SAMPLE, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = bpf_ktime_get_ns();
	event->header.flags = in_kernel ? FLAG_KERNEL : 0;
	event->cpu = bpf_get_smp_processor_id();
	event->header.stack = user;
	event->kernel_stack = kernel;
	submit(event);
	return 0;
}
