/* prefork CHILDREN LIBRARY...: forks CHILDREN workers, one after the other, of which each loads the LIBRARIES, as a server loads what a
 * connection needs. A library can be a plugin of it (plugin.c), which needs `prefork_loads`. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int prefork_loads;

static int work(char **libraries) {
    for (; *libraries; libraries++, prefork_loads++) {
        if (!dlopen(*libraries, RTLD_NOW)) {
            fprintf(stderr, "prefork: %s\n", dlerror());
            return 1;
        }
    }
    return 0;
}

int main(int count, char **words) {
    if (count < 3) {
        fprintf(stderr, "usage: prefork CHILDREN LIBRARY...\n");
        return 2;
    }
    for (int left = atoi(words[1]); left > 0; left--) {
        int status;
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0)
            _exit(work(words + 2));
        if (waitpid(child, &status, 0) != child || status)
            return 1;
    }
    return 0;
}
