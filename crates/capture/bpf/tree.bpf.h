/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What all probes share: the recorded tree (task storage), the ring of events, loss counters, and file names.
 * Every object declares these maps; the driver makes them one by handing the first object's maps to the others. */
#ifndef SLOWPATH_TREE_BPF_H
#define SLOWPATH_TREE_BPF_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "../src/events.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tree SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* the driver sets the real size */
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENT_KINDS);
	__type(key, u32);
	__type(value, u64);
} lost SEC(".maps");

struct file_id {
	u64 dev;
	u64 ino;
};

/* Files whose name was sent. Of more files than it holds, those that were not used for longest are sent again: a recording
 * may last for days, and a name too many does no harm. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 131072);
	__type(key, struct file_id);
	__type(value, u8_flag);
} named SEC(".maps");

extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

/* A field of a kernel object whose type the verifier does not know (it came out of a table, say). Kernels from 6.2 take the
 * type, and the field is then one load; before, each field is a call that copies it. */
#define TYPED(type, pointer) ((struct type *)bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(struct type)))
#define FIELD(type, pointer, field)                                                                                    \
	(bpf_rdonly_cast ? TYPED(type, pointer)->field : BPF_CORE_READ((struct type *)(pointer), field))
/* A field of the object that a field points to. */
#define FIELD_OF(type, pointer, object, field)                                                                         \
	(bpf_rdonly_cast ? TYPED(type, pointer)->object->field : BPF_CORE_READ((struct type *)(pointer), object, field))

/* A field that is a pointer, of an object whose type the verifier knows. For each such load it searches all types of the kernel by name,
 * up to four times, for what says whether to trust that pointer (btf_nested_type_is_trusted in kernel/bpf/btf.c, since 6.3): 1 ms for each
 * place in each program, by which a recording starts later. Of an object of which it knows the type alone it trusts nothing, and
 * searches nothing; the load takes 2 ns more, for its address is checked first. Where a function of the kernel takes the pointer, it must
 * be trusted: there it is a plain load, or a copy (BPF_CORE_READ) where nothing is read through it. */
#define POINTER(type, pointer, field) (bpf_rdonly_cast ? TYPED(type, pointer)->field : (pointer)->field)

#include "sight.bpf.h"

static __always_inline struct file_id id_of(struct inode *inode)
{
	return (struct file_id){
		.dev = FIELD_OF(inode, inode, i_sb, s_dev),
		.ino = FIELD(inode, inode, i_ino),
	};
}

/* Whether anything at all is stored for this task. A load instead of a call, for the tasks that are not followed: all that an event costs
 * them. */
static __always_inline bool has_storage(struct task_struct *task)
{
	return !bpf_core_field_exists(task->bpf_storage) || POINTER(task_struct, task, bpf_storage);
}

static __always_inline struct task_state *state_of(struct task_struct *task)
{
	return has_storage(task) ? bpf_task_storage_get(&tree, task, 0, 0) : 0;
}

static __always_inline void count_lost(u32 kind, u64 events)
{
	u64 *counter = bpf_map_lookup_elem(&lost, &kind);
	if (counter)
		*counter += events;
}

static __always_inline void fill_header(struct event_header *header, u32 kind, struct task_struct *task)
{
	header->kind = kind;
	header->flags = 0;
	header->pid = task->tgid;
	header->tid = task->pid;
	header->stack = 0;
}

/* A record in the ring with its header filled, or null with the loss counted. */
static __always_inline void *reserve(u32 kind, u64 size, struct task_struct *task)
{
	struct event_header *header = bpf_ringbuf_reserve(&ring, size, 0);
	if (!header) {
		count_lost(kind, 1);
		return 0;
	}
	fill_header(header, kind, task);
	return header;
}

/* A wake-up is an interrupt to the reader's processor (2 to 6 us in a virtual machine), so the reader polls. */
static __always_inline void submit(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* How a file's name became known. A file with several hard links has several names: the one by which it was opened is
 * sent even when another was sent before. With LISTED_ONLY a name is sent only where anybody could have found it. */
enum { NAMED_BY_INODE = 1, NAMED_BY_PATH = 2, LISTED_ONLY = 0x80 };

/* A directory entry whose name is told next, and how its file became known. */
struct climb {
	u64 entry;
	u8_flag how;
};

static long tell_name(u32 depth, struct climb *climb)
{
	struct dentry *dentry = (struct dentry *)climb->entry;
	if (!dentry)
		return 1;
	struct inode *inode = FIELD(dentry, dentry, d_inode);
	if (!inode)
		return 1;
	struct file_id id = id_of(inode);
	u8_flag *sent = bpf_map_lookup_elem(&named, &id);
	if (sent && *sent >= climb->how)
		return 1;
	if (bpf_map_update_elem(&named, &id, &climb->how, BPF_ANY))
		return 1;
	struct dentry *parent = FIELD(dentry, dentry, d_parent);
	struct name_event *event = reserve(EVENT_NAME, sizeof(*event), bpf_get_current_task_btf());
	if (!event)
		return 1;
	event->header.ts = bpf_ktime_get_ns();
	event->dev = id.dev;
	event->ino = id.ino;
	event->mode = FIELD(inode, inode, i_mode);
	event->is_root = parent == dentry;
	event->reserved = 0;
	event->parent_ino = FIELD_OF(dentry, parent, d_inode, i_ino);
	const unsigned char *name = FIELD(dentry, dentry, d_name.name);
	long length = bpf_probe_read_kernel_str(event->name, sizeof(event->name), name);
	event->name_length = length > 0 ? length - 1 : 0;
	submit(event);
	climb->entry = (u64)parent;
	return parent == dentry;
}

/* Tells the reader the names from this directory entry up to the first one already sent. Not static, and a loop of the kernel's: so it is
 * verified once, not in every round of a loop that calls it nor once for each name. Such a function takes no pointers to kernel
 * objects; this one is read as what it is. */
__attribute__((noinline)) int name_from(u64 entry, u8_flag how)
{
	struct climb climb = {.entry = entry, .how = how & ~LISTED_ONLY};
	if (how & LISTED_ONLY && !is_listed(entry))
		return 0;
	bpf_loop(32, tell_name, &climb, 0);
	return 0;
}

/* Sends the name by which a file was opened, by a task whose recording is whole or not. */
static __always_inline void name_file(struct file *file, bool withholds)
{
	/* What is copied out of the kernel is a number to the verifier, as the function wants it. */
	name_from((u64)BPF_CORE_READ(file, f_path.dentry), NAMED_BY_PATH | (withholds ? LISTED_ONLY : 0));
}

/* The same from an inode: its first directory entry. Whose file it is nobody knows: the task may free the memory of others. */
static __always_inline void name_inode(struct inode *inode, bool withholds)
{
	struct file_id id = id_of(inode);
	if (bpf_map_lookup_elem(&named, &id))
		return;
	u64 first = (u64)BPF_CORE_READ(inode, i_dentry.first);
	if (!first)
		return;
	u64 offset = bpf_core_field_exists(struct dentry, d_u) ? bpf_core_field_offset(struct dentry, d_u)
							       : bpf_core_field_offset(struct dentry___without_d_u, d_alias);
	name_from(first - offset, NAMED_BY_INODE | (withholds ? LISTED_ONLY : 0));
}

static __always_inline struct file *file_of_descriptor(struct task_struct *task, u64 descriptor)
{
	struct fdtable *table = FIELD_OF(task_struct, task, files, fdt);
	if (!table || descriptor >= FIELD(fdtable, table, max_fds))
		return 0;
	struct file **slots = FIELD(fdtable, table, fd);
	struct file *file = 0;
	bpf_probe_read_kernel(&file, sizeof(file), slots + descriptor);
	return file;
}

/* Where a task's command line begins in its memory, and how many bytes of it are recorded; 0 for none. */
static __always_inline u32 command_line_of(struct task_struct *task, unsigned long *from)
{
	*from = BPF_CORE_READ(task, mm, arg_start);
	unsigned long length = BPF_CORE_READ(task, mm, arg_end) - *from;
	return length > COMMAND_LINE_BYTES ? COMMAND_LINE_BYTES : length;
}

static __always_inline struct pt_regs *user_registers(struct task_struct *task)
{
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

/* The system call whose registers these are, or -1 when they were saved at a fault or an interrupt. */
static __always_inline int syscall_of(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (int)regs->orig_ax;
#else
	return regs->syscallno;
#endif
}

/* The system call the task is in, or -1 when it entered the kernel by a fault or an interrupt. */
static __always_inline int current_syscall(struct task_struct *task)
{
	return syscall_of(user_registers(task));
}

#endif
