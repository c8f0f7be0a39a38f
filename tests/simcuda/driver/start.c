// SPDX-License-Identifier: MIT
#include "start.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* How often the real one looks around. */
#define EVENT_MS 100

static void *event_thread(void *data)
{
	pthread_setname_np(pthread_self(), "cuda-EvtHandlr");
	for (;;)
		poll(NULL, 0, EVENT_MS);
	return data;
}

void start_event_thread(void)
{
	const char *none = getenv("SIMCUDA_NO_EVENT_THREAD");
	if (none && *none)
		return;
	/* Signals are the program's. */
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_t thread;
	if (pthread_create(&thread, NULL, event_thread, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Until there is the file that SIMCUDA_WAIT names, for 20 seconds at most: functions are
 * diverted meanwhile. */
static void wait_for_file(void)
{
	const char *path = getenv("SIMCUDA_WAIT");

	for (int i = 0; path && i < 4000 && access(path, F_OK); i++)
		usleep(5000);
}

/* For what a driver does in cuInit before it loads what is to be injected. */
static void take_time(void)
{
	const char *ms = getenv("SIMCUDA_INIT_MS");

	if (ms)
		usleep((useconds_t)atoi(ms) * 1000);
}

void start_injection(void)
{
	static bool done;
	const char *path = getenv("CUDA_INJECTION64_PATH");
	if (!path || !*path || __atomic_exchange_n(&done, true, __ATOMIC_ACQ_REL))
		return;
	take_time();
	void *library = dlopen(path, RTLD_NOW);
	int (*initialize)(void) = NULL;
	if (library)
		initialize = (int (*)(void))dlsym(library, "InitializeInjection");
	if (!initialize)
		return;
	initialize();
	wait_for_file();
}
