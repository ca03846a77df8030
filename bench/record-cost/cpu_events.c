// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The least that sampling can cost: an event of the CPU clock on every processor that only counts its own overflows.
 *
 *     cpu_events HZ CMD...
 *
 * Opens PERF_COUNT_SW_CPU_CLOCK on each processor with a period of 1/HZ s, for all tasks, without a buffer and without a
 * program: nothing is recorded, but the timers fire. Then runs CMD and ends with its status. */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 3 || atoi(argv[1]) < 1)
		return 2;
	long processors = sysconf(_SC_NPROCESSORS_CONF);
	int opened = 0, status = 0;
	for (long cpu = 0; cpu < processors; cpu++) {
		struct perf_event_attr event;
		memset(&event, 0, sizeof(event));
		event.size = sizeof(event);
		event.type = PERF_TYPE_SOFTWARE;
		event.config = PERF_COUNT_SW_CPU_CLOCK;
		event.sample_period = 1000000000ULL / atoi(argv[1]);
		/* A processor that is offline has no event; that all are missing is an error. */
		opened += syscall(SYS_perf_event_open, &event, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC) >= 0;
	}
	if (!opened) {
		perror("cpu_events");
		return 1;
	}
	pid_t pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
