/* Calls every function that the header declares, as a product does. */
#include "slowpath_guard.h"

#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    char *lines = NULL, *error = NULL;
    unsigned int flags = count > 2 && strcmp(words[2], "repair") == 0 ? SLOWPATH_GUARD_REPAIR : 0;
    int code = slowpath_guard_check(count > 1 ? words[1] : NULL, flags, "ann", &lines, &error);
    printf("%d\n%s", code, lines ? lines : "");
    fprintf(stderr, "%s", error ? error : "");
    slowpath_guard_free(lines);
    slowpath_guard_free(error);
    slowpath_guard_free(NULL);
    return code == SLOWPATH_GUARD_WRONG && slowpath_guard_check(NULL, 0, NULL, NULL, NULL) != SLOWPATH_GUARD_WRONG;
}
