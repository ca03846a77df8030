// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* System calls that change an address space, with their duration. The arguments are still in the registers when a call returns;
 * only the time, and for brk the end of the heap, are taken before. Of prctl only what concerns huge pages is reported. Compiled
 * twice: with stacks, and without what they cost. */
#ifdef WITH_STACKS
#include "../../bpf/stack.bpf.h"
#endif
#include "../../bpf/system_calls.bpf.h"

/* Option of prctl and its flag (include/uapi/linux/prctl.h). */
#define PR_SET_THP_DISABLE 41
#define PR_THP_DISABLE_EXCEPT_ADVISED 2

/* The kind of memory call that is recorded for a system call. */
static __always_inline u32 recorded_as(long number)
{
	switch (number) {
	case NUMBER_MMAP:
		return CALL_MMAP;
	case NUMBER_MUNMAP:
		return CALL_MUNMAP;
	case NUMBER_MREMAP:
		return CALL_MREMAP;
	case NUMBER_MADVISE:
		return CALL_MADVISE;
	case NUMBER_PRCTL:
		return CALL_PRCTL;
	case NUMBER_BRK:
		return CALL_BRK;
	}
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(before_change, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = caller_state(task);
	if (!state)
		return 0;
	/* A task is in one system call at a time: the place is shared with the probe of reads. */
	state->syscall_ts = bpf_ktime_get_ns();
	if (number == NUMBER_BRK) {
		struct mm_struct *mm = POINTER(task_struct, task, mm);
		state->heap_end = mm ? mm->brk : 0;
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(after_change, struct pt_regs *regs, long result)
{
	u32 call = recorded_as(syscall_of(regs));
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = caller_state(task);
	if (!state || !state->syscall_ts)
		return 0;
	u64 began = state->syscall_ts, now = bpf_ktime_get_ns();
	state->syscall_ts = 0;
	if (!state->running)
		return 0;
	/* Without addresses nothing is left that the account of the thread does not tell. */
	if (is_withheld(task, state)) {
		count_withheld(EVENT_MEMORY_CALL);
		return 0;
	}
	if (call == CALL_PRCTL && PT_REGS_PARM1_SYSCALL(regs) != PR_SET_THP_DISABLE)
		return 0;
	u32 stack = 0;
#ifdef WITH_STACKS
	/* Before the record, which refers to it. */
	stack = user_stack(state, BPF_LOCAL_STORAGE_GET_F_CREATE);
#endif
	struct memory_call_event *event = reserve(EVENT_MEMORY_CALL, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.stack = stack;
	event->header.ts = began;
	event->duration = now - began;
	event->address = PT_REGS_PARM1_SYSCALL(regs);
	event->length = PT_REGS_PARM2_SYSCALL(regs);
	event->before = 0;
	event->argument = 0;
	event->result = result;
	event->call = call;
	switch (call) {
	case CALL_MMAP:
		event->argument = PT_REGS_PARM4_SYSCALL(regs);
		break;
	case CALL_MREMAP:
		event->before = event->length;
		event->length = PT_REGS_PARM3_SYSCALL(regs);
		event->argument = PT_REGS_PARM4_SYSCALL(regs);
		break;
	case CALL_BRK:
		event->before = state->heap_end;
		event->length = 0;
		break;
	case CALL_MADVISE:
		event->argument = PT_REGS_PARM3_SYSCALL(regs);
		break;
	case CALL_PRCTL:
		event->address = 0;
		event->length = 0;
		if (PT_REGS_PARM2_SYSCALL(regs))
			event->argument = 1 | (PT_REGS_PARM3_SYSCALL(regs) & PR_THP_DISABLE_EXCEPT_ADVISED);
		break;
	}
	submit(event);
	return 0;
}

/* Second, so that looking at what is given back is in no duration of a call. */
PROGRAMS_OF_CALLS(calls_entered) = {
	.values = {
		[SECOND(NUMBER_MMAP)] = (void *)&before_change,
		[SECOND(NUMBER_MUNMAP)] = (void *)&before_change,
		[SECOND(NUMBER_MREMAP)] = (void *)&before_change,
		[SECOND(NUMBER_MADVISE)] = (void *)&before_change,
		[SECOND(NUMBER_PRCTL)] = (void *)&before_change,
		[SECOND(NUMBER_BRK)] = (void *)&before_change,
	},
};
PROGRAMS_OF_CALLS(calls_returned) = {
	.values = {
		[SECOND(NUMBER_MMAP)] = (void *)&after_change,
		[SECOND(NUMBER_MUNMAP)] = (void *)&after_change,
		[SECOND(NUMBER_MREMAP)] = (void *)&after_change,
		[SECOND(NUMBER_MADVISE)] = (void *)&after_change,
		[SECOND(NUMBER_PRCTL)] = (void *)&after_change,
		[SECOND(NUMBER_BRK)] = (void *)&after_change,
	},
};
