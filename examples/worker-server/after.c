/* Has a zygote's child answer each request, a number on a line of standard input. */
#include "slowpath_zygote.h"
#include "table.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(const struct slowpath_zygote_child *child, void *data) {
    (void)data;
    if (child->argument_count != 2) return 2;
    printf("%s: %u\n", child->arguments[1], table_nth((unsigned)atoi(child->arguments[1]) * 1000));
    return 0;
}

static int serve(const char *socket) {
    struct slowpath_zygote_program program = {work, NULL, NULL, NULL, NULL};
    char *error = NULL;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    table_build();
    int code = slowpath_zygote_serve(socket, NULL, &program, &error);
    if (code != 0) fprintf(stderr, "%s\n", error ? error : "");
    return code;
}

static int answer(const char *socket, const char *line) {
    const char *const arguments[] = {"worker", line, NULL};
    const int descriptors[] = {1};
    const unsigned int numbers[] = {1};
    struct slowpath_zygote_request request;
    struct slowpath_zygote_process *child = NULL;
    char *error = NULL;
    int status = 0;
    memset(&request, 0, sizeof request);
    request.arguments = arguments;
    request.descriptor_count = 1;
    request.descriptors = descriptors;
    request.numbers = numbers;
    int code = slowpath_zygote_spawn(socket, &request, &child, &error);
    if (code == 0) code = slowpath_zygote_wait(child, &status, &error);
    if (code != 0) fprintf(stderr, "%s\n", error ? error : "");
    slowpath_zygote_free(error);
    slowpath_zygote_close(child);
    return code != 0 || status != 0;
}

int main(void) {
    char line[32], place[] = "/tmp/worker-server-XXXXXX", socket[64];
    if (!mkdtemp(place)) return 1;
    snprintf(socket, sizeof socket, "%s/zygote", place);
    pid_t zygote = fork();
    if (zygote < 0) return 1;
    if (zygote == 0) return serve(socket);
    while (access(socket, F_OK) != 0) {
        if (waitpid(zygote, NULL, WNOHANG) == zygote) return 1;
        usleep(1000);
    }
    int failed = 0;
    while (!failed && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        failed = answer(socket, line);
    }
    kill(zygote, SIGTERM);
    waitpid(zygote, NULL, 0);
    rmdir(place);
    return failed;
}
