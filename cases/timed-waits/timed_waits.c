// Waits for a clock before it is done, and near misses.
//
//   timed-waits lookup RESOLV_CONF   looks a name up, and the name server never answers: one time-out, as RESOLV_CONF says
//   timed-waits sleep MS             sleeps before it works
//   timed-waits lock MS              waits that long for a lock that nobody gives back
//   timed-waits paced FRAMES         sleeps 20 ms between frames, as it means to
//   timed-waits beside MS            another thread sleeps; the first works for longer and waits for nothing
//
// `lookup` asks a real server: a UDP socket that takes questions, on loopback of a network namespace of its own, with RESOLV_CONF over
// /etc/resolv.conf in a mount namespace of its own. Nothing of the machine changes. Prints `waited_ms=`, what the clock says of the wait.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
enum { WORK_MS = 20, FRAME_MS = 20, DNS_PORT = 53 };

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double ms_of(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static struct timespec length(long ms)
{
	return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
}

// CPU time of the calling thread.
APART void work(long ms)
{
	volatile unsigned long sum = 0;
	for (double until = ms_of(CLOCK_THREAD_CPUTIME_ID) + ms; ms_of(CLOCK_THREAD_CPUTIME_ID) < until;)
		for (int number = 0; number < 20000; number++)
			sum += number;
}

APART void sleep_before_work(long ms)
{
	struct timespec left = length(ms);
	nanosleep(&left, NULL);
}

APART void wait_for_lock(long ms)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct timespec until;
	pthread_mutex_lock(&lock);
	clock_gettime(CLOCK_REALTIME, &until);
	struct timespec more = length(ms);
	until.tv_sec += more.tv_sec + (until.tv_nsec + more.tv_nsec) / 1000000000;
	until.tv_nsec = (until.tv_nsec + more.tv_nsec) % 1000000000;
	pthread_mutex_timedlock(&lock, &until);
}

// A name server that never answers: its socket is bound, so that questions are not refused.
static int silent_server(const char *resolv_conf)
{
	int own_user = geteuid() == 0 ? 0 : CLONE_NEWUSER;
	if (unshare(CLONE_NEWNS | CLONE_NEWNET | own_user) != 0)
		fail("unshare");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		fail("private mounts");
	if (mount(resolv_conf, "/etc/resolv.conf", NULL, MS_BIND, NULL) != 0)
		fail("mount of resolv.conf");
	int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq loopback = {.ifr_flags = IFF_UP | IFF_RUNNING};
	strcpy(loopback.ifr_name, "lo");
	if (server < 0 || ioctl(server, SIOCSIFFLAGS, &loopback) != 0)
		fail("loopback");
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(DNS_PORT), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	if (bind(server, (struct sockaddr *)&at, sizeof at) != 0)
		fail("bind");
	return server;
}

APART void look_up(void)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
	// The dot at the end: no list of domains is searched.
	if (getaddrinfo("host.invalid.", "80", &hints, &found) == 0)
		freeaddrinfo(found);
}

static void *sleeps(void *ms)
{
	sleep_before_work(*(long *)ms);
	return NULL;
}

APART void work_beside(long ms)
{
	pthread_t other;
	if (pthread_create(&other, NULL, sleeps, &ms) != 0)
		fail("pthread_create");
	for (double until = ms_of(CLOCK_MONOTONIC) + 2 * ms; ms_of(CLOCK_MONOTONIC) < until;)
		work(1);
	pthread_join(other, NULL);
}

int main(int count, char **words)
{
	if (count != 3) {
		fprintf(stderr, "timed-waits lookup RESOLV_CONF | sleep MS | lock MS | paced FRAMES | beside MS\n");
		return 2;
	}
	const char *mode = words[1];
	long number = atol(words[2]);
	int server = strcmp(mode, "lookup") == 0 ? silent_server(words[2]) : -1;
	double began = ms_of(CLOCK_MONOTONIC);
	if (server >= 0) {
		look_up();
	} else if (strcmp(mode, "sleep") == 0) {
		sleep_before_work(number);
	} else if (strcmp(mode, "lock") == 0) {
		wait_for_lock(number);
	} else if (strcmp(mode, "paced") == 0) {
		for (long frame = 0; frame < number; frame++) {
			work(2);
			sleep_before_work(FRAME_MS);
		}
	} else if (strcmp(mode, "beside") == 0) {
		work_beside(number);
	} else {
		return 2;
	}
	printf("waited_ms=%.3f\n", ms_of(CLOCK_MONOTONIC) - began);
	work(WORK_MS);
	return 0;
}
