/* Makes a zygote of a program as it is, for measurements: loaded with LD_PRELOAD, it serves children where HOLDER_AT says: at `main`, when
 * everything is linked, or where the program opens that path. A child goes on from there as the program would have.
 *
 * The zygote serves on a stack of its own, so that a child can go back to where the program was. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "slowpath_zygote.h"

static ucontext_t program, zygote;
static char stack[1 << 20];
static volatile int is_child;

static int run(const struct slowpath_zygote_child *child, void *data) {
    (void)child; (void)data;
    is_child = 1;
    setcontext(&program);
    return 99;
}

static void serve(void) {
    struct slowpath_zygote_program children = {.run = run};
    char *error = NULL;
    int code = slowpath_zygote_serve(NULL, NULL, &children, &error);
    if (code) fprintf(stderr, "holder: %s\n", error ? error : "?");
    _exit(code);
}

/* Returns in children. */
static void hold(void) {
    unsetenv("LD_PRELOAD");
    unsetenv("HOLDER_AT");
    if (getcontext(&program) || is_child) return;
    getcontext(&zygote);
    zygote.uc_stack.ss_sp = stack;
    zygote.uc_stack.ss_size = sizeof stack;
    zygote.uc_link = NULL;
    makecontext(&zygote, serve, 0);
    setcontext(&zygote);
}

static int is_here(const char *path) {
    const char *at = getenv("HOLDER_AT");
    return at && path && !is_child && strcmp(at, path) == 0;
}

typedef int (*opening)(const char *, int, ...);

#define OPENS(name)                                                    \
    int name(const char *path, int flags, ...) {                       \
        static opening real;                                           \
        if (!real) real = (opening)dlsym(RTLD_NEXT, #name);            \
        va_list list;                                                  \
        va_start(list, flags);                                         \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
        va_end(list);                                                  \
        if (is_here(path)) { hold(); errno = ENOENT; return -1; }      \
        return real(path, flags, mode);                                \
    }

OPENS(open)
OPENS(open64)

typedef int (*starting)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

static int (*real_main)(int, char **, char **);

static int held_main(int count, char **words, char **variables) {
    if (is_here("main")) hold();
    return real_main(count, words, variables);
}

int __libc_start_main(int (*to)(int, char **, char **), int count, char **words, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *end) {
    starting start = (starting)dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = to;
    return start(held_main, count, words, init, fini, rtld_fini, end);
}
