/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Why a task stopped running: from its state, the system call it is in, and what that works on. */
#ifndef SLOWPATH_REASON_BPF_H
#define SLOWPATH_REASON_BPF_H

#ifdef WITH_STACKS
#include "../../bpf/stack.bpf.h"
#else
#include "../../bpf/tree.bpf.h"
#endif

/* include/linux/sched.h */
#define TASK_INTERRUPTIBLE 0x1
#define TASK_STOPPED_OR_TRACED 0xc
#define TASK_DEAD 0x80
#define TASK_FROZEN 0x8000
#define PF_IO_WORKER 0x00000010
#define PF_USER_WORKER 0x00004000
#define PF_KTHREAD 0x00200000
/* Priorities below are real-time, which has no part in the quota (include/linux/sched/prio.h). */
#define MAX_RT_PRIO 100

/* What a system call waits for when it waits interruptibly. */
enum wait_class {
	WAITS_OTHERWISE,
	WAITS_FUTEX,
	WAITS_STREAM,
	WAITS_SOCKET,
	WAITS_POLL,
	WAITS_TIMER,
	WAITS_CHILD,
	WAITS_IO,
	WAITS_AGAIN,
	WAITS_CLONE,
};

/* STREAM: the first argument is a descriptor that may be a pipe or a socket. */
static __always_inline enum wait_class class_of(int call)
{
	switch (call) {
#if defined(__TARGET_ARCH_x86)
	case 0: /* read */
	case 1: /* write */
	case 19: /* readv */
	case 20: /* writev */
	case 40: /* sendfile */
	case 275: /* splice */
	case 276: /* tee */
	case 278: /* vmsplice */
		return WAITS_STREAM;
	case 42: /* connect */
	case 43: /* accept */
	case 44: /* sendto */
	case 45: /* recvfrom */
	case 46: /* sendmsg */
	case 47: /* recvmsg */
	case 288: /* accept4 */
	case 299: /* recvmmsg */
	case 307: /* sendmmsg */
		return WAITS_SOCKET;
	case 7: /* poll */
	case 23: /* select */
	case 34: /* pause */
	case 128: /* rt_sigtimedwait */
	case 130: /* rt_sigsuspend */
	case 232: /* epoll_wait */
	case 270: /* pselect6 */
	case 271: /* ppoll */
	case 281: /* epoll_pwait */
		return WAITS_POLL;
	case 35: /* nanosleep */
	case 230: /* clock_nanosleep */
		return WAITS_TIMER;
	case 56: /* clone */
	case 58: /* vfork */
		return WAITS_CLONE;
	case 61: /* wait4 */
	case 247: /* waitid */
		return WAITS_CHILD;
	case 202: /* futex */
		return WAITS_FUTEX;
	case 208: /* io_getevents */
	case 333: /* io_pgetevents */
		return WAITS_IO;
	case 219: /* restart_syscall */
		return WAITS_AGAIN;
#elif defined(__TARGET_ARCH_arm64)
	case 63: /* read */
	case 64: /* write */
	case 65: /* readv */
	case 66: /* writev */
	case 71: /* sendfile */
	case 75: /* vmsplice */
	case 76: /* splice */
	case 77: /* tee */
		return WAITS_STREAM;
	case 202: /* accept */
	case 203: /* connect */
	case 206: /* sendto */
	case 207: /* recvfrom */
	case 211: /* sendmsg */
	case 212: /* recvmsg */
	case 242: /* accept4 */
	case 243: /* recvmmsg */
	case 269: /* sendmmsg */
		return WAITS_SOCKET;
	case 22: /* epoll_pwait */
	case 72: /* pselect6 */
	case 73: /* ppoll */
	case 133: /* rt_sigsuspend */
	case 137: /* rt_sigtimedwait */
		return WAITS_POLL;
	case 101: /* nanosleep */
	case 115: /* clock_nanosleep */
		return WAITS_TIMER;
	case 220: /* clone */
		return WAITS_CLONE;
	case 95: /* waitid */
	case 260: /* wait4 */
		return WAITS_CHILD;
	case 98: /* futex */
		return WAITS_FUTEX;
	case 4: /* io_getevents */
	case 292: /* io_pgetevents */
		return WAITS_IO;
	case 128: /* restart_syscall */
		return WAITS_AGAIN;
#endif
	case 426: /* io_uring_enter */
	case 441: /* epoll_pwait2 */
		return WAITS_POLL;
	case 435: /* clone3 */
		return WAITS_CLONE;
	case 449: /* futex_waitv */
	case 455: /* futex_wait */
		return WAITS_FUTEX;
	}
	return WAITS_OTHERWISE;
}

/* The system call that a task is in; -1 for none, and for the kernel's own threads. */
static __always_inline int call_of(struct task_struct *task)
{
	if (task->flags & (PF_KTHREAD | PF_USER_WORKER | PF_IO_WORKER))
		return -1;
	return current_syscall(task);
}

/* Since 6.18 a task is throttled by itself, on its way back to user space; before, with the queue that it stands in. */
static __always_inline bool is_throttled(struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	struct cfs_rq *queue = task->se.cfs_rq;
	if (!bpf_core_field_exists(queue->throttle_count) || task->prio < MAX_RT_PRIO)
		return false;
	return queue->throttle_count > 0;
}

/* Whether the first argument is a descriptor of something that delivers when somebody else acts: a pipe, a socket, a terminal,
 * an event descriptor (the last has no kind of its own). */
static __always_inline bool is_stream(struct task_struct *task)
{
	struct file *file = file_of_descriptor(task, PT_REGS_PARM1_SYSCALL(user_registers(task)));
	if (!file)
		return false;
	struct inode *inode = FIELD(file, file, f_inode);
	unsigned short kind = FIELD(inode, inode, i_mode) & S_IFMT;
	return kind == S_IFIFO || kind == S_IFSOCK || kind == S_IFCHR || !kind;
}

/* A freezer's hold, or, inside a clone, the wait for the child to execute or exit (vfork(2)). */
static __always_inline bool is_frozen(struct task_struct *task)
{
	return bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen);
}

/* `state` is 0 for a task that could have gone on. `before`: the reason of its last wait, for a wait that goes on after a
 * signal (restart_syscall(2)). */
static __always_inline u32 reason_of(struct task_struct *task, u32 state, int call, u32 before)
{
	if (!state)
		return is_throttled(task) ? OFF_THROTTLED : OFF_RUNNABLE;
	if (state & (TASK_STOPPED_OR_TRACED | TASK_FROZEN))
		return OFF_STOPPED;
	enum wait_class class = class_of(call);
	if (class == WAITS_CLONE && is_frozen(task))
		return OFF_CHILD;
	/* The wait in an io_uring counts as one for I/O in the kernel's accounts. */
	if (class != WAITS_POLL && BPF_CORE_READ_BITFIELD(task, in_iowait)) {
		if (task->flags & PF_KTHREAD)
			return OFF_OTHER_IO;
		if (call == -1)
			return OFF_FAULT_IO;
		/* In a system call: a fault of the kernel's, unless it was never told to end (one that became a signal). */
		struct task_state *followed = state_of(task);
		return followed && followed->fault_ts && followed->fault_in_kernel ? OFF_FAULT_IO : OFF_OTHER_IO;
	}
	if (!(state & TASK_INTERRUPTIBLE))
		return OFF_KERNEL;
	if (is_frozen(task))
		return OFF_STOPPED;
	switch (class) {
	case WAITS_FUTEX:
		return OFF_FUTEX;
	case WAITS_STREAM:
		return is_stream(task) ? OFF_PIPE_OR_SOCKET : OFF_KERNEL;
	case WAITS_SOCKET:
		return OFF_PIPE_OR_SOCKET;
	case WAITS_POLL:
		return OFF_POLL;
	case WAITS_TIMER:
		return OFF_TIMER;
	case WAITS_CHILD:
		return OFF_CHILD;
	case WAITS_IO:
		return OFF_OTHER_IO;
	case WAITS_AGAIN:
		return before;
	default:
		return OFF_KERNEL;
	}
}

#endif
