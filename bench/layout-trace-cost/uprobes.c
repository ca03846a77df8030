/*
 * Runs a command with a uprobe at every offset of a file that standard input lists (decimal, one a line): one link of uprobe_multi
 * (Linux 6.6), a program that does nothing. What is left is what uprobes themselves cost.
 *
 *     uprobes FILE COMMAND [ARGUMENT...] <OFFSETS
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* include/uapi/linux/bpf.h of Linux 6.6; the headers that a distribution installs may be older. */
enum { UPROBE_MULTI = 48 };
struct uprobe_multi_link {
	unsigned prog_fd, target_fd, attach_type, flags;
	unsigned long long path, offsets, ref_ctr_offsets, cookies;
	unsigned cnt, multi_flags, pid, unused;
};

static long bpf(int command, void *attribute, unsigned size)
{
	return syscall(SYS_bpf, command, attribute, size);
}

int main(int count, char **words)
{
	if (count < 3) {
		fprintf(stderr, "usage: uprobes FILE COMMAND [ARGUMENT...] <OFFSETS\n");
		return 2;
	}
	size_t room = 1 << 20, number = 0;
	unsigned long long *offsets = malloc(room * sizeof(*offsets));
	while (offsets && number < room && scanf("%llu", &offsets[number]) == 1)
		++number;
	const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr load;
	memset(&load, 0, sizeof(load));
	load.prog_type = BPF_PROG_TYPE_KPROBE;
	load.expected_attach_type = UPROBE_MULTI;
	load.insns = (unsigned long)nothing;
	load.insn_cnt = 2;
	load.license = (unsigned long)"GPL";
	long program = bpf(BPF_PROG_LOAD, &load, sizeof(load));
	struct uprobe_multi_link link = {
		.prog_fd = program,
		.attach_type = UPROBE_MULTI,
		.path = (unsigned long)words[1],
		.offsets = (unsigned long)offsets,
		.cnt = number,
	};
	if (program < 0 || bpf(BPF_LINK_CREATE, &link, sizeof(link)) < 0) {
		fprintf(stderr, "uprobes: %s\n", strerror(errno));
		return 2;
	}
	pid_t child = fork();
	if (child == 0) {
		execv(words[2], words + 2);
		_exit(127);
	}
	int status = 0;
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
