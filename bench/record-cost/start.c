// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Starts a command as another user and says when, the same way under every recorder:
 *
 *     start FILE TASKS UID CMD...
 *
 * Enters the cgroup whose list of tasks TASKS is ("-": none), becomes UID (0 changes nothing), writes "PID NS" (CLOCK_MONOTONIC) to FILE, and executes CMD in the same process:
 * what a recorder does before the command's first instruction does not count, what it does from then on does. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	uid_t uid = strtoul(argv[3], 0, 10);
	int tasks = strcmp(argv[2], "-") ? open(argv[2], O_WRONLY | O_CLOEXEC) : -1;
	if (tasks >= 0 && write(tasks, "0", 1) != 1) {
		perror(argv[2]);
		return 126;
	}
	FILE *file = fopen(argv[1], "we");
	if (!file || (uid && (setgroups(0, 0) || setgid(uid) || setuid(uid)))) {
		perror("start");
		return 126;
	}
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	fprintf(file, "%d %lld\n", getpid(), now.tv_sec * 1000000000LL + now.tv_nsec);
	fclose(file);
	execv(argv[4], argv + 4);
	perror(argv[4]);
	return 127;
}
