/* worker MS NUMBER: takes MS of CPU time for a sum that depends on NUMBER, and opens /etc/hostname then, as a program that writes a log
 * opens the time zone. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double cpu_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

int main(int count, char **words) {
    if (count != 3) {
        fprintf(stderr, "usage: worker MS NUMBER\n");
        return 2;
    }
    double until = cpu_ms() + atof(words[1]);
    volatile unsigned long sum = strtoul(words[2], NULL, 10);
    while (cpu_ms() < until)
        for (int one = 0; one < 10000; one++)
            sum = sum * 31 + one;
    int file = open("/etc/hostname", O_RDONLY);
    if (file >= 0)
        close(file);
    return 0;
}
