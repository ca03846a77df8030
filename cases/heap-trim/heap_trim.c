/* Documents that are parsed one after the other: for each, many blocks are allocated, filled and freed again. None is large enough
 * to be mapped on its own, so all of them lie in the heap of brk, and whenever its top is free, glibc gives it back.
 *
 *     heap-trim VARIANT [ROUNDS]
 *
 *     each      64 blocks of 100 KiB a round, freed in the order in which they were made: one trim a round
 *     reverse   the same, freed last first: a trim for every block or two
 *     kept      twin of both: M_TRIM_THRESHOLD above all of it, so that the top stays
 *     pinned    as each, with one small block above them that lives on: the top is never free
 *     once      the blocks are made once, filled in each round, and freed at the end
 *     small     64 blocks of 1 KiB: less than glibc gives back
 *
 * Prints one line: releases whose pages were touched again and how many pages those are, both computed from where the heap ended;
 * the minor faults of all rounds as the kernel counted them; and the CPU time of the rounds in ms. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 64, PAGE = 4096 };

static char *blocks[BLOCKS];
static uintptr_t touched_end;
static long operations, pages, trims;
static uintptr_t lowest;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static double cpu_ms(void)
{
	struct timespec now;
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now))
		fail("clock_gettime");
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static long minor_faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static uintptr_t heap_end(void)
{
	return (uintptr_t)sbrk(0);
}

__attribute__((noinline)) static void read_document(size_t size, int round)
{
	for (int i = 0; i < BLOCKS; i++) {
		if (!blocks[i] && !(blocks[i] = malloc(size)))
			fail("malloc");
		memset(blocks[i], round + i, size);
	}
	/* Behind the last block stands the size of what is free. */
	uintptr_t last = (uintptr_t)blocks[BLOCKS - 1] + malloc_usable_size(blocks[BLOCKS - 1]);
	touched_end = (last / PAGE + 1) * PAGE;
	if (trims) {
		operations += trims;
		pages += (long)((touched_end - lowest) / PAGE);
	}
	trims = 0;
}

__attribute__((noinline)) static void drop_document(int reverse)
{
	for (int i = 0; i < BLOCKS; i++) {
		int number = reverse ? BLOCKS - 1 - i : i;
		uintptr_t before = heap_end();
		free(blocks[number]);
		blocks[number] = NULL;
		uintptr_t after = heap_end();
		/* Pages of the top that nobody has touched do not count. */
		if (after < before && after < touched_end)
			trims++;
		lowest = after;
	}
}

int main(int count, char **words)
{
	const char *variant = count > 1 ? words[1] : "";
	long rounds = count > 2 ? atol(words[2]) : 200;
	const char *variants[] = {"each", "reverse", "kept", "pinned", "once", "small"};
	int is_known = 0;
	for (int i = 0; i < 6; i++)
		is_known |= !strcmp(variant, variants[i]);
	if (!is_known || count > 3 || rounds < 1) {
		fprintf(stderr, "usage: heap-trim each|reverse|kept|pinned|once|small [ROUNDS]\n");
		return 2;
	}
	int once = !strcmp(variant, "once"), pinned = !strcmp(variant, "pinned");
	size_t size = !strcmp(variant, "small") ? 1024 : 100 * 1024;
	/* A page is 4 KiB, however the machine is set. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (!strcmp(variant, "kept") && !mallopt(M_TRIM_THRESHOLD, 256 << 20))
		fail("mallopt");
	void *pin = NULL;
	long faults = minor_faults();
	double before = cpu_ms();
	for (long round = 0; round < rounds; round++) {
		read_document(size, (int)round);
		if (pinned && !pin)
			pin = malloc(2048);
		if (!once || round + 1 == rounds)
			drop_document(!strcmp(variant, "reverse"));
	}
	double used = cpu_ms() - before;
	faults = minor_faults() - faults;
	free(pin);
	printf("%s rounds=%ld operations=%ld pages=%ld minflt=%ld cpu_ms=%.3f\n", variant, rounds, operations, pages, faults, used);
	return 0;
}
