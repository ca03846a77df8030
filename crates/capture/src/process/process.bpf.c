// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Follows the tree: forks, program images, ends, with the kernel's own fault counters as the oracle. */
#include "../../bpf/tree.bpf.h"

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct task_state *state = state_of(parent);
	if (!state)
		return 0;
	struct task_state *fresh = bpf_task_storage_get(&tree, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!fresh)
		count_lost(EVENT_FORK, 1);
	else {
		fresh->running = state->running;
		fresh->judged_exec = state->judged_exec;
		fresh->judged_credentials = state->judged_credentials;
		fresh->sight = state->sight;
	}
	struct fork_event *event = reserve(EVENT_FORK, sizeof(*event), parent);
	if (!event)
		return 0;
	event->header.ts = bpf_ktime_get_ns();
	event->parent_start = BPF_CORE_READ(parent, group_leader, start_time);
	event->start = BPF_CORE_READ(child, group_leader, start_time);
	event->child_pid = child->tgid;
	event->child_tid = child->pid;
	submit(event);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *binary)
{
	struct task_state *state = state_of(task);
	if (!state)
		return 0;
	state->running = 1;
	struct file *file = binary->file;
	bool withholds = is_program_withheld(task, state);
	name_file(file, withholds);
	struct file_id id = id_of(FIELD(file, file, f_inode));
	struct exec_event *event = reserve(EVENT_EXEC, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = bpf_ktime_get_ns();
	event->start = BPF_CORE_READ(task, group_leader, start_time);
	event->dev = id.dev;
	event->ino = id.ino;
	event->min_flt = task->min_flt;
	event->maj_flt = task->maj_flt;
	event->run_time = task->se.sum_exec_runtime;
	event->parent_pid = BPF_CORE_READ(task, real_parent, tgid);
	event->uid = BPF_CORE_READ(task, cred, euid.val);
	event->gid = BPF_CORE_READ(task, cred, egid.val);
	/* Where the path is not for all to see, the name that /proc shows. */
	bool is_shown = !withholds || is_listed((u64)BPF_CORE_READ(file, f_path.dentry));
	if (bpf_probe_read_kernel_str(event->filename, is_shown ? sizeof(event->filename) : sizeof(task->comm),
				      is_shown ? (const char *)binary->filename : task->comm) < 0)
		event->filename[0] = 0;
	unsigned long from;
	u32 length = command_line_of(task, &from);
	event->command_line_length = 0;
	if (length && !bpf_probe_read_user(event->command_line, length & 1023 ? length : 1, (void *)from))
		event->command_line_length = length;
	submit(event);
	return 0;
}

/* The counters of a task, at its end or at that of the recording. */
static __always_inline void emit_end(struct task_struct *task, u32 flags)
{
	struct exit_event *event = reserve(EVENT_EXIT, sizeof(*event), task);
	if (!event)
		return;
	event->header.ts = bpf_ktime_get_ns();
	event->header.flags = flags;
	event->start = BPF_CORE_READ(task, group_leader, start_time);
	event->min_flt = task->min_flt;
	event->maj_flt = task->maj_flt;
	event->utime = task->utime;
	event->stime = task->stime;
	event->run_time = task->se.sum_exec_runtime;
	event->read_bytes = task->ioac.read_bytes;
	event->exit_code = task->exit_code;
	event->reserved = 0;
	submit(event);
}

/* Whether the event of an exit shows if the thread is the process's last: since 6.16. */
const volatile u32 exit_tells_last;

/* Before, the count of live threads shows it: it is taken down before the event, and of threads that end together several can find it
 * at nothing. One of them is reported as the last. */
static __always_inline bool is_last(unsigned long long *context, struct task_struct *task)
{
	if (exit_tells_last)
		return *(volatile unsigned long long *)&context[1];
	if (BPF_CORE_READ(task, signal, live.counter))
		return false;
	struct task_state *leader = state_of(task->group_leader);
	return !leader || !__sync_fetch_and_or(&leader->last_is_reported, 1);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct task_state *state = state_of(task);
	if (!state)
		return 0;
	state->end_is_reported = 1;
	emit_end(task, is_last(ctx, task) ? FLAG_LAST_THREAD : 0);
	return 0;
}

/* Tasks that are left when recording ends. Each leaves the tree in the same moment in which its counters are read: a fault that
 * they count is one that was recorded. */
SEC("iter/task")
int end_tasks(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct task_state *state = task ? state_of(task) : 0;
	if (!state || state->end_is_reported)
		return 0;
	state->running = 0;
	emit_end(task, FLAG_STILL_RUNNING);
	bpf_task_storage_delete(&tree, task);
	return 0;
}
