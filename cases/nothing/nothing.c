// Works for as long as it is told to, on a few numbers, and loses nothing: it is one file without libraries, asks for no memory and
// waits for nobody.
//
//   nothing MS
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_ms(void)
{
	struct timespec used;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * 1e3 + used.tv_nsec / 1e6;
}

int main(int count, char **words)
{
	if (count != 2) {
		fprintf(stderr, "nothing MS\n");
		return 2;
	}
	unsigned long sum = 1;
	for (double until = cpu_ms() + atof(words[1]); cpu_ms() < until;)
		for (int number = 0; number < 20000; number++)
			sum = sum * 6364136223846793005UL + 1442695040888963407UL;
	printf("sum=%lu cpu_ms=%.3f\n", sum % 10, cpu_ms());
	return 0;
}
