// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Pages that enter or leave the page cache: on the recorded device whoever did it, elsewhere by the tree. */
#include "../../bpf/tree.bpf.h"

/* Device whose pages are reported whoever asked for them (the lab's); 0 for none. Set before loading. */
const volatile u64 watched_dev = 0;

static __always_inline u32 folio_pages(struct folio *folio)
{
	unsigned long flags = 0;
	/* page flags are the first word of every folio (include/linux/mm_types.h). */
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags & (1UL << bpf_core_enum_value(enum pageflags, PG_head))))
		return 1;
	/* Until 6.5 the order had a byte of its own, and the second word of flags had others. */
	if (bpf_core_field_exists(folio->_folio_order))
		return 1U << (folio->_folio_order & 0x1f);
	if (!bpf_core_field_exists(folio->_flags_1))
		return 1;
	/* The order stands in the low byte of the second word of flags (folio_large_order). */
	return 1U << (folio->_flags_1 & 0x1f);
}

static __always_inline int tell(struct folio *folio, u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	/* Before the first branch: the verifier follows it once. */
	struct task_state *state = state_of(task);
	struct inode *inode = POINTER(folio, folio, mapping)->host;
	/* Pages of a block device itself are a file system's metadata: reported as inode 0 of that device. */
	bool metadata = (inode->i_mode & S_IFMT) == S_IFBLK;
	u64 dev = metadata ? inode->i_rdev : inode->i_sb->s_dev;
	/* A lab holds copies of what its user has read. */
	bool is_watched = watched_dev && dev == watched_dev;
	if (!state && !is_watched)
		return 0;
	if (!metadata) {
		if ((inode->i_mode & S_IFMT) != S_IFREG)
			return 0;
		if (!is_watched && is_withheld(task, state) && !is_public(inode)) {
			count_withheld(EVENT_PAGE_CACHE);
			return 0;
		}
		name_inode(inode, !is_watched && !owner_is_root());
	}
	struct page_cache_event *event = reserve(EVENT_PAGE_CACHE, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = bpf_ktime_get_ns();
	event->header.flags = flags;
	event->dev = dev;
	event->ino = metadata ? 0 : inode->i_ino;
	event->page = table_pages(folio->index);
	event->pages = table_pages(folio_pages(folio));
	event->syscall = current_syscall(task);
	submit(event);
	return 0;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_add, struct folio *folio)
{
	return tell(folio, 0);
}

SEC("tp_btf/mm_filemap_delete_from_page_cache")
int BPF_PROG(on_delete, struct folio *folio)
{
	return tell(folio, FLAG_DELETE);
}
