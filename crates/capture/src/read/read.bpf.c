// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Read-like system calls on regular files, with position and duration. */
#include "../../bpf/tree.bpf.h"

struct syscall_enter {
	u64 common;
	long id;
	u64 args[6];
};

static __always_inline int begin(void)
{
	struct task_state *state = state_of(bpf_get_current_task_btf());
	if (state)
		state->syscall_ts = bpf_ktime_get_ns();
	return 0;
}

/* `positioned`: the offset is the fourth argument; otherwise it is the file position less what was read. */
static __always_inline int end(struct syscall_exit *context, bool positioned)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	if (!state || !state->syscall_ts)
		return 0;
	u64 began = state->syscall_ts;
	state->syscall_ts = 0;
	struct pt_regs *regs = user_registers(task);
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
	if (positioned) {
		event->offset = PT_REGS_PARM4_SYSCALL(regs);
	} else {
		long long position = FIELD(file, file, f_pos);
		event->offset = context->ret > 0 && position >= context->ret ? position - context->ret : position;
	}
	event->result = context->ret;
	event->syscall = context->id;
	event->reserved = 0;
	submit(event);
	return 0;
}

#define READ_CALL(name, positioned)                                                                                    \
	SEC("tracepoint/syscalls/sys_enter_" #name) int before_##name(struct syscall_enter *context)                   \
	{                                                                                                              \
		return begin();                                                                                        \
	}                                                                                                              \
	SEC("tracepoint/syscalls/sys_exit_" #name) int after_##name(struct syscall_exit *context)                      \
	{                                                                                                              \
		return end(context, positioned);                                                                       \
	}

READ_CALL(read, false)
READ_CALL(readv, false)
READ_CALL(pread64, true)
READ_CALL(preadv, true)
