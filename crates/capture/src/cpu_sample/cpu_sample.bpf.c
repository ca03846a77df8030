// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Samples of running threads: the kernel's timer event (PERF_COUNT_SW_CPU_CLOCK) of each CPU, filtered by the tree. */
#include "../../bpf/stack.bpf.h"

/* Whether the arguments are reported: where memory calls are recorded, they say into and out of which blocks code copies. */
const volatile u32 tells_arguments = 0;

/* Whether the instruction is `rep movs` of x86-64 (f3, perhaps a REX prefix, a4 or a5): it keeps its two places in the registers of
 * the first two arguments, whichever function it is in. */
static __always_inline bool copies_memory(u64 ip)
{
#if defined(__TARGET_ARCH_x86)
	unsigned char code[3];
	if (bpf_probe_read_user(code, sizeof(code), (void *)ip) || code[0] != 0xf3)
		return false;
	unsigned char operation = (code[1] & 0xf0) == 0x40 ? code[2] : code[1];
	return (operation & 0xfe) == 0xa4;
#else
	return false;
#endif
}

static __always_inline void fill_arguments(struct cpu_sample_event *event, struct task_struct *task)
{
	struct pt_regs *regs = user_registers(task);
#if defined(__TARGET_ARCH_x86)
	event->first_argument = regs->di;
	event->second_argument = regs->si;
	u64 ip = regs->ip;
#else
	event->first_argument = regs->user_regs.regs[0];
	event->second_argument = regs->user_regs.regs[1];
	u64 ip = regs->user_regs.pc;
#endif
	event->header.flags |= FLAG_ARGUMENTS | (copies_memory(ip) ? FLAG_COPIES : 0);
}

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
	u32 user = user_stack(state, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u32 kernel = in_kernel ? kernel_stack(context, task, state) : 0;
	bool withholds = is_withheld(task, state);
	if (withholds)
		count_withheld(EVENT_CPU_SAMPLE);
	struct cpu_sample_event *event = reserve(EVENT_CPU_SAMPLE, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = bpf_ktime_get_ns();
	event->header.flags = in_kernel ? FLAG_KERNEL : 0;
	event->cpu = bpf_get_smp_processor_id();
	event->header.stack = user;
	event->kernel_stack = kernel;
	event->first_argument = event->second_argument = 0;
	if (tells_arguments && POINTER(task_struct, task, mm) && !withholds)
		fill_arguments(event, task);
	submit(event);
	return 0;
}
