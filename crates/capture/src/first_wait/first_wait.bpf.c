// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* When a process had finished its start: the first time that its main thread waits for something to happen (an event, a
 * message in a queue, a timer), for longer than the threads of a starting program wait for each other. Waiting in a read is
 * none: a child reads its orders from its parent before it begins. */
#include "../../bpf/tree.bpf.h"

/* Shorter waits are locks held by another thread, or the start of a thread. */
#define SHORTEST_WAIT_NS 1000000ULL

static __always_inline bool waits_for_events(int call)
{
	switch (call) {
#if defined(__TARGET_ARCH_x86)
	case 7: /* poll */
	case 23: /* select */
	case 34: /* pause */
	case 43: /* accept */
	case 128: /* rt_sigtimedwait */
	case 130: /* rt_sigsuspend */
	case 202: /* futex */
	case 232: /* epoll_wait */
	case 270: /* pselect6 */
	case 271: /* ppoll */
	case 281: /* epoll_pwait */
	case 288: /* accept4 */
#elif defined(__TARGET_ARCH_arm64)
	case 22: /* epoll_pwait */
	case 72: /* pselect6 */
	case 73: /* ppoll */
	case 98: /* futex */
	case 133: /* rt_sigsuspend */
	case 137: /* rt_sigtimedwait */
	case 202: /* accept */
	case 242: /* accept4 */
#endif
	case 426: /* io_uring_enter */
	case 441: /* epoll_pwait2 */
	case 449: /* futex_waitv */
	case 455: /* futex_wait */
		return true;
	}
	return false;
}

/* The record without its command line. */
static __always_inline struct first_wait_event *begin_telling(struct task_struct *task, struct task_state *state)
{
	state->wait_is_reported = 1;
	struct first_wait_event *event = reserve(EVENT_FIRST_WAIT, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = state->first_wait;
	event->waited = state->waited;
	event->syscall = state->wait_call;
	event->start = task->start_time;
	event->command_line_length = 0;
	return event;
}

/* Only for the current task, whose memory can be read. */
static __always_inline void tell(struct task_struct *task, struct task_state *state)
{
	struct first_wait_event *event = begin_telling(task, state);
	if (!event)
		return;
	unsigned long from;
	u32 length = command_line_of(task, &from);
	if (length && !bpf_probe_read_user(event->command_line, length & 1023 ? length : 1, (void *)from))
		event->command_line_length = length;
	submit(event);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	if (next->pid == next->tgid) {
		struct task_state *state = state_of(next);
		if (state && state->waits_since) {
			u64 waited = bpf_ktime_get_ns() - state->waits_since;
			if (waited >= SHORTEST_WAIT_NS && !state->first_wait) {
				state->first_wait = state->waits_since;
				state->waited = waited;
			}
			state->waits_since = 0;
		}
	}
	if (prev->pid != prev->tgid)
		return 0;
	struct task_state *state = state_of(prev);
	if (!state || !state->running || state->wait_is_reported)
		return 0;
	if (state->first_wait) {
		tell(prev, state);
		return 0;
	}
	/* TASK_INTERRUPTIBLE (include/linux/sched.h). */
	int call = current_syscall(prev);
	if (!preempted && (prev_state & 1) && waits_for_events(call)) {
		state->wait_call = call;
		state->waits_since = bpf_ktime_get_ns();
	}
	return 0;
}

/* The program image that counts is the last. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *binary)
{
	struct task_state *state = state_of(task);
	if (state)
		state->waits_since = state->first_wait = state->wait_is_reported = 0;
	return 0;
}

/* One that was ended in its first wait. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	if (task->pid != task->tgid)
		return 0;
	struct task_state *state = state_of(task);
	if (state && state->first_wait && !state->wait_is_reported)
		tell(task, state);
	return 0;
}

/* One that is in its first wait when recording ends. */
SEC("iter.s/task")
int end_first_waits(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	if (!task || task->exit_state || task->pid != task->tgid)
		return 0;
	struct task_state *state = state_of(task);
	if (!state || state->wait_is_reported)
		return 0;
	u64 now = bpf_ktime_get_ns(), since = state->waits_since;
	if (!state->first_wait && since && now - since >= SHORTEST_WAIT_NS) {
		state->first_wait = since;
		state->waited = now - since;
	}
	if (!state->first_wait)
		return 0;
	struct first_wait_event *event = begin_telling(task, state);
	if (!event)
		return 0;
	unsigned long from;
	u32 length = command_line_of(task, &from);
	if (length && !bpf_copy_from_user_task(event->command_line, length & 1023 ? length : 1, (void *)from, task, 0))
		event->command_line_length = length;
	submit(event);
	return 0;
}
