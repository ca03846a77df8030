/* A table of some hundred MiB that is filled, walked and kept to the end. For machines that give huge pages to who asks for them
 * (/sys/kernel/mm/transparent_hugepage/enabled: madvise).
 *
 *     huge-pages VARIANT [MIB]
 *
 *     blocks      blocks of 32 MiB from malloc, which maps each
 *     heap        blocks of 64 KiB from malloc: the heap of brk
 *     own         one mapping of the program's own
 *     advised     twin of the three: aligned, and madvise(MADV_HUGEPAGE) before it is filled
 *     refused     as own, with madvise(MADV_NOHUGEPAGE)
 *     sparse      one page of every 2 MiB, of a mapping that is as many times larger
 *     half        every other page
 *     small       mappings of 1 MiB
 *     file        as own, of a file in memory
 *
 * Prints one line: whole aligned spans of 2 MiB that were filled page by page and how many pages those are, computed from addresses;
 * the minor faults meanwhile as the kernel counted them; KiB in huge pages; and CPU time in ms, until the table is walked. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MIB = 1 << 20, SPAN = 2 * MIB, LINE = 64, NEARLY_ALL = 461 };

static const char *variant;
static long spans, pages;

static int is(const char *word)
{
	return !strcmp(variant, word);
}

static void *checked(void *memory, const char *what)
{
	if (!memory || memory == MAP_FAILED) {
		perror(what);
		exit(2);
	}
	return memory;
}

static double cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static long minor_faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static long huge_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	while (file && fgets(line, sizeof line, file))
		sscanf(line, "AnonHugePages: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}

/* Whole spans of a mapping of which nearly all pages between `first` and `last` were filled. */
static void count(uintptr_t from, uintptr_t to, uintptr_t first, uintptr_t last)
{
	for (uintptr_t at = (from + SPAN - 1) / SPAN * SPAN; at + SPAN <= to; at += SPAN) {
		uintptr_t begin = at > first ? at : first / PAGE * PAGE, end = at + SPAN < last ? at + SPAN : last;
		long filled = end > begin ? (long)((end - begin + PAGE - 1) / PAGE) : 0;
		if (filled >= NEARLY_ALL) {
			spans++;
			pages += filled;
		}
	}
}

/* A part of the table, which is filled from its begin on in steps. */
__attribute__((noinline)) static char *make_part(size_t size)
{
	int writable = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS;
	if (is("blocks") || is("heap"))
		return checked(malloc(size), "malloc");
	if (is("sparse"))
		return checked(mmap(NULL, size, writable, private | MAP_NORESERVE, -1, 0), "mmap");
	if (is("file")) {
		int file = memfd_create("table", MFD_CLOEXEC);
		if (file < 0 || ftruncate(file, (off_t)size))
			checked(NULL, "memfd_create");
		return checked(mmap(NULL, size, writable, MAP_SHARED, file, 0), "mmap");
	}
	char *memory = checked(mmap(NULL, size + SPAN, writable, private, -1, 0), "mmap");
	memory += -(uintptr_t)memory % SPAN;
	if (is("advised") || is("refused"))
		if (madvise(memory, size, is("advised") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
			checked(NULL, "madvise");
	return memory;
}

__attribute__((noinline)) static void fill(char *part, size_t size, size_t step)
{
	if (step == PAGE) {
		memset(part, 1, size);
		return;
	}
	for (size_t at = 0; at < size; at += step)
		part[at] = 1;
}

__attribute__((noinline)) static long walk(const char *part, size_t size, size_t step)
{
	long sum = 0;
	for (size_t at = 0; at < size; at += step)
		sum += part[at];
	return sum;
}

/* The addresses of the heap, of which the end is that of brk. */
static void count_heap(char **parts, long number, size_t size)
{
	char line[512];
	unsigned long from = 0, to = 0;
	FILE *file = checked(fopen("/proc/self/maps", "r"), "/proc/self/maps");
	while (fgets(line, sizeof line, file))
		if (strstr(line, "[heap]"))
			sscanf(line, "%lx-%lx", &from, &to);
	fclose(file);
	count(from, to, (uintptr_t)parts[0], (uintptr_t)parts[number - 1] + size);
}

int main(int argc, char **words)
{
	const char *variants[] = {"blocks", "heap", "own", "advised", "refused", "sparse", "half", "small", "file"};
	int is_known = 0;
	long mib = argc > 2 ? atol(words[2]) : 256;
	variant = argc > 1 ? words[1] : "";
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
		is_known |= is(variants[i]);
	if (!is_known || argc > 3 || mib < 32 || mib > 4096) {
		fprintf(stderr, "usage: huge-pages blocks|heap|own|advised|refused|sparse|half|small|file [MIB]\n");
		return 2;
	}
	size_t size = (size_t)mib * MIB, step = PAGE;
	if (is("sparse")) {
		size *= SPAN / PAGE / 8;
		step = SPAN;
	}
	if (is("half"))
		step = 2 * PAGE;
	size_t part = is("blocks") ? 32 * MIB : is("heap") ? 64 << 10 : is("small") ? MIB : size;
	long number = (long)(size / part);
	char **parts = checked(calloc((size_t)number, sizeof *parts), "calloc");
	long faults = minor_faults(), sum = 0;
	double before = cpu_ms();
	for (long i = 0; i < number; i++) {
		parts[i] = make_part(part);
		fill(parts[i], part, step);
	}
	for (long i = 0; i < number; i++)
		sum += walk(parts[i], part, step == PAGE ? LINE : step);
	double used = cpu_ms() - before;
	faults = minor_faults() - faults;
	for (long i = 0; i < number && is("blocks"); i++) {
		uintptr_t from = (uintptr_t)parts[i] / PAGE * PAGE;
		uintptr_t to = (uintptr_t)parts[i] + malloc_usable_size(parts[i]);
		count(from, to, from, (uintptr_t)parts[i] + part);
	}
	if (is("heap"))
		count_heap(parts, number, part);
	if (is("own"))
		count((uintptr_t)parts[0], (uintptr_t)parts[0] + size, (uintptr_t)parts[0], (uintptr_t)parts[0] + size);
	printf("%s mib=%ld sum=%ld spans=%ld pages=%ld minflt=%ld huge_kib=%ld cpu_ms=%.3f\n", variant, mib, sum, spans, pages, faults,
	       huge_kib(), used);
	return 0;
}
