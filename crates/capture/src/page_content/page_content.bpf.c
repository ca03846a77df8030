// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* What pages hold when their memory is given back or their process ends: a page of memory without a file that is all zero then was
 * filled with zeros by the kernel and never used for anything else. An even sample of the pages of large areas is read, in the
 * task's own context and without bringing any page: what is not there is reported as not there. Areas of files and devices are not read. */
#include "../../bpf/system_calls.bpf.h"
#include "../../bpf/task_vma.bpf.h"

/* What is read of a page at a time: the smallest page. */
#define PART_BYTES 4096
#define PART_WORDS (PART_BYTES / 8)
#define MOST_PARTS 16
#define LINE_WORDS 8

/* include/linux/mm.h */
enum { VM_READ_WRITE = 3, VM_SHARED = 8, VM_GROWSDOWN = 0x100 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[PART_WORDS]);
} page SEC(".maps");

enum page_content { PAGE_ABSENT, PAGE_USED, PAGE_ZERO };

/* Most pages in use say so in their first line. Not static: verified once. */
__attribute__((noinline)) int content_of(u64 address)
{
	u32 first = 0;
	u64 *words = bpf_map_lookup_elem(&page, &first);
	if (!words || bpf_probe_read_user(words, LINE_WORDS * 8, (void *)address))
		return PAGE_ABSENT;
	u64 any = 0;
	for (int word = 0; word < LINE_WORDS; word++)
		any |= words[word];
	if (any)
		return PAGE_USED;
	for (int part = 0; part < MOST_PARTS && part * PART_BYTES < page_bytes(); part++) {
		if (bpf_probe_read_user(words, PART_BYTES, (void *)(address + part * PART_BYTES)))
			return PAGE_ABSENT;
		for (int word = 0; word < PART_WORDS; word++)
			any |= words[word];
		if (any)
			return PAGE_USED;
	}
	return PAGE_ZERO;
}

/* Pages that are being looked at, and the record of those that were. */
struct look {
	u64 next;
	u64 stride;
	u64 address;
	u64 began;
	u64 present;
	u64 zero;
	u32 pages;
	u32 moment;
};

static __always_inline void tell(struct look *look)
{
	if (!look->pages)
		return;
	u64 now = bpf_ktime_get_ns();
	struct page_content_event *event = reserve(EVENT_PAGE_CONTENT, sizeof(*event), bpf_get_current_task_btf());
	if (event) {
		event->header.ts = look->began;
		event->address = look->address;
		event->stride = look->stride;
		event->present = look->present;
		event->zero = look->zero;
		event->duration = now - look->began;
		event->pages = look->pages;
		event->moment = look->moment;
		submit(event);
	}
	look->began = now;
	look->present = look->zero = 0;
	look->pages = 0;
}

static long look_at_page(u32 number, struct look *look)
{
	if (!look->pages)
		look->address = look->next;
	int content = content_of(look->next);
	u64 bit = 1ULL << (look->pages & (LOOK_RECORD_PAGES - 1));
	if (content != PAGE_ABSENT)
		look->present |= bit;
	if (content == PAGE_ZERO)
		look->zero |= bit;
	look->next += look->stride;
	look->pages++;
	if (look->pages >= LOOK_RECORD_PAGES)
		tell(look);
	return 0;
}

/* Of how many pages of an area. */
static __always_inline u64 wanted_pages(u64 pages)
{
	u64 wanted = pages / LOOK_ONE_IN;
	wanted = wanted > LOOK_MOST_PAGES ? LOOK_MOST_PAGES : wanted < LOOK_LEAST_PAGES ? LOOK_LEAST_PAGES : wanted;
	return wanted > pages ? pages : wanted;
}

/* Looks at so many pages of a range, one at chance among the first and the others evenly behind it. */
static __always_inline void look_at(u64 from, u64 to, u64 wanted, u32 moment)
{
	u64 pages = (to - from) >> recording.page_shift;
	if (!wanted || !pages)
		return;
	u64 every = (pages + wanted - 1) / wanted;
	u64 first = bpf_get_prandom_u32() % every;
	struct look look = {
		.next = from + bytes_of_pages(first),
		.stride = bytes_of_pages(every),
		.began = bpf_ktime_get_ns(),
		.moment = moment,
	};
	bpf_loop((pages - first + every - 1) / every, look_at_page, &look, 0);
	tell(&look);
}

/* Memory without a file that a program can use as it likes: nothing that a driver mapped, which must not be read. */
static __always_inline bool is_plain(struct vm_area_struct *area)
{
	unsigned long flags = area->vm_flags;
	return !POINTER(vm_area_struct, area, vm_file) && !POINTER(vm_area_struct, area, vm_ops) &&
	       (flags & VM_READ_WRITE) == VM_READ_WRITE && !(flags & (VM_SHARED | VM_GROWSDOWN));
}

struct area {
	u64 end;
	bool is_plain;
};

static long keep_area(struct task_struct *task, struct vm_area_struct *vma, struct area *area)
{
	area->end = vma->vm_end;
	area->is_plain = is_plain(vma);
	return 0;
}

/* Areas of a process that ends: those that are beyond are not looked at. A power of two. */
#define AREAS_KEPT 1024

struct kept_areas {
	u64 count;
	/* Pages that are wanted of all of them. */
	u64 wanted;
	struct {
		u64 from;
		u64 to;
	} at[AREAS_KEPT];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct kept_areas);
} areas SEC(".maps");

/* So that nothing is read while the lock of the address space is held. Whose the heap of brk is, no call reports. */
static __always_inline void keep_areas(struct task_struct *task, struct mm_struct *mm, struct kept_areas *kept)
{
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	kept->count = kept->wanted = 0;
	bpf_iter_task_vma_new(&it, task, 0);
	while ((vma = bpf_iter_task_vma_next(&it))) {
		u64 from = vma->vm_start, to = vma->vm_end, number = kept->count;
		bool is_heap = from < mm->brk && to > mm->start_brk;
		if (!is_plain(vma) || is_heap || to - from < LOOK_LEAST_BYTES || number >= AREAS_KEPT)
			continue;
		kept->at[number].from = from;
		kept->at[number].to = to;
		kept->count = number + 1;
		kept->wanted += wanted_pages((to - from) >> recording.page_shift);
	}
	bpf_iter_task_vma_destroy(&it);
}

static long look_at_area(u32 number, void *unused)
{
	u32 first = 0;
	struct kept_areas *kept = bpf_map_lookup_elem(&areas, &first);
	if (!kept)
		return 1;
	/* The verifier is to see that it is one of them. */
	number &= AREAS_KEPT - 1;
	u64 from = kept->at[number].from, to = kept->at[number].to;
	u64 wanted = wanted_pages((to - from) >> recording.page_shift) / (kept->wanted / LOOK_PROCESS_PAGES + 1);
	look_at(from, to, wanted ? wanted : 1, LOOK_EXIT);
	return 0;
}

static __always_inline void look_at_process(struct task_struct *task)
{
	struct task_state *state = state_of(task);
	struct mm_struct *mm = POINTER(task_struct, task, mm);
	/* A child of vfork that did not execute anything has its parent's memory. */
	if (!state || !state->running || !mm || POINTER(task_struct, task, vfork_done))
		return;
	if (is_withheld(task, state)) {
		count_withheld(EVENT_PAGE_CONTENT);
		return;
	}
	u32 first = 0;
	struct kept_areas *kept = bpf_map_lookup_elem(&areas, &first);
	if (!kept)
		return;
	state->looks_up = 1;
	keep_areas(task, mm, kept);
	state->looks_up = 0;
	bpf_loop(AREAS_KEPT < kept->count ? AREAS_KEPT : kept->count, look_at_area, 0, 0);
}

/* Here the memory is there still, from kernel 6.16 on: how a process ends does not matter. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(at_exit, struct task_struct *task, bool last)
{
	if (last)
		look_at_process(task);
	return 0;
}

/* Of a range that reaches over several areas, the first. */
static __always_inline void look_at_range(struct task_struct *task, struct pt_regs *regs)
{
	struct task_state *state = caller_state(task);
	if (!state || !state->running)
		return;
	u64 from = PT_REGS_PARM1_SYSCALL(regs), length = PT_REGS_PARM2_SYSCALL(regs);
	if (length < LOOK_LEAST_BYTES || from & (page_bytes() - 1))
		return;
	if (is_withheld(task, state)) {
		count_withheld(EVENT_PAGE_CONTENT);
		return;
	}
	if (state->looked > task->se.sum_exec_runtime / LOOK_BUDGET + LOOK_FREE_NS)
		return;
	u64 began = bpf_ktime_get_ns();
	struct area area = {};
	state->looks_up = 1;
	bpf_find_vma(task, from, keep_area, &area, 0);
	state->looks_up = 0;
	u64 to = from + length < area.end ? from + length : area.end;
	if (area.is_plain && to > from && to - from >= LOOK_LEAST_BYTES)
		look_at(from, to, wanted_pages((to - from) >> recording.page_shift), LOOK_MUNMAP);
	state->looked += bpf_ktime_get_ns() - began;
}

/* Whether the end of a process is seen where it has its memory. On other kernels processes are looked at that end themselves. */
const volatile u32 exit_has_memory;

int before_release(unsigned long long *context);

PROGRAMS_OF_CALLS(calls_entered) = {
	.values = {
		[FIRST(NUMBER_MUNMAP)] = (void *)&before_release,
		[FIRST(NUMBER_EXIT_GROUP)] = (void *)&before_release,
	},
};

SEC("tp_btf/sys_enter")
int BPF_PROG(before_release, struct pt_regs *regs, unsigned long call)
{
	struct task_struct *task = bpf_get_current_task_btf();
	if (call == NUMBER_MUNMAP)
		look_at_range(task, regs);
	else if (!exit_has_memory && caller_state(task))
		look_at_process(task);
	/* `memory` records its duration. */
	if (call < CALLS)
		bpf_tail_call(ctx, &calls_entered, SECOND(call));
	return 0;
}
