/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the owner of the recording may see: addresses, call stacks, mappings and private file names only of tasks that they could
 * trace themselves. Whoever has none of root's rights would otherwise learn the layout of a set-uid program that runs, and with it
 * how to attack it. Of other tasks counts and times are reported.
 *
 * The rule is the kernel's own (__ptrace_may_access in kernel/ptrace.c, cap_ptrace_access_check in security/commoncap.c):
 * all ids are the owner's, no capability is permitted, and the memory is dumpable; or the task is in a user namespace that the owner
 * made. It is found anew for each exec and each change of the task's credentials: within an exec the kernel counts it first, then
 * replaces the memory's owner (begin_new_exec in fs/exec.c). Dumpability is looked at each time. */
#ifndef SLOWPATH_SIGHT_BPF_H
#define SLOWPATH_SIGHT_BPF_H

/* Whose the recording is (uid 0: nothing is withheld), the secret of this recording that stack numbers hang on, and the logarithm of
 * the size of the kernel's pages. Set before loading; in a section of its own, so that the driver finds it in every object at the same
 * place. */
const volatile struct {
	u32 uid;
	u32 gid;
	u64 secret[2];
	u64 page_shift;
} recording SEC(".rodata.recording") = {};

/* Tables count in pages of 4 KiB, whatever the kernel's have: on arm64 4, 16 or 64 KiB. */
#define TABLE_PAGE_SHIFT 12

/* Bytes of one of the kernel's pages. */
static __always_inline u64 page_bytes(void)
{
	return 1ULL << recording.page_shift;
}

/* A place in a file that the kernel counts in its pages, in bytes. */
static __always_inline u64 bytes_of_pages(u64 pages)
{
	return pages << recording.page_shift;
}

/* A number of the kernel's pages, as tables count them. */
static __always_inline u64 table_pages(u64 pages)
{
	return bytes_of_pages(pages) >> TABLE_PAGE_SHIFT;
}

/* Events of which a part was withheld, by kind; under EVENT_EXEC the programs that it concerned. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENT_KINDS);
	__type(key, u32);
	__type(value, u64);
} withheld SEC(".maps");

static __always_inline bool owner_is_root(void)
{
	return !recording.uid;
}

static __always_inline void count_withheld(u32 kind)
{
	u64 *counter = bpf_map_lookup_elem(&withheld, &kind);
	if (counter)
		*counter += 1;
}

/* Namespaces cannot be nested deeper (kernel/user_namespace.c). */
#define USER_NAMESPACES 33

/* Whether the owner has all rights in a user namespace: it, or one that it stands in, was made by the owner outside of any. */
static __always_inline bool owns(struct user_namespace *namespace)
{
	for (int i = 0; i < USER_NAMESPACES; i++) {
		if (!namespace || BPF_CORE_READ(namespace, level) == 0)
			return false;
		struct user_namespace *parent = BPF_CORE_READ(namespace, parent);
		if (BPF_CORE_READ(parent, level) == 0)
			return BPF_CORE_READ(namespace, owner.val) == recording.uid;
		namespace = parent;
	}
	return false;
}

static __always_inline bool has_ids_of_owner(const struct cred *cred)
{
	return BPF_CORE_READ(cred, uid.val) == recording.uid && BPF_CORE_READ(cred, euid.val) == recording.uid &&
	       BPF_CORE_READ(cred, suid.val) == recording.uid && BPF_CORE_READ(cred, gid.val) == recording.gid &&
	       BPF_CORE_READ(cred, egid.val) == recording.gid && BPF_CORE_READ(cred, sgid.val) == recording.gid;
}

static __always_inline bool has_capabilities(const struct cred *cred)
{
	u64 permitted = ~0ULL;
	bpf_probe_read_kernel(&permitted, sizeof(permitted), (char *)cred + bpf_core_field_offset(struct cred, cap_permitted));
	return permitted;
}

/* What the owner may see of a task, found out and kept in its state. Not static, as name_from; the pointers are the task's. */
__attribute__((noinline)) int judge(u64 its_cred, u64 its_mm, u64 exec, struct task_state *state)
{
	const struct cred *cred = (const struct cred *)its_cred;
	struct mm_struct *mm = (struct mm_struct *)its_mm;
	if (!state)
		return SIGHT_WITHHELD;
	bool is_inside = owns(BPF_CORE_READ(cred, user_ns));
	u32 sight = SIGHT_WITHHELD;
	if (is_inside || (has_ids_of_owner(cred) && !has_capabilities(cred)))
		sight = mm && owns(BPF_CORE_READ(mm, user_ns)) ? SIGHT_OPEN : SIGHT_WHILE_DUMPABLE;
	/* First the finding, then what it is of: a timer that goes off between them finds it out anew. */
	state->sight = sight;
	barrier();
	state->judged_exec = exec;
	state->judged_credentials = its_cred;
	return sight;
}

/* include/linux/sched/coredump.h, since 6.18 include/linux/mm_types.h */
#define MMF_DUMPABLE_MASK 3
#define SUID_DUMP_USER 1

/* Not on a kernel in which it cannot be known. */
static __always_inline bool is_dumpable(struct mm_struct *mm)
{
	u64 flags = 0;
	if (bpf_core_field_exists(((struct mm_struct___with_bits *)mm)->flags))
		flags = ((struct mm_struct___with_bits *)mm)->flags.__mm_flags[0];
	else if (bpf_core_field_exists(((struct mm_struct___with_number *)mm)->flags))
		flags = ((struct mm_struct___with_number *)mm)->flags;
	return (flags & MMF_DUMPABLE_MASK) == SUID_DUMP_USER;
}

/* Whether what concerns the memory of a followed task is not to be reported. */
static __always_inline bool is_withheld(struct task_struct *task, struct task_state *state)
{
	if (owner_is_root())
		return false;
	if (!state)
		return true;
	/* What is copied out of the kernel is a number to the verifier, as the function wants it. */
	u64 sight = state->sight, exec = task->self_exec_id, credentials = (u64)BPF_CORE_READ(task, real_cred);
	if (!sight || state->judged_exec != exec || state->judged_credentials != credentials)
		sight = judge(credentials, (u64)BPF_CORE_READ(task, mm), exec, state);
	if (sight == SIGHT_OPEN)
		return false;
	if (sight != SIGHT_WHILE_DUMPABLE)
		return true;
	struct mm_struct *mm = POINTER(task_struct, task, mm);
	/* It ends, and gave its memory back. */
	return mm && !is_dumpable(mm);
}

/* The same at the start of a program, which is counted where it may not be traced. */
static __always_inline bool is_program_withheld(struct task_struct *task, struct task_state *state)
{
	bool withholds = is_withheld(task, state);
	if (withholds)
		count_withheld(EVENT_EXEC);
	return withholds;
}

/* Whether anybody, or the owner, may read a file and list a directory. */
static __always_inline bool is_public(struct inode *inode)
{
	return owner_is_root() || FIELD(inode, inode, i_mode) & S_IROTH || FIELD(inode, inode, i_uid.val) == recording.uid;
}

/* A name and those of the directories above it, up to the one that is looked at. */
struct ascent {
	u64 entry;
	int is_listed;
};

static long ascends(u32 depth, struct ascent *ascent)
{
	struct dentry *dentry = (struct dentry *)ascent->entry;
	struct dentry *parent = FIELD(dentry, dentry, d_parent);
	if (!parent)
		return 1;
	if (parent == dentry) {
		ascent->is_listed = 1;
		return 1;
	}
	struct inode *inode = FIELD(dentry, parent, d_inode);
	if (!inode)
		return 1;
	unsigned short mode = FIELD(inode, inode, i_mode);
	bool is_others = (mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH);
	if (!is_others && FIELD(inode, inode, i_uid.val) != recording.uid)
		return 1;
	ascent->entry = (u64)parent;
	return 0;
}

/* Whether that holds for all directories that a name stands in: else the name is not the owner's to know. No loop of the compiler's:
 * it lets the end of one fall through to its begin, which Linux 6.1 refuses (check_cfg in kernel/bpf/verifier.c). */
__attribute__((noinline)) int is_listed(u64 entry)
{
	struct ascent ascent = {.entry = entry};
	bpf_loop(64, ascends, &ascent, 0);
	return ascent.is_listed;
}

#endif
