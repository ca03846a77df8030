// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* System calls that change an address space, with their duration. The arguments are still in the registers when a call returns;
 * only the time, and for brk the end of the heap, are taken before. Of prctl only what concerns huge pages is told. Compiled
 * twice: with stacks, and without what they cost. */
#ifdef WITH_STACKS
#include "../../bpf/stack.bpf.h"
#else
#include "../../bpf/tree.bpf.h"
#endif

/* Option of prctl and its flag (include/uapi/linux/prctl.h). */
#define PR_SET_THP_DISABLE 41
#define PR_THP_DISABLE_EXCEPT_ADVISED 2

static __always_inline struct task_state *begin(void)
{
	struct task_state *state = state_of(bpf_get_current_task_btf());
	/* A task is in one system call at a time: the place is shared with the probe of reads. */
	if (state)
		state->syscall_ts = bpf_ktime_get_ns();
	return state;
}

static __always_inline int end(struct syscall_exit *context, u32 call)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
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
	struct pt_regs *regs = user_registers(task);
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
	event->result = context->ret;
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

#define MEMORY_CALL(name, call)                                                                                        \
	SEC("tracepoint/syscalls/sys_enter_" #name) int before_##name(void *context)                                   \
	{                                                                                                              \
		begin();                                                                                               \
		return 0;                                                                                              \
	}                                                                                                              \
	SEC("tracepoint/syscalls/sys_exit_" #name) int after_##name(struct syscall_exit *context)                      \
	{                                                                                                              \
		return end(context, call);                                                                             \
	}

MEMORY_CALL(mmap, CALL_MMAP)
MEMORY_CALL(munmap, CALL_MUNMAP)
MEMORY_CALL(mremap, CALL_MREMAP)
MEMORY_CALL(madvise, CALL_MADVISE)
MEMORY_CALL(prctl, CALL_PRCTL)

SEC("tracepoint/syscalls/sys_enter_brk")
int before_brk(void *context)
{
	struct task_state *state = begin();
	if (state) {
		struct mm_struct *mm = bpf_get_current_task_btf()->mm;
		state->heap_end = mm ? mm->brk : 0;
	}
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_brk")
int after_brk(struct syscall_exit *context)
{
	return end(context, CALL_BRK);
}
