// The other opinion of bench/accept/syscall-cost: a loop of getppid under filters that are given as raw instructions.
//
//   syscall-cost loop CALLS [COPIES FILE]    ns of CPU time a call, with so many copies of the filter
//   syscall-cost hold PARENT COPIES FILE     has the filters and waits until it is killed, or PARENT ends
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void failed(const char *what) {
    perror(what);
    exit(2);
}

static void install(int copies, const char *path) {
    static struct sock_filter instructions[BPF_MAXINSNS];
    FILE *file = fopen(path, "rb");
    if (!file) failed(path);
    size_t count = fread(instructions, sizeof instructions[0], BPF_MAXINSNS, file);
    fclose(file);
    struct sock_fprog program = {.len = (unsigned short)count, .filter = instructions};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L)) failed("no_new_privs");
    for (int copy = 0; copy < copies; copy++)
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) failed("seccomp");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "hold")) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != atoi(argv[2])) return 2;
        install(atoi(argv[3]), argv[4]);
        if (write(1, "held\n", 5) != 5) return 2;
        for (;;) pause();
    }
    if ((argc != 3 && argc != 5) || strcmp(argv[1], "loop")) return 2;
    if (argc == 5) install(atoi(argv[3]), argv[4]);
    long calls = atol(argv[2]);
    for (long call = 0; call < calls / 16; call++) syscall(SYS_getppid);
    double began = now();
    for (long call = 0; call < calls; call++) syscall(SYS_getppid);
    // An allow-list has no calls for what stdio prepares.
    char line[64];
    int length = snprintf(line, sizeof line, "%.3f\n", (now() - began) / (double)calls);
    return write(1, line, (size_t)length) == length ? 0 : 2;
}
