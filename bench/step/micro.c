// SPDX-License-Identifier: MIT
/*
 * Loops of single CUDA calls, in a process that has both libraries and a context: what a call costs
 * there, bare and traced. A library that model.py loads; no header of CUDA's is needed.
 *
 *   n = micro_open()    how many functions were found; the last launches a kernel that does nothing
 *   micro_name(i)       0 to n - 1
 *   micro_ns(i)         nanoseconds of one call, the mean of a loop of a few milliseconds at most
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PTX ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry microEmpty() { ret; }\n"

typedef int any_function(void *, void *, void *);
typedef int launch_function(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, void *, void **, void **);

enum argument { ANSWER, STREAM, LAUNCH };

struct loop {
	const char *name;
	int driver; /* of libcuda, not of libcudart */
	int calls;
	enum argument argument;
	any_function *function;
};

static struct loop loops[] = {
	{ "cudaGetDevice", 0, 2000, ANSWER, 0 },   { "cudaGetLastError", 0, 2000, ANSWER, 0 },
	{ "cuCtxGetCurrent", 1, 2000, ANSWER, 0 }, { "cuCtxGetDevice", 1, 2000, ANSWER, 0 },
	{ "cudaStreamQuery", 0, 1000, STREAM, 0 }, { "cuLaunchKernel", 1, 200, LAUNCH, 0 },
};
#define N_LOOPS (sizeof(loops) / sizeof(*loops))

static struct loop *found[N_LOOPS];
static int n_found;
static void *kernel;
static any_function *synchronize;

/* A library that is in the process already, by how its file's name begins. */
static void *loaded(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	void *library = NULL;

	while (maps && !library && fgets(line, sizeof(line), maps)) {
		char *path = strchr(line, '/'), *file = path ? strrchr(path, '/') + 1 : NULL;

		if (!file || strncmp(file, name, strlen(name)) != 0)
			continue;
		path[strcspn(path, "\n")] = '\0';
		library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	}
	if (maps)
		fclose(maps);
	return library;
}

static int load_kernel(void *driver)
{
	int (*load)(void **, const void *) = dlsym(driver, "cuModuleLoadData");
	int (*get)(void **, void *, const char *) = dlsym(driver, "cuModuleGetFunction");
	void *module = NULL;

	return load && get && !load(&module, PTX) && !get(&kernel, module, "microEmpty");
}

int micro_open(void)
{
	void *libraries[2] = { loaded("libcudart.so"), loaded("libcuda.so") };

	if (n_found || !libraries[0] || !libraries[1])
		return n_found;
	*(void **)&synchronize = dlsym(libraries[0], "cudaDeviceSynchronize");
	for (size_t i = 0; i < N_LOOPS; i++) {
		struct loop *loop = &loops[i];

		*(void **)&loop->function = dlsym(libraries[loop->driver], loop->name);
		if (loop->argument == LAUNCH && !load_kernel(libraries[1]))
			loop->function = NULL;
		if (loop->function)
			found[n_found++] = loop;
	}
	return n_found;
}

const char *micro_name(int i)
{
	return found[i]->name;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void call(const struct loop *loop, uint64_t *answer)
{
	if (loop->argument == LAUNCH)
		((launch_function *)(void *)loop->function)(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL,
		                                            NULL);
	else /* where the answer goes, or the default stream */
		loop->function(loop->argument == ANSWER ? answer : NULL, NULL, NULL);
}

double micro_ns(int i)
{
	const struct loop *loop = found[i];
	uint64_t answer[2] = { 0 }, begin;
	double ns;

	synchronize(NULL, NULL, NULL);
	call(loop, answer);
	begin = now_ns();
	for (int k = 0; k < loop->calls; k++)
		call(loop, answer);
	ns = (double)(now_ns() - begin) / loop->calls;
	synchronize(NULL, NULL, NULL);
	return ns;
}
