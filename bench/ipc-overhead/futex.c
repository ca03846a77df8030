// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Round trips of 4 bytes through shared memory with a futex each way, as bare as C allows; prints ns a round trip:
 *
 *     futex TIMES
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct mailbox {
	_Alignas(64) uint32_t requests;
	_Alignas(64) uint32_t replies;
	_Alignas(64) char request[64];
	_Alignas(64) char reply[64];
};

static void signal_word(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1);
}

static void wait_word(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		syscall(SYS_futex, word, FUTEX_WAIT, value, NULL);
}

int main(int argc, char **argv)
{
	uint32_t times = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 100000;
	struct mailbox *box = mmap(NULL, sizeof *box, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct timespec from, to;
	char bytes[4] = "ipc";

	if (box == MAP_FAILED)
		return 1;
	pid_t server = fork();
	if (server < 0)
		return 1;
	if (server == 0) {
		char copy[4];
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (uint32_t turn = 0;; turn++) {
			wait_word(&box->requests, turn);
			memcpy(copy, box->request, sizeof copy);
			memcpy(box->reply, copy, sizeof copy);
			signal_word(&box->replies, turn + 1);
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (uint32_t turn = 0; turn < times; turn++) {
		memcpy(box->request, bytes, sizeof bytes);
		signal_word(&box->requests, turn + 1);
		wait_word(&box->replies, turn);
		memcpy(bytes, box->reply, sizeof bytes);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	printf("%.1f\n", ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / times);
	return 0;
}
