/* Blocks of memory that asks for huge pages: one fault brings 2 MiB.
 *
 *     huge VARIANT [ROUNDS]
 *
 *     each      in every round 8 MiB are mapped, advised MADV_HUGEPAGE, written and unmapped
 *     edges     the same with a block that begins and ends in the middle of a huge page: small pages at both ends
 *     kept      their twin: one block, mapped before the rounds
 *     sparse    8 MiB without huge pages, of which every 512th page is written: as many faults as huge pages would be
 *     reserved  as each, of pages that root has reserved (hugetlbfs: MAP_HUGETLB); where there are none, mmap refuses
 *
 * Prints one line: rounds, bytes that the rounds brought into memory (as mincore(2) tells them in every round), their minor faults
 * as the kernel counted them. `no_huge=1` when the machine gave no huge page, `refused` how many times mmap refused. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, SIZE = 8 << 20 };

static void fail(const char *what)
{
	fprintf(stderr, "huge: %s: %s\n", what, strerror(errno));
	exit(2);
}

static long minor_faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* At an address of this distance from one where a huge page can lie. */
__attribute__((noinline)) static unsigned char *map_block(size_t offset, int advice)
{
	size_t more = SIZE + 2 * (size_t)HUGE_PAGE;
	unsigned char *area = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		fail("mmap");
	uintptr_t begin = ((uintptr_t)area + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE + offset;
	if (begin > (uintptr_t)area && munmap(area, begin - (uintptr_t)area) != 0)
		fail("munmap");
	uintptr_t end = begin + SIZE, last = (uintptr_t)area + more;
	if (last > end && munmap((void *)end, last - end) != 0)
		fail("munmap");
	if (madvise((void *)begin, SIZE, advice) != 0)
		fail("madvise");
	return (void *)begin;
}

/* NULL where none is left. */
__attribute__((noinline)) static unsigned char *map_reserved(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
	unsigned char *block = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
	return block == MAP_FAILED ? NULL : block;
}

__attribute__((noinline)) static void fill(unsigned char *block, size_t step, long round)
{
	for (size_t at = 0; at < SIZE; at += step)
		((volatile unsigned char *)block)[at] = (unsigned char)(round | 1);
}

static long resident(unsigned char *block)
{
	static unsigned char pages[SIZE / PAGE];
	if (mincore(block, SIZE, pages) != 0)
		fail("mincore");
	long bytes = 0;
	for (size_t i = 0; i < sizeof(pages); i++)
		bytes += pages[i] & 1 ? PAGE : 0;
	return bytes;
}

int main(int count, char **words)
{
	const char *variant = count > 1 ? words[1] : "";
	long rounds = count > 2 ? atol(words[2]) : 100;
	int each = !strcmp(variant, "each"), edges = !strcmp(variant, "edges"), kept = !strcmp(variant, "kept"), sparse = !strcmp(variant, "sparse");
	int reserved = !strcmp(variant, "reserved");
	if (!(each || edges || kept || sparse || reserved) || count > 3 || rounds < 1) {
		fprintf(stderr, "usage: huge each|edges|kept|sparse|reserved [ROUNDS]\n");
		return 2;
	}
	size_t offset = edges ? HUGE_PAGE / 2 : 0, step = sparse ? HUGE_PAGE : PAGE;
	int advice = sparse ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;
	unsigned char *block = kept ? map_block(offset, advice) : NULL;
	if (kept) {
		fill(block, step, 0);
		resident(block);
	}
	long faults = minor_faults(), bytes = 0, refused = 0;
	for (long round = 0; round < rounds; round++) {
		if (!kept)
			block = reserved ? map_reserved() : map_block(offset, advice);
		if (!block) {
			refused++;
			continue;
		}
		fill(block, step, round);
		if (!kept) {
			bytes += resident(block);
			munmap(block, SIZE);
		}
	}
	faults = minor_faults() - faults;
	int no_huge = faults > rounds * (SIZE / PAGE) * 9 / 10;
	printf("%s rounds=%ld bytes=%ld minflt=%ld no_huge=%d refused=%ld\n", variant, rounds, bytes, faults, no_huge, refused);
	return 0;
}
