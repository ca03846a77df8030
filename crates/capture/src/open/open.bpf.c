// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Opens with their result, and calls that only look at a path or make a directory where they are refused. Only the return is watched:
 * the path is still in the caller's memory then. */
#include "../../bpf/tree.bpf.h"

#define AT_FDCWD -100
/* include/uapi/linux/openat2.h */
#define RESOLVE_IN_ROOT 0x10
/* include/uapi/asm-generic/errno-base.h */
#define EPERM 1
#define EACCES 13
#define EROFS 30
struct open_how {
	u64 flags;
	u64 mode;
	u64 resolve;
};

/* What was asked for. */
struct wanted_open {
	const char *path;
	/* The descriptor of the directory that a relative path starts from. */
	int from;
	u32 flags;
	/* enum path_call */
	u32 call;
	/* Whether that directory stands for the root: `..` does not leave it, and an absolute path starts there too. */
	bool is_root;
};

/* The directory that a relative path starts from. */
static __always_inline struct dentry *base_of(struct task_struct *task, int descriptor)
{
	if (descriptor == AT_FDCWD)
		return BPF_CORE_READ(task, fs, pwd.dentry);
	struct file *directory = file_of_descriptor(task, descriptor);
	return directory ? BPF_CORE_READ(directory, f_path.dentry) : 0;
}

static __always_inline struct file_id told_base(struct task_struct *task, struct wanted_open *asked, bool withholds)
{
	char first = 0;
	if (asked->is_root || bpf_probe_read_user(&first, sizeof(first), asked->path) || !first || first == '/')
		return (struct file_id){};
	struct dentry *directory = base_of(task, asked->from);
	/* Where a program whose doings are withheld works is told where anybody could have found it. */
	if (!directory || (withholds && !is_listed((u64)directory)))
		return (struct file_id){};
	name_from((u64)directory, NAMED_BY_PATH);
	return id_of(FIELD(dentry, directory, d_inode));
}

static __always_inline int tell(struct syscall_exit *context, struct task_struct *task, struct wanted_open *asked)
{
	struct task_state *state = state_of(task);
	if (!state)
		return 0;
	bool withholds = is_withheld(task, state), is_told = !withholds;
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
	struct file_id base = {};
	if (is_told)
		base = told_base(task, asked, withholds);
	struct open_event *event = reserve(EVENT_OPEN, sizeof(*event), task);
	if (!event)
		return 0;
	event->header.ts = bpf_ktime_get_ns();
	event->dev = id.dev;
	event->ino = id.ino;
	event->base_dev = base.dev;
	event->base_ino = base.ino;
	event->open_flags = asked->flags;
	event->call = asked->call;
	event->reserved = 0;
	event->result = context->ret;
	if (!is_told)
		count_withheld(EVENT_OPEN);
	if (!is_told || bpf_probe_read_user_str(event->path, sizeof(event->path), asked->path) < 0)
		event->path[0] = 0;
	submit(event);
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_openat")
int after_openat(struct syscall_exit *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = user_registers(task);
	struct wanted_open asked = {
		.path = (const char *)PT_REGS_PARM2_SYSCALL(regs),
		.from = (int)PT_REGS_PARM1_SYSCALL(regs),
		.flags = PT_REGS_PARM3_SYSCALL(regs),
	};
	return tell(context, task, &asked);
}

SEC("tracepoint/syscalls/sys_exit_openat2")
int after_openat2(struct syscall_exit *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = user_registers(task);
	struct open_how how = {};
	bool is_known = !bpf_probe_read_user(&how, sizeof(how), (const void *)PT_REGS_PARM3_SYSCALL(regs));
	struct wanted_open asked = {
		.path = (const char *)PT_REGS_PARM2_SYSCALL(regs),
		.from = (int)PT_REGS_PARM1_SYSCALL(regs),
		.flags = how.flags,
		.is_root = !is_known || how.resolve & RESOLVE_IN_ROOT,
	};
	return tell(context, task, &asked);
}

SEC("tracepoint/syscalls/sys_exit_open")
int after_open(struct syscall_exit *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = user_registers(task);
	struct wanted_open asked = {
		.path = (const char *)PT_REGS_PARM1_SYSCALL(regs),
		.from = AT_FDCWD,
		.flags = PT_REGS_PARM2_SYSCALL(regs),
	};
	return tell(context, task, &asked);
}

/* unistd.h */
#define W_OK 2
#define X_OK 1

static __always_inline int tell_refused(struct syscall_exit *context, u32 call, int from, const char *path)
{
	if (context->ret != -EACCES && context->ret != -EPERM && context->ret != -EROFS)
		return 0;
	struct wanted_open asked = {.path = path, .from = from, .call = call};
	return tell(context, bpf_get_current_task_btf(), &asked);
}

/* Who asks whether it may write or execute is not refused to read. */
static __always_inline bool asks_to_read(u64 mode)
{
	return !(mode & W_OK) && mode != X_OK;
}

#define ARGUMENT(number) PT_REGS_PARM##number##_SYSCALL(user_registers(bpf_get_current_task_btf()))
#define REFUSED(name) SEC("tracepoint/syscalls/sys_exit_" #name) int after_##name(struct syscall_exit *context)

REFUSED(newfstatat)
{
	return tell_refused(context, PATH_LOOK, (int)ARGUMENT(1), (const char *)ARGUMENT(2));
}

REFUSED(statx)
{
	return tell_refused(context, PATH_LOOK, (int)ARGUMENT(1), (const char *)ARGUMENT(2));
}

REFUSED(faccessat)
{
	if (!asks_to_read(ARGUMENT(3)))
		return 0;
	return tell_refused(context, PATH_LOOK, (int)ARGUMENT(1), (const char *)ARGUMENT(2));
}

REFUSED(faccessat2)
{
	if (!asks_to_read(ARGUMENT(3)))
		return 0;
	return tell_refused(context, PATH_LOOK, (int)ARGUMENT(1), (const char *)ARGUMENT(2));
}

REFUSED(mkdirat)
{
	return tell_refused(context, PATH_MAKE_DIRECTORY, (int)ARGUMENT(1), (const char *)ARGUMENT(2));
}

/* Newer architectures have none of these. */
#if defined(__TARGET_ARCH_x86)
REFUSED(access)
{
	if (!asks_to_read(ARGUMENT(2)))
		return 0;
	return tell_refused(context, PATH_LOOK, AT_FDCWD, (const char *)ARGUMENT(1));
}

REFUSED(newstat)
{
	return tell_refused(context, PATH_LOOK, AT_FDCWD, (const char *)ARGUMENT(1));
}

REFUSED(newlstat)
{
	return tell_refused(context, PATH_LOOK, AT_FDCWD, (const char *)ARGUMENT(1));
}

REFUSED(mkdir)
{
	return tell_refused(context, PATH_MAKE_DIRECTORY, AT_FDCWD, (const char *)ARGUMENT(1));
}
#endif
