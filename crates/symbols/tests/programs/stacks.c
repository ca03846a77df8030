/* Stacks of every kind between two breakpoints in main: recursion, alloca, a realigned frame, calls through the lazy linkage
 * table, a callback from the C library, and signal handlers on the thread's own and on another stack. */
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noinline, noclone))
#endif

static volatile long sink;

KEPT static long leaf(long a) {
    sink += a;
    return sink ^ a;
}

KEPT static long of_many_registers(long a, long b, long c) {
    long d = leaf(a), e = leaf(b), f = leaf(c), g = leaf(d + e), h = leaf(e * f);
    return leaf(a + d) + leaf(b + e) + leaf(c + f) + g + h;
}

KEPT static long recursive(long n) {
    return n == 0 ? of_many_registers(1, 2, 3) : recursive(n - 1) + leaf(n);
}

KEPT static long of_unknown_size(long n) {
    char *bytes = alloca((size_t)n);
    memset(bytes, (int)n, (size_t)n);
    return leaf(bytes[n / 2]) + recursive(2);
}

KEPT static long realigned(long n) {
    __attribute__((aligned(64))) volatile long values[16];
    char *bytes = alloca((size_t)n);
    memset(bytes, 1, (size_t)n);
    values[n % 16] = leaf(n);
    return of_unknown_size(64) + values[n % 16] + bytes[n / 2];
}

/* Without alloca another shape of prologue and epilogue is made. */
KEPT static long realigned_plainly(long n) {
    __attribute__((aligned(64))) volatile long values[16];
    values[n % 16] = leaf(n);
    return recursive(1) + values[(n + 1) % 16];
}

static int by_value(const void *a, const void *b) {
    long left = *(const long *)a, right = *(const long *)b;
    leaf(realigned_plainly(left));
    return (left > right) - (left < right);
}

static void handler(int number) { sink += realigned(number); }

int main(void) {
    char other_stack[65536];
    stack_t other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    struct sigaction own = {.sa_handler = handler}, elsewhere = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    char text[64];
    long values[] = {5, 3, 9, 1};
    __asm__ volatile("int3");
    sink += recursive(4) + of_unknown_size(200) + realigned(100) + realigned_plainly(7);
    sink += snprintf(text, sizeof text, "%ld %s %.3f", sink, "text", 1.5);
    qsort(values, 4, sizeof values[0], by_value);
    sigaltstack(&other, NULL);
    sigaction(SIGUSR1, &own, NULL);
    sigaction(SIGUSR2, &elsewhere, NULL);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    __asm__ volatile("int3");
    _exit(0);
}
