/* Computes for some seconds of CPU time in functions that keep no shadow stack, so that their code is what compilers make of plain
 * functions; which chains of calls there are is said at the start. A timer's handler interrupts them. */
#define _GNU_SOURCE
#include "shadow.h"
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile long sink;

static void uses(void *memory)
{
	__asm__ volatile("" ::"r"(memory) : "memory");
}

OWN long truth_leaf(long value, int times)
{
	for (int i = 0; i < times; i++)
		value = value * 31 + (value >> 7) + i;
	return value;
}

OWN long truth_small(long value)
{
	return value * 3 + 1;
}

OWN long truth_calls(long a, long b, long c)
{
	long d = truth_small(a), e = truth_small(b), f = truth_small(c);
	for (int i = 0; i < 40; i++)
		d += truth_small(e + i) ^ truth_small(f - i);
	return a + b + c + d + truth_leaf(e, 20);
}

OWN long truth_recursion(int depth, long value)
{
	if (!depth)
		return truth_leaf(value, 5) + 1;
	return truth_recursion(depth - 1, value + 1) * 3 + truth_small(depth);
}

OWN long truth_alloca(size_t size)
{
	char *memory = alloca(size);
	memset(memory, (int)size, size);
	uses(memory);
	return memory[size / 2] + truth_small(memory[0]);
}

OWN long truth_aligned(long value, int size)
{
	char values[64] __attribute__((aligned(64))), array[size];
	uses(values);
	uses(array);
	return value + truth_small(array[0]) + truth_leaf(value, 10);
}

OWN int truth_compares(const void *one, const void *two)
{
	return *(const int *)one - *(const int *)two;
}

OWN long truth_sorts(long value)
{
	int numbers[64];
	for (int i = 0; i < 64; i++)
		numbers[i] = (int)((value + i) * 7919 % 1009);
	qsort(numbers, 64, sizeof(int), truth_compares);
	return numbers[value & 63];
}

OWN long truth_tail_end(long value)
{
	return truth_leaf(value, 8) + 1;
}

OWN long truth_tail(long value)
{
	long fresh = truth_small(value) + 1;
#ifdef TAIL_CALLS
	TAIL_CALL
#endif
	return truth_tail_end(fresh);
}

OWN long truth_calls_tail(long value)
{
	return truth_tail(value) * 3 + truth_tail(value + 1);
}

OWN long truth_in_handler(long value)
{
	return truth_leaf(value, 2000) + 1;
}

OWN void truth_handler(int signal)
{
	sink += truth_in_handler(signal) + truth_small(signal);
}

OWN void truth_round(long value)
{
	sink += truth_calls(value, sink, 3);
	sink += truth_recursion(30, value);
	sink += truth_alloca(64 + (value & 255));
	sink += truth_aligned(value, 32 + (value & 255));
	sink += truth_sorts(value & 0xffff);
	sink += truth_calls_tail(value);
}

OWN void truth_main(double seconds)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	double end = time.tv_sec + time.tv_nsec / 1e9 + seconds;
	for (long i = 0;; i++) {
		for (int j = 0; j < 100; j++)
			truth_round(i + j);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
		if (time.tv_sec + time.tv_nsec / 1e9 > end)
			return;
	}
}

#define IN_ROUND ";truth_round;truth_main"

static void says_chains(void)
{
	char recursion[4096] = "truth_leaf;", small[4096] = "truth_small;";
	for (int i = 0; i <= 30; i++) {
		strcat(recursion, "truth_recursion;");
		/* The innermost one calls truth_leaf only. */
		if (i < 30)
			strcat(small, "truth_recursion;");
		char line[4096];
		strcat(strcpy(line, small), "truth_round;truth_main");
		if (i < 30)
			shadow_may_have(line);
	}
	shadow_may_have(strcat(recursion, "truth_round;truth_main"));
	shadow_may_have("truth_small;truth_calls" IN_ROUND);
	shadow_may_have("truth_leaf;truth_calls" IN_ROUND);
	shadow_may_have("truth_small;truth_alloca" IN_ROUND);
	shadow_may_have("truth_small;truth_aligned" IN_ROUND);
	shadow_may_have("truth_leaf;truth_aligned" IN_ROUND);
	shadow_may_have("truth_compares;truth_sorts" IN_ROUND);
	shadow_may_have("truth_small;truth_tail;truth_calls_tail" IN_ROUND);
#ifdef TAIL_CALLS
	shadow_may_have("truth_leaf;truth_tail_end;truth_calls_tail" IN_ROUND);
#else
	shadow_may_have("truth_leaf;truth_tail_end;truth_tail;truth_calls_tail" IN_ROUND);
#endif
	shadow_handlers_may_have("truth_leaf;truth_in_handler;truth_handler");
	shadow_handlers_may_have("truth_small;truth_handler");
}

int main(int count, char **arguments)
{
	shadow_begin(arguments[1], 0);
	says_chains();
	stack_t alternate = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	sigaltstack(&alternate, 0);
	struct sigaction action = {.sa_handler = truth_handler, .sa_flags = SA_ONSTACK | SA_RESTART};
	sigaction(SIGALRM, &action, 0);
	struct itimerval often = {{0, 1300}, {0, 1300}}, never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &often, 0);
	shadow_window_begins();
	truth_main(count > 2 ? atof(arguments[2]) : 3);
	shadow_end();
	setitimer(ITIMER_REAL, &never, 0);
}
