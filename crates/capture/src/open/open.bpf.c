// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Opens with their result, and calls that only look at a path or make a directory where they are refused. Only the return is watched:
 * the path is still in the caller's memory then. */
#include "../../bpf/system_calls.bpf.h"

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

static __always_inline struct file_id shown_base(struct task_struct *task, struct wanted_open *asked, bool withholds)
{
	char first = 0;
	if (asked->is_root || bpf_probe_read_user(&first, sizeof(first), asked->path) || !first || first == '/')
		return (struct file_id){};
	struct dentry *directory = base_of(task, asked->from);
	/* The directory of a program with withheld details is reported where anybody could have found it. */
	if (!directory || (withholds && !is_listed((u64)directory)))
		return (struct file_id){};
	name_from((u64)directory, NAMED_BY_PATH);
	return id_of(FIELD(dentry, directory, d_inode));
}

static __always_inline void tell(struct task_struct *task, struct task_state *state, struct wanted_open *asked, long result)
{
	bool withholds = is_withheld(task, state), is_shown = !withholds;
	struct file_id id = {};
	if (result >= 0) {
		struct file *file = file_of_descriptor(task, result);
		if (file) {
			name_file(file, withholds);
			if (withholds)
				is_shown = is_public(FIELD(file, file, f_inode)) && is_listed((u64)BPF_CORE_READ(file, f_path.dentry));
			if (is_shown)
				id = id_of(FIELD(file, file, f_inode));
		}
	}
	struct file_id base = {};
	if (is_shown)
		base = shown_base(task, asked, withholds);
	struct open_event *event = reserve(EVENT_OPEN, sizeof(*event), task);
	if (!event)
		return;
	event->header.ts = bpf_ktime_get_ns();
	event->dev = id.dev;
	event->ino = id.ino;
	event->base_dev = base.dev;
	event->base_ino = base.ino;
	event->open_flags = asked->flags;
	event->call = asked->call;
	event->reserved = 0;
	event->result = result;
	if (!is_shown)
		count_withheld(EVENT_OPEN);
	if (!is_shown || bpf_probe_read_user_str(event->path, sizeof(event->path), asked->path) < 0)
		event->path[0] = 0;
	submit(event);
}

/* unistd.h */
#define W_OK 2
#define X_OK 1

/* Who asks whether it may write or execute is not refused to read. */
static __always_inline bool asks_to_read(u64 mode)
{
	return !(mode & W_OK) && mode != X_OK;
}

static __always_inline bool is_refused(long result)
{
	return result == -EACCES || result == -EPERM || result == -EROFS;
}

#define ARGUMENT(number) PT_REGS_PARM##number##_SYSCALL(regs)

/* What a call asked for, and whether it is recorded. The calls that end in `at` have the start of a relative path as their
 * first argument. */
static __always_inline bool asked_for(struct pt_regs *regs, int call, struct wanted_open *asked)
{
	struct open_how how = {};
	asked->from = (int)ARGUMENT(1);
	asked->path = (const char *)ARGUMENT(2);
	switch (call) {
	case NUMBER_OPENAT:
		asked->flags = ARGUMENT(3);
		return true;
	case NUMBER_OPENAT2:
		asked->is_root = bpf_probe_read_user(&how, sizeof(how), (const void *)ARGUMENT(3)) || how.resolve & RESOLVE_IN_ROOT;
		asked->flags = how.flags;
		return true;
	case NUMBER_NEWFSTATAT:
	case NUMBER_STATX:
		asked->call = PATH_LOOK;
		return true;
	case NUMBER_FACCESSAT:
	case NUMBER_FACCESSAT2:
		asked->call = PATH_LOOK;
		return asks_to_read(ARGUMENT(3));
	case NUMBER_MKDIRAT:
		asked->call = PATH_MAKE_DIRECTORY;
		return true;
	}
	/* Newer architectures have none of these. */
#if defined(__TARGET_ARCH_x86)
	asked->from = AT_FDCWD;
	asked->path = (const char *)ARGUMENT(1);
	switch (call) {
	case NUMBER_OPEN:
		asked->flags = ARGUMENT(2);
		return true;
	case NUMBER_STAT:
	case NUMBER_LSTAT:
		asked->call = PATH_LOOK;
		return true;
	case NUMBER_ACCESS:
		asked->call = PATH_LOOK;
		return asks_to_read(ARGUMENT(2));
	case NUMBER_MKDIR:
		asked->call = PATH_MAKE_DIRECTORY;
		return true;
	}
#endif
	return false;
}

static __always_inline bool opens(int call)
{
#if defined(__TARGET_ARCH_x86)
	if (call == NUMBER_OPEN)
		return true;
#endif
	return call == NUMBER_OPENAT || call == NUMBER_OPENAT2;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(after_open, struct pt_regs *regs, long result)
{
	int call = syscall_of(regs);
	/* Other calls are recorded only where they are refused. */
	if (!opens(call) && !is_refused(result))
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = caller_state(task);
	if (!state)
		return 0;
	struct wanted_open asked = {};
	if (asked_for(regs, call, &asked))
		tell(task, state, &asked, result);
	return 0;
}

PROGRAMS_OF_CALLS(calls_returned) = {
	.values = {
		[FIRST(NUMBER_OPENAT)] = (void *)&after_open,
		[FIRST(NUMBER_OPENAT2)] = (void *)&after_open,
		[FIRST(NUMBER_NEWFSTATAT)] = (void *)&after_open,
		[FIRST(NUMBER_STATX)] = (void *)&after_open,
		[FIRST(NUMBER_FACCESSAT)] = (void *)&after_open,
		[FIRST(NUMBER_FACCESSAT2)] = (void *)&after_open,
		[FIRST(NUMBER_MKDIRAT)] = (void *)&after_open,
#if defined(__TARGET_ARCH_x86)
		[FIRST(NUMBER_OPEN)] = (void *)&after_open,
		[FIRST(NUMBER_STAT)] = (void *)&after_open,
		[FIRST(NUMBER_LSTAT)] = (void *)&after_open,
		[FIRST(NUMBER_ACCESS)] = (void *)&after_open,
		[FIRST(NUMBER_MKDIR)] = (void *)&after_open,
#endif
	},
};
