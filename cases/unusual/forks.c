/* A process with much memory of its own that forks. Pages are shared after that, and the first write to one copies it: a fault,
 * but no new memory that somebody asked for.
 *
 *     forks VARIANT [CHILDREN] [MIB]
 *
 *     children  every child writes all of the parent's memory
 *     parent    every child waits while the parent writes its memory
 *     block     for every child the parent maps a block anew, writes it, forks, writes it once more, and unmaps it: each page of
 *               the block is one fault as a block mapped anew and one as a copy
 *     own       every child maps, writes and unmaps ten blocks of its own
 *     spawn     as block, with a child of vfork in the place of fork: nothing is copied
 *
 * The blocks are of 2 MiB less a page, so that none is a huge one. Prints one line: children, pages touched first in blocks of the
 * pattern, pages copied because of a fork, minor faults of the parent and of all children as the kernel counted them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, BLOCK = (2 << 20) - PAGE, OWN = 10 };

static void fail(const char *what)
{
	fprintf(stderr, "forks: %s: %s\n", what, strerror(errno));
	_exit(2);
}

static long minor_faults(int who)
{
	struct rusage usage;
	getrusage(who, &usage);
	return usage.ru_minflt;
}

__attribute__((noinline)) static unsigned char *map_block(size_t size)
{
	unsigned char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		fail("mmap");
	return block;
}

__attribute__((noinline)) static void fill(unsigned char *block, size_t size, long round)
{
	for (size_t at = 0; at < size; at += PAGE)
		((volatile unsigned char *)block)[at] = (unsigned char)(round | 1);
}

__attribute__((noinline)) static void own_blocks(void)
{
	for (int i = 0; i < OWN; i++) {
		unsigned char *block = map_block(BLOCK);
		fill(block, BLOCK, i);
		munmap(block, BLOCK);
	}
}

/* A child that ends when the pipe is closed, so that pages are shared meanwhile. */
static pid_t waiting_child(int *end)
{
	int pipes[2];
	char nothing;
	if (pipe(pipes) != 0)
		fail("pipe");
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		close(pipes[1]);
		_exit(read(pipes[0], &nothing, 1) == 0 ? 0 : 1);
	}
	close(pipes[0]);
	*end = pipes[1];
	return child;
}

static void reap(pid_t child)
{
	int status;
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("a child");
}

int main(int count, char **words)
{
	const char *variant = count > 1 ? words[1] : "";
	long children = count > 2 ? atol(words[2]) : 10, mib = count > 3 ? atol(words[3]) : 256;
	int by_children = !strcmp(variant, "children"), by_parent = !strcmp(variant, "parent"), block = !strcmp(variant, "block");
	int own = !strcmp(variant, "own"), spawn = !strcmp(variant, "spawn");
	if (!(by_children || by_parent || block || own || spawn) || count > 4 || children < 1 || mib < 1) {
		fprintf(stderr, "usage: forks children|parent|block|own|spawn [CHILDREN] [MIB]\n");
		return 2;
	}
	/* A page is 4 KiB, however the machine is set; children inherit it. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	size_t size = (size_t)mib << 20;
	unsigned char *memory = map_block(size);
	fill(memory, size, 0);
	long faults = minor_faults(RUSAGE_SELF), first = 0, copied = 0;
	for (long i = 0; i < children; i++) {
		int end;
		if (by_children || own) {
			pid_t child = fork();
			if (child < 0)
				fail("fork");
			if (child == 0) {
				if (own)
					own_blocks();
				else
					fill(memory, size, i);
				_exit(0);
			}
			reap(child);
			first += own ? OWN * (long)(BLOCK / PAGE) : 0;
			copied += own ? 0 : (long)(size / PAGE);
		} else if (by_parent) {
			pid_t child = waiting_child(&end);
			fill(memory, size, i);
			close(end);
			reap(child);
			copied += size / PAGE;
		} else {
			unsigned char *mapped = map_block(BLOCK);
			fill(mapped, BLOCK, i);
			first += BLOCK / PAGE;
			if (spawn) {
				pid_t child = vfork();
				if (child == 0)
					_exit(0);
				fill(mapped, BLOCK, i);
				reap(child);
			} else {
				pid_t child = waiting_child(&end);
				fill(mapped, BLOCK, i);
				close(end);
				reap(child);
				copied += BLOCK / PAGE;
			}
			munmap(mapped, BLOCK);
		}
	}
	faults = minor_faults(RUSAGE_SELF) - faults;
	printf("%s children=%ld first=%ld copied=%ld minflt=%ld children_minflt=%ld\n", variant, children, first, copied, faults,
	       minor_faults(RUSAGE_CHILDREN));
	return 0;
}
