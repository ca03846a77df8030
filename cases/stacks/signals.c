/* Handlers of signals, on the normal and on an alternate stack: sent by itself, by a fault, by a timer at any moment. */
#define _GNU_SOURCE
#include "shadow.h"
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf out;
static char *forbidden;
static volatile sig_atomic_t came;
static volatile long sum;

OWN void truth_in_handler(void)
{
	ACTIVE("truth_in_handler");
	TOUCH();
}

OWN void truth_inner_handler(int signal)
{
	(void)signal;
	ACTIVE("truth_inner_handler");
	TOUCH();
	truth_in_handler();
}

OWN void truth_handler(int signal)
{
	(void)signal;
	ACTIVE("truth_handler");
	TOUCH();
	truth_in_handler();
	raise(SIGUSR2);
	TOUCH();
}

OWN void truth_fault_handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	ACTIVE("truth_fault_handler");
	TOUCH();
	truth_in_handler();
	mprotect(forbidden, 4096, PROT_READ | PROT_WRITE);
}

OWN void truth_jumping_handler(int signal)
{
	ACTIVE("truth_jumping_handler");
	truth_in_handler();
	siglongjmp(out, signal);
}

OWN void truth_timer_handler(int signal)
{
	(void)signal;
	ACTIVE("~");
	{
		ACTIVE("truth_timer_handler");
		TOUCH();
		truth_in_handler();
		came++;
	}
}

/* The handler interrupts the first instruction that uses the stack or none. */
OWN void truth_stores(volatile char *at)
{
	*at = 1;
}

OWN void truth_faults(int depth)
{
	ACTIVE("truth_faults");
	if (depth) {
		truth_faults(depth - 1);
	} else {
		mprotect(forbidden, 4096, PROT_NONE);
		*(volatile char *)forbidden = 1;
		TOUCH();
		mprotect(forbidden, 4096, PROT_NONE);
		shadow_enter("truth_stores");
		truth_stores(forbidden);
		RETURNED();
	}
	TOUCH();
}

OWN void truth_raises(int depth)
{
	ACTIVE("truth_raises");
	if (depth)
		truth_raises(depth - 1);
	else
		raise(SIGUSR1);
	TOUCH();
}

OWN void truth_jumps(void)
{
	ACTIVE("truth_jumps");
	if (sigsetjmp(out, 1) == 0)
		raise(SIGTERM);
	RETURNED();
	TOUCH();
}

OWN long truth_small(long value)
{
	ACTIVE("truth_small");
	return value * 7 + 1;
}

OWN long truth_works(int depth, long value)
{
	ACTIVE("truth_works");
	long result = depth ? truth_works(depth - 1, value + 1) : value;
	return result + truth_small(value);
}

OWN void truth_is_interrupted(int times)
{
	ACTIVE("truth_is_interrupted");
	struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	came = 0;
	setitimer(ITIMER_REAL, &often, 0);
	while (came < times)
		sum += truth_works(8, sum);
	setitimer(ITIMER_REAL, &never, 0);
	TOUCH();
}

static void handle(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	sigaction(signal, &action, 0);
}

OWN void truth_main(int flags)
{
	ACTIVE("truth_main");
	handle(SIGUSR1, truth_handler, flags);
	handle(SIGUSR2, truth_inner_handler, flags);
	handle(SIGTERM, truth_jumping_handler, flags);
	handle(SIGALRM, truth_timer_handler, flags | SA_RESTART);
	struct sigaction fault = {.sa_sigaction = truth_fault_handler, .sa_flags = flags | SA_SIGINFO};
	sigaction(SIGSEGV, &fault, 0);
	for (int i = 0; i < 20; i++) {
		truth_raises(3);
		truth_faults(2);
		truth_jumps();
	}
	truth_is_interrupted(150);
}

int main(int count, char **arguments)
{
	(void)count;
	shadow_begin(arguments[1], 0);
	forbidden = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t alternate = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	sigaltstack(&alternate, 0);
	truth_main(0);
	truth_main(SA_ONSTACK);
	shadow_end();
}
