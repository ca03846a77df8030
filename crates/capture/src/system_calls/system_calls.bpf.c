// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Sees every system call of the machine and tail-calls the program of the probe that records it. */
#include "../../bpf/system_calls.bpf.h"

PROGRAMS_OF_CALLS(calls_entered);
PROGRAMS_OF_CALLS(calls_returned);

/* A tail call returns only where there is no such program. */
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
