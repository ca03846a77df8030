/* Calls of a linked library, through the procedure linkage table or past it. */
#define _GNU_SOURCE
#include "shadow.h"
#include <stdlib.h>

void truth_library_call(int depth, void (*back)(void));
void truth_library_leaf(void);
int library_chosen(void);

OWN void truth_back(void)
{
	ACTIVE("truth_back");
	TOUCH();
	truth_library_leaf();
}

OWN int truth_compares(const void *one, const void *two)
{
	ACTIVE("truth_compares");
	truth_library_leaf();
	return *(const int *)one - *(const int *)two;
}

OWN void truth_sorts(void)
{
	ACTIVE("truth_sorts");
	int numbers[6] = {5, 3, 1, 2, 6, 4};
	qsort(numbers, 6, sizeof(int), truth_compares);
}

OWN void truth_chosen(void)
{
	ACTIVE("truth_chosen");
#ifdef LAZY
	library_chosen();
#endif
	TOUCH();
}

OWN void truth_main(void)
{
	ACTIVE("truth_main");
	for (int i = 0; i < 40; i++) {
		truth_chosen();
		truth_library_call(i % 6, truth_back);
		truth_sorts();
	}
}

int main(int count, char **arguments)
{
	(void)count;
	shadow_begin(arguments[1], 0);
	truth_main();
	shadow_end();
}
