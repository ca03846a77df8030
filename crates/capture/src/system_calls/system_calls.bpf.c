// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* All system calls of the machine: those that a probe looks at go on to its program. */
#include "../../bpf/system_calls.bpf.h"

PROGRAMS_OF_CALLS(calls_entered);
PROGRAMS_OF_CALLS(calls_returned);

/* What a tail call finds it does not return from. */
#define GO_ON(context, programs, number)                                                                               \
	do {                                                                                                           \
		if ((number) >= CALLS)                                                                                 \
			break;                                                                                         \
		bpf_tail_call(context, programs, FIRST(number));                                                       \
		bpf_tail_call(context, programs, SECOND(number));                                                      \
	} while (0)

SEC("tp_btf/sys_enter")
int BPF_PROG(on_entry, struct pt_regs *regs, unsigned long call)
{
	GO_ON(ctx, &calls_entered, call);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_return, struct pt_regs *regs, long result)
{
	u32 call = syscall_of(regs);
	GO_ON(ctx, &calls_returned, call);
	return 0;
}
