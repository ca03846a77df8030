/* Memory that is touched in small pages before the program says that it wants huge ones. The kernel's thread khugepaged copies it
 * into huge pages later, 8 of them in 10 seconds unless the machine is set otherwise: work that nobody sees at the program.
 *
 *     late-huge-pages VARIANT [HUGE_PAGES]
 *
 *     late      touches all of it, then asks (MADV_HUGEPAGE), and waits until it is huge
 *     early     its twin: asks first, so that a fault brings a huge page
 *     collapse  touches all of it, then has the same done at once, in its own context (MADV_COLLAPSE)
 *     never     touches all of it and wants none (MADV_NOHUGEPAGE)
 *
 * Prints one line: huge pages in the end, as the kernel shows them of its memory; those that khugepaged made; the CPU time of
 * khugepaged meanwhile, which is also spent for others where others ask; and that time and its own CPU time together, all in ms. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { HUGE = 2 << 20, PAGE = 4096, PATIENCE_S = 100 };

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

/* The first word of a file of /proc. */
static int first_word(const char *pid, const char *name, char *word, size_t size)
{
	char path[300];
	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	FILE *file = fopen(path, "r");
	if (!file)
		return 0;
	int found = fgets(word, (int)size, file) != NULL;
	fclose(file);
	word[found ? strcspn(word, " \n") : 0] = 0;
	return found;
}

/* Where /proc has khugepaged; none in some containers. */
static const char *khugepaged(void)
{
	static char pid[32];
	char word[64];
	DIR *directory = opendir("/proc");
	for (struct dirent *entry; directory && !pid[0] && (entry = readdir(directory));) {
		if (isdigit((unsigned char)entry->d_name[0]) && first_word(entry->d_name, "comm", word, sizeof(word)) &&
		    !strcmp(word, "khugepaged"))
			snprintf(pid, sizeof(pid), "%.31s", entry->d_name);
	}
	if (directory)
		closedir(directory);
	return pid;
}

static double khugepaged_ms(const char *pid)
{
	char word[64];
	return pid[0] && first_word(pid, "schedstat", word, sizeof(word)) ? strtod(word, NULL) / 1e6 : 0;
}

static long huge_pages_now(void)
{
	char line[256];
	long kib = 0;
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	if (!file)
		fail("/proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), file))
		sscanf(line, "AnonHugePages: %ld", &kib);
	fclose(file);
	return kib / (HUGE >> 10);
}

__attribute__((noinline)) static void touch(char *memory, size_t size)
{
	for (size_t at = 0; at < size; at += PAGE)
		memory[at] = 1;
}

static void advise(char *memory, size_t size, int advice)
{
	if (madvise(memory, size, advice))
		fail("madvise");
}

static void wait_for(long wanted)
{
	struct timespec pause = {.tv_nsec = 100000000};
	for (int tries = 0; tries < PATIENCE_S * 10 && huge_pages_now() < wanted; tries++)
		nanosleep(&pause, NULL);
}

int main(int count, char **words)
{
	const char *variant = count > 1 ? words[1] : "";
	long wanted = count > 2 ? atol(words[2]) : 8;
	int late = !strcmp(variant, "late"), early = !strcmp(variant, "early");
	int collapse = !strcmp(variant, "collapse"), never = !strcmp(variant, "never");
	if (!(late || early || collapse || never) || count > 3 || wanted < 1 || wanted > 256) {
		fprintf(stderr, "usage: late-huge-pages late|early|collapse|never [HUGE_PAGES]\n");
		return 2;
	}
	size_t size = (size_t)wanted * HUGE;
	char *room = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		fail("mmap");
	char *memory = (char *)(((uintptr_t)room + HUGE - 1) & ~((uintptr_t)HUGE - 1));
	const char *pid = khugepaged();
	double others = khugepaged_ms(pid), own = cpu_ms();
	if (early || never)
		advise(memory, size, early ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	/* Small pages, also where the machine gives huge ones to all. */
	prctl(PR_SET_THP_DISABLE, !early, 0, 0, 0);
	touch(memory, size);
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	long before = huge_pages_now();
	if (late) {
		advise(memory, size, MADV_HUGEPAGE);
		wait_for(wanted);
	}
	if (collapse)
		advise(memory, size, MADV_COLLAPSE);
	own = cpu_ms() - own;
	others = late ? khugepaged_ms(pid) - others : 0;
	long now = huge_pages_now();
	printf("%s huge_pages=%ld made_later=%ld khugepaged_ms=%.3f cpu_ms=%.3f\n", variant, now, late ? now - before : 0, others,
	       own + others);
	return 0;
}
