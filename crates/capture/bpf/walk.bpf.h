/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The state of a walk over a call stack, and the steps that need no table: by frame pointer, over a signal, to the return address
 * of a frame whose rule is known. What differs between x86-64 and arm64 stands here. Leaves tables and whole walks to stack.bpf.h. */
#ifndef SLOWPATH_WALK_BPF_H
#define SLOWPATH_WALK_BPF_H

#include "address_space.bpf.h"
#include "last_walk.bpf.h"

/* Words of the stack that are read at once, and how many of them lie below the one that is asked for: registers are saved below
 * the return address. */
#define NEAR_WORDS 64
#define WORDS_BELOW 8
/* A frame pointer that is farther from the stack pointer is none. */
#define FARTHEST_FRAME (1 << 20)

/* Rows of unwinding tables that a CPU found last. A program returns to few places again and again, and to find a row among those of
 * its page takes a call into the kernel for each that is looked at. */
#define KEPT_ROWS_SHIFT 10
struct kept_row {
	/* Module and offset, as in a frame; and the tables that there were. */
	u64 frame;
	u64 row;
	u32 tables;
};

/* One of each for a CPU: programs on perf events and on tracepoints do not interrupt each other there, and every object
 * has its own. */
struct workspace {
	/* A piece of the stack, as far as it was read, and its address. */
	u64 near[NEAR_WORDS];
	u64 near_at;
	u32 has_near;
	struct stack_event event;
	/* State of a walk. It stands here and not on the stack, where the verifier would follow each value that it can have. */
	u32 words;
	/* The instruction is a return address: the call stands before it. */
	u32 is_caller;
	/* Some frame is in generated code. */
	u32 raw;
	/* It is not to be kept: it ended for want of a table, which may be there the next time, or depends on more than its words. */
	u32 passing;
	/* Tables that are there. */
	u32 tables;
	struct kept_row rows[1 << KEPT_ROWS_SHIFT];
};
/* The kernel's limit for what a map has of each CPU (PCPU_MIN_UNIT_SIZE in include/linux/percpu.h). */
_Static_assert(sizeof(struct workspace) <= 32768, "too large for a map of each CPU");
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct workspace);
} workspaces SEC(".maps");

static __always_inline struct workspace *workspace(void)
{
	u32 key = 0;
	return bpf_map_lookup_elem(&workspaces, &key);
}

struct walk {
	u64 ip;
	u64 sp;
	/* Frame pointer: rbp; x29 on arm64. */
	u64 bp;
	/* Return address of a function that has not saved it, on arm64: x30 of the innermost frame and of one that a signal interrupted. */
	u64 lr;
	struct space *space;
	/* Index of the area of the last step; any where there was none. */
	u32 area;
	struct last_walk *last;
	struct workspace *work;
};

/* Reads a piece of the stack. */
static __always_inline void read_near(struct workspace *work, u64 address)
{
	work->near_at = address;
	work->has_near = !bpf_probe_read_user(work->near, sizeof(work->near), (void *)address);
}

/* A word of the task's stack, and a piece around it for those that come. Not inline: so it is verified once. */
__attribute__((noinline)) int far_word(struct workspace *work, u64 address, u64 *value)
{
	if (!work || !value)
		return false;
	if (!(address & 7)) {
		read_near(work, address - 8 * WORDS_BELOW);
		if (work->has_near) {
			*value = work->near[WORDS_BELOW];
			return true;
		}
	}
	/* At the end of the stack, or at one of its pages that is not there, a piece cannot be read, and a word of it can. */
	return !bpf_probe_read_user(value, sizeof(*value), (void *)address);
}

/* A word of the task's stack. Walks go from word to word upwards, and to read one takes as long as to read a piece. */
static __always_inline bool stack_word(struct workspace *work, u64 address, u64 *value)
{
	u64 word = (address - work->near_at) / 8;
	if (!work->has_near || word >= NEAR_WORDS || address & 7)
		return far_word(work, address, value);
	*value = work->near[word];
	return true;
}

/* The same; it is kept for the next walk. */
static __always_inline bool read_word(struct walk *walk, u64 address, u64 *value)
{
	if (!stack_word(walk->work, address, value))
		return false;
	u32 number = walk->work->words;
	if (number < WORDS) {
		walk->last->addresses[number] = address;
		walk->last->values[number] = *value;
	}
	walk->work->words = number + 1;
	return true;
}

static __always_inline long ends(struct walk *walk, u32 end)
{
	walk->work->event.end = end;
	return 1;
}

/* Bits of an address of user code: four levels of page tables, of which x86-64 leaves the upper half to the kernel. */
#if defined(__TARGET_ARCH_x86)
#define CODE_BITS 47
#else
#define CODE_BITS 48
#endif

static __always_inline bool is_code(struct walk *walk, u64 address)
{
	return address >= 65536 && !(address >> CODE_BITS) && find_area(walk->space, address - 1) >= 0;
}

/* A return address as it is where code goes on: arm64 can sign it in the bits above. */
static __always_inline u64 unsigned_address(u64 address)
{
#if defined(__TARGET_ARCH_x86)
	return address;
#else
	return address & ((1ULL << CODE_BITS) - 1);
#endif
}

/* The innermost function is about to make its frame, or has just given it back: the frame pointer is the caller's, whose return
 * address stands where the stack pointer says. The instructions show it. */
static __always_inline bool steps_over_border(struct walk *walk)
{
#if defined(__TARGET_ARCH_x86)
	/* push %rbp; mov %rsp, %rbp in its two encodings; ret */
	unsigned char code[5], *at = code + 1;
	if (walk->work->is_caller || bpf_probe_read_user(code, sizeof(code), (void *)(walk->ip - 1)))
		return false;
	bool copies = at[0] == 0x48 && ((at[1] == 0x89 && at[2] == 0xe5) || (at[1] == 0x8b && at[2] == 0xec));
	u64 pushed = code[0] == 0x55 && copies ? 8 : 0, caller;
	if (!pushed && at[0] != 0xc3 && !(at[0] == 0x55 && at[1] == 0x48))
		return false;
	if (!read_word(walk, walk->sp + pushed, &caller) || !is_code(walk, caller))
		return false;
	walk->ip = caller;
	walk->sp += pushed + 8;
	walk->work->is_caller = 1;
	return true;
#else
	return false;
#endif
}

/* Through the frame pointer, where there is no table: large programs are compiled without tables and with it, and code that is
 * generated at run time keeps it. */
static __always_inline long step_by_frame_pointer(struct walk *walk)
{
	u64 bp = walk->bp, caller, before;
	if (steps_over_border(walk))
		return 0;
#if defined(__TARGET_ARCH_arm64)
	/* The first frame of a thread has none before it (AAPCS64, "The Frame Pointer"). */
	if (!bp)
		return ends(walk, STACK_WHOLE);
#endif
	if (bp < walk->sp || bp - walk->sp >= FARTHEST_FRAME || bp & 7)
		return ends(walk, STACK_NO_TABLE);
	if (!read_word(walk, bp + 8, &caller) || !read_word(walk, bp, &before))
		return ends(walk, STACK_NO_TABLE);
	caller = unsigned_address(caller);
	if (!is_code(walk, caller))
		return ends(walk, STACK_NO_TABLE);
	walk->ip = caller;
	walk->sp = bp + 16;
	walk->bp = before;
	walk->work->is_caller = 1;
	return 0;
}

static __always_inline long step_over_signal(struct walk *walk)
{
#if defined(__TARGET_ARCH_x86)
	/* struct ucontext at the stack pointer: arch/x86/include/uapi/asm/{ucontext,sigcontext}.h */
	u64 context = walk->sp;
	if (!read_word(walk, context + 120, &walk->bp) || !read_word(walk, context + 160, &walk->sp) ||
	    !read_word(walk, context + 168, &walk->ip))
		return ends(walk, STACK_UNREADABLE);
#else
	/* siginfo and struct ucontext at the stack pointer, with struct sigcontext 176 bytes into it: arch/arm64/kernel/signal.c,
	 * arch/arm64/include/uapi/asm/{ucontext,sigcontext}.h */
	u64 registers = walk->sp + 128 + 176 + 8;
	if (!read_word(walk, registers + 29 * 8, &walk->bp) || !read_word(walk, registers + 30 * 8, &walk->lr) ||
	    !read_word(walk, registers + 31 * 8, &walk->sp) || !read_word(walk, registers + 32 * 8, &walk->ip))
		return ends(walk, STACK_UNREADABLE);
#endif
	walk->work->is_caller = 0;
	return walk->ip ? 0 : ends(walk, STACK_WHOLE);
}

#if defined(__TARGET_ARCH_x86)
/* The return address stands below the frame, and has to be read before the frame pointer changes. */
static __always_inline long return_address(struct walk *walk, u64 rule, u64 cfa, long long bp_offset, u64 *value)
{
	u64 address;
	if (cfa <= walk->sp)
		return ends(walk, STACK_BAD_RULE);
	if (!read_word(walk, cfa - 8, &address))
		return ends(walk, STACK_UNREADABLE);
	if (!address)
		return ends(walk, STACK_WHOLE);
	switch (rule) {
	case FRAME_POINTER_AT_CFA:
		if (!read_word(walk, cfa + bp_offset, &walk->bp))
			return ends(walk, STACK_UNREADABLE);
		break;
	case FRAME_POINTER_AT_FRAME_POINTER:
		if (!read_word(walk, walk->bp + bp_offset, &walk->bp))
			return ends(walk, STACK_UNREADABLE);
		break;
	case FRAME_POINTER_UNKNOWN:
		walk->bp = 0;
		break;
	}
	*value = address;
	return 0;
}
#else
/* The return address is in its register, where only the innermost function can have left it, or saved: above the frame pointer, or
 * by itself. */
static __always_inline long return_address(struct walk *walk, u64 rule, u64 cfa, long long bp_offset, u64 *value)
{
	u64 address = walk->lr;
	bool is_saved = rule == FRAME_POINTER_AT_CFA || rule == RETURN_ADDRESS_AT_CFA;
	if (rule == FRAME_POINTER_UNKNOWN || rule == FRAME_POINTER_AT_FRAME_POINTER || cfa < walk->sp ||
	    (walk->work->is_caller && (!is_saved || cfa == walk->sp)))
		return ends(walk, STACK_BAD_RULE);
	if (is_saved && !read_word(walk, cfa + bp_offset + (rule == FRAME_POINTER_AT_CFA ? 8 : 0), &address))
		return ends(walk, STACK_UNREADABLE);
	if (!address)
		return ends(walk, STACK_WHOLE);
	if ((rule == FRAME_POINTER_AT_CFA || rule == FRAME_POINTER_ONLY_AT_CFA) && !read_word(walk, cfa + bp_offset, &walk->bp))
		return ends(walk, STACK_UNREADABLE);
	*value = unsigned_address(address);
	return 0;
}
#endif

#endif
