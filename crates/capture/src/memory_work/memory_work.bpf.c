// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* What the kernel does to have free and huge pages: by followed tasks in their own context, with its duration; and by its own
 * threads, which any task wakes or whose work lies in any process, so those are reported for the whole machine. All of it is rare: while
 * there is memory enough none of these events happens. */
#include "../../bpf/interrupts.bpf.h"

/* include/linux/sched.h */
#define PF_KTHREAD 0x00200000
/* enum scan_result in mm/khugepaged.c */
#define SCAN_SUCCEED 1
/* Small pages of a huge one: a page table has a page of entries of eight bytes. 2 MiB with pages of 4 KiB. */
static __always_inline u64 pages_of_huge_page(void)
{
	return page_bytes() / 8;
}

static __always_inline void fill(struct memory_work_event *event, u32 work, u64 ts, u64 duration, u64 pages, int node)
{
	event->header.ts = ts;
	event->duration = duration;
	event->pages = table_pages(pages);
	event->work = work;
	event->node = node;
}

/* Work of the current task, when it is over. `since` is a field of its state. */
static __always_inline int emit_own(struct task_struct *task, u64 *since, u32 work, u64 pages, u32 flags)
{
	u64 began = *since, now = bpf_ktime_get_ns();
	*since = 0;
	if (!began)
		return 0;
	struct memory_work_event *event = reserve(EVENT_MEMORY_WORK, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.flags = FLAG_IN_TREE | flags;
	fill(event, work, began, now > began ? now - began : 1, pages, NO_NODE);
	submit(event);
	return 0;
}

static __always_inline int begin_reclaim(void)
{
	struct task_state *state = state_of(bpf_get_current_task_btf());
	if (state && state->running)
		state->reclaim_since = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int end_reclaim(u32 work, u64 pages)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	return state ? emit_own(task, &state->reclaim_since, work, pages, pages ? FLAG_SUCCEEDED : 0) : 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(on_direct_reclaim)
{
	return begin_reclaim();
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(on_direct_reclaimed, unsigned long pages)
{
	return end_reclaim(WORK_DIRECT_RECLAIM, pages);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(on_group_reclaim)
{
	return begin_reclaim();
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(on_group_reclaimed, unsigned long pages)
{
	return end_reclaim(WORK_GROUP_RECLAIM, pages);
}

SEC("tp_btf/mm_compaction_begin")
int BPF_PROG(on_compaction)
{
	struct task_state *state = state_of(bpf_get_current_task_btf());
	if (state && state->running)
		state->compaction_since = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/mm_compaction_end")
int BPF_PROG(on_compacted)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	return state ? emit_own(task, &state->compaction_since, WORK_DIRECT_COMPACTION, 0, 0) : 0;
}

/* A thread of the kernel's is woken. In an interrupt whoever was interrupted is not to blame. */
static __always_inline int emit_wake_up(u32 work, int node)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct memory_work_event *event = reserve(EVENT_MEMORY_WORK, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.flags = FLAG_SUCCEEDED;
	if (is_interrupted(task))
		event->header.pid = event->header.tid = 0;
	else if (state_of(task))
		event->header.flags |= FLAG_IN_TREE;
	fill(event, work, bpf_ktime_get_ns(), 0, 0, node);
	submit(event);
	return 0;
}

SEC("tp_btf/mm_vmscan_wakeup_kswapd")
int BPF_PROG(on_wake_kswapd, int node)
{
	return emit_wake_up(WORK_WAKE_KSWAPD, node);
}

SEC("tp_btf/mm_compaction_wakeup_kcompactd")
int BPF_PROG(on_wake_kcompactd, int node)
{
	return emit_wake_up(WORK_WAKE_KCOMPACTD, node);
}

/* What khugepaged does in an address space. The kernel knows the thread that owns it, where there are memory cgroups. */
static __always_inline int emit_khugepaged(struct mm_struct *mm, u32 work, u32 flags)
{
	struct task_struct *current = bpf_get_current_task_btf();
	if (!(current->flags & PF_KTHREAD))
		return 0;
	struct memory_work_event *event = reserve(EVENT_MEMORY_WORK, sizeof(*event), current);
	if (!event)
		return 0;
	event->header.flags = flags;
	event->header.pid = event->header.tid = 0;
	struct task_struct *owner = bpf_core_field_exists(mm->owner) ? mm->owner : 0;
	if (owner) {
		event->header.pid = owner->tgid;
		event->header.tid = owner->pid;
		if (state_of(owner))
			event->header.flags |= FLAG_IN_TREE;
	}
	fill(event, work, bpf_ktime_get_ns(), 0, pages_of_huge_page(), NO_NODE);
	submit(event);
	return 0;
}

SEC("tp_btf/mm_khugepaged_scan_pmd")
int BPF_PROG(on_scan, struct mm_struct *mm)
{
	return emit_khugepaged(mm, WORK_KHUGEPAGED_SCAN, 0);
}

SEC("tp_btf/mm_khugepaged_scan_file")
int BPF_PROG(on_scan_file, struct mm_struct *mm)
{
	return emit_khugepaged(mm, WORK_KHUGEPAGED_SCAN, 0);
}

/* By a thread of the kernel's, or by one that asked for it (MADV_COLLAPSE). How long that took its call says. */
static __always_inline int emit_collapse(struct mm_struct *mm, int result)
{
	u32 flags = result == SCAN_SUCCEED ? FLAG_SUCCEEDED : 0;
	struct task_struct *task = bpf_get_current_task_btf();
	if (task->flags & PF_KTHREAD)
		return emit_khugepaged(mm, WORK_KHUGEPAGED_COLLAPSE, flags);
	struct task_state *state = state_of(task);
	if (!state || !state->running)
		return 0;
	struct memory_work_event *event = reserve(EVENT_MEMORY_WORK, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.flags = FLAG_IN_TREE | flags;
	fill(event, WORK_OWN_COLLAPSE, bpf_ktime_get_ns(), 0, pages_of_huge_page(), NO_NODE);
	submit(event);
	return 0;
}

SEC("tp_btf/mm_collapse_huge_page")
int BPF_PROG(on_collapse, struct mm_struct *mm, int isolated, int result)
{
	return emit_collapse(mm, result);
}

SEC("tp_btf/mm_khugepaged_collapse_file")
int BPF_PROG(on_collapse_file, struct mm_struct *mm, void *folio, unsigned long index, unsigned long or_in_memory,
	     unsigned long address, struct file *file, int pages, int result)
{
	return emit_collapse(mm, result);
}
