/* A zygote and its client in one program, which calls every function that the header declares. */
#include "slowpath_zygote.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int hooks[3];

static void before(void *data) { ++((int *)data)[0]; }
static void in_zygote(void *data) { ++((int *)data)[1]; }
static void in_child(void *data) { ++((int *)data)[2]; }

static int run(const struct slowpath_zygote_child *child, void *data) {
    const int *counts = (const int *)data;
    if (child->argument_count < 2 || child->arguments[child->argument_count] || child->variables[child->variable_count])
        return 97;
    if (strcmp(child->arguments[1], "say") == 0) {
        const char *colour = getenv("COLOUR");
        printf("%s %d %d %d %d\n", colour ? colour : "none", counts[0], counts[1], counts[2], child->seed[0] | 1 ? 1 : 0);
        return 0;
    }
    if (strcmp(child->arguments[1], "sleep") == 0)
        for (;;) pause();
    return atoi(child->arguments[1]);
}

static int failed(int code, char *error) {
    printf("%d %s\n", code, error ? error : "");
    slowpath_zygote_free(error);
    return 1;
}

static int ask(const char *socket, const char *word, int then) {
    const char *const arguments[] = {"job", word, NULL};
    const char *const variables[] = {"COLOUR=blue", NULL};
    const int descriptors[] = {1};
    const unsigned int numbers[] = {1};
    struct slowpath_zygote_request request;
    struct slowpath_zygote_process *child = NULL;
    char *error = NULL;
    int status = 0, code;
    memset(&request, 0, sizeof request);
    request.arguments = arguments;
    request.variables = variables;
    request.descriptor_count = 1;
    request.descriptors = descriptors;
    request.numbers = numbers;
    fflush(stdout);
    code = slowpath_zygote_spawn(socket, &request, &child, &error);
    if (code != SLOWPATH_ZYGOTE_FINE) return failed(code, error);
    if (slowpath_zygote_pid(child) <= 0) return 90;
    if (then && slowpath_zygote_signal(child, then) != 0) return 91;
    struct pollfd ended = {slowpath_zygote_descriptor(child), POLLIN, 0};
    if (poll(&ended, 1, -1) != 1) return 92;
    code = slowpath_zygote_wait(child, &status, &error);
    if (code != SLOWPATH_ZYGOTE_FINE) return failed(code, error);
    if (WIFEXITED(status)) printf("exited %d\n", WEXITSTATUS(status));
    if (WIFSIGNALED(status)) printf("signal %d\n", WTERMSIG(status));
    slowpath_zygote_close(child);
    return 0;
}

int main(int count, char **words) {
    struct slowpath_zygote_program program = {run, before, in_zygote, in_child, hooks};
    struct slowpath_zygote_process *child = NULL;
    char *error = NULL;
    int code;
    if (count == 3 && strcmp(words[1], "serve") == 0) {
        code = slowpath_zygote_serve(words[2], NULL, &program, &error);
        return code == SLOWPATH_ZYGOTE_FINE ? 0 : failed(code, error);
    }
    if (count != 3) return 99;
    if (ask(words[2], "say", 0) || ask(words[2], "7", 0) || ask(words[2], "sleep", 9)) return 1;
    /* A mistake is an error, never a crash. */
    if (slowpath_zygote_spawn(NULL, NULL, &child, NULL) != SLOWPATH_ZYGOTE_WRONG || child) return 93;
    if (slowpath_zygote_wait(NULL, NULL, NULL) != SLOWPATH_ZYGOTE_WRONG) return 94;
    if (slowpath_zygote_serve("/none/s", NULL, NULL, NULL) != SLOWPATH_ZYGOTE_WRONG) return 95;
    slowpath_zygote_close(NULL);
    slowpath_zygote_free(NULL);
    ask("/none/s", "1", 0);
    return 0;
}
