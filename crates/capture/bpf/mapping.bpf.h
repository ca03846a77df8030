/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Telling mappings: one, or all that a task has. */
#ifndef SLOWPATH_MAPPING_BPF_H
#define SLOWPATH_MAPPING_BPF_H

#include "area_tree.bpf.h"
#include "task_vma.bpf.h"

/* `state` is the task's. */
static __always_inline void tell(struct task_struct *task, struct task_state *state, u32 op, u64 address, u64 length, u32 prot,
				 u64 offset, struct file *file)
{
	if (is_withheld(task, state)) {
		count_withheld(EVENT_MAPPING);
		return;
	}
	struct file_id id = {};
	if (file) {
		name_file(file, false);
		id = id_of(FIELD(file, file, f_inode));
	}
	struct mapping_event *event = reserve(EVENT_MAPPING, sizeof(*event), task);
	if (!event)
		return;
	event->header.ts = bpf_ktime_get_ns();
	event->address = address;
	event->length = length;
	event->dev = id.dev;
	event->ino = id.ino;
	event->offset = offset;
	event->prot = prot;
	event->op = op;
	submit(event);
}

/* The whole address space of a task. */
static __always_inline void emit_layout(struct task_struct *task, struct task_state *state)
{
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	bpf_iter_task_vma_new(&it, task, 0);
	while ((vma = bpf_iter_task_vma_next(&it))) {
		/* VM_READ, VM_WRITE, VM_EXEC are PROT_READ, PROT_WRITE, PROT_EXEC (include/linux/mm.h). */
		tell(task, state, MAPPING_EXEC, vma->vm_start, vma->vm_end - vma->vm_start, vma->vm_flags & 7,
		     bytes_of_pages(vma->vm_pgoff), POINTER(vm_area_struct, vma, vm_file));
	}
	bpf_iter_task_vma_destroy(&it);
}

/* A write to the tree of the task's own areas. Of memory without a file only what mmap and mremap did is sent: heaps and stacks grow
 * all the time. emit_munmap sends what an munmap took, without the free space around it. */
static __always_inline void emit_write(struct task_struct *task, struct task_state *state, struct ma_state *tree, void *entry)
{
	int call = current_syscall(task);
	u64 start = tree->index, length = tree->last + 1 - tree->index;
	if (!entry) {
		if (call != NUMBER_MUNMAP)
			tell(task, state, MAPPING_UNMAP, start, length, 0, 0, 0);
		return;
	}
	struct file *file = FIELD(vm_area_struct, entry, vm_file);
	if (!file && call != NUMBER_MMAP && call != NUMBER_MREMAP)
		return;
	u64 offset = file ? bytes_of_pages(FIELD(vm_area_struct, entry, vm_pgoff)) : 0;
	tell(task, state, MAPPING_MAP, start, length, FIELD(vm_area_struct, entry, vm_flags) & 7, offset, file);
}

/* What the munmap that the task is in took away. */
static __always_inline void emit_munmap(struct task_struct *task, struct task_state *state)
{
	struct pt_regs *regs = user_registers(task);
	tell(task, state, MAPPING_UNMAP, PT_REGS_PARM1_SYSCALL(regs), whole_pages(PT_REGS_PARM2_SYSCALL(regs)), 0, 0, 0);
}

#endif
