// Takes a share of one processor until its parent ends.
//
//   hog PARENT PROCESSOR PERCENT
//
// At 100 it never sleeps; below, it is busy for that part of each 10 ms by the clock, also where others delay it.

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_NS = 10 * 1000 * 1000 };

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != atoi(words[1]))
        return 1;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(words[2]), &set);
    if (sched_setaffinity(0, sizeof set, &set))
        return 1;
    long long busy = PERIOD_NS / 100 * atoll(words[3]);
    for (long long began = now();; began += PERIOD_NS) {
        while (now() - began < busy)
            ;
        if (busy >= PERIOD_NS)
            continue;
        long long wait = began + PERIOD_NS - now();
        if (wait > 0) {
            struct timespec rest = { .tv_sec = 0, .tv_nsec = wait };
            nanosleep(&rest, NULL);
        } else {
            began -= wait;
        }
    }
}
