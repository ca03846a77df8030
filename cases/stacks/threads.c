/* Threads that touch pages at the same time, each with its own stack; one ends by pthread_exit, with a clean-up handler. */
#define _GNU_SOURCE
#include "shadow.h"
#include <pthread.h>

#define THREADS 6
#define ROUNDS 40

OWN void truth_leaf(void)
{
	ACTIVE("truth_leaf");
	TOUCH();
}

OWN void truth_down(int depth)
{
	ACTIVE("truth_down");
	if (depth)
		truth_down(depth - 1);
	else
		truth_leaf();
	shadow_touch_by_read();
}

OWN void truth_cleans(void *nothing)
{
	(void)nothing;
	ACTIVE("truth_cleans");
	TOUCH();
}

OWN void *truth_thread(void *number)
{
	ACTIVE("truth_thread");
	for (int i = 0; i < ROUNDS; i++) {
		truth_down(2 + (int)(long)number);
		TOUCH();
	}
	return 0;
}

OWN void truth_exits(void)
{
	/* The stack is unwound by force, which ends all scopes; the handler runs before that. */
	ACTIVE("truth_exits");
	pthread_cleanup_push(truth_cleans, 0);
	truth_leaf();
	pthread_exit(0);
	pthread_cleanup_pop(0);
}

OWN void *truth_exiting_thread(void *nothing)
{
	(void)nothing;
	ACTIVE("truth_exiting_thread");
	truth_exits();
	return 0;
}

OWN void truth_once(void)
{
	ACTIVE("truth_once");
	truth_leaf();
}

OWN void truth_main(void)
{
	ACTIVE("truth_main");
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_t threads[THREADS], exiting;
	pthread_create(&exiting, 0, truth_exiting_thread, 0);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, truth_thread, (void *)i);
	pthread_once(&once, truth_once);
	truth_down(4);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], 0);
	pthread_join(exiting, 0);
	TOUCH();
}

int main(int count, char **arguments)
{
	(void)count;
	shadow_begin(arguments[1], 0);
	truth_main();
	shadow_end();
}
