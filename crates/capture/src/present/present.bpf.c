// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Processes that run already: a walk over all tasks marks those that are to be followed, and reports of each what an exec would
 * have reported. From then on forks and execs are followed as in a tree. */
#include "../../bpf/mapping.bpf.h"
#include "../../bpf/wanted.bpf.h"

/* The recorder itself, and since when it marks: a child that a marked process made meanwhile is followed too. The process that
 * writes what is recorded, which would record its own work for ever; 0 for none. */
const volatile struct {
	u64 recorder;
	u64 began;
	u64 writer;
} self = {};

/* Set by the kernel for its own threads (include/linux/sched.h). */
#define PF_KTHREAD 0x00200000

static __always_inline bool is_wanted(struct task_struct *task)
{
	u32 process = task->tgid;
	if (process == self.recorder || process == self.writer)
		return false;
	if (is_named(process))
		return true;
	struct task_struct *parent = task->real_parent;
	u32 of = parent->tgid;
	return task->start_time >= self.began && bpf_map_lookup_elem(&wanted, &of);
}

SEC("iter.s/task")
int emit_present(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	if (!task || task->exit_state || !is_wanted(task))
		return 0;
	if (bpf_task_storage_get(&tree, task, 0, 0))
		return 0;
	struct task_state *state = bpf_task_storage_get(&tree, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state) {
		count_lost(EVENT_EXEC, 1);
		return 0;
	}
	u64 minor = task->min_flt, major = task->maj_flt, run_time = task->se.sum_exec_runtime;
	state->running = 1;
	bool is_leader = task->pid == task->tgid, is_kernel = task->flags & PF_KTHREAD;
	struct file *file = 0;
	struct file_id id = {};
	if (is_leader && !is_kernel) {
		file = BPF_CORE_READ(task, mm, exe_file);
		if (file) {
			name_file(file, is_program_withheld(task, state));
			id = id_of(FIELD(file, file, f_inode));
		}
	}
	struct exec_event *event = reserve(EVENT_EXEC, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = bpf_ktime_get_ns();
	event->header.flags = FLAG_PRESENT;
	event->start = BPF_CORE_READ(task, group_leader, start_time);
	event->dev = id.dev;
	event->ino = id.ino;
	event->min_flt = minor;
	event->maj_flt = major;
	event->run_time = run_time;
	event->parent_pid = BPF_CORE_READ(task, real_parent, tgid);
	event->uid = BPF_CORE_READ(task, cred, euid.val);
	event->gid = BPF_CORE_READ(task, cred, egid.val);
	event->filename[0] = 0;
	bpf_probe_read_kernel_str(event->filename, sizeof(task->comm), task->comm);
	event->command_line_length = 0;
	if (is_leader && !is_kernel) {
		unsigned long from;
		u32 length = command_line_of(task, &from);
		if (length && !bpf_copy_from_user_task(event->command_line, length & 1023 ? length : 1, (void *)from, task, 0))
			event->command_line_length = length;
	}
	submit(event);
	if (is_leader && !is_kernel)
		emit_layout(task, state);
	return 0;
}
