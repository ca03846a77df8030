// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Launches a command as cheaply as the system allows, and prints the ns of each launch:
 *
 *     spawn exit TIMES COMMAND [ARGUMENT...]     from posix_spawn to the exit
 *     spawn line TIMES COMMAND [ARGUMENT...]     from posix_spawn to its first output, and then to its end by SIGKILL
 */
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static long long now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int until_exit(char **command)
{
	pid_t pid;
	int status = 1;
	return posix_spawn(&pid, command[0], 0, 0, command, environ) || waitpid(pid, &status, 0) != pid || status;
}

static int until_line(char **command)
{
	posix_spawn_file_actions_t actions;
	int ends[2], status;
	char byte;
	pid_t pid;
	if (pipe2(ends, 02000000) || posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, ends[1], 1) ||
	    posix_spawn(&pid, command[0], &actions, 0, command, environ))
		return 1;
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	int failed = read(ends[0], &byte, 1) != 1 || kill(pid, SIGKILL) || waitpid(pid, &status, 0) != pid;
	close(ends[0]);
	return failed;
}

int main(int argc, char **argv)
{
	int times = argc > 3 ? atoi(argv[2]) : 0;
	int line = argc > 1 && !strcmp(argv[1], "line");
	for (int i = 0; i < times; i++) {
		long long began = now_ns();
		if (line ? until_line(argv + 3) : until_exit(argv + 3))
			return 1;
		printf("%lld\n", now_ns() - began);
	}
	return times > 0 ? 0 : 2;
}
