// A wrapper: sets parts of its own execution context, each as its word says, and executes the command that follows.
//
//   in-context [STEP...] -- COMMAND [ARGUMENT...]
//
// Everything is done by system calls in one process, so that two contexts take the same time to be made. Steps, in their order:
//   env=NAME=VALUE  unset=NAME  umask=OCTAL  cwd=DIRECTORY  oom=ADJUSTMENT  limit=NAME:SOFT  groups=[GROUP,...]  user=UID
//   nice=N  policy=other|batch|idle|fifo:PRIORITY  affinity=PROCESSOR  slack=NANOSECONDS  ioprio=CLASS:LEVEL  thp=off
//   session         a session of its own, and with it an autogroup
//   group=DIRECTORY joins a control group
//   filters=N       N system call filters that look at arguments and allow everything
//   traced          another process stops it at each system call, until it ends
//   no-new-privs  bounding=-CAPABILITY  uts (a UTS namespace of its own)
//   bound           SIGTERM when the parent ends
// A step that fails ends it with 97.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/ioprio.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED = 97, CHECKS = 24, GROUPS = 32 };

static void ensure(int done, const char *step)
{
    if (done)
        return;
    fprintf(stderr, "in-context: %s: %s\n", step, strerror(errno));
    exit(FAILED);
}

static int written(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = (ssize_t)strlen(text);
    int whole = write(file, text, (size_t)length) == length;
    close(file);
    return whole;
}

static int limited(const char *text)
{
    static const struct { const char *name; int number; } KNOWN[] = {
        { "nofile", RLIMIT_NOFILE }, { "core", RLIMIT_CORE }, { "sigpending", RLIMIT_SIGPENDING },
        { "msgqueue", RLIMIT_MSGQUEUE }, { "memlock", RLIMIT_MEMLOCK }, { "locks", RLIMIT_LOCKS },
    };
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        size_t length = strlen(KNOWN[i].name);
        if (strncmp(text, KNOWN[i].name, length) || text[length] != ':')
            continue;
        struct rlimit limit;
        if (getrlimit(KNOWN[i].number, &limit))
            return 0;
        limit.rlim_cur = strtoull(text + length + 1, NULL, 10);
        if (limit.rlim_cur > limit.rlim_max)
            limit.rlim_max = limit.rlim_cur;
        return !setrlimit(KNOWN[i].number, &limit);
    }
    errno = EINVAL;
    return 0;
}

static int grouped(const char *text)
{
    gid_t list[GROUPS];
    size_t count = 0;
    for (char *end; *text && count < GROUPS; text = *end ? end + 1 : end)
        list[count++] = (gid_t)strtoul(text, &end, 10);
    return !setgroups(count, list);
}

static int scheduled(const char *policy)
{
    struct sched_param priority = { 0 };
    if (!strcmp(policy, "other"))
        return !sched_setscheduler(0, SCHED_OTHER, &priority);
    if (!strcmp(policy, "batch"))
        return !sched_setscheduler(0, SCHED_BATCH, &priority);
    if (!strcmp(policy, "idle"))
        return !sched_setscheduler(0, SCHED_IDLE, &priority);
    if (!strncmp(policy, "fifo:", 5)) {
        priority.sched_priority = atoi(policy + 5);
        return !sched_setscheduler(0, SCHED_FIFO, &priority);
    }
    errno = EINVAL;
    return 0;
}

static int pinned(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return !sched_setaffinity(0, sizeof set, &set);
}

static int prioritized(const char *text)
{
    int class = atoi(text);
    const char *colon = strchr(text, ':');
    int level = colon ? atoi(colon + 1) : 0;
    return !syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, class << IOPRIO_CLASS_SHIFT | level);
}

// Filters that only look at the number of a call are decided once for each number by newer kernels; arguments must be looked at.
static int filtered(long count)
{
    struct sock_filter code[2 * CHECKS + 2];
    unsigned at = 0;
    for (unsigned i = 0; i < CHECKS; i++) {
        unsigned offset = (unsigned)offsetof(struct seccomp_data, args) + i % 6 * 8;
        unsigned to_the_end = 2 * (CHECKS - 1 - i) + 1;
        code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xdead0000u + i, (unsigned char)to_the_end, 0);
    }
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = { .len = (unsigned short)at, .filter = code };
    for (long i = 0; i < count; i++)
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
            return 0;
    return 1;
}

// Lets the thread go on from stop to stop until it has ended.
static void trace(pid_t pid)
{
    int status;
    while (waitpid(-1, &status, __WALL) > 0) {
        if (WIFEXITED(status) || WIFSIGNALED(status))
            return;
        int number = WSTOPSIG(status);
        int of_tracing = number == (SIGTRAP | 0x80) || status >> 16;
        if (ptrace(PTRACE_SYSCALL, pid, 0, of_tracing ? 0 : number))
            return;
    }
}

// A tracer that is no child: whoever waits for children does not meet it.
static int traced(void)
{
    pid_t pid = getpid();
    int ready[2];
    if (pipe2(ready, O_CLOEXEC))
        return 0;
    pid_t child = fork();
    if (child < 0)
        return 0;
    if (!child) {
        if (fork())
            _exit(0);
        int nothing = open("/dev/null", O_RDWR);
        for (int i = 0; i < 3; i++)
            dup2(nothing, i);
        int status;
        int seized = !ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC) &&
                     !ptrace(PTRACE_INTERRUPT, pid, 0, 0) && waitpid(pid, &status, __WALL) == pid &&
                     !ptrace(PTRACE_SYSCALL, pid, 0, 0);
        if (!seized || write(ready[1], "", 1) != 1)
            _exit(FAILED);
        for (int i = 3; i < 1024; i++)
            close(i);
        trace(pid);
        _exit(0);
    }
    close(ready[1]);
    waitpid(child, NULL, 0);
    char byte;
    int is_ready = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    errno = EPERM;
    return is_ready;
}

static int is_bound(void)
{
    pid_t parent = getppid();
    return !prctl(PR_SET_PDEATHSIG, SIGTERM) && getppid() == parent;
}

// What follows the name of the step; null: another step.
static const char *of(const char *word, const char *name)
{
    size_t length = strlen(name);
    return strncmp(word, name, length) ? NULL : word + length;
}

static int joined(const char *directory)
{
    char path[4096];
    return snprintf(path, sizeof path, "%s/cgroup.procs", directory) < (int)sizeof path && written(path, "0");
}

static int applied(char *step)
{
    const char *value;
    if (of(step, "env="))
        return !putenv(step + 4);
    if ((value = of(step, "unset=")))
        return !unsetenv(value);
    if ((value = of(step, "umask=")))
        return umask((mode_t)strtoul(value, NULL, 8)) <= 0777;
    if ((value = of(step, "cwd=")))
        return !chdir(value);
    if ((value = of(step, "oom=")))
        return written("/proc/self/oom_score_adj", value);
    if ((value = of(step, "limit=")))
        return limited(value);
    if ((value = of(step, "groups=")))
        return grouped(value);
    if ((value = of(step, "user="))) {
        uid_t user = (uid_t)strtoul(value, NULL, 10);
        return !setresgid(user, user, user) && !setresuid(user, user, user);
    }
    if ((value = of(step, "nice=")))
        return !setpriority(PRIO_PROCESS, 0, atoi(value));
    if ((value = of(step, "policy=")))
        return scheduled(value);
    if ((value = of(step, "affinity=")))
        return pinned(atoi(value));
    if ((value = of(step, "slack=")))
        return !prctl(PR_SET_TIMERSLACK, strtoul(value, NULL, 10));
    if ((value = of(step, "ioprio=")))
        return prioritized(value);
    if ((value = of(step, "filters=")))
        return filtered(atol(value));
    if ((value = of(step, "group=")))
        return joined(value);
    if ((value = of(step, "bounding=-")))
        return !prctl(PR_CAPBSET_DROP, strtoul(value, NULL, 10));
    if (!strcmp(step, "thp=off"))
        return !prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    if (!strcmp(step, "session"))
        return setsid() > 0 || getsid(0) == getpid();
    if (!strcmp(step, "traced"))
        return traced();
    if (!strcmp(step, "no-new-privs"))
        return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!strcmp(step, "uts"))
        return !unshare(CLONE_NEWUTS);
    if (!strcmp(step, "bound"))
        return is_bound();
    errno = EINVAL;
    return 0;
}

int main(int count, char **words)
{
    int at = 1;
    for (; at < count && strcmp(words[at], "--"); at++)
        ensure(applied(words[at]), words[at]);
    if (at + 1 >= count) {
        fprintf(stderr, "in-context [STEP...] -- COMMAND [ARGUMENT...]\n");
        return FAILED;
    }
    execvp(words[at + 1], words + at + 1);
    ensure(0, words[at + 1]);
}
