/* Executes a worker for each request, a number on a line of standard input. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    char line[32];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) {
            execl("./worker", "worker", line, (char *)NULL);
            _exit(127);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0) return 1;
    }
    return 0;
}
