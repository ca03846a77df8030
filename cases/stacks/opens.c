/* Opens a library while it runs and calls it at once: its unwinding table is being made then. With a third argument, it
 * goes on calling for that many milliseconds, so that it can be seen when the table is there. The second library's place
 * may be the first one's. */
#define _GNU_SOURCE
#include "shadow.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long milliseconds(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

OWN void truth_back(void)
{
	ACTIVE("truth_back");
	TOUCH();
}

OWN void truth_opens(const char *path, long lasting)
{
	ACTIVE("truth_opens");
	void *library = dlopen(path, RTLD_NOW);
	void (*call)(int, void (*)(void)) = library ? (void (*)(int, void (*)(void)))dlsym(library, "truth_library_call") : 0;
	if (!call) {
		fprintf(stderr, "%s\n", dlerror());
		exit(4);
	}
	call(1, truth_back);
	for (long last = milliseconds(), end = last + lasting; last < end;) {
		long now = milliseconds();
		if (now != last)
			call(1, truth_back);
		last = now;
	}
	dlclose(library);
	TOUCH();
}

OWN void truth_main(char **libraries, long lasting)
{
	ACTIVE("truth_main");
	for (int i = 0; i < 3; i++) {
		truth_opens(libraries[0], lasting);
		truth_opens(libraries[1], lasting);
	}
}

int main(int count, char **arguments)
{
	char one[4096], two[4096];
	snprintf(one, sizeof(one), "%s.one.so", arguments[0]);
	snprintf(two, sizeof(two), "%s.two.so", arguments[0]);
	shadow_begin(arguments[1], 0);
	truth_main((char *[]){one, two}, count > 2 ? atol(arguments[2]) : 0);
	shadow_end();
}
