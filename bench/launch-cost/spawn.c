// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Starts and waits for a command as cheaply as the system allows, and prints the ns of each:
 *
 *     spawn TIMES COMMAND [ARGUMENT...] */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static long long now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int times = argc > 2 ? atoi(argv[1]) : 0;
	for (int i = 0; i < times; i++) {
		pid_t pid;
		int status = 1;
		long long began = now_ns();
		if (posix_spawn(&pid, argv[2], 0, 0, argv + 2, environ) || waitpid(pid, &status, 0) != pid || status)
			return 1;
		printf("%lld\n", now_ns() - began);
	}
	return times > 0 ? 0 : 2;
}
