/*
 * Processes that keep the result of their work in a file, an artifact of a family that nobody else knows, and what they do where they
 * cannot use it.
 *
 *     cached-table MODE CHILDREN DIRECTORY WORK_MS REST_MS
 *
 * Starts CHILDREN processes one after the other, and prints `cpu_ms=`, the CPU time of one of them, the mean. Each wants the table in
 * DIRECTORY/cache/table.cache, which holds "table" where it fits. Without it, WORK_MS of CPU time make it from DIRECTORY/table.src; then
 * every process opens DIRECTORY/data and has REST_MS of other work. So the truth is WORK_MS for each process without the table. MODE:
 *
 *     saves     saves the table that it made, as cache/table.cache.PID, and renames that
 *     silent    does not save it
 *     two       as silent; every second process is user 65534, the others who started it
 *     unused    never looks for the table
 *     asks      as saves, but asks access(2) first, and opens nothing that it may not read
 *     optional  looks for it, and does without it: no work
 *     glances   as optional, but asks access(2) and opens nothing
 *     retries   is denied as user 65534, and opens it as root again
 *     searches  looks for DIRECTORY/data in ten directories where it is not, and not for the table
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOBODY = 65534, PATH_BYTES = 4096 };

static void fail(const char *what)
{
	fprintf(stderr, "cached-table: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void work(double milliseconds)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	double until = now.tv_sec * 1e3 + now.tv_nsec / 1e6 + milliseconds;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while (now.tv_sec * 1e3 + now.tv_nsec / 1e6 < until);
}

static const char *named(const char *directory, const char *name)
{
	static char path[PATH_BYTES];
	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= PATH_BYTES)
		fail("path");
	return path;
}

/* Whether the file could be read, and holds a table that fits. */
static int reads_table(const char *directory, int asks)
{
	char text[16] = "";
	if (asks && access(named(directory, "cache/table.cache"), R_OK))
		return 0;
	int file = open(named(directory, "cache/table.cache"), O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	ssize_t length = read(file, text, sizeof(text) - 1);
	close(file);
	return length >= 5 && !memcmp(text, "table", 5);
}

static void makes_table(const char *directory, int saves, double milliseconds)
{
	char text[64], name[64], path[PATH_BYTES];
	int source = open(named(directory, "table.src"), O_RDONLY | O_CLOEXEC);
	if (source < 0 || read(source, text, sizeof(text)) < 0)
		fail("table.src");
	close(source);
	work(milliseconds);
	if (!saves)
		return;
	snprintf(name, sizeof(name), "cache/table.cache.%d", (int)getpid());
	strcpy(path, named(directory, name));
	int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (file < 0)
		return;
	if (write(file, "table\n", 6) != 6 || rename(path, named(directory, "cache/table.cache")))
		fail(path);
	close(file);
}

static void rest(const char *directory, double milliseconds)
{
	int file = open(named(directory, "data"), O_RDONLY | O_CLOEXEC);
	if (file < 0)
		fail("data");
	close(file);
	work(milliseconds);
}

static void child(const char *mode, const char *directory, double work_ms, double rest_ms)
{
	int glances = !strcmp(mode, "glances");
	int is_optional = glances || !strcmp(mode, "optional"), asks = glances || !strcmp(mode, "asks");
	if (!strcmp(mode, "searches")) {
		char name[64];
		for (int number = 0; number < 10; number++) {
			snprintf(name, sizeof(name), "search%d/data", number);
			if (open(named(directory, name), O_RDONLY | O_CLOEXEC) >= 0)
				fail("found too early");
		}
	} else if (!strcmp(mode, "retries")) {
		if (seteuid(NOBODY))
			fail("seteuid");
		int first = reads_table(directory, 0);
		if (seteuid(0) || first || !reads_table(directory, 0))
			fail("the table should be root's alone");
	} else if (strcmp(mode, "unused") && !reads_table(directory, asks) && !is_optional) {
		makes_table(directory, asks || !strcmp(mode, "saves"), work_ms);
	}
	rest(directory, rest_ms);
}

int main(int count, char **arguments)
{
	if (count == 7 && !strcmp(arguments[6], "child")) {
		child(arguments[1], arguments[3], atof(arguments[4]), atof(arguments[5]));
		return 0;
	}
	if (count != 6) {
		fprintf(stderr, "cached-table MODE CHILDREN DIRECTORY WORK_MS REST_MS\n");
		return 2;
	}
	int children = atoi(arguments[2]);
	for (int number = 0; number < children; number++) {
		pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (!pid) {
			if (!strcmp(arguments[1], "two") && number % 2 && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
				fail("setuid");
			char *own[] = {arguments[0], arguments[1], arguments[2], arguments[3],
				       arguments[4], arguments[5], "child",	 NULL};
			execv(arguments[0], own);
			fail("exec");
		}
		int status;
		if (waitpid(pid, &status, 0) < 0 || status)
			fail("a child failed");
	}
	struct rusage usage;
	getrusage(RUSAGE_CHILDREN, &usage);
	double cpu = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
	printf("cpu_ms=%.3f\n", cpu / children);
	return 0;
}
