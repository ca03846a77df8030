/* Copies itself, executes itself again, and in a copy executes another program of which nothing was prepared. */
#define _GNU_SOURCE
#include "shadow.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char **arguments;

OWN void truth_leaf(void)
{
	ACTIVE("truth_leaf");
	TOUCH();
}

OWN void truth_copies(int depth)
{
	ACTIVE("truth_copies");
	pid_t pid = fork();
	if (pid == 0) {
		shadow_forked();
		for (int i = 0; i < 20; i++)
			truth_leaf();
		if (depth)
			truth_copies(depth - 1);
		TOUCH();
		shadow_end();
		_exit(0);
	}
	TOUCH();
	truth_leaf();
	int status = 1;
	if (waitpid(pid, &status, 0) != pid || status)
		exit(5);
	TOUCH();
}

OWN void truth_executes(const char *program, const char *generation)
{
	ACTIVE("truth_executes");
	truth_leaf();
	shadow_end();
	execl(program, program, arguments[1], generation, (char *)0);
	_exit(6);
}

OWN void truth_executes_other(void)
{
	ACTIVE("truth_executes_other");
	pid_t pid = fork();
	if (pid == 0) {
		shadow_forked();
		char other[4096];
		snprintf(other, sizeof(other), "%s.other", arguments[0]);
		truth_executes(other, "9");
	}
	int status = 1;
	if (waitpid(pid, &status, 0) != pid || status)
		exit(7);
	TOUCH();
}

OWN void truth_main(int generation)
{
	ACTIVE("truth_main");
	for (int i = 0; i < 10; i++) {
		truth_copies(2);
		truth_leaf();
	}
	if (generation == 0 && access("/proc/self/exe", R_OK) == 0) {
		char other[4096];
		snprintf(other, sizeof(other), "%s.other", arguments[0]);
		if (access(other, X_OK) == 0)
			truth_executes_other();
	}
	if (generation < 2)
		truth_executes(arguments[0], generation ? "2" : "1");
}

int main(int count, char **given)
{
	int generation = count > 2 ? atoi(given[2]) : 0;
	arguments = given;
	shadow_begin(given[1], generation);
	truth_main(generation);
	shadow_end();
}
