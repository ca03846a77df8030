/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The few kernel types that the probes touch, as CO-RE declarations: only the fields used, relocated at load time
 * against the running kernel's BTF. Written by hand instead of a generated vmlinux.h so that the build does not
 * depend on the kernel of the build machine. */
#ifndef SLOWPATH_KERNEL_H
#define SLOWPATH_KERNEL_H
/* Tells libbpf's macros to use the kernel's register names. */
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef _Bool bool;
typedef __u64 u64;
typedef __u32 u32;

enum { false = 0, true = 1 };

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_INNER_MAP = 1 << 12 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	unsigned int val;
} kuid_t;
typedef struct {
	unsigned int val;
} kgid_t;
struct hlist_node {
	struct hlist_node *next;
};
struct hlist_head {
	struct hlist_node *first;
};
struct qstr {
	union {
		struct {
			u32 hash;
			u32 len;
		};
	};
	const unsigned char *name;
};
struct super_block {
	u32 s_dev;
};
struct inode {
	unsigned short i_mode;
	kuid_t i_uid;
	u32 i_generation;
	u32 i_rdev;
	unsigned long i_ino;
	struct super_block *i_sb;
	long long i_size;
	struct hlist_head i_dentry;
};
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union {
		struct hlist_node d_alias;
	} d_u;
};
/* The union has lost its name in Linux 7. */
struct dentry___without_d_u {
	struct hlist_node d_alias;
};
struct path {
	struct dentry *dentry;
};
struct file {
	struct inode *f_inode;
	long long f_pos;
	struct path f_path;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct fs_struct {
	struct path pwd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct address_space {
	struct inode *host;
};
struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned long _flags_1;
	unsigned char _folio_order;
};
struct user_namespace {
	struct user_namespace *parent;
	int level;
	kuid_t owner;
};
/* One number since 6.3, before it two of half the size. */
struct capabilities {
	u64 val;
};
struct cred {
	kuid_t uid;
	kgid_t gid;
	kuid_t suid;
	kgid_t sgid;
	kuid_t euid;
	kgid_t egid;
	struct capabilities cap_permitted;
	struct user_namespace *user_ns;
};
typedef struct {
	void *vdso;
} mm_context_t;
struct maple_tree {
	void *ma_root;
};
struct ma_state {
	struct maple_tree *tree;
	unsigned long index;
	unsigned long last;
};
struct task_struct;
/* Told of a lock that is given back: before 6.14 with a path, since with a number. */
struct trace_event_raw_mmap_lock {
	u64 memcg_id;
};
struct mm_struct {
	struct maple_tree mm_mt;
	mm_context_t context;
	unsigned long arg_start;
	unsigned long arg_end;
	unsigned long start_brk;
	unsigned long brk;
	struct file *exe_file;
	struct user_namespace *user_ns;
	/* Kernels with memory control groups (CONFIG_MEMCG) only. */
	struct task_struct *owner;
};
/* The same, with its flags as a number (before 6.18) and as a structure that holds one. */
struct mm_struct___with_number {
	unsigned long flags;
};
struct flags_of_mm {
	unsigned long __mm_flags[1];
};
struct mm_struct___with_bits {
	struct flags_of_mm flags;
};
struct task_io_accounting {
	u64 read_bytes;
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	/* Threads that have not begun to end. */
	atomic_t live;
	int group_exit_code;
};
struct bpf_local_storage;
struct rq {
	u64 clock;
	u64 prev_steal_time_rq;
};
struct sched_info {
	u64 run_delay;
	u64 last_arrival;
	u64 last_queued;
};
struct cfs_rq {
	struct rq *rq;
	int throttle_count;
};
struct sched_entity {
	struct cfs_rq *cfs_rq;
	u64 sum_exec_runtime;
};
struct preempt_of_thread {
	u32 count;
};
struct thread_info {
	unsigned long flags;
	/* x86 only. */
	u32 status;
	/* arm64 only. */
	struct preempt_of_thread preempt;
};
struct task_struct {
	struct thread_info thread_info;
	int pid;
	int tgid;
	unsigned int __state;
	/* Signed before Linux 7, and a byte since: only of an unsigned number the loader adjusts the size. */
	unsigned int on_cpu;
	int prio;
	int pagefault_disabled;
	bool throttled;
	unsigned int in_iowait : 1;
	unsigned int in_execve : 1;
	unsigned int frozen : 1;
	struct sched_entity se;
	struct sched_info sched_info;
	struct bpf_local_storage *bpf_storage;
	int exit_code;
	int exit_state;
	unsigned int flags;
	char comm[16];
	u64 start_time;
	unsigned long min_flt;
	unsigned long maj_flt;
	u64 utime;
	u64 stime;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	void *vfork_done;
	struct mm_struct *mm;
	struct files_struct *files;
	struct fs_struct *fs;
	struct signal_struct *signal;
	const struct cred *cred;
	const struct cred *real_cred;
	u64 self_exec_id;
	struct task_io_accounting ioac;
};
struct bpf_iter__task {
	struct task_struct *task;
};
struct linux_binprm {
	struct file *file;
	const char *filename;
};
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
	const void *vm_ops;
};
struct file_ra_state {
	unsigned long start;
	unsigned int size;
	unsigned int async_size;
};
struct block_device {
	u32 bd_dev;
};
struct request {
	unsigned int cmd_flags;
	unsigned int __data_len;
	unsigned long long __sector;
	struct block_device *part;
};

#pragma clang attribute pop

/* include/linux/page-flags.h; its value differs between configurations, so it is relocated. */
enum pageflags {
	PG_head = 6,
};

/* Argument records of perf events. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
} __attribute__((preserve_access_index));
typedef struct pt_regs bpf_user_pt_regs_t;
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 pstate;
} __attribute__((preserve_access_index));
struct pt_regs {
	struct user_pt_regs user_regs;
	u64 orig_x0;
	__s32 syscallno;
} __attribute__((preserve_access_index));
typedef struct user_pt_regs bpf_user_pt_regs_t;
#endif
struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	u64 sample_period;
	u64 addr;
};

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFIFO 0010000
#define S_IFCHR 0020000
#define S_IFSOCK 0140000
#define S_IFBLK 0060000
#define S_IROTH 0004
#define S_IXOTH 0001

#endif
