// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Requests to block devices, from issue to completion. A request is often issued by another task than the one that
 * wants the data (plugging, loop workers), so requests of all tasks are reported and the tree's own are marked. */
#include "../../bpf/tree.bpf.h"

struct issued {
	u64 ts;
	u32 pid;
	u32 tid;
	u64 in_tree;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct issued);
} in_flight SEC(".maps");

/* include/linux/blk_types.h: the operation is in the low 8 bits; REQ_OP_READ is 0. */
#define REQ_OP_MASK 0xff

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *request)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct issued issued = {
		.ts = bpf_ktime_get_ns(),
		.pid = task->tgid,
		.tid = task->pid,
		.in_tree = state_of(task) ? 1 : 0,
	};
	u64 key = (u64)request;
	if (bpf_map_update_elem(&in_flight, &key, &issued, BPF_ANY))
		count_lost(EVENT_BLOCK, 1);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *request, unsigned int error, unsigned int bytes)
{
	u64 key = (u64)request;
	struct issued *issued = bpf_map_lookup_elem(&in_flight, &key);
	if (!issued)
		return 0;
	struct block_event *event = bpf_ringbuf_reserve(&ring, sizeof(*event), 0);
	if (!event) {
		count_lost(EVENT_BLOCK, 1);
	} else {
		event->header.kind = EVENT_BLOCK;
		event->header.flags = (issued->in_tree ? FLAG_IN_TREE : 0) |
				      ((request->cmd_flags & REQ_OP_MASK) == 0 ? FLAG_IS_READ : 0);
		event->header.pid = issued->pid;
		event->header.tid = issued->tid;
		event->header.stack = 0;
		event->header.ts = issued->ts;
		event->latency = bpf_ktime_get_ns() - issued->ts;
		event->dev = BPF_CORE_READ(request, part, bd_dev);
		event->sector = request->__sector;
		event->bytes = bytes;
		submit(event);
	}
	bpf_map_delete_elem(&in_flight, &key);
	return 0;
}
