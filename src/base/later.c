// SPDX-License-Identifier: MIT
#include "base/later.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

static void *close_main(void *fd)
{
	close((int)(intptr_t)fd);
	return NULL;
}

void close_later(int fd)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, close_main, (void *)(intptr_t)fd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r)
		close(fd);
}
