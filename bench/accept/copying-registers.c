// Where the registers of a copy point to: memmove of LENGTH bytes under a timer of the process, whose handler looks at the registers of
// what it interrupted.
//
//     copying-registers LENGTH forward|back
//
// `back` copies to an overlapping place 256 bytes further, which glibc does from the end. Prints one line: interruptions in the C
// library, those in which the first and the second argument's registers (rdi and rsi) point into destination and source, those at
// `rep movs`.

#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

static const long SAMPLES = 400;
static unsigned long source, destination, length, library, library_end;
static volatile long inside, elsewhere, at_destination, at_source, repeats;

static void look(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned long ip = registers[REG_RIP];
	const unsigned char *code = (const unsigned char *)ip;
	(void)signal;
	(void)info;
	if (ip < library || ip >= library_end) {
		elsewhere++;
		return;
	}
	inside++;
	at_destination += (unsigned long)registers[REG_RDI] - destination < length;
	at_source += (unsigned long)registers[REG_RSI] - source < length;
	repeats += code[0] == 0xf3 && (((code[1] & 0xf0) == 0x40 ? code[2] : code[1]) & 0xfe) == 0xa4;
}

static void find_library(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/libc.so.6") && strstr(line, "r-xp"))
			sscanf(line, "%lx-%lx", &library, &library_end);
	if (!library_end)
		exit(2);
	fclose(maps);
}

int main(int count, char **words)
{
	if (count != 3 || (length = strtoul(words[1], NULL, 10)) == 0)
		return 2;
	int is_back = strcmp(words[2], "back") == 0;
	char *memory = malloc(2 * length + 8192);
	if (!memory)
		return 2;
	memset(memory, 1, 2 * length + 8192);
	source = (unsigned long)memory;
	destination = source + (is_back ? 256 : length + 4160);
	find_library();
	struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	void *(*volatile copy)(void *, const void *, size_t) = memmove;
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	while (inside + elsewhere < SAMPLES)
		for (int round = 0; round < (length > 1 << 20 ? 1 : 100); round++)
			copy((void *)destination, (void *)source, length);
	setitimer(ITIMER_PROF, &never, NULL);
	printf("%ld %ld %ld %ld\n", inside, at_destination, at_source, repeats);
	return 0;
}
