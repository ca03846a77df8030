// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Page faults with their duration. The end comes from the kernel's software events PAGE_FAULTS_MIN and _MAJ
 * (mm_account_fault in mm/memory.c), the beginning from the tracepoints at the architecture's entry where there are any
 * (x86: exceptions:page_fault_user and _kernel), else from the event PAGE_FAULTS, which costs 60 ns more a fault.
 *
 * All are of the whole machine and filtered here by the tree. Events of the task, inherited by its children,
 * would cost other processes nothing, but the target itself at each of its context switches and forks (1.2 us a switch,
 * measured on a pipe between two processes), and the kernel ends them silently at the exec of a set-uid program.
 *
 * Compiled twice: with stacks, and without what they cost. */
#ifdef WITH_STACKS
#include "../../bpf/stack.bpf.h"
#else
#include "../../bpf/tree.bpf.h"
#endif

/* Faults of this CPU that are not in the ring yet. A place in the ring for each fault would cost 100 ns more: a lock
 * and memory that is in no cache. The driver takes what is left at the end. Programs on software events do not interrupt
 * each other (bpf_overflow_handler in kernel/events/core.c), so a batch has one writer. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fault_event);
} batches SEC(".maps");

/* Tasks whose faults are timed as those of the tree are, and not recorded: the recorder calibrates its own clock with one. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fault_clock);
} clocks SEC(".maps");

/* As `has_storage`, by a plain load: what POINTER adds would be added to each fault twice. Once in each program, for what the kernel
 * searches at each place. */
static __always_inline bool has_any_storage(struct task_struct *task)
{
	return !bpf_core_field_exists(task->bpf_storage) || task->bpf_storage;
}

static __always_inline struct fault_clock *clock_of(struct task_struct *task)
{
	return bpf_task_storage_get(&clocks, task, 0, 0);
}

/* Of a task that has storage; `state` is what it has as one of the tree. */
static __always_inline int begin(struct task_struct *task, struct task_state *state, u64 address, bool in_kernel)
{
	if (!state) {
		struct fault_clock *clock = clock_of(task);
		if (clock) {
			clock->since = bpf_ktime_get_ns();
			clock->address = address;
		}
		return 0;
	}
	state->fault_ts = bpf_ktime_get_ns();
	state->fault_address = address;
	state->fault_in_kernel = in_kernel;
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(begin_user, unsigned long address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	return has_any_storage(task) ? begin(task, bpf_task_storage_get(&tree, task, 0, 0), address, false) : 0;
}

/* Code that must not wait has page faults disabled: the access fails, and no end is reported. */
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(begin_kernel, unsigned long address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	if (!has_any_storage(task) || task->pagefault_disabled)
		return 0;
	return begin(task, bpf_task_storage_get(&tree, task, 0, 0), address, true);
}

/* Whether the fault was taken in kernel mode: kernel code stands in the upper half of the address space on every
 * architecture that is supported, user code never does. One event serves both modes. */
static __always_inline u32 mode(u64 ip)
{
	return (long long)ip < 0 ? FLAG_KERNEL : 0;
}

/* In place of the two, where they do not exist. */
SEC("perf_event")
int fault_begin(struct bpf_perf_event_data *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	if (!has_any_storage(task))
		return 0;
	struct task_state *state = bpf_task_storage_get(&tree, task, 0, 0);
	/* A fault that is retried (lock dropped for I/O) begins again at the same address: keep the first beginning. */
	if (state && state->fault_ts && state->fault_address == context->addr)
		return 0;
#if defined(__TARGET_ARCH_x86)
	return begin(task, state, context->addr, mode(context->regs.ip));
#else
	return begin(task, state, context->addr, mode(context->regs.pc));
#endif
}

/* The end of a fault of a task that has storage and is not of the tree. The time is taken where it is for the others: after one look. */
static __always_inline int end_of_other(struct task_struct *task, u64 address)
{
	u64 now = bpf_ktime_get_ns();
	struct fault_clock *clock = clock_of(task);
	if (clock && clock->since && clock->address == address) {
		clock->faults++;
		clock->time += now - clock->since;
		clock->since = 0;
	}
	return 0;
}

#ifdef WITH_STACKS
/* Of so many faults in a row whose stack is the last one's, recording one is timed. */
#define TIMED_OF_KEPT 8
/* What took longer is not given to other faults: mostly something else had the CPU. Where the machine or the stack make it long each time,
 * each fault is timed. */
#define LONGEST_AT_KEPT_NS 2000

/* What recording a fault took until now, for the most part its walk, which takes the thread's time and as much as some faults: reported, so
 * that it can be taken off what the thread did. To compare the stack with the last one takes hardly longer than to read the clock again:
 * there most faults have what the last one at the same stack took. */
static __always_inline u32 recording_of(struct fault_event *batch, u32 number, u64 stack, u64 since)
{
	/* Not the first of a batch, before which the one before was written to the ring. */
	bool is_due = number % TIMED_OF_KEPT == TIMED_OF_KEPT / 2;
	if (stack & STACK_KEPT && batch->kept_stack == (u32)stack && !is_due)
		return batch->took_at_kept;
	u64 took = bpf_ktime_get_ns() - since;
	if (stack & STACK_KEPT && took <= LONGEST_AT_KEPT_NS) {
		batch->kept_stack = stack;
		batch->took_at_kept = took;
	}
	return took > 0xffffffff ? 0xffffffff : took;
}
#endif

static __always_inline int end(struct bpf_perf_event_data *context, u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	if (!has_any_storage(task))
		return 0;
	struct task_state *state = bpf_task_storage_get(&tree, task, 0, 0);
	if (!state)
		return end_of_other(task, context->addr);
	if (!state->running)
		return 0;
	u64 now = bpf_ktime_get_ns();
	u64 began = state->fault_ts;
	bool known = began && state->fault_address == context->addr;
	state->fault_ts = 0;
#if defined(__TARGET_ARCH_x86)
	u64 ip = context->regs.ip;
#else
	u64 ip = context->regs.pc;
#endif
	flags |= mode(ip);
	u32 key = 0;
	struct fault_event *batch = bpf_map_lookup_elem(&batches, &key);
	if (!batch)
		return 0;
	u32 number = batch->count & (FAULT_BATCH - 1);
	struct fault_record *fault = &batch->faults[number];
	fault->ts = known ? began : now;
	fault->duration_and_flags = known ? (now - began) << FAULT_FLAG_BITS | flags : flags | FLAG_NO_START;
	fault->address = context->addr;
	/* Where the kernel's code is concerns root only; that it was the kernel is reported. */
	fault->ip = owner_is_root() || !(flags & FLAG_KERNEL) ? ip : 0;
	fault->pid = task->tgid;
	fault->tid = task->pid;
#ifdef WITH_STACKS
	u64 stack = user_stack(state, BPF_LOCAL_STORAGE_GET_F_CREATE);
	fault->stack = stack;
	fault->recording = recording_of(batch, number, stack, now);
#else
	fault->stack = 0;
	fault->recording = 0;
#endif
	if (is_withheld(task, state)) {
		count_withheld(EVENT_FAULT);
		fault->address = fault->ip = 0;
	}
	batch->header.kind = EVENT_FAULT;
	batch->count = number + 1;
	if (number + 1 < FAULT_BATCH)
		return 0;
	if (bpf_ringbuf_output(&ring, batch, sizeof(*batch), BPF_RB_NO_WAKEUP))
		count_lost(EVENT_FAULT, FAULT_BATCH);
	batch->count = 0;
	return 0;
}

#ifdef WITH_STACKS
/* One program for both ends, which the cookie of the event distinguishes: to check a walk takes the kernel tens of milliseconds. Without
 * one there is little to spare, and a call for the cookie would be added to each fault. */
SEC("perf_event")
int fault_end(struct bpf_perf_event_data *context)
{
	return end(context, bpf_get_attach_cookie(context));
}
#else
SEC("perf_event")
int fault_minor(struct bpf_perf_event_data *context)
{
	return end(context, 0);
}

SEC("perf_event")
int fault_major(struct bpf_perf_event_data *context)
{
	return end(context, FLAG_MAJOR);
}
#endif
