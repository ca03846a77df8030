/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The call stack of the current task, walked with the tables that the recorder made from .eh_frame. Each distinct stack goes
 * through the ring once and has a number from then on.
 *
 * A walk is a function of the registers, the tables and the words of the stack that it reads. So the thread's last walk is kept
 * with all the words that it read: when they are what they were, the stack is the same, and is not walked again. */
#ifndef SLOWPATH_STACK_BPF_H
#define SLOWPATH_STACK_BPF_H

#include "address_space.bpf.h"
#include "hand_over.bpf.h"
#include "keyed_sum.bpf.h"
#include "stack_copy.bpf.h"
#include "walk.bpf.h"

/* Distinct stacks of a recording; what is beyond has none and is counted as lost. */
#define STACKS 524288

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2 * STACKS);
	__type(key, u64);
	__type(value, u32);
} stack_numbers SEC(".maps");

/* The table of a file is an array of 8-byte cells: see TABLE_* in events.h. */
struct unwind_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MODULES);
	__type(key, u32);
	__array(values, struct unwind_table);
} unwind_tables SEC(".maps");

/* The row that holds at an offset of a module's file; 0 where the table has none. */
__attribute__((noinline)) u64 find_row(u32 module, u64 offset)
{
	void *table = bpf_map_lookup_elem(&unwind_tables, &module);
	if (!table)
		return CFA_NO_TABLE << 16;
	u32 key = TABLE_PAGES;
	u64 *cell = bpf_map_lookup_elem(table, &key);
	if (!cell)
		return 0;
	u32 first = (u32)*cell, pages = *cell >> 32, page = (u32)(offset >> 12) - first;
	key = TABLE_ROWS;
	cell = bpf_map_lookup_elem(table, &key);
	if (!cell || page >= pages)
		return 0;
	u32 rows = (u32)*cell;
	key = TABLE_HEAD + page / 2;
	cell = bpf_map_lookup_elem(table, &key);
	if (!cell)
		return 0;
	u32 low = page & 1 ? *cell >> 32 : (u32)*cell, high;
	if (page & 1) {
		key++;
		cell = bpf_map_lookup_elem(table, &key);
		if (!cell)
			return 0;
		high = (u32)*cell;
	} else {
		high = *cell >> 32;
	}
	u64 at = offset & 4095, row = 0;
	/* A page of 4096 bytes has at most 4096 rows. */
	for (int i = 0; i < 13; i++) {
		if (low >= high)
			break;
		u32 middle = (low + high) / 2;
		key = rows + middle;
		cell = bpf_map_lookup_elem(table, &key);
		if (!cell)
			break;
		u64 candidate = *cell;
		/* All bits are set where the row holds or a later one does; no branches, as above. */
		u64 holds = (long long)((candidate & 0xffff) - at - 1) >> 63;
		row = (row & ~holds) | (candidate & holds);
		low = (low & ~(u32)holds) | ((middle + 1) & (u32)holds);
		high = (high & (u32)holds) | (middle & ~(u32)holds);
	}
	return row;
}

/* The row of a frame, as it was found before where the CPU has kept it. A table that is not there yet may be there the next time. Not
 * inline: so it is verified once, and not in all combinations with what a step does. */
__attribute__((noinline)) u64 row_of_frame(struct workspace *work, u64 frame)
{
	if (!work)
		return 0;
	/* Fibonacci hashing: the upper bits of a product with 2^64 over the golden ratio (Knuth, volume 3, 6.4). */
	struct kept_row *kept = &work->rows[frame * 0x9e3779b97f4a7c15ULL >> (64 - KEPT_ROWS_SHIFT)];
	if (kept->frame == frame && kept->tables == work->tables)
		return kept->row;
	u64 row = find_row(frame >> 48, frame & ((1ULL << 48) - 1));
	if ((row >> 16 & 0xff) != CFA_NO_TABLE) {
		kept->frame = frame;
		kept->row = row;
		kept->tables = work->tables;
	}
	return row;
}

static long step(u32 index, struct walk *walk)
{
	u64 address = walk->ip - walk->work->is_caller, frame = address, row = 0;
	int at = walk->area = find_area_from(walk->space, walk->area, address);
	/* The verifier does not know what the compiler knows of the result. */
	asm volatile("" : "+r"(at));
	if (at >= 0 && at < AREAS && walk->space->areas[at].module != MODULE_GENERATED) {
		struct area *area = &walk->space->areas[at];
		u64 offset = ((u64)area->file_page << 12) + (address - area->start);
		frame = (u64)area->module << 48 | (offset & ((1ULL << 48) - 1));
		row = row_of_frame(walk->work, frame);
	} else {
		walk->work->raw = 1;
	}
	u32 depth = walk->work->event.depth;
	if (depth >= STACK_FRAMES)
		return ends(walk, STACK_TOO_DEEP);
	walk->work->event.frames[depth] = frame;
	walk->work->event.depth = depth + 1;

	u64 cfa, value;
	long long cfa_offset = (long long)(short)(row >> 32) * 8, bp_offset = (long long)(short)(row >> 48) * 8;
	switch (row >> 16 & 0xff) {
	case CFA_STACK_POINTER:
		cfa = walk->sp + cfa_offset;
		break;
	case CFA_FRAME_POINTER:
		cfa = walk->bp + cfa_offset;
		break;
	case CFA_OUTERMOST:
		return ends(walk, STACK_WHOLE);
	case CFA_LINKAGE_TABLE:
		cfa = walk->sp + 8 + ((walk->ip & 15) >= 11 ? 8 : 0);
		break;
	case CFA_SIGNAL_FRAME:
		return step_over_signal(walk);
	case CFA_AT_FRAME_POINTER:
		if (!read_word(walk, walk->bp + cfa_offset, &cfa))
			return ends(walk, STACK_UNREADABLE);
		break;
	case CFA_HANDING_OVER:
		cfa = walk->bp + cfa_offset;
		if (is_handed_over(cfa))
			return ends(walk, STACK_HANDS_OVER);
		break;
	case CFA_HANDS_OVER:
		return ends(walk, STACK_HANDS_OVER);
	case CFA_NO_TABLE:
		walk->work->passing = 1;
		/* Most code that has a table uses the frame pointer for other things: by it, callers would be left out. */
		return ends(walk, STACK_NO_TABLE);
	case CFA_UNKNOWN:
#if defined(__TARGET_ARCH_arm64)
		/* Entries of the linkage table are not described: all that they change is which code runs. */
		if (at >= 0 && !walk->work->is_caller && !walk->work->raw && is_code(walk, unsigned_address(walk->lr))) {
			walk->ip = unsigned_address(walk->lr);
			walk->work->is_caller = 1;
			return 0;
		}
#endif
		return step_by_frame_pointer(walk);
	default:
		return ends(walk, STACK_BAD_RULE);
	}
	if (return_address(walk, row >> 24 & 0xff, cfa, bp_offset, &value))
		return 1;
	walk->ip = value;
	walk->sp = cfa;
	walk->work->is_caller = 1;
	return 0;
}

struct comparison {
	struct last_walk *last;
	struct workspace *work;
	bool differs;
};

static long compares_word(u32 index, struct comparison *comparison)
{
	if (index >= WORDS)
		return 1;
	u64 value;
	if (!stack_word(comparison->work, comparison->last->addresses[index], &value))
		value = ~comparison->last->values[index];
	comparison->differs = value != comparison->last->values[index];
	return comparison->differs;
}

/* Whether every word that the last walk read is what it was. */
static __always_inline bool is_same(struct last_walk *last, struct workspace *work)
{
	struct comparison comparison = {.last = last, .work = work};
	bpf_loop(last->words, compares_word, &comparison, 0);
	return !comparison.differs;
}

struct summing {
	struct stack_event *event;
	struct keyed_sum sum;
};

static long adds_frame(u32 index, struct summing *summing)
{
	if (index >= STACK_FRAMES)
		return 1;
	add_word(&summing->sum, summing->event->frames[index]);
	return 0;
}

/* The number of the stack in the workspace, which is sent when it is new; 0 with the loss counted when it cannot be. Numbers go
 * by a sum of 64 bits over the frames, how the walk ended and, where that matters, the process: two among a million stacks share one
 * with a probability of 3e-8, and no process can make one of its stacks share that of another's. */
static __always_inline u32 number_of(struct walk_counts *count, struct stack_event *event, u32 depth, u64 process, u64 start)
{
	struct summing summing = {.event = event};
	begin_sum(&summing.sum);
	add_word(&summing.sum, (u64)event->end << 40 | depth);
	add_word(&summing.sum, process);
	add_word(&summing.sum, start);
	bpf_loop(depth, adds_frame, &summing, 0);
	u64 key = end_sum(&summing.sum);
	u32 *found = bpf_map_lookup_elem(&stack_numbers, &key);
	if (found)
		return *found;
	if (count->stacks >= STACKS) {
		count_lost(EVENT_STACK, 1);
		return 0;
	}
	u32 fresh = 1 + __sync_fetch_and_add(&count->stacks, 1);
	event->number = fresh;
	event->depth = depth;
	u64 size = sizeof(*event) - sizeof(event->frames) + depth * sizeof(u64);
	if (size > sizeof(*event) || bpf_ringbuf_output(&ring, event, size, BPF_RB_NO_WAKEUP)) {
		count_lost(EVENT_STACK, 1);
		return 0;
	}
	bpf_map_update_elem(&stack_numbers, &key, &fresh, BPF_ANY);
	return fresh;
}

static __always_inline void begin_stack(struct stack_event *event, struct task_struct *task)
{
	fill_header(&event->header, EVENT_STACK, task);
	event->header.ts = bpf_ktime_get_ns();
}

/* With the number of a stack: the thread's last one, which was not walked again. */
#define STACK_KEPT (1ULL << 32)

/* Number of the stack with these registers; 0 for none. */
static __always_inline u64 walked(struct task_struct *task, struct walk_settings *known, u64 ip, u64 sp, u64 bp, u64 lr, u64 flags)
{
	struct walk_counts *count = counts();
	struct workspace *work = workspace();
	if (!count || !work)
		return 0;
	struct last_walk *last = last_walk_of(task, flags);
	if (!last)
		return 0;
	u64 generation = count->changes + known->tables;
	read_near(work, sp & ~7ULL);
	if (last->stack && last->ip == ip && last->sp == sp && last->bp == bp && last->lr == lr &&
	    last->generation == generation && is_same(last, work))
		return last->stack | STACK_KEPT;
	last->stack = 0;
	struct space *space = bpf_task_storage_get(&spaces, task->group_leader, 0, flags);
	if (!space) {
		count_lost(EVENT_STACK, 1);
		return 0;
	}
	u32 version = space->version;
	struct walk walk = {.ip = ip, .sp = sp, .bp = bp, .lr = lr, .space = space, .last = last, .work = work};
	begin_stack(&work->event, task);
	work->event.end = STACK_TOO_DEEP;
	work->tables = known->tables;
	work->event.depth = work->words = work->is_caller = work->raw = work->passing = 0;
	bpf_loop(STACK_FRAMES + 1, step, &walk, 0);
	u32 depth = work->event.depth;
	if (depth > STACK_FRAMES)
		return 0;
	if (version & 1 || version != space->version)
		work->event.end = STACK_CHANGED;
	/* Addresses of generated code mean something in one process only, whose pid another may have later. */
	u64 process = work->raw ? task->tgid : 0, start = work->raw ? task->group_leader->start_time : 0;
	u32 number = number_of(count, &work->event, depth, process, start);
	if (work->words <= WORDS && work->event.end != STACK_CHANGED && !work->passing) {
		last->generation = generation;
		last->ip = ip;
		last->sp = sp;
		last->bp = bp;
		last->lr = lr;
		last->words = work->words;
		last->stack = number;
	}
	return number;
}

/* Number of the current task's user stack; 0 for none, and where it is withheld; with STACK_KEPT where finding it took next to nothing.
 * `state` is the task's, `flags` say whether memory may be allocated for the stack. Not static: so it is verified once, and not in
 * every program that calls it. */
__attribute__((noinline)) u64 user_stack(struct task_state *state, u64 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct walk_settings *known = settings();
	if (!known || !POINTER(task_struct, task, mm) || is_withheld(task, state))
		return 0;
	struct pt_regs *regs = user_registers(task);
#if defined(__TARGET_ARCH_x86)
	u64 ip = regs->ip, sp = regs->sp, bp = regs->bp, lr = 0;
#else
	u64 ip = regs->user_regs.pc, sp = regs->user_regs.sp, bp = regs->user_regs.regs[29], lr = regs->user_regs.regs[30];
#endif
	u64 stack = walked(task, known, ip, sp, bp, lr, flags);
	u32 number = stack;
	/* However the number was found: what was not walked anew could be wrong as well. */
	if (known->copy_every && number) {
		copy_stack(task, known, number, ip, sp, bp);
		return number;
	}
	return stack;
}

/* Number of the kernel's stack below a perf event; 0 for none. */
static __always_inline u32 kernel_stack(void *context, struct task_struct *task, struct task_state *state)
{
	struct walk_counts *count = counts();
	struct workspace *work = workspace();
	if (!count || !work || is_withheld(task, state))
		return 0;
	begin_stack(&work->event, task);
	work->event.end = STACK_KERNEL;
	long bytes = bpf_get_stack(context, work->event.frames, sizeof(work->event.frames), 0);
	if (bytes <= 0)
		return 0;
	u32 depth = bytes / 8;
	return depth > STACK_FRAMES ? 0 : number_of(count, &work->event, depth, 0, 0);
}

#endif
