// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Takes one anonymous page fault per page, in a child, and prints what each cost and how many the kernel counted:
 *
 *     faults MEGABYTES REPETITIONS [DEPTH [SECONDS]]
 *
 *     child PID           the child that takes them
 *     touch NS PAGES      a line a repetition: CPU time around the loop that touches each page, and their number
 *     counted LOW HIGH    LOW: faults of the child from its first to its last moment, by the kernel's per-task counters;
 *                         HIGH: those and the parent's, which include some from before its exec that no recorder sees
 *
 * A recorder that follows the tree from its exec saw between LOW and HIGH faults. Each repetition maps and unmaps its
 * own memory, so that each page is a fault; huge pages are declined. Linked statically, so that HIGH is close to LOW.
 *
 * With DEPTH, the loop is called through so many functions, each with a frame of its own: call stacks as real programs have
 * them. With SECONDS, it repeats until it has used that much CPU time. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

static long long cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int touch(size_t bytes, int repetitions, double seconds)
{
	for (int i = 0; seconds > 0 ? cpu_ns() < seconds * 1e9 : i < repetitions; i++) {
		char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE)) {
			perror("faults");
			return 1;
		}
		long long began = cpu_ns();
		for (size_t at = 0; at < bytes; at += PAGE)
			((volatile char *)memory)[at] = 1;
		printf("touch %lld %zu\n", cpu_ns() - began, bytes / PAGE);
		munmap(memory, bytes);
	}
	return fflush(stdout) ? 1 : 0;
}

/* Calls the loop through `depth` frames. The memory in each frame and what is done after the call keep the compiler from
 * making a loop or a jump of it. */
__attribute__((noinline, noclone)) static int deeper(int depth, size_t bytes, int repetitions, double seconds)
{
	volatile char frame[48];
	frame[depth % sizeof(frame)] = 0;
	int status = depth > 1 ? deeper(depth - 1, bytes, repetitions, seconds) : touch(bytes, repetitions, seconds);
	return status + frame[depth % sizeof(frame)];
}

int main(int argc, char **argv)
{
	size_t bytes = (argc > 1 ? strtoul(argv[1], 0, 10) : 80) << 20;
	int repetitions = argc > 2 ? atoi(argv[2]) : 3;
	int depth = argc > 3 ? atoi(argv[3]) : 0;
	double seconds = argc > 4 ? atof(argv[4]) : 0;
	int status = 0;
	struct rusage own, child;
	pid_t pid = fork();
	if (pid == 0)
		_exit(depth > 0 ? deeper(depth, bytes, repetitions, seconds) : touch(bytes, repetitions, seconds));
	printf("child %d\n", pid);
	fflush(stdout);
	if (pid < 0 || wait4(pid, &status, 0, &child) != pid || status) {
		fprintf(stderr, "faults: the child failed\n");
		return 1;
	}
	getrusage(RUSAGE_SELF, &own);
	long low = child.ru_minflt + child.ru_majflt;
	printf("counted %ld %ld\n", low, low + own.ru_minflt + own.ru_majflt);
	return 0;
}
