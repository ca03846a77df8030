/* Preload once, fork isolated children in milliseconds: a program that serves children, and a program that asks for them.
 *
 * Link with -lslowpath_zygote_c. Documentation: docs/zygote.md. */
#ifndef SLOWPATH_ZYGOTE_H
#define SLOWPATH_ZYGOTE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the functions return. Of all but 0, *error says why. */
#define SLOWPATH_ZYGOTE_FINE 0
#define SLOWPATH_ZYGOTE_WRONG 2  /* an argument, or the policy */
#define SLOWPATH_ZYGOTE_CANNOT 3 /* the zygote refuses, or this machine cannot */

/* What a child is given. All of it belongs to the library and lives as long as the child. */
struct slowpath_zygote_child {
    size_t argument_count;
    const char *const *arguments; /* argument_count of them, and a NULL */
    size_t variable_count;
    const char *const *variables; /* NAME=VALUE, set in the environment already; and a NULL */
    const unsigned char *seed;    /* 32 bytes of this child alone: what was drawn before the fork is the same in all */
};

/* What a zygote's children do. The hooks may be NULL; they run around each fork with the zygote's rights. run has the
 * child's rights; its value is the exit code. The child then leaves by _exit, with its streams flushed. */
struct slowpath_zygote_program {
    int (*run)(const struct slowpath_zygote_child *child, void *data);
    void (*before_fork)(void *data);
    void (*after_fork_in_zygote)(void *data);
    void (*after_fork_in_child)(void *data);
    void *data;
};

/* Serves until SIGTERM or SIGINT, or until the policy ends it; returns in the zygote alone.
 *
 * socket   path to listen at; NULL takes the socket that a service manager or slowpath zygote serve hands over.
 * policy   text of a policy (TOML, docs/zygote.md); NULL takes the one that comes with the socket, or the default.
 * program  what children do; run must not be NULL. A function that returns by longjmp or throws is undefined.
 * error    gets one line of words, or NULL; may be NULL.
 *
 * The process must have one thread whenever it forks, which is checked, and nobody in it may wait for any child
 * (waitpid(-1)). SIGTERM, SIGINT and SIGHUP are blocked meanwhile. Children end with the zygote, and descriptors that a
 * child was not given are closed in it. */
int slowpath_zygote_serve(const char *socket, const char *policy, const struct slowpath_zygote_program *program, char **error);

/* The child has the uid and gid of the request, and no supplementary groups. */
#define SLOWPATH_ZYGOTE_IDENTITY 1u
/* The filter is installed with the flag that lets the kernel keep speculation (SECCOMP_FILTER_FLAG_SPEC_ALLOW). */
#define SLOWPATH_ZYGOTE_ALLOW_SPECULATION 2u

/* The zygote may also be the user's of zygote_uid; without it, root's or the caller's own alone. */
#define SLOWPATH_ZYGOTE_OF_USER 4u

/* A child that is asked for. All zero is a child without arguments. */
struct slowpath_zygote_request {
    const char *const *arguments; /* up to a NULL; may be NULL. The first is the name that the child gets */
    const char *const *variables; /* NAME=VALUE up to a NULL, set over the zygote's environment; may be NULL */
    const char *namespaces;       /* mount,network,ipc,uts,cgroup,pid,user, separated by commas; may be NULL */
    const void *filter;           /* struct sock_filter after another, or NULL */
    size_t filter_length;         /* bytes of it */
    unsigned int flags;           /* 0 or SLOWPATH_ZYGOTE_IDENTITY | SLOWPATH_ZYGOTE_ALLOW_SPECULATION | SLOWPATH_ZYGOTE_OF_USER */
    unsigned int uid, gid;        /* with SLOWPATH_ZYGOTE_IDENTITY */
    size_t descriptor_count;      /* at most 64 */
    const int *descriptors;       /* of this process; copies are handed over */
    const unsigned int *numbers;  /* what each is in the child, at most 255; 0, 1, 2 that are not named are /dev/null */
    unsigned int zygote_uid;      /* with SLOWPATH_ZYGOTE_OF_USER */
};

/* A child that began its work. It ends when it is closed, or with this process. */
struct slowpath_zygote_process;

/* Asks the zygote at a path for a child, and waits until it begins its work. *child gets it, or NULL. */
int slowpath_zygote_spawn(const char *socket, const struct slowpath_zygote_request *request, struct slowpath_zygote_process **child, char **error);

/* Waits until it ends. *status is as waitpid(2) has it. May be called once; again it is SLOWPATH_ZYGOTE_CANNOT. */
int slowpath_zygote_wait(struct slowpath_zygote_process *child, int *status, char **error);

/* Has the zygote send it a signal. */
int slowpath_zygote_signal(struct slowpath_zygote_process *child, int signal);

/* Its process id in the zygote's pid namespace. */
int slowpath_zygote_pid(const struct slowpath_zygote_process *child);

/* A descriptor that is readable when it has ended, for poll(2). It belongs to the child. */
int slowpath_zygote_descriptor(const struct slowpath_zygote_process *child);

/* Ends it, if it has not ended, and frees it. NULL is allowed. */
void slowpath_zygote_close(struct slowpath_zygote_process *child);

/* Frees what *error was set to. NULL is allowed. */
void slowpath_zygote_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
