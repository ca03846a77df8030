// A library to be preloaded, as one that looks for errors in the use of memory: fills each block when it is allocated, and all of it
// again before it is given back.

#include <malloc.h>
#include <stddef.h>
#include <string.h>

// Those of the C library behind the ones that stand here (malloc/malloc.c).
extern void *__libc_malloc(size_t size);
extern void __libc_free(void *block);

enum { FRESH = 0xa5, GONE = 0x5a };

void *malloc(size_t size)
{
    void *block = __libc_malloc(size);
    if (block)
        memset(block, FRESH, size);
    return block;
}

void free(void *block)
{
    if (!block)
        return;
    memset(block, GONE, malloc_usable_size(block));
    __libc_free(block);
}
