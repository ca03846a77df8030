#include "table.h"

#include <stdlib.h>

enum { LIMIT = 8000000 };

static unsigned *primes;
static unsigned count;

void table_build(void) {
    char *composite = calloc(LIMIT, 1);
    primes = malloc(sizeof *primes * (LIMIT / 10));
    if (!composite || !primes) abort();
    for (unsigned n = 2; n < LIMIT; ++n) {
        if (composite[n]) continue;
        primes[count++] = n;
        for (unsigned long m = (unsigned long)n * n; m < LIMIT; m += n) composite[m] = 1;
    }
    free(composite);
}

unsigned table_nth(unsigned n) { return n < count ? primes[n] : 0; }
