// Workloads: each does a fixed amount of work of one kind and says nothing.
//
//   work compute N             N steps of integer work in a small table
//   work calls N STEPS         N cheap system calls with so many steps of integer work between them
//   work blocks N SIZE HELD [STEPS]  N rounds of HELD blocks of SIZE bytes, allocated, written to and given back, and so many steps
//   work naps N NANOSECONDS    N sleeps
//   work huge N MIB            N times MIB MiB of memory that asks for huge pages, touched and given back
//   work files N STEPS         N files made in the working directory, written, renamed and removed, and so many steps for each

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TABLE = 4096, PAGE = 4096, FILE_BYTES = 4096, MOST_HELD = 4096 };

static uint64_t table[TABLE];
static volatile uint64_t result;

static void failed(const char *what)
{
    perror(what);
    exit(1);
}

static void compute(long steps)
{
    uint64_t value = 88172645463325252u;
    for (long i = 0; i < steps; i++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        table[value % TABLE] += value;
    }
    result = value;
}

static void calls(long count, long steps)
{
    for (long i = 0; i < count; i++) {
        syscall(SYS_getppid);
        compute(steps);
    }
}

static void blocks(long rounds, size_t size, long held, long steps)
{
    static char *kept[MOST_HELD];
    if (held > MOST_HELD)
        held = MOST_HELD;
    for (long round = 0; round < rounds; round++) {
        for (long i = 0; i < held; i++) {
            // Blocks of somewhat different sizes, as programs have them.
            kept[i] = malloc(size + (size_t)(i % 8) * (size / 16));
            if (!kept[i])
                failed("malloc");
            for (size_t at = 0; at < size; at += PAGE)
                ((volatile char *)kept[i])[at] = (char)round;
        }
        for (long i = 0; i < held; i++)
            free(kept[i]);
        if (steps)
            compute(steps);
    }
}

static void naps(long count, long nanoseconds)
{
    struct timespec nap = { .tv_sec = 0, .tv_nsec = nanoseconds };
    for (long i = 0; i < count; i++)
        nanosleep(&nap, NULL);
}

static void huge(long count, size_t mib)
{
    size_t bytes = mib << 20, span = 2 << 20;
    for (long i = 0; i < count; i++) {
        char *mapped = mmap(NULL, bytes + span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED)
            failed("mmap");
        char *start = (char *)(((uintptr_t)mapped + span - 1) & ~(uintptr_t)(span - 1));
        madvise(start, bytes, MADV_HUGEPAGE);
        for (size_t at = 0; at < bytes; at += PAGE)
            ((volatile char *)start)[at] = 1;
        munmap(mapped, bytes + span);
    }
}

static void files(long count, long steps)
{
    char text[FILE_BYTES], name[64], other[64];
    memset(text, 'x', sizeof text);
    for (long i = 0; i < count; i++) {
        snprintf(name, sizeof name, "file-%d-%ld", (int)getpid(), i);
        snprintf(other, sizeof other, "kept-%d-%ld", (int)getpid(), i);
        int file = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (file < 0 || write(file, text, sizeof text) != (ssize_t)sizeof text)
            failed(name);
        close(file);
        if (rename(name, other) || unlink(other))
            failed(other);
        compute(steps);
    }
}

int main(int count, char **words)
{
    const char *kind = count > 2 ? words[1] : "";
    long numbers[4] = { 0 };
    for (int i = 2; i < count && i < 6; i++)
        numbers[i - 2] = atol(words[i]);
    if (!strcmp(kind, "compute"))
        compute(numbers[0]);
    else if (!strcmp(kind, "calls"))
        calls(numbers[0], numbers[1]);
    else if (!strcmp(kind, "blocks"))
        blocks(numbers[0], (size_t)numbers[1], numbers[2], numbers[3]);
    else if (!strcmp(kind, "naps"))
        naps(numbers[0], numbers[1]);
    else if (!strcmp(kind, "huge"))
        huge(numbers[0], (size_t)numbers[1]);
    else if (!strcmp(kind, "files"))
        files(numbers[0], numbers[1]);
    else
        return 2;
    return 0;
}
