// SPDX-License-Identifier: MIT
/*
 * dlopen [--blocked] [--thread] [--close] LIBRARY...: loads each one when it needs it and calls it
 * at once, as nothing before has. --blocked: with all signals blocked. --thread: in another thread.
 * --close: closes each one again, so that the next may come to lie at its address.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "sample.h"

static bool closes;

static void call_runtime(size_t bytes)
{
	void *memory;

	sample_check(
		"cudaMalloc",
		((__typeof__(&cudaMalloc))sample_symbol(runtime, "cudaMalloc"))(&memory, bytes), 0,
		NULL);
	count("calls", 1, "cudaMalloc");
	count_alloc("device", bytes);
}

/* Not by DRIVER, which remembers the function of the first library. */
static void call_driver(void)
{
	int version;

	count("calls", 1, "cuInit");
	sample_check("cuInit", ((__typeof__(&cuInit))sample_symbol(driver, "cuInit"))(0), 0, NULL);
	count("calls", 1, "cuDriverGetVersion");
	sample_check("cuDriverGetVersion",
	             ((__typeof__(&cuDriverGetVersion))sample_symbol(driver, "cuDriverGetVersion"))(
			     &version),
	             0, NULL);
}

static void use(const char *path, size_t bytes)
{
	void *library = sample_open(path);

	if (dlsym(library, "cudaMalloc")) {
		runtime = library;
		call_runtime(bytes);
	} else {
		driver = library;
		call_driver();
	}
	if (closes)
		dlclose(library);
}

static void *use_all(void *argument)
{
	char **paths = argument;

	for (size_t i = 0; paths[i]; i++)
		use(paths[i], 100 + i);
	return NULL;
}

int main(int argc, char **argv)
{
	bool in_thread = false;
	pthread_t thread;
	sigset_t all;

	for (argv++; *argv && !strncmp(*argv, "--", 2); argv++) {
		sigfillset(&all);
		if (!strcmp(*argv, "--blocked"))
			pthread_sigmask(SIG_SETMASK, &all, NULL);
		in_thread |= !strcmp(*argv, "--thread");
		closes |= !strcmp(*argv, "--close");
	}
	if (in_thread) {
		pthread_create(&thread, NULL, use_all, argv);
		pthread_join(thread, NULL);
	} else {
		use_all(argv);
	}
	return sample_end();
}
