// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Read-like system calls on regular files, with position and duration. */
#include "../../bpf/system_calls.bpf.h"

SEC("tp_btf/sys_enter")
int BPF_PROG(before_read, struct pt_regs *regs, long call)
{
	struct task_state *state = caller_state(bpf_get_current_task_btf());
	if (state)
		state->syscall_ts = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(after_read, struct pt_regs *regs, long result)
{
	int call = syscall_of(regs);
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = caller_state(task);
	if (!state || !state->syscall_ts)
		return 0;
	u64 began = state->syscall_ts;
	state->syscall_ts = 0;
	struct file *file = file_of_descriptor(task, PT_REGS_PARM1_SYSCALL(regs));
	if (!file)
		return 0;
	struct inode *inode = FIELD(file, file, f_inode);
	if ((FIELD(inode, inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	bool withholds = is_withheld(task, state);
	if (withholds && !is_public(inode)) {
		count_withheld(EVENT_READ);
		return 0;
	}
	name_file(file, withholds);
	struct read_event *event = reserve(EVENT_READ, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = began;
	event->duration = bpf_ktime_get_ns() - began;
	struct file_id id = id_of(inode);
	event->dev = id.dev;
	event->ino = id.ino;
	/* Where it was not given in the call it is the position of the file, less what was read. */
	if (call == NUMBER_PREAD64 || call == NUMBER_PREADV) {
		event->offset = PT_REGS_PARM4_SYSCALL(regs);
	} else {
		long long position = FIELD(file, file, f_pos);
		event->offset = result > 0 && position >= result ? position - result : position;
	}
	event->result = result;
	event->syscall = call;
	event->reserved = 0;
	submit(event);
	return 0;
}

PROGRAMS_OF_CALLS(calls_entered) = {
	.values = {
		[FIRST(NUMBER_READ)] = (void *)&before_read,
		[FIRST(NUMBER_READV)] = (void *)&before_read,
		[FIRST(NUMBER_PREAD64)] = (void *)&before_read,
		[FIRST(NUMBER_PREADV)] = (void *)&before_read,
	},
};
PROGRAMS_OF_CALLS(calls_returned) = {
	.values = {
		[FIRST(NUMBER_READ)] = (void *)&after_read,
		[FIRST(NUMBER_READV)] = (void *)&after_read,
		[FIRST(NUMBER_PREAD64)] = (void *)&after_read,
		[FIRST(NUMBER_PREADV)] = (void *)&after_read,
	},
};
