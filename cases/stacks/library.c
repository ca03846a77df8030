/* A library: linked, or opened at run time. Calls come back into the program. */
#define _GNU_SOURCE
#include "shadow.h"

OWN void truth_library_leaf(void)
{
	ACTIVE("truth_library_leaf");
	TOUCH();
}

OWN void truth_library_call(int depth, void (*back)(void))
{
	ACTIVE("truth_library_call");
	if (depth)
		truth_library_call(depth - 1, back);
	else
		back();
	truth_library_leaf();
	TOUCH();
}

#ifdef LAZY
static OWN int chosen(void)
{
	return 42;
}

/* The dynamic loader calls it at the first call of the function that it chooses, from within its own trampoline. */
__attribute__((used)) static int (*truth_chooses(void))(void)
{
	ACTIVE("truth_chooses");
	TOUCH();
	truth_library_leaf();
	return chosen;
}
int library_chosen(void) __attribute__((ifunc("truth_chooses")));
#endif

#ifdef OPENED
__attribute__((constructor)) OWN void truth_constructor(void)
{
	ACTIVE("truth_constructor");
	truth_library_leaf();
}
#endif
