/* The log of shadow.h: text in memory that is there before anything is logged, written at the end. */
#define _GNU_SOURCE
#include "shadow.h"
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOG_BYTES (12 << 20)
#define PAGES 16384ul
#define PAGE 4096ul
/* Where no loader puts anything; images of one process have different ones, so that addresses are not used twice. */
#define ARENA 0x200000000000ul

__thread struct shadow shadow;
static char *text, *arena;
static const char *directory;
static size_t used, pages;
static unsigned generation;
static int zero;

static void refuse(const char *what)
{
	perror(what);
	_exit(3);
}

void shadow_begin(const char *into, unsigned number)
{
	directory = into;
	generation = number;
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	text = mmap(0, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	void *at = (void *)(ARENA + number * (1ul << 32));
	arena = mmap(at, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	/* A huge page would be one fault for many touches. */
	if (zero < 0 || text == MAP_FAILED || arena == MAP_FAILED || madvise(arena, PAGES * PAGE, MADV_NOHUGEPAGE))
		refuse("shadow_begin");
}

struct shadow *shadow_of_thread(void)
{
	return &shadow;
}

void shadow_forked(void)
{
	used = 0;
}

static char *put(char *at, const char *word)
{
	size_t length = strlen(word);
	memcpy(at, word, length);
	return at + length;
}

static char *put_number(char *at, uint64_t number)
{
	char digits[24], *digit = digits + sizeof(digits) - 1;
	*digit = 0;
	do
		*--digit = '0' + number % 10;
	while (number /= 10);
	return put(at, digit);
}

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ul + time.tv_nsec;
}

static char *room(size_t bytes)
{
	size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
	if (at + bytes > LOG_BYTES)
		refuse("the log is full");
	return text + at;
}

/* A line: touch PID TID ADDRESS NANOSECONDS innermost;...;outermost */
char *shadow_note_for(const char *name)
{
	size_t page = __atomic_fetch_add(&pages, 1, __ATOMIC_RELAXED);
	if (page >= PAGES)
		refuse("no page is left");
	char line[SHADOW_DEPTH * 48], *at = put(line, "touch ");
	at = put_number(at, getpid());
	*at++ = ' ';
	at = put_number(at, syscall(SYS_gettid));
	*at++ = ' ';
	at = put_number(at, (uint64_t)(arena + page * PAGE));
	*at++ = ' ';
	at = put_number(at, now());
	*at++ = ' ';
	if (name) {
		at = put(at, name);
		*at++ = ';';
	}
	for (unsigned i = shadow.depth; i > 0; i--) {
		at = put(at, shadow.active[i - 1]);
		*at++ = ';';
	}
	at[-1] = '\n';
	memcpy(room(at - line), line, at - line);
	return arena + page * PAGE;
}

char *shadow_note(void)
{
	return shadow_note_for(0);
}

void shadow_touch_by_read(void)
{
	if (read(zero, shadow_note(), 1) != 1)
		refuse("read");
}

static void tell(const char *word, const char *rest)
{
	char line[8192], *at = put(put(line, word), rest);
	*at++ = '\n';
	memcpy(room(at - line), line, at - line);
}

void shadow_may_have(const char *chain)
{
	tell("chain ", chain);
}

void shadow_handlers_may_have(const char *chain)
{
	tell("handler ", chain);
}

void shadow_window_begins(void)
{
	char digits[24];
	*put_number(digits, now()) = 0;
	tell("begins ", digits);
}

void shadow_end(void)
{
	char digits[24], path[4096];
	*put_number(digits, now()) = 0;
	tell("ends ", digits);
	snprintf(path, sizeof(path), "%s/%d.%u", directory, getpid(), generation);
	int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (file < 0 || write(file, text, used) != (ssize_t)used || close(file))
		refuse(path);
}
