// The program of bench/accept/import-agreement: parts whose sizes it knows, and prints as JSON when it has ended.
//
//   import-agreement ROUNDS FILE...              waits for a byte on standard input, then runs
//
// The thread `worker` runs five functions, each as often as its name says. `reader` reads each file as often as its place in the list
// says, in blocks of 32 KiB. `long-sleeper` and `short-sleeper` sleep, and `handed` waits for the second one at a condition variable.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 400000, BLOCK = 32768, LONG_NS = 50000000, SHORT_NS = 4000000, SECOND_NS = 1000000000, FUNCTIONS = 5 };

static int rounds;
static char **files;
static int64_t spent_ns[FUNCTIONS];
static int64_t bytes_read[64];

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int given;
    int has_ended;
} hand = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static int64_t now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * SECOND_NS + time.tv_nsec;
}

// Each step needs the one before. The functions differ in how many there are, and in the constant, so that no compiler makes one of them.
#define FUNCTION(name, parts, constant)                                             \
    __attribute__((noinline, noclone)) static uint64_t name(uint64_t state) {       \
        for (int step = 0; step < (parts) * (STEPS / 100); step++) {                \
            state = (state ^ (state >> 29)) * (constant) + (uint64_t)step;          \
        }                                                                           \
        return state;                                                               \
    }

FUNCTION(thirty_four_parts, 3400, 0x9E3779B97F4A7C15u)
FUNCTION(twenty_six_parts, 2600, 0xBF58476D1CE4E5B9u)
FUNCTION(eighteen_parts, 1800, 0x94D049BB133111EBu)
FUNCTION(thirteen_parts, 1300, 0xD6E8FEB86659FD93u)
FUNCTION(nine_parts, 900, 0xC2B2AE3D27D4EB4Fu)

static uint64_t (*const functions[FUNCTIONS])(uint64_t) = {thirty_four_parts, twenty_six_parts, eighteen_parts, thirteen_parts, nine_parts};
static const char *const names[FUNCTIONS] = {"thirty_four_parts", "twenty_six_parts", "eighteen_parts", "thirteen_parts", "nine_parts"};

static void work(void) {
    volatile uint64_t state = 1;
    for (int round = 0; round < rounds; round++) {
        for (int at = 0; at < FUNCTIONS; at++) {
            int64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
            state = functions[at](state);
            spent_ns[at] += now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
        }
    }
}

static void read_files(void) {
    static char block[BLOCK];
    for (int at = 0; files[at]; at++) {
        for (int time = 0; time <= at; time++) {
            int file = open(files[at], O_RDONLY | O_CLOEXEC);
            ssize_t got = 0;
            while (file >= 0 && (got = read(file, block, sizeof block)) > 0) {
                bytes_read[at] += got;
            }
            close(file);
            nanosleep(&(struct timespec){0, LONG_NS}, NULL);
        }
    }
}

static void sleep_long(void) {
    for (int at = 0; at < rounds / 2; at++) {
        nanosleep(&(struct timespec){0, LONG_NS}, NULL);
    }
}

static void sleep_short(void) {
    for (int at = 0; at < rounds * 4; at++) {
        nanosleep(&(struct timespec){0, SHORT_NS}, NULL);
        if (at % 4 == 0) {
            pthread_mutex_lock(&hand.lock);
            hand.given++;
            pthread_cond_signal(&hand.changed);
            pthread_mutex_unlock(&hand.lock);
        }
    }
    pthread_mutex_lock(&hand.lock);
    hand.has_ended = 1;
    pthread_cond_signal(&hand.changed);
    pthread_mutex_unlock(&hand.lock);
}

static void be_handed(void) {
    pthread_mutex_lock(&hand.lock);
    while (!hand.has_ended) {
        pthread_cond_wait(&hand.changed, &hand.lock);
    }
    pthread_mutex_unlock(&hand.lock);
}

struct part {
    const char *name;
    void (*run)(void);
    pthread_t thread;
    pid_t tid;
    int64_t lived_ns;
    int64_t ran_ns;
};

static void *run(void *argument) {
    struct part *part = argument;
    int64_t begin = now_ns(CLOCK_MONOTONIC);
    pthread_setname_np(pthread_self(), part->name);
    part->tid = gettid();
    part->run();
    part->ran_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    part->lived_ns = now_ns(CLOCK_MONOTONIC) - begin;
    return NULL;
}

int main(int count, char **words) {
    if (count < 3 || count > 60) {
        fprintf(stderr, "import-agreement ROUNDS FILE...\n");
        return 2;
    }
    rounds = atoi(words[1]);
    files = words + 2;
    char go;
    if (read(STDIN_FILENO, &go, 1) != 1) {
        return 1;
    }
    struct part parts[] = {
        {.name = "worker", .run = work},
        {.name = "reader", .run = read_files},
        {.name = "long-sleeper", .run = sleep_long},
        {.name = "short-sleeper", .run = sleep_short},
        {.name = "handed", .run = be_handed},
    };
    enum { PARTS = sizeof parts / sizeof *parts };
    for (int at = 0; at < PARTS; at++) {
        if (pthread_create(&parts[at].thread, NULL, run, &parts[at]) != 0) {
            return 1;
        }
    }
    for (int at = 0; at < PARTS; at++) {
        pthread_join(parts[at].thread, NULL);
    }
    printf("{\"pid\": %d, \"functions\": {", getpid());
    for (int at = 0; at < FUNCTIONS; at++) {
        printf("%s\"%s\": %lld", at ? ", " : "", names[at], (long long)spent_ns[at]);
    }
    printf("}, \"files\": {");
    for (int at = 0; files[at]; at++) {
        struct stat file = {0};
        stat(files[at], &file);
        printf("%s\"%s\": {\"inode\": %llu, \"size\": %lld, \"read\": %lld}", at ? ", " : "", files[at], (unsigned long long)file.st_ino,
               (long long)file.st_size, (long long)bytes_read[at]);
    }
    printf("}, \"threads\": {");
    for (int at = 0; at < PARTS; at++) {
        printf("%s\"%s\": {\"tid\": %d, \"lived\": %lld, \"ran\": %lld}", at ? ", " : "", parts[at].name, parts[at].tid,
               (long long)parts[at].lived_ns, (long long)parts[at].ran_ns);
    }
    printf("}}\n");
    return 0;
}
