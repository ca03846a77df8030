// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A fixed amount of work on every processor, each in a process that is bound to it:
 *
 *     spin UNITS WARM DEPTH [FILE]
 *
 *     begin               every process has done WARM units of work that do not count, and begins
 *     worker CPU WALL CPU a line a process: ns of real time and of CPU time that its UNITS took
 *     end                 all are done; with FILE, it waits until that exists (at most 5 s), so that one can look at its
 *                         recorder before that ends
 *
 * A unit is some tenth of a millisecond of arithmetic, in a function that is called through DEPTH frames. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEPS 100000

struct shared {
	atomic_int ready;
	atomic_int go;
	long long wall[CPU_SETSIZE];
	long long cpu[CPU_SETSIZE];
};

static long long now_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static volatile unsigned long sink;

/* In a frame of its own for each level, so that samples have stacks to follow. */
__attribute__((noinline, noclone)) static unsigned long work(int depth, unsigned long seed)
{
	volatile char frame[48];
	frame[depth % sizeof(frame)] = 0;
	if (depth > 1)
		seed = work(depth - 1, seed);
	else
		for (int i = 0; i < STEPS; i++)
			seed = seed * 6364136223846793005UL + 1442695040888963407UL;
	return seed + frame[depth % sizeof(frame)];
}

static void units(int count, int depth)
{
	for (int i = 0; i < count; i++)
		sink = work(depth, sink + i);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1000, warm = argc > 2 ? atoi(argv[2]) : 0, depth = argc > 3 ? atoi(argv[3]) : 20;
	struct shared *shared = mmap(0, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cpu_set_t allowed;
	int started = 0, failed = 0, status;
	if (shared == MAP_FAILED || sched_getaffinity(0, sizeof(allowed), &allowed)) {
		perror("spin");
		return 1;
	}
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		pid_t pid = fork();
		if (pid == 0) {
			cpu_set_t one;
			/* Nobody is left to say `go` when the first process is gone. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			if (sched_setaffinity(0, sizeof(one), &one))
				_exit(1);
			units(warm, depth);
			atomic_fetch_add(&shared->ready, 1);
			while (!atomic_load(&shared->go))
				usleep(200);
			long long wall = now_ns(CLOCK_MONOTONIC), used = now_ns(CLOCK_PROCESS_CPUTIME_ID);
			units(count, depth);
			shared->wall[cpu] = now_ns(CLOCK_MONOTONIC) - wall;
			shared->cpu[cpu] = now_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
			_exit(0);
		}
		started += pid > 0;
	}
	/* A process that fails before it is ready would never be ready: it is seen as a child that has ended. */
	while (atomic_load(&shared->ready) < started && waitpid(-1, &status, WNOHANG) == 0)
		usleep(1000);
	if (atomic_load(&shared->ready) < started) {
		fprintf(stderr, "spin: a process ended early\n");
		return 1;
	}
	puts("begin");
	fflush(stdout);
	usleep(20000);
	atomic_store(&shared->go, 1);
	while (wait(&status) > 0)
		failed |= status;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (shared->wall[cpu])
			printf("worker %d %lld %lld\n", cpu, shared->wall[cpu], shared->cpu[cpu]);
	puts("end");
	if (fflush(stdout))
		return 1;
	for (int i = 0; argc > 4 && i < 5000 && access(argv[4], F_OK); i++)
		usleep(1000);
	return failed ? 1 : 0;
}
