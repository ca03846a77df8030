/* Threads that each do one thing. At its end each says its name and thread id, its time on the CPU by its own clock, and what schedstat
 * has of it: time that it ran, and time that it waited for a processor; all in ms.
 *
 *     threads SECONDS [REST [FILE]]
 *
 * The process rests for REST seconds before it ends. With FILE two more threads read pages of it from storage, and stay a while after they
 * have spoken, so that the kernel can be asked about them. One of the two goes before all that are scheduled fairly, where that is
 * allowed; where it is not, it says nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double seconds;
static const char *stored;
static int is_first;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, printing = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];

static double now(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void rest(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, 0);
}

static volatile unsigned long long sink;
static void compute(double for_seconds)
{
	double until = now(CLOCK_MONOTONIC) + for_seconds;
	while (now(CLOCK_MONOTONIC) < until)
		for (int i = 0; i < 20000; i++)
			sink += i * sink + 1;
}

/* On the first processor, where another one does the same. */
static void shares_a_processor(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	int first = 0;
	cpu_set_t allowed;
	sched_getaffinity(0, sizeof(allowed), &allowed);
	while (!CPU_ISSET(first, &allowed))
		first++;
	CPU_SET(first, &set);
	sched_setaffinity(0, sizeof(set), &set);
	compute(seconds);
}

static void computes(void) { compute(seconds); }
static void sleeps(void)
{
	double until = now(CLOCK_MONOTONIC) + seconds;
	while (now(CLOCK_MONOTONIC) < until)
		rest(5);
}
static void locks(void)
{
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
}
static void touches(void)
{
	size_t size = 64 << 20;
	double until = now(CLOCK_MONOTONIC) + seconds;
	char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(memory, size, MADV_NOHUGEPAGE);
	while (now(CLOCK_MONOTONIC) < until) {
		for (size_t at = 0; at < size; at += 4096)
			memory[at] = 1;
		madvise(memory, size, MADV_DONTNEED);
	}
}
static void reads(void)
{
	char byte;
	while (read(ends[0], &byte, 1) == 1)
		;
}

static void read_pages(long pause_ms)
{
	int file = open(stored, O_RDONLY | O_DIRECT);
	off_t pages = file < 0 ? 0 : lseek(file, 0, SEEK_END) / 4096, page = 0;
	void *buffer = 0;
	if (pages < 1 || posix_memalign(&buffer, 4096, 4096))
		return;
	double until = now(CLOCK_MONOTONIC) + seconds;
	while (now(CLOCK_MONOTONIC) < until) {
		/* Never the next one. */
		page = (page + 7919) % pages;
		if (pread(file, buffer, 4096, page * 4096) != 4096)
			return;
		if (pause_ms)
			rest(pause_ms);
	}
}
static void stores(void) { read_pages(0); }

static void stores_first(void)
{
	struct sched_param first = { .sched_priority = 1 };
	is_first = !pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	/* With pauses, or nobody else would read. */
	if (is_first)
		read_pages(1);
}

static struct { const char *name; void (*does)(void); } all[] = {
	{ "computes", computes }, { "shares0", shares_a_processor }, { "shares1", shares_a_processor },
	{ "sleeps", sleeps }, { "locks", locks }, { "touches", touches }, { "reads", reads },
	{ "stores", stores }, { "stores_first", stores_first },
};
#define COUNT (sizeof(all) / sizeof(*all))

static void tell(const char *name)
{
	char path[64], text[128] = { 0 };
	long tid = syscall(SYS_gettid);
	snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", tid);
	FILE *file = fopen(path, "r");
	double cpu = now(CLOCK_THREAD_CPUTIME_ID);
	unsigned long long ran = 0, waited = 0;
	if (file && fgets(text, sizeof(text), file))
		sscanf(text, "%llu %llu", &ran, &waited);
	pthread_mutex_lock(&printing);
	printf("%s %ld %.6f %.6f %.6f\n", name, tid, cpu * 1e3, ran / 1e6, waited / 1e6);
	fflush(stdout);
	pthread_mutex_unlock(&printing);
}

static void *run(void *number)
{
	pthread_setname_np(pthread_self(), all[(long)number].name);
	void (*does)(void) = all[(long)number].does;
	does();
	if (does == stores_first && !is_first)
		return 0;
	tell(all[(long)number].name);
	if (does == stores || does == stores_first)
		rest(1500);
	return 0;
}

int main(int count, char **arguments)
{
	seconds = atof(arguments[1]);
	double wait = count > 2 ? atof(arguments[2]) : 0;
	stored = count > 3 ? arguments[3] : 0;
	const long begun = stored ? COUNT : COUNT - 2;
	pthread_t threads[COUNT];
	if (pipe(ends))
		return 1;
	pthread_mutex_lock(&held);
	for (long i = 0; i < begun; i++)
		pthread_create(threads + i, 0, run, (void *)i);
	double until = now(CLOCK_MONOTONIC) + seconds;
	while (now(CLOCK_MONOTONIC) < until) {
		rest(10);
		if (write(ends[1], "x", 1) != 1)
			return 1;
	}
	pthread_mutex_unlock(&held);
	close(ends[1]);
	for (long i = 0; i < begun; i++)
		pthread_join(threads[i], 0);
	tell("main");
	rest(wait * 1000);
	return 0;
}
