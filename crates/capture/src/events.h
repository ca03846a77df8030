/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The records that the probes put into the ring: one declaration for BPF (C) and, through bindgen, for Rust.
 * Times are CLOCK_MONOTONIC in ns. Sizes are multiples of 8 without implicit padding. */
#ifndef SLOWPATH_EVENTS_H
#define SLOWPATH_EVENTS_H

typedef unsigned char u8_flag;

enum event_kind {
	EVENT_FORK = 0,
	EVENT_EXEC = 1,
	EVENT_EXIT = 2,
	EVENT_FAULT = 3,
	EVENT_MAPPING = 4,
	EVENT_PAGE_CACHE = 5,
	EVENT_READAHEAD = 6,
	EVENT_BLOCK = 7,
	EVENT_OPEN = 8,
	EVENT_READ = 9,
	EVENT_NAME = 10,
	EVENT_FIRST_WAIT = 11,
	EVENT_STACK = 12,
	EVENT_CPU_SAMPLE = 13,
	EVENT_MODULE = 14,
	EVENT_OFF_CPU = 15,
	EVENT_MEMORY_CALL = 16,
	EVENT_STACK_COPY = 17,
	EVENT_THREAD_COUNTERS = 18,
	EVENT_MEMORY_WORK = 19,
	EVENT_PAGE_CONTENT = 20,
	EVENT_KERNEL_SYMBOL = 21,
	EVENT_KINDS = 22,
};

struct event_header {
	unsigned short kind;
	unsigned short flags;
	unsigned int pid;
	unsigned int tid;
	/* Number of the call stack, where it is recorded; else 0. */
	unsigned int stack;
	unsigned long long ts;
};

/* What the kernel keeps for a task of the recorded tree; its presence marks the task. Not a record of the ring: the recorder
 * reads it at the end from the tasks that are left. */
struct task_state {
	unsigned long long fault_ts;
	unsigned long long fault_address;
	unsigned long long syscall_ts;
	/* 1 from the first exec on: what the launcher does in the target's process before is not the target's. */
	unsigned long long running;
	/* Since when its main thread waits for events now; when it did so first, for how long, and whether that was reported. */
	unsigned long long waits_since;
	unsigned long long first_wait;
	unsigned long long waited;
	int wait_call;
	unsigned int wait_is_reported;
	/* 1 when the end of the task was reported. */
	unsigned long long end_is_reported;
	/* Of a main thread: 1 when a thread of its process was reported as the last. */
	unsigned long long last_is_reported;
	/* 1 when the fault since fault_ts was taken in kernel mode. */
	unsigned long long fault_in_kernel;
	/* End of the heap when a brk that is not over began. */
	unsigned long long heap_end;
	/* 1 while the recorder looks the task's areas up: locks that it gives back are not the task's own doing. */
	unsigned long long looks_up;
	/* Time that the task has spent in looks at its pages. */
	unsigned long long looked;
	/* Since when it reclaims or moves pages itself; 0 when it does not. */
	unsigned long long reclaim_since;
	unsigned long long compaction_since;
	/* Whether the recording's owner may see its memory (enum sight), and of which of the task's execs and credentials that was found. */
	unsigned long long judged_exec;
	unsigned long long judged_credentials;
	unsigned long long sight;
};

/* Whether the owner of the recording could trace a task. */
enum sight {
	SIGHT_UNKNOWN = 0,
	SIGHT_WITHHELD = 1,
	/* As long as it keeps itself dumpable (PR_SET_DUMPABLE of prctl(2)). */
	SIGHT_WHILE_DUMPABLE = 2,
	SIGHT_OPEN = 3,
};

/* What the kernel keeps for a task whose faults are timed and not recorded: not of the tree, so that no other probe reports it. */
struct fault_clock {
	unsigned long long since;
	unsigned long long address;
	/* Faults that ended, and the sum of their durations. */
	unsigned long long faults;
	unsigned long long time;
};

struct fork_event {
	struct event_header header;
	unsigned long long parent_start;
	unsigned long long start;
	unsigned int child_pid;
	unsigned int child_tid;
};

#define COMMAND_LINE_BYTES 512
#define FILENAME_BYTES 256

struct exec_event {
	struct event_header header;
	unsigned long long start;
	unsigned long long dev;
	unsigned long long ino;
	unsigned long long min_flt;
	unsigned long long maj_flt;
	unsigned long long run_time;
	unsigned int parent_pid;
	unsigned int uid;
	unsigned int gid;
	unsigned int command_line_length;
	char filename[FILENAME_BYTES];
	char command_line[COMMAND_LINE_BYTES];
};

/* In the header: a thread of a process that ran already when it began to be followed. */
#define FLAG_PRESENT 1

struct first_wait_event {
	struct event_header header;
	unsigned long long start;
	unsigned long long waited;
	int syscall;
	unsigned int command_line_length;
	char command_line[COMMAND_LINE_BYTES];
};

#define FLAG_LAST_THREAD 1
#define FLAG_STILL_RUNNING 2

struct exit_event {
	struct event_header header;
	unsigned long long start;
	unsigned long long min_flt;
	unsigned long long maj_flt;
	unsigned long long utime;
	unsigned long long stime;
	unsigned long long run_time;
	unsigned long long read_bytes;
	int exit_code;
	int reserved;
};

#define FLAG_MAJOR 1
#define FLAG_KERNEL 2
#define FLAG_NO_START 4
#define FAULT_FLAG_BITS 3

/* As short as it can be: each cache line more of the ring is one that the CPU which reads it has to give back. */
struct fault_record {
	unsigned long long ts;
	/* ns, above as many bits of flags as FAULT_FLAG_BITS says. */
	unsigned long long duration_and_flags;
	unsigned long long address;
	unsigned long long ip;
	unsigned int pid;
	unsigned int tid;
	unsigned int stack;
	/* What recording it took behind its end, ns, or what it took last at the same stack; 0 where that was not measured. */
	unsigned int recording;
};

/* Faults are by far the most frequent events: a CPU collects them and puts this many into the ring at once. The
 * header shows the kind only. */
#define FAULT_BATCH 32

struct fault_event {
	struct event_header header;
	unsigned int count;
	/* The CPU's own: what recording a fault took last where the stack was found to be the last one's, and that stack. */
	unsigned int took_at_kept;
	unsigned int kept_stack;
	unsigned int reserved;
	struct fault_record faults[FAULT_BATCH];
};

#define MAPPING_EXEC 0
#define MAPPING_MAP 1
#define MAPPING_UNMAP 2

struct mapping_event {
	struct event_header header;
	unsigned long long address;
	unsigned long long length;
	unsigned long long dev;
	unsigned long long ino;
	unsigned long long offset;
	unsigned int prot;
	unsigned int op;
};

#define FLAG_DELETE 1

struct page_cache_event {
	struct event_header header;
	unsigned long long dev;
	unsigned long long ino;
	unsigned long long page;
	unsigned int pages;
	int syscall;
};

#define READAHEAD_UNBOUNDED 0
#define READAHEAD_ORDER 1
#define READAHEAD_SYNC 2
#define READAHEAD_ASYNC 3

struct readahead_event {
	struct event_header header;
	unsigned long long dev;
	unsigned long long ino;
	unsigned long long page;
	unsigned long long pages;
	unsigned int path;
	unsigned int reserved;
};

#define FLAG_IN_TREE 1
#define FLAG_IS_READ 2

struct block_event {
	struct event_header header;
	unsigned long long latency;
	unsigned long long dev;
	unsigned long long sector;
	unsigned long long bytes;
};

/* What was called. Of those that open nothing only refusals are reported. */
enum path_call {
	PATH_OPEN = 0,
	PATH_LOOK = 1,
	PATH_MAKE_DIRECTORY = 2,
};

struct open_event {
	struct event_header header;
	unsigned long long dev;
	unsigned long long ino;
	/* The directory that a relative path starts from; 0 where none is reported. */
	unsigned long long base_dev;
	unsigned long long base_ino;
	unsigned int open_flags;
	int result;
	/* enum path_call */
	unsigned int call;
	unsigned int reserved;
	char path[FILENAME_BYTES];
};

struct read_event {
	struct event_header header;
	unsigned long long duration;
	unsigned long long dev;
	unsigned long long ino;
	unsigned long long offset;
	long long result;
	int syscall;
	unsigned int reserved;
};

/* In the order of the words in the reference. */
enum off_cpu_reason {
	OFF_FAULT_IO = 0,
	OFF_OTHER_IO = 1,
	OFF_FUTEX = 2,
	OFF_PIPE_OR_SOCKET = 3,
	OFF_POLL = 4,
	OFF_TIMER = 5,
	OFF_CHILD = 6,
	OFF_KERNEL = 7,
	OFF_RUNNABLE = 8,
	OFF_THROTTLED = 9,
	OFF_STOPPED = 10,
	OFF_STOLEN = 11,
};

/* In the header: not over when recording ended. */
#define FLAG_OPEN 1

struct off_cpu_event {
	struct event_header header;
	unsigned long long duration;
	unsigned long long runnable;
	/* 0 for not at all. */
	unsigned long long woken;
	/* 0 for none. */
	unsigned int waker_pid;
	unsigned int waker_tid;
	int syscall;
	unsigned int reason;
};

#define THREAD_NAME_BYTES 16

/* The kernel's account of a thread where the record of its waits begins or ends. */
struct thread_counters_event {
	struct event_header header;
	unsigned long long run_time;
	unsigned long long utime;
	unsigned long long stime;
	/* NOT_KEPT where the kernel does not keep it. */
	unsigned long long run_delay;
	char name[THREAD_NAME_BYTES];
};
#define NOT_KEPT 0xffffffffffffffffULL
/* In the header: the last record of a thread. */
#define FLAG_COUNTERS_AT_END 1

enum memory_call {
	CALL_MMAP = 0,
	CALL_MUNMAP = 1,
	CALL_MREMAP = 2,
	CALL_BRK = 3,
	CALL_MADVISE = 4,
	CALL_PRCTL = 5,
};

struct memory_call_event {
	struct event_header header;
	unsigned long long duration;
	unsigned long long address;
	unsigned long long length;
	/* Length before for mremap, end of the heap before for brk. */
	unsigned long long before;
	long long result;
	unsigned int argument;
	unsigned int call;
};

/* When pages were looked at. In the order of the words in the reference. */
enum look_moment {
	LOOK_MUNMAP = 0,
	LOOK_EXIT = 1,
	LOOK_END = 2,
};

/* Areas are looked at from this size on: smaller blocks stay with their allocator. */
#define LOOK_LEAST_BYTES (128 * 1024)
/* Of an area so many pages, evenly: all up to LOOK_LEAST_PAGES, then one in LOOK_ONE_IN, and no more than LOOK_MOST_PAGES. */
#define LOOK_LEAST_PAGES 64
#define LOOK_ONE_IN 32
#define LOOK_MOST_PAGES 256
/* Of all areas of a process together about so many: fewer of each where they would be more. */
#define LOOK_PROCESS_PAGES 1024
/* In a record: a bit for each in two words. */
#define LOOK_RECORD_PAGES 64
/* A thread looks at what it gives back for this part of its CPU time at most, and LOOK_FREE_NS more. */
#define LOOK_BUDGET 64
#define LOOK_FREE_NS 200000

/* What pages of memory without a file held: of `pages` pages, `stride` bytes from one to the next, a bit each. */
struct page_content_event {
	struct event_header header;
	unsigned long long address;
	unsigned long long stride;
	/* Those that were there, and those of them in which every byte was zero. */
	unsigned long long present;
	unsigned long long zero;
	unsigned long long duration;
	unsigned int pages;
	unsigned int moment;
};

/* In the order of the words in the reference. */
enum memory_work {
	WORK_DIRECT_RECLAIM = 0,
	WORK_GROUP_RECLAIM = 1,
	WORK_DIRECT_COMPACTION = 2,
	WORK_OWN_COLLAPSE = 3,
	WORK_WAKE_KSWAPD = 4,
	WORK_WAKE_KCOMPACTD = 5,
	WORK_KHUGEPAGED_SCAN = 6,
	WORK_KHUGEPAGED_COLLAPSE = 7,
};

/* In the header, beside FLAG_IN_TREE. */
#define FLAG_SUCCEEDED 2
#define NO_NODE (-1)

struct memory_work_event {
	struct event_header header;
	/* 0 where another thread does the work. */
	unsigned long long duration;
	unsigned long long pages;
	unsigned int work;
	int node;
};

struct name_event {
	struct event_header header;
	unsigned long long dev;
	unsigned long long ino;
	unsigned long long parent_ino;
	unsigned int mode;
	unsigned int name_length;
	unsigned int is_root;
	unsigned int reserved;
	char name[FILENAME_BYTES];
};

/* Call stacks. A frame is the number of a file in the upper 16 bits and an offset in it; an address of the process, where the
 * number is 0; or an address of the kernel, whose upper bits are set. */
#define STACK_FRAMES 127

/* Files that can be distinguished in stacks; number 0 is none, 1 the vdso. */
#define MODULES 16384
#define MODULE_VDSO 1
/* Executable memory of no file: it has no table, and its frames are addresses. */
#define MODULE_GENERATED 0xfffe
#define FIRST_MODULE 2
/* In place of the generation of an inode that is not known: more than 32 bits hold. */
#define ANY_GENERATION 0x100000000ULL
/* Executable mappings that a process may have; Chromium has some 120. A power of two. What is beyond is not known as
 * code: walks end there. */
#define AREAS 256

/* A file that a process maps executable. */
struct module_event {
	struct event_header header;
	unsigned long long address;
	unsigned long long length;
	unsigned long long dev;
	unsigned long long ino;
	unsigned int module;
	unsigned int reserved;
};

/* How a walk ended. */
enum stack_end {
	STACK_WHOLE = 0,
	STACK_NO_TABLE = 1,
	STACK_BAD_RULE = 2,
	STACK_UNREADABLE = 3,
	STACK_TOO_DEEP = 4,
	STACK_CHANGED = 5,
	STACK_KERNEL = 6,
	STACK_HANDS_OVER = 7,
};

struct stack_event {
	struct event_header header;
	unsigned int number;
	unsigned int depth;
	unsigned int end;
	unsigned int reserved;
	unsigned long long frames[STACK_FRAMES];
};

/* The name of a function of the kernel. Told by the recorder, where the owner of the recording is not to know where the kernel's
 * code is: `address` and those of frames are numbers of functions then. */
#define KERNEL_SYMBOL_BYTES 128

struct kernel_symbol_event {
	struct event_header header;
	unsigned long long address;
	char name[KERNEL_SYMBOL_BYTES];
};

/* Registers of a thread whose stack was reported by number, and behind them so many bytes of its memory from the stack pointer upward:
 * to be unwound once more by other means. */
#define COPY_BYTES 32768

struct stack_copy_event {
	struct event_header header;
	unsigned long long ip;
	unsigned long long sp;
	unsigned long long bp;
	unsigned int stack;
	unsigned int bytes;
};

#include "walks.h"

struct cpu_sample_event {
	struct event_header header;
	unsigned int cpu;
	/* The part in the kernel; the user's stands in the header. */
	unsigned int kernel_stack;
	/* Registers of user code in which functions get their first two arguments; with FLAG_ARGUMENTS only. */
	unsigned long long first_argument;
	unsigned long long second_argument;
};
/* In the header, beside FLAG_KERNEL: arguments are reported; the instruction of user code copies from the second to the first. */
#define FLAG_ARGUMENTS 4
#define FLAG_COPIES 8

#endif
