// SPDX-License-Identifier: MIT
/*
 * dlopen LIBCUDA LIBCUDART DIR [COPIES]: copies the libraries to other paths and names under DIR,
 * loads each copy and calls it at once, with nothing in between for a tracer to catch up. Then it
 * removes the files and goes on calling. What a copy was asked for is counted in numbers under its
 * name.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sample.h"

/* Names that say nothing, and one that lies. */
static const char *const names[] = { "copy.bin", "libm.so.6", "deep/er/gpu-library", "libcuda.so" };

static void make_folders(const char *path)
{
	char text[4096];
	snprintf(text, sizeof(text), "%s", path);
	for (char *slash = strchr(text + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(text, 0755);
		*slash = '/';
	}
}

static void copy_file(const char *from, const char *to)
{
	struct stat st;
	off_t at = 0;
	make_folders(to);
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (in < 0 || out < 0 || fstat(in, &st) != 0)
		sample_die("%s to %s: %s", from, to, strerror(errno));
	while (at < st.st_size) {
		if (sendfile(out, in, &at, (size_t)(st.st_size - at)) <= 0)
			sample_die("%s to %s: %s", from, to, strerror(errno));
	}
	close(in);
	close(out);
}

static void *symbol(void *library, const char *name)
{
	void *function = dlsym(library, name);
	if (!function)
		sample_die("%s", dlerror());
	return function;
}

/* A call into one copy: the same function has another address in each. */
#define CALL_IN(library, label, function, ...)                                                     \
	do {                                                                                       \
		__typeof__(&function) call = symbol(library, #function);                           \
		count(CALLS, #function, 1);                                                        \
		count(NUMBERS, label, 1);                                                          \
		int result = (int)call(__VA_ARGS__);                                               \
		if (result)                                                                        \
			sample_die("%s in %s: %d", #function, label, result);                      \
	} while (0)

static void use_driver(void *library, const char *label)
{
	CUcontext ctx;
	CUdeviceptr address;
	CALL_IN(library, label, cuInit, 0);
	CALL_IN(library, label, cuDevicePrimaryCtxRetain, &ctx, 0);
	CALL_IN(library, label, cuCtxSetCurrent, ctx);
	CALL_IN(library, label, cuMemAlloc_v2, &address, 4096);
	count_alloc("cuMemAlloc_v2", "device", address, 4096);
	count_free(address);
	CALL_IN(library, label, cuMemFree_v2, address);
}

static void use_runtime(void *library, const char *label)
{
	void *address;
	CALL_IN(library, label, cudaMalloc, &address, 8192);
	count_alloc("cudaMalloc", "device", (uint64_t)address, 8192);
	count_free((uint64_t)address);
	CALL_IN(library, label, cudaFree, address);
}

static void use_copy(const char *from, const char *dir, int i, const char *what,
		     void (*use)(void *library, const char *label))
{
	char path[4096], label[64];
	snprintf(path, sizeof(path), "%s/%s-%d/%s", dir, what, i,
		 names[(size_t)i % (sizeof(names) / sizeof(names[0]))]);
	snprintf(label, sizeof(label), "%s-%d", what, i);
	copy_file(from, path);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		sample_die("%s", dlerror());
	use(library, label);
	unlink(path);
	use(library, label);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		sample_die("usage: dlopen LIBCUDA LIBCUDART DIR [COPIES]");
	int copies = argc > 4 ? atoi(argv[4]) : 3;
	for (int i = 0; i < copies; i++)
		use_copy(argv[1], argv[3], i, "driver", use_driver);
	for (int i = 0; i < copies; i++)
		use_copy(argv[2], argv[3], i, "runtime", use_runtime);
	sample_finish();
	return 0;
}
