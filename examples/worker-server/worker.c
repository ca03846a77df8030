/* Answers one request: worker N. */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    table_build();
    printf("%s: %u\n", argv[1], table_nth((unsigned)atoi(argv[1]) * 1000));
    return 0;
}
