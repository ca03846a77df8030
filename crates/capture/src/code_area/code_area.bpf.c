// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Keeps the areas of executable code of followed processes, and shows which files have some, so that tables are made of them.
 * Only loaded where stacks are recorded. Tells mappings too then, in place of the probe `mapping`: each program at these events costs
 * everybody who maps memory. */
#include "../../bpf/address_space.bpf.h"
#include "../../bpf/mapping.bpf.h"
#include "../../bpf/wanted.bpf.h"

#define PROT_EXEC 4
#define MAP_ANONYMOUS 0x20

/* Files with executable mappings, numbered. Inode numbers are reused when a file is gone: the generation distinguishes the successor. */
struct module_id {
	u64 dev;
	u64 ino;
	u64 generation;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MODULES);
	__type(key, struct module_id);
	__type(value, u32);
} modules SEC(".maps");

/* Functions that are not static are verified once, and not at each place that calls them. */

/* The number of a file; 0 when files are too many. */
__attribute__((noinline)) u32 module_of(struct module_id *id)
{
	if (!id)
		return 0;
	struct module_id key = *id;
	u32 *number = bpf_map_lookup_elem(&modules, &key);
	if (number)
		return *number;
	struct walk_counts *count = counts();
	if (!count)
		return 0;
	/* A file that the recorder knows from before, on a file system without generations. */
	struct module_id any = {.dev = id->dev, .ino = id->ino, .generation = ANY_GENERATION};
	number = bpf_map_lookup_elem(&modules, &any);
	if (number) {
		u32 known = *number;
		bpf_map_update_elem(&modules, &key, &known, BPF_NOEXIST);
		return known;
	}
	u32 fresh = FIRST_MODULE + __sync_fetch_and_add(&count->modules, 1);
	if (fresh >= MODULES)
		return 0;
	if (!bpf_map_update_elem(&modules, &key, &fresh, BPF_NOEXIST))
		return fresh;
	/* Another CPU was faster. */
	number = bpf_map_lookup_elem(&modules, &key);
	return number ? *number : 0;
}

struct change {
	struct space *space;
	u64 start;
	u64 end;
	struct area fresh;
	struct area rest;
	u32 kept;
	u32 found;
};

static long finds_overlap(u32 index, struct change *change)
{
	if (index >= AREAS)
		return 1;
	struct area *area = &change->space->areas[index];
	change->found |= area->start < change->end && area->end > change->start;
	return 0;
}

/* Moves what is left of an area to the front; a hole in the middle leaves a second part. */
static long cuts(u32 index, struct change *change)
{
	if (index >= AREAS || change->kept >= AREAS)
		return 1;
	struct area area = change->space->areas[index];
	if (area.start >= change->start && area.end <= change->end)
		return 0;
	if (area.start < change->end && area.end > change->end) {
		struct area rest = area;
		rest.file_page += (change->end - area.start) >> 12;
		rest.start = change->end;
		if (area.start < change->start)
			change->rest = rest;
		else
			area = rest;
	}
	if (area.start < change->start && area.end > change->start)
		area.end = change->start;
	change->space->areas[change->kept] = area;
	change->kept++;
	return 0;
}

/* Makes room from the end; stops where the new area belongs. */
static long makes_room(u32 index, struct change *change)
{
	u32 at = change->kept;
	if (!at || at >= AREAS)
		return 1;
	struct area before = change->space->areas[at - 1];
	if (before.start <= change->fresh.start)
		return 1;
	change->space->areas[at] = before;
	change->kept = at - 1;
	return 0;
}

static __always_inline void insert(struct change *change, struct area *area)
{
	struct space *space = change->space;
	u32 count = space->count;
	if (count >= AREAS - 1) {
		struct walk_counts *counted = counts();
		if (counted)
			__sync_fetch_and_add(&counted->areas_beyond, 1);
		return;
	}
	change->fresh = *area;
	change->kept = count;
	bpf_loop(AREAS, makes_room, change, 0);
	if (change->kept < AREAS)
		space->areas[change->kept] = *area;
	space->count = count + 1;
}

/* The address range [start, end) of the process now holds this module, or nothing that has one (0). To be called with the lock of the
 * address space held (mmap_lock), as all events here are: so two never change an address space's areas at once. */
__attribute__((noinline)) int map_area(struct space *space, u64 start, u64 end, u32 file_page, u32 module)
{
	struct walk_counts *count = counts();
	if (!count || !space)
		return 0;
	struct change change = {.space = space, .start = start, .end = end};
	bpf_loop(space->count, finds_overlap, &change, 0);
	if (!module && !change.found)
		return 0;
	__sync_fetch_and_add(&space->version, 1);
	if (change.found) {
		bpf_loop(space->count, cuts, &change, 0);
		space->count = change.kept;
		if (change.rest.module)
			insert(&change, &change.rest);
	}
	if (module) {
		struct area area = {.start = start, .end = end, .file_page = file_page, .module = module};
		/* Generated code grows page by page. */
		int before = find_area(space, start - 1);
		struct area *grows = &space->areas[before & (AREAS - 1)];
		if (before >= 0 && module == MODULE_GENERATED && grows->module == module && grows->end == start)
			grows->end = end;
		else
			insert(&change, &area);
	}
	__sync_fetch_and_add(&space->version, 1);
	__sync_fetch_and_add(&count->changes, 1);
	return 0;
}

/* Whether that is what the range holds already: where an area is split or grows, what it had is reported again. */
static __always_inline bool is_known(struct space *space, u64 start, u64 end, u32 file_page, u32 module)
{
	int at = find_area(space, start);
	if (at < 0)
		return false;
	struct area *area = &space->areas[at & (AREAS - 1)];
	bool is_same = module == MODULE_GENERATED || area->file_page + ((start - area->start) >> 12) == file_page;
	return area->module == module && end <= area->end && is_same;
}

/* The areas of a task's process, by its first thread, to be changed; none where they are withheld. `state` is the task's. */
static __always_inline struct space *space_of(struct task_struct *task, struct task_struct *leader, struct task_state *state,
					      u64 flags)
{
	bool withholds = is_withheld(task, state);
	struct space *space = bpf_task_storage_get(&spaces, leader, 0, withholds ? 0 : flags);
	if (!withholds || !space)
		return space;
	/* What it had before is not followed any more. */
	space->count = 0;
	return 0;
}

/* A child process begins with what its parent has. */
static __always_inline void copy_areas(struct task_struct *parent, struct task_struct *child)
{
	struct space *from = bpf_task_storage_get(&spaces, parent, 0, 0), *made = 0;
	if (from)
		made = bpf_task_storage_get(&spaces, child, from, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* Another thread of the parent may be changing them: that ends there only. */
	if (made)
		made->version &= ~1u;
}

/* A file is mapped executable. */
static __always_inline void add_file(struct task_struct *task, struct space *space, u64 start, u64 end, u64 offset,
				     struct file *file)
{
	struct inode *inode = FIELD(file, file, f_inode);
	/* What a driver maps has no table, and is not to be opened for one. */
	if ((FIELD(inode, inode, i_mode) & S_IFMT) != S_IFREG) {
		if (find_area(space, start) < 0)
			map_area(space, start, end, 0, MODULE_GENERATED);
		return;
	}
	struct file_id of = id_of(inode);
	struct module_id id = {.dev = of.dev, .ino = of.ino, .generation = FIELD(inode, inode, i_generation)};
	struct walk_counts *count = counts();
	u32 fresh = FIRST_MODULE + (count ? count->modules : 0), module = module_of(&id);
	if (!module || is_known(space, start, end, offset >> 12, module))
		return;
	map_area(space, start, end, offset >> 12, module);
	struct module_event *event = reserve(EVENT_MODULE, sizeof(*event), task);
	if (!event)
		return;
	event->header.ts = bpf_ktime_get_ns();
	event->address = start;
	event->length = end - start;
	event->dev = id.dev;
	event->ino = id.ino;
	event->module = module;
	event->reserved = 0;
	/* The first time, somebody has to make a table, and stacks end until it is there. */
	bpf_ringbuf_submit(event, module >= fresh ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* The page that the kernel maps into every process for calls that need no system call. */
static __always_inline u64 vdso_of(struct task_struct *task)
{
	return (u64)BPF_CORE_READ(task, mm, context.vdso);
}

/* All that a process has and that is not known. */
static __always_inline void add_all(struct task_struct *task, struct space *space)
{
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	u64 vdso = vdso_of(task);
	bpf_iter_task_vma_new(&it, task, 0);
	while ((vma = bpf_iter_task_vma_next(&it))) {
		u64 start = vma->vm_start, end = vma->vm_end;
		if (!(vma->vm_flags & PROT_EXEC))
			continue;
		struct file *file = POINTER(vm_area_struct, vma, vm_file);
		if (file)
			add_file(task, space, start, end, bytes_of_pages(vma->vm_pgoff), file);
		else if (find_area(space, start) < 0)
			map_area(space, start, end, 0, start == vdso ? MODULE_VDSO : MODULE_GENERATED);
	}
	bpf_iter_task_vma_destroy(&it);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(areas_of_fork, struct task_struct *parent, struct task_struct *child)
{
	if (state_of(parent) && child->pid == child->tgid)
		copy_areas(parent->group_leader, child);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(areas_of_exec, struct task_struct *task, int old_pid, struct linux_binprm *binary)
{
	struct task_state *state = state_of(task);
	struct space *space = state ? space_of(task, task->group_leader, state, BPF_LOCAL_STORAGE_GET_F_CREATE) : 0;
	if (space) {
		space->count = 0;
		add_all(task, space);
	}
	return 0;
}

SEC("tp_btf/ma_write")
int BPF_PROG(areas_of_write, const char *function, struct ma_state *tree, unsigned long piv, void *entry)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	if (!state || !is_own_write(task, function, tree, (u64)entry))
		return 0;
	emit_write(task, state, tree, entry);
	u64 start = tree->index, end = tree->last + 1;
	bool is_code = entry && FIELD(vm_area_struct, entry, vm_flags) & PROT_EXEC;
	struct space *space = space_of(task, task->group_leader, state, is_code ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!space)
		return 0;
	struct file *file = is_code ? FIELD(vm_area_struct, entry, vm_file) : 0;
	if (file)
		add_file(task, space, start, end, bytes_of_pages(FIELD(vm_area_struct, entry, vm_pgoff)), file);
	else if (!is_code)
		map_area(space, start, end, 0, 0);
	else if (start != vdso_of(task) && !is_known(space, start, end, 0, MODULE_GENERATED))
		map_area(space, start, end, 0, MODULE_GENERATED);
	return 0;
}

/* Memory that becomes executable is generated code, unless it is of a file already. It stays known when it is made writable again
 * for a while. */
static __always_inline void add_generated(struct task_struct *task, struct task_state *state, u64 start, u64 end)
{
	struct space *space = space_of(task, task->group_leader, state, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (space && find_area(space, start) < 0)
		map_area(space, start, end, 0, MODULE_GENERATED);
}

SEC("tp_btf/mmap_lock_released")
int areas_of_call(unsigned long long *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	if (!state)
		return 0;
	struct pt_regs *regs = user_registers(task);
	u64 start = PT_REGS_PARM1_SYSCALL(regs), end = start + whole_pages(PT_REGS_PARM2_SYSCALL(regs));
	if (has_unmapped(task, state, arguments)) {
		emit_munmap(task, state);
		struct space *space = space_of(task, task->group_leader, state, 0);
		if (space)
			map_area(space, start, end, 0, 0);
		return 0;
	}
	int call = current_syscall(task);
	bool protects = call == NUMBER_MPROTECT || call == NUMBER_PKEY_MPROTECT;
	if (protects && was_for_writing(arguments) && PT_REGS_PARM3_SYSCALL(regs) & PROT_EXEC)
		add_generated(task, state, start, end);
	return 0;
}

static __always_inline void area_of_mmap(struct task_struct *task, struct task_state *state, struct pt_regs *regs, u64 start)
{
	u64 end = start + whole_pages(PT_REGS_PARM2_SYSCALL(regs));
	int descriptor = (int)PT_REGS_PARM5_SYSCALL(regs);
	struct file *file = 0;
	if (PT_REGS_PARM3_SYSCALL(regs) & PROT_EXEC && !(PT_REGS_PARM4_SYSCALL(regs) & MAP_ANONYMOUS) && descriptor >= 0)
		file = file_of_descriptor(task, descriptor);
	bool is_code = PT_REGS_PARM3_SYSCALL(regs) & PROT_EXEC;
	struct space *space = space_of(task, task->group_leader, state, is_code ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!space)
		return;
	if (file)
		add_file(task, space, start, end, PT_REGS_PARM6_SYSCALL(regs), file);
	else
		map_area(space, start, end, 0, is_code ? MODULE_GENERATED : 0);
}

/* The same on kernels without those events. The arguments are still in the registers when the call returns; the first is restored by
 * the macro on arm64. By pkey_mprotect V8 makes its code executable where the CPU has protection keys; its first arguments are
 * those of mprotect. */
SEC("tp_btf/sys_exit")
int BPF_PROG(areas_after_change, struct pt_regs *regs, long result)
{
	int call = syscall_of(regs);
	bool protects = call == NUMBER_MPROTECT || call == NUMBER_PKEY_MPROTECT;
	if (call != NUMBER_MMAP && call != NUMBER_MUNMAP && !protects)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = caller_state(task);
	if (!state || (unsigned long)result > -4096UL)
		return 0;
	if (call == NUMBER_MMAP) {
		area_of_mmap(task, state, regs, result);
		return 0;
	}
	u64 start = PT_REGS_PARM1_SYSCALL(regs), end = start + whole_pages(PT_REGS_PARM2_SYSCALL(regs));
	if (protects) {
		if (PT_REGS_PARM3_SYSCALL(regs) & PROT_EXEC)
			add_generated(task, state, start, end);
		return 0;
	}
	struct space *space = space_of(task, task->group_leader, state, 0);
	if (space)
		map_area(space, start, end, 0, 0);
	return 0;
}

/* Processes that run already: before they are followed, and once more when they are, for what they mapped meanwhile. */
SEC("iter.s/task")
int areas_of_present(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	if (!task || task->exit_state || task->pid != task->tgid)
		return 0;
	/* Before they are followed they have no state. */
	struct task_state nothing = {}, *state = state_of(task);
	struct space *space = 0;
	if (is_named(task->tgid) || state)
		space = space_of(task, task, state ? state : &nothing, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (space)
		add_all(task, space);
	return 0;
}
