// Processes whose threads all end in the same moment.
//
//   threads THREADS PROCESSES     each process, one after the other, starts so many threads and ends with all of them
//
// Prints how many threads and processes that were, itself left out.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *wait_for_the_end(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    int threads = atoi(words[1]), processes = atoi(words[2]);
    for (int process = 0; process < processes; process++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            for (int at = 0; at < threads; at++) {
                pthread_t thread;
                if (pthread_create(&thread, NULL, wait_for_the_end, NULL))
                    _exit(1);
            }
            _exit(0);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status)
            return 1;
    }
    printf("threads=%d processes=%d\n", threads * processes, processes);
    return 0;
}
