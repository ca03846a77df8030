/* Blocks of memory that malloc gives out, for allocators other than glibc's: run with another one loaded before it, or linked
 * with another C library.
 *
 *     blocks VARIANT [ROUNDS] [KIB] [PAUSE]
 *
 *     each    in every round a block is allocated, every page of it is written, and it is freed
 *     kept    its twin: one block, allocated before the rounds
 *     hoard   as each, and no block is ever freed: until something ends it
 *
 * A round ends with a pause of so many ms (0): allocators that give memory back wait for a while before they do.
 *
 * Prints one line: rounds, the pages that they touch, their minor faults as the kernel counted them, and their CPU time in ms.
 * `hoard` says `round N` before each one, so that what it did is known when it is killed. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void fail(const char *what)
{
	fprintf(stderr, "blocks: %s: %s\n", what, strerror(errno));
	exit(2);
}

static double cpu_ms(void)
{
	struct timespec now;
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0)
		fail("clock_gettime");
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static long minor_faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* The whole block and its header: what is behind a page's begin is not looked at. */
__attribute__((noinline)) static void fill(unsigned char *block, size_t size, long round)
{
	for (size_t at = 0; at < size; at += PAGE)
		((volatile unsigned char *)block)[at] = (unsigned char)(round | 1);
}

__attribute__((noinline)) static unsigned char *new_block(size_t size)
{
	unsigned char *block = malloc(size);
	if (!block)
		fail("malloc");
	/* No tail call: the caller of malloc is this function. */
	__asm__ volatile("" : "+r"(block));
	return block;
}

__attribute__((noinline)) static void drop_block(unsigned char *block)
{
	free(block);
	__asm__ volatile("" ::: "memory");
}

int main(int count, char **words)
{
	const char *variant = count > 1 ? words[1] : "";
	long rounds = count > 2 ? atol(words[2]) : 200, kib = count > 3 ? atol(words[3]) : 4096;
	long pause = count > 4 ? atol(words[4]) : 0;
	int each = !strcmp(variant, "each"), hoard = !strcmp(variant, "hoard"), kept = !strcmp(variant, "kept");
	if (!(each || hoard || kept) || count > 5 || rounds < 1 || kib < 1 || pause < 0) {
		fprintf(stderr, "usage: blocks each|kept|hoard [ROUNDS] [KIB] [PAUSE]\n");
		return 2;
	}
	size_t size = (size_t)kib << 10;
	unsigned char *block = kept ? new_block(size) : NULL;
	if (kept)
		fill(block, size, 0);
	long faults = minor_faults();
	double before = cpu_ms();
	for (long round = 0; round < rounds; round++) {
		if (hoard) {
			printf("round %ld\n", round);
			fflush(stdout);
		}
		if (!kept)
			block = new_block(size);
		fill(block, size, round);
		if (each)
			drop_block(block);
		if (pause)
			usleep(pause * 1000);
	}
	double used = cpu_ms() - before;
	faults = minor_faults() - faults;
	printf("%s rounds=%ld pages=%ld minflt=%ld cpu_ms=%.3f\n", variant, rounds, rounds * (long)(size / PAGE), faults, used);
	return 0;
}
