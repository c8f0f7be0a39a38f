// SPDX-License-Identifier: MIT
#include "base/later.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
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

/* A pipe or a terminal that stayed open would never end for its reader. */
static void close_files(void)
{
	long limit = sysconf(_SC_OPEN_MAX);

	for (int fd = 0; fd < limit && fd < 65536; fd++) {
		char link[32], name[16] = "";

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (readlink(link, name, sizeof(name) - 1) > 0 && strncmp(name, "anon_inode:", 11))
			close(fd);
	}
}

void close_events_at_leisure(void)
{
	pid_t parent = getpid();

	if (fork() != 0)
		return; /* without a child they are closed here */
	setsid();
	close_files();
	/* sent when the parent's own descriptors are closed already */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}
