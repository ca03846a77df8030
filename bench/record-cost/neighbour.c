// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What a program that nobody records does all day, timed in short chunks:
 *
 *     neighbour CHUNKS
 *
 *     calls NS N          a line a chunk: getpid, read of one byte of /dev/zero and close of a descriptor that is none
 *     mappings NS N       mmap, a write to it, and munmap of 4 KiB
 *     pipe NS N           one byte to another process and one back
 *
 * NS is real time, N how many rounds it is for. Both processes are bound to one processor, so that a round of the pipe is
 * two switches and not the wake-up of an idle processor. Chunks of the three take turns. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS 20000
#define MAPPINGS 5000
#define TURNS 3000

static long long now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int calls(int zero)
{
	char byte;
	long long began = now_ns();
	for (int i = 0; i < CALLS; i++) {
		syscall(SYS_getpid);
		if (read(zero, &byte, 1) != 1)
			return 1;
		close(-1);
	}
	printf("calls %lld %d\n", now_ns() - began, CALLS);
	return 0;
}

static int mappings(void)
{
	long long began = now_ns();
	for (int i = 0; i < MAPPINGS; i++) {
		char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			return 1;
		*(volatile char *)page = 1;
		munmap(page, 4096);
	}
	printf("mappings %lld %d\n", now_ns() - began, MAPPINGS);
	return 0;
}

static int turns(int to, int from)
{
	char byte = 0;
	long long began = now_ns();
	for (int i = 0; i < TURNS; i++)
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			return 1;
	printf("pipe %lld %d\n", now_ns() - began, TURNS);
	return 0;
}

int main(int argc, char **argv)
{
	int chunks = argc > 1 ? atoi(argv[1]) : 10, there[2], back[2], status;
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (zero < 0 || pipe(there) || pipe(back) || sched_setaffinity(0, sizeof(one), &one)) {
		perror("neighbour");
		return 1;
	}
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		close(there[1]);
		close(back[0]);
		while (read(there[0], &byte, 1) == 1)
			if (write(back[1], &byte, 1) != 1)
				_exit(1);
		_exit(0);
	}
	if (pid < 0)
		return 1;
	for (int i = 0; i < chunks; i++)
		if (calls(zero) || mappings() || turns(there[1], back[0])) {
			perror("neighbour");
			return 1;
		}
	close(there[1]);
	return waitpid(pid, &status, 0) != pid || status || fflush(stdout) ? 1 : 0;
}
