// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Address spaces: what exec laid out, what mmap added, what munmap took away. User space rebuilds the rest, because
 * looking a mapping up at each fault would cost more than the fault. */
#include "../../bpf/mapping.bpf.h"

SEC("tp_btf/sched_process_exec")
int BPF_PROG(exec_layout, struct task_struct *task, int old_pid, struct linux_binprm *binary)
{
	struct task_state *state = state_of(task);
	if (state)
		emit_layout(task, state);
	return 0;
}

SEC("tp_btf/ma_write")
int BPF_PROG(after_write, const char *function, struct ma_state *tree, unsigned long piv, void *entry)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	if (state && is_own_write(task, function, tree, (u64)entry))
		emit_write(task, state, tree, entry);
	return 0;
}

SEC("tp_btf/mmap_lock_released")
int after_call(unsigned long long *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = state_of(task);
	if (state && has_unmapped(task, state, arguments))
		emit_munmap(task, state);
	return 0;
}

static __always_inline void emit_mmap(struct task_struct *task, struct task_state *state, struct pt_regs *regs, long result)
{
	u64 length = PT_REGS_PARM2_SYSCALL(regs);
	u32 prot = PT_REGS_PARM3_SYSCALL(regs);
	int descriptor = (int)PT_REGS_PARM5_SYSCALL(regs);
	u64 flags = PT_REGS_PARM4_SYSCALL(regs);
	u64 offset = PT_REGS_PARM6_SYSCALL(regs);
	/* MAP_ANONYMOUS 0x20: the address space changes for later lookups, so it is reported without a file. */
	struct file *file = 0;
	if (!(flags & 0x20) && descriptor >= 0)
		file = file_of_descriptor(task, descriptor);
	tell(task, state, MAPPING_MAP, result, whole_pages(length), prot & 7, file ? offset : 0, file);
}

static __always_inline void emit_mremap(struct task_struct *task, struct task_state *state, struct pt_regs *regs, long result)
{
	u64 old_address = PT_REGS_PARM1_SYSCALL(regs);
	u64 old_length = PT_REGS_PARM2_SYSCALL(regs);
	u64 new_length = PT_REGS_PARM3_SYSCALL(regs);
	/* Files are hardly ever remapped; the new range is reported as anonymous and the reference says so. */
	tell(task, state, MAPPING_UNMAP, old_address, whole_pages(old_length), 0, 0, 0);
	tell(task, state, MAPPING_MAP, result, whole_pages(new_length), 3, 0, 0);
}

/* The same on kernels without those events. The arguments are still in the registers when the call returns; the first is restored by
 * the macro on arm64. */
SEC("tp_btf/sys_exit")
int BPF_PROG(after_change, struct pt_regs *regs, long result)
{
	int call = syscall_of(regs);
	if (call != NUMBER_MMAP && call != NUMBER_MUNMAP && call != NUMBER_MREMAP)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *state = caller_state(task);
	if (!state || (unsigned long)result > -4096UL)
		return 0;
	if (call == NUMBER_MMAP)
		emit_mmap(task, state, regs, result);
	else if (call == NUMBER_MREMAP)
		emit_mremap(task, state, regs, result);
	else
		emit_munmap(task, state);
	return 0;
}
