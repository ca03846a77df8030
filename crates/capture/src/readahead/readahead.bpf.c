// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Readahead decisions (include/trace/events/readahead.h; kernels without these events do without). */
#include "../../bpf/tree.bpf.h"

static __always_inline int tell(struct inode *inode, u64 page, u64 pages, u32 path)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	if (!state)
		return 0;
	if (is_withheld(task, state) && !is_public(inode)) {
		count_withheld(EVENT_READAHEAD);
		return 0;
	}
	struct readahead_event *event = reserve(EVENT_READAHEAD, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = bpf_ktime_get_ns();
	event->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	event->ino = inode->i_ino;
	event->page = table_pages(page);
	event->pages = table_pages(pages);
	event->path = path;
	event->reserved = 0;
	submit(event);
	return 0;
}

SEC("tp_btf/page_cache_ra_unbounded")
int BPF_PROG(on_unbounded, struct inode *inode, unsigned long index, unsigned long pages, unsigned long lookahead)
{
	return tell(inode, index, pages, READAHEAD_UNBOUNDED);
}

SEC("tp_btf/page_cache_ra_order")
int BPF_PROG(on_order, struct inode *inode, unsigned long index, struct file_ra_state *ra)
{
	return tell(inode, index, ra->size, READAHEAD_ORDER);
}

SEC("tp_btf/page_cache_sync_ra")
int BPF_PROG(on_sync, struct inode *inode, unsigned long index, struct file_ra_state *ra, unsigned long pages)
{
	return tell(inode, index, pages, READAHEAD_SYNC);
}

SEC("tp_btf/page_cache_async_ra")
int BPF_PROG(on_async, struct inode *inode, unsigned long index, struct file_ra_state *ra, unsigned long pages)
{
	return tell(inode, index, pages, READAHEAD_ASYNC);
}
