/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* System calls by their numbers, for programs at the two tracepoints that all calls pass (raw_syscalls). The tracepoint of one call
 * belongs to perf: closing an event of it makes the kernel wait for all processors (perf_trace_event_unreg in
 * kernel/trace/trace_event_perf.c), one event after the other, some 75 ms each; and not every kernel has it (CONFIG_FTRACE_SYSCALLS).
 * Each program there costs every call of the machine some 40 ns. So there is one at the entry and one at the return (probe
 * `system_calls`), which go on to the program that the number of the call has in these arrays. */
#ifndef SLOWPATH_SYSTEM_CALLS_BPF_H
#define SLOWPATH_SYSTEM_CALLS_BPF_H

#include "tree.bpf.h"

/* arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h. Those without a number do not exist on arm64. */
#if defined(__TARGET_ARCH_x86)
enum {
	NUMBER_READ = 0,
	NUMBER_OPEN = 2,
	NUMBER_STAT = 4,
	NUMBER_LSTAT = 6,
	NUMBER_MMAP = 9,
	NUMBER_MPROTECT = 10,
	NUMBER_MUNMAP = 11,
	NUMBER_BRK = 12,
	NUMBER_PREAD64 = 17,
	NUMBER_READV = 19,
	NUMBER_ACCESS = 21,
	NUMBER_MREMAP = 25,
	NUMBER_MADVISE = 28,
	NUMBER_MKDIR = 83,
	NUMBER_PRCTL = 157,
	NUMBER_EXIT_GROUP = 231,
	NUMBER_OPENAT = 257,
	NUMBER_MKDIRAT = 258,
	NUMBER_NEWFSTATAT = 262,
	NUMBER_FACCESSAT = 269,
	NUMBER_PREADV = 295,
	NUMBER_PKEY_MPROTECT = 329,
	NUMBER_STATX = 332,
};
#else
enum {
	NUMBER_MKDIRAT = 34,
	NUMBER_FACCESSAT = 48,
	NUMBER_OPENAT = 56,
	NUMBER_READ = 63,
	NUMBER_READV = 65,
	NUMBER_PREAD64 = 67,
	NUMBER_PREADV = 69,
	NUMBER_NEWFSTATAT = 79,
	NUMBER_EXIT_GROUP = 94,
	NUMBER_PRCTL = 167,
	NUMBER_BRK = 214,
	NUMBER_MUNMAP = 215,
	NUMBER_MREMAP = 216,
	NUMBER_MMAP = 222,
	NUMBER_MPROTECT = 226,
	NUMBER_MADVISE = 233,
	NUMBER_PKEY_MPROTECT = 288,
	NUMBER_STATX = 291,
};
#endif
enum {
	NUMBER_OPENAT2 = 437,
	NUMBER_FACCESSAT2 = 439,
};

/* Whether the task is in a call of a 32-bit program, which has other numbers and other registers. */
static __always_inline bool is_call_of_32_bits(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	/* TS_COMPAT, arch/x86/include/asm/thread_info.h */
	return task->thread_info.status & 2;
#else
	/* TIF_32BIT, arch/arm64/include/asm/thread_info.h */
	return task->thread_info.flags >> 22 & 1;
#endif
}

/* The state of a task that is followed; 0 for others, and in calls of 32-bit programs. */
static __always_inline struct task_state *caller_state(struct task_struct *task)
{
	struct task_state *state = state_of(task);
	return state && !is_call_of_32_bits(task) ? state : 0;
}

/* More than the highest number above. */
#define CALLS 512
/* Index of the program of a call, and of a second one, which the first tail-calls. */
#define FIRST(number) (number)
#define SECOND(number) (CALLS + (number))

/* Programs by call: `calls_entered` and `calls_returned` are shared by all probes, and each adds its own programs. */
#define PROGRAMS_OF_CALLS(name)                                                                                        \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);                                                                 \
		__uint(max_entries, 2 * CALLS);                                                                        \
		__uint(key_size, sizeof(u32));                                                                         \
		__array(values, int(unsigned long long *));                                                            \
	} name SEC(".maps")

#endif
