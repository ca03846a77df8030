// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Opens with their result. Only the return is watched: the path is still in the caller's memory then. */
#include "../../bpf/tree.bpf.h"

static __always_inline int tell(struct syscall_exit *context, bool at)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	if (!state)
		return 0;
	bool withholds = is_withheld(task, state), is_told = !withholds;
	struct pt_regs *regs = user_registers(task);
	const char *path = (const char *)(at ? PT_REGS_PARM2_SYSCALL(regs) : PT_REGS_PARM1_SYSCALL(regs));
	u32 flags = at ? PT_REGS_PARM3_SYSCALL(regs) : PT_REGS_PARM2_SYSCALL(regs);
	struct file_id id = {};
	if (context->ret >= 0) {
		struct file *file = file_of_descriptor(task, context->ret);
		if (file) {
			name_file(file, withholds);
			if (withholds)
				is_told = is_public(FIELD(file, file, f_inode)) && is_listed((u64)BPF_CORE_READ(file, f_path.dentry));
			if (is_told)
				id = id_of(FIELD(file, file, f_inode));
		}
	}
	struct open_event *event = reserve(EVENT_OPEN, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = bpf_ktime_get_ns();
	event->dev = id.dev;
	event->ino = id.ino;
	event->open_flags = flags;
	event->result = context->ret;
	if (!is_told)
		count_withheld(EVENT_OPEN);
	if (!is_told || bpf_probe_read_user_str(event->path, sizeof(event->path), path) < 0)
		event->path[0] = 0;
	submit(event);
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_openat")
int after_openat(struct syscall_exit *context)
{
	return tell(context, true);
}

/* The flags of openat2 stand behind a pointer; they are told as 0. */
SEC("tracepoint/syscalls/sys_exit_openat2")
int after_openat2(struct syscall_exit *context)
{
	return tell(context, true);
}

SEC("tracepoint/syscalls/sys_exit_open")
int after_open(struct syscall_exit *context)
{
	return tell(context, false);
}
