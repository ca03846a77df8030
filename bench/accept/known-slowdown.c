// The programs of bench/accept/known-slowdown.
//
//   known-slowdown work UNITS                    so much arithmetic, then exit: no system call, no memory
//   known-slowdown load PARENT MS BUSY           busy threads, one a processor, from 0 to BUSY percent of it within MS
//   known-slowdown bound PARENT COMMAND...       runs the command, which is ended with its parent
//
// PARENT is the process id of who starts it. Load is killed when its parent dies, and so does not outlive it.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { STEPS_OF_A_UNIT = 100, SECOND_NS = 1000000000 };
// Half a launch of the target: what a launch sees is near the mean of the time.
enum { PERIOD_NS = 5000000 };

static struct {
    int64_t began_ns;
    int64_t ramp_ns;
    double busy;
    int threads;
} ramp;

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * SECOND_NS + time.tv_nsec;
}

// Each step needs the one before, so that its time does not depend on what else the processor could do at once.
static uint64_t work(uint64_t units) {
    uint64_t state = 1;
    for (uint64_t unit = 0; unit < units; unit++)
        for (int step = 0; step < STEPS_OF_A_UNIT; step++)
            state = state * 6364136223846793005u + 1442695040888963407u;
    return state;
}

// Busy for the share of each period that is due at its begin; the threads' periods begin one after the other.
static void *busy_thread(void *argument) {
    int64_t offset = PERIOD_NS * (intptr_t)argument / ramp.threads;
    for (int64_t period = ramp.began_ns + offset;; period += PERIOD_NS) {
        double passed = (double)(period - ramp.began_ns) / (double)ramp.ramp_ns;
        int64_t until = period + (int64_t)(PERIOD_NS * ramp.busy * (passed < 1.0 ? passed : 1.0));
        while (now_ns() < until) {
        }
        struct timespec next = {(period + PERIOD_NS) / SECOND_NS, (period + PERIOD_NS) % SECOND_NS};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return NULL;
}

static int load(double ms, double percent) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 1;
    ramp.threads = CPU_COUNT(&allowed);
    ramp.began_ns = now_ns();
    ramp.ramp_ns = (int64_t)(ms * 1e6);
    ramp.busy = percent / 100.0;
    for (intptr_t number = 1; number < ramp.threads; number++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, busy_thread, (void *)number) != 0)
            return 1;
    }
    busy_thread(0);
    return 0;
}

// Whether `parent` is still there, after which its death sends `signal`.
static int bound_to(const char *parent, int signal) {
    return prctl(PR_SET_PDEATHSIG, signal) == 0 && getppid() == atoi(parent);
}

int main(int count, char **words) {
    if (count == 3 && strcmp(words[1], "work") == 0) {
        volatile uint64_t result = work(strtoull(words[2], NULL, 10));
        (void)result;
        return 0;
    }
    if (count == 5 && strcmp(words[1], "load") == 0)
        return bound_to(words[2], SIGKILL) ? load(atof(words[3]), atof(words[4])) : 1;
    if (count > 3 && strcmp(words[1], "bound") == 0) {
        if (bound_to(words[2], SIGTERM))
            execvp(words[3], words + 3);
        perror(words[3]);
        return 127;
    }
    fprintf(stderr, "usage: known-slowdown work UNITS | load PARENT MS BUSY | bound PARENT COMMAND...\n");
    return 2;
}
