// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A target that is ready with its first line and then stays. */
#include <unistd.h>

int main(void)
{
	if (write(1, "ready\n", 6) != 6)
		return 1;
	for (;;)
		pause();
}
