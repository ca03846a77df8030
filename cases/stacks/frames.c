/* Frames of many shapes: recursion, memory of a size known at run time, realigned and large frames, tail calls, longjmp. */
#define _GNU_SOURCE
#include "shadow.h"
#include <alloca.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 10
static jmp_buf out;

static void uses(void *memory)
{
	__asm__ volatile("" ::"r"(memory) : "memory");
}

OWN void truth_leaf(void)
{
	ACTIVE("truth_leaf");
	TOUCH();
}

/* No frame at all; logged by its caller. */
OWN void truth_bare(volatile char *page)
{
	*page = 1;
}

/* Registers are saved before the page is touched. */
OWN long truth_saves(volatile char *page, long a, long b)
{
	long c = a * b, d = a ^ b;
	*page = 1;
	__asm__ volatile("" : "+r"(c), "+r"(d)::"rbx", "r12", "r13", "r14", "memory");
	return c + d;
}

OWN void truth_bares(void)
{
	ACTIVE("truth_bares");
	truth_bare(shadow_note_for("truth_bare"));
	truth_saves(shadow_note_for("truth_saves"), 3, 4);
	shadow_touch_by_read();
}

OWN long truth_recursion(int depth)
{
	ACTIVE("truth_recursion");
	TOUCH();
	long sum = depth ? truth_recursion(depth - 1) : 1;
	TOUCH();
	return sum + depth;
}

OWN void truth_odd(int depth);

OWN void truth_even(int depth)
{
	ACTIVE("truth_even");
	if (depth)
		truth_odd(depth - 1);
	TOUCH();
}

OWN void truth_odd(int depth)
{
	ACTIVE("truth_odd");
	char room[depth * 40 + 8];
	uses(room);
	if (depth)
		truth_even(depth - 1);
	TOUCH();
}

OWN void truth_alloca(size_t size)
{
	ACTIVE("truth_alloca");
	char *memory = alloca(size);
	memset(memory, 1, size);
	uses(memory);
	TOUCH();
	memory = alloca(2 * size);
	uses(memory);
	truth_leaf();
	TOUCH();
}

OWN void truth_array(int size)
{
	ACTIVE("truth_array");
	for (int i = 1; i < 3; i++) {
		long array[size * i];
		array[0] = i;
		uses(array);
		TOUCH();
		truth_leaf();
	}
}

OWN void truth_aligned(void)
{
	ACTIVE("truth_aligned");
	double values[8] __attribute__((aligned(32)));
	uses(values);
	TOUCH();
	truth_leaf();
}

/* A realigned frame of unknown size: its end is found through memory. */
OWN void truth_aligned_array(int size)
{
	ACTIVE("truth_aligned_array");
	char values[64] __attribute__((aligned(64))), array[size];
	uses(values);
	uses(array);
	TOUCH();
	truth_leaf();
	truth_bares();
}

/* Its arguments on the stack are found from the caller's frame, although its own is realigned. */
OWN long truth_aligned_many(long a, long b, long c, long d, long e, long f, long g, long h, int size)
{
	ACTIVE("truth_aligned_many");
	char values[64] __attribute__((aligned(128))), array[size];
	uses(values);
	uses(array);
	TOUCH();
	truth_leaf();
	return a + b + c + d + e + f + g + h;
}

OWN void truth_arguments(int size)
{
	ACTIVE("truth_arguments");
	TOUCH();
	truth_aligned_many(1, 2, 3, 4, 5, 6, 7, 8, size);
}

OWN void truth_large(void)
{
	ACTIVE("truth_large");
	char room[200000];
	uses(room);
	TOUCH();
	truth_leaf();
}

OWN int truth_tail_end(int value)
{
	ACTIVE("truth_tail_end");
	TOUCH();
	truth_leaf();
	return value;
}

/* Where the compiler makes a jump of the last call, the caller has gone. */
#ifdef TAIL_CALLS
#define LAST()
#else
#define LAST() ACTIVE("truth_tail")
#endif

OWN int truth_tail(int value)
{
	{
		ACTIVE("truth_tail");
		TOUCH();
		truth_leaf();
	}
	LAST();
#if defined(TAIL_CALLS)
	TAIL_CALL
#endif
	return truth_tail_end(value + 1);
}

OWN int truth_calls_tail(int value)
{
	ACTIVE("truth_calls_tail");
	int result = truth_tail(value);
	TOUCH();
	return result + 1;
}

__attribute__((noreturn)) OWN void truth_leaves(int depth)
{
	ACTIVE("truth_leaves");
	TOUCH();
	longjmp(out, depth);
}

/* Its last instruction is the call, so the address after it is in another function. */
__attribute__((noreturn)) OWN void truth_never_returns(int depth)
{
	ACTIVE("truth_never_returns");
	truth_leaves(depth);
}

OWN void truth_deep(int depth)
{
	ACTIVE("truth_deep");
	if (!depth)
		truth_never_returns(7);
	truth_deep(depth - 1);
	TOUCH();
}

OWN void truth_jumps(void)
{
	ACTIVE("truth_jumps");
	if (setjmp(out) == 0)
		truth_deep(5);
	RETURNED();
	TOUCH();
	truth_leaf();
}

OWN int truth_compares(const void *one, const void *two)
{
	ACTIVE("truth_compares");
	TOUCH();
	return *(const int *)one - *(const int *)two;
}

OWN void truth_sorts(void)
{
	ACTIVE("truth_sorts");
	int numbers[8] = {5, 3, 8, 1, 7, 2, 6, 4};
	qsort(numbers, 8, sizeof(int), truth_compares);
	TOUCH();
}

OWN void truth_round(int round)
{
	ACTIVE("truth_round");
	truth_bares();
	truth_recursion(20);
	truth_even(9);
	truth_alloca(100 + round * 1000);
	truth_array(10 + round);
	truth_aligned();
	truth_aligned_array(20 + round * 8);
	truth_arguments(20 + round * 8);
	truth_large();
	truth_calls_tail(round);
	truth_jumps();
	truth_sorts();
}

OWN void truth_main(void)
{
	ACTIVE("truth_main");
	for (int round = 0; round < ROUNDS; round++)
		truth_round(round);
	truth_recursion(100);
}

int main(int count, char **arguments)
{
	(void)count;
	shadow_begin(arguments[1], 0);
	truth_main();
	shadow_end();
}
