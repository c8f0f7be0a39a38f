// SPDX-License-Identifier: MIT
#include "sample.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

/* ---- counting ------------------------------------------------------------------------------ */

struct tally {
	struct tally *next;
	char *section, *key;
	long n;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tally *tallies;

struct tally *tally_find(const char *section, const char *key)
{
	struct tally *tally;

	pthread_mutex_lock(&lock);
	for (tally = tallies; tally; tally = tally->next) {
		if (!strcmp(tally->section, section) && !strcmp(tally->key, key))
			break;
	}
	if (!tally) {
		tally = calloc(1, sizeof(*tally));
		tally->section = strdup(section);
		tally->key = strdup(key);
		tally->next = tallies;
		tallies = tally;
	}
	pthread_mutex_unlock(&lock);
	return tally;
}

void tally_add(struct tally *tally, long n)
{
	__atomic_fetch_add(&tally->n, n, __ATOMIC_RELAXED);
}

void count(const char *section, long n, const char *format, ...)
{
	char key[512];
	va_list args;

	va_start(args, format);
	vsnprintf(key, sizeof(key), format, args);
	va_end(args);
	tally_add(tally_find(section, key), n);
}

void tally_forget(void)
{
	for (struct tally *tally = tallies; tally; tally = tally->next)
		tally->n = 0;
}

void count_launches(const char *section, long n, const char *kernel, struct shape s,
                    const void *stream)
{
	count(section, n, "%s %u,%u,%u %u,%u,%u %u 0x%lx %ld", kernel, s.grid[0], s.grid[1],
	      s.grid[2], s.block[0], s.block[1], s.block[2], s.shared, (unsigned long)stream,
	      sample_tid());
}

void count_copies(long n, const char *direction, size_t bytes, const char *way)
{
	count("copies", n, "%s %zu %s", direction, bytes, way);
}

void count_sets(long n, size_t bytes)
{
	count("sets", n, "%zu", bytes);
}

void count_ran_kernels(long n, const char *kernel, struct shape s)
{
	count("activities", n, "kernel %s %u,%u,%u %u,%u,%u", kernel, s.grid[0], s.grid[1],
	      s.grid[2], s.block[0], s.block[1], s.block[2]);
}

void count_ran_copies(long n, const char *direction, size_t bytes, const char *from, const char *to)
{
	count("activities", n, "copy %s %zu %s %s", direction, bytes, from, to);
}

void count_ran_sets(long n, size_t bytes, const char *memory)
{
	count("activities", n, "set %zu %s", bytes, memory);
}

void count_alloc(const char *kind, size_t bytes)
{
	count("allocs", 1, "%s %zu", kind, bytes);
	count("live", 1, "count");
	count("live", (long)bytes, "bytes");
}

void count_free(const char *kind, size_t bytes)
{
	count("frees", 1, "%s %zu", kind, bytes);
	count("live", -1, "count");
	count("live", -(long)bytes, "bytes");
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Whether an earlier tally is of the same section. */
static bool section_is_done(const struct tally *tally)
{
	for (struct tally *t = tallies; t != tally; t = t->next) {
		if (!strcmp(t->section, tally->section))
			return true;
	}
	return false;
}

static void write_section(FILE *out, const struct tally *first)
{
	const char *comma = "";

	fprintf(out, ", \"%s\": {", first->section);
	for (const struct tally *t = first; t; t = t->next) {
		if (strcmp(t->section, first->section) || !t->n)
			continue;
		fprintf(out, "%s\"%s\": %ld", comma, t->key, t->n);
		comma = ", ";
	}
	fprintf(out, "}");
}

/* One write to a file opened for appending, so that processes may share it. */
int sample_end(void)
{
	const char *path = getenv("SAMPLE_COUNTS");
	char *text = NULL;
	size_t bytes = 0;
	FILE *out;
	int fd;

	if (!path)
		return 0;
	out = open_memstream(&text, &bytes);
	fprintf(out, "{\"pid\": %d", getpid());
	for (struct tally *t = tallies; t; t = t->next) {
		if (!section_is_done(t))
			write_section(out, t);
	}
	fprintf(out, "}\n");
	fclose(out);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, text, bytes) != (ssize_t)bytes)
		sample_fail("cannot write %s", path);
	close(fd);
	free(text);
	return 0;
}

void sample_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "sample: ");
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(99);
}

/* ---- calling ------------------------------------------------------------------------------- */

void *driver, *runtime;

void *sample_open(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		sample_fail("%s", dlerror());
	return library;
}

void *sample_symbol(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		sample_fail("%s", dlerror());
	return symbol;
}

void sample_check(const char *call, int result, int code, const char *error)
{
	if (result != code)
		sample_fail("%s returned %d, not %d", call, result, code);
	if (code)
		count("errors", 1, "%s %d %s", call, code, error);
}

/* ---- a context, and kernels ------------------------------------------------------------------ */

const char sample_ptx[] = ".version 7.0\n"
			  ".target sm_52\n"
			  ".address_size 64\n"
			  ".visible .entry " TICK "() { ret; }\n"
			  ".visible .entry " BLOCK "(.param .u64 p, .param .u32 n) { ret; }\n"
			  ".visible .entry " PLAIN "() { ret; }\n";

/* Where CUDA works, for a minute at most. */
void sample_wait(void)
{
	const char *path = getenv("SAMPLE_WAIT");
	static bool waited;

	for (int i = 0; path && !waited && i < 6000 && access(path, F_OK); i++)
		usleep(10000);
	waited = true;
}

CUcontext sample_context(void)
{
	CUdevice device;
	CUcontext context;

	if (!driver)
		driver = sample_open("libcuda.so.1");
	DRIVER(cuInit, 0);
	sample_wait();
	DRIVER(cuDeviceGet, &device, 0);
	DRIVER(cuDevicePrimaryCtxRetain, &context, device);
	DRIVER(cuCtxSetCurrent, context);
	return context;
}

void sample_kernels(struct kernels *k)
{
	DRIVER(cuModuleLoadData, &k->module, sample_ptx);
	DRIVER(cuModuleGetFunction, &k->tick, k->module, TICK);
	DRIVER(cuModuleGetFunction, &k->block, k->module, BLOCK);
	DRIVER(cuModuleGetFunction, &k->plain, k->module, PLAIN);
}

void sample_launch(CUfunction kernel, const char *name, struct shape s, CUstream stream)
{
	CUdeviceptr pointer = 0;
	int n = 0;
	void *args[] = { &pointer, &n };

	DRIVER(cuLaunchKernel, kernel, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1],
	       s.block[2], s.shared, stream, args, NULL);
	count_launches("launches", 1, name, s, stream);
}

void sample_run(CUfunction kernel, const char *name, struct shape s, CUstream stream)
{
	sample_launch(kernel, name, s, stream);
	count_ran_kernels(1, name, s);
}

/* ---- threads, time, arguments ------------------------------------------------------------- */

long sample_tid(void)
{
	return syscall(SYS_gettid);
}

double sample_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void sample_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

bool sample_input_ended(int milliseconds)
{
	struct pollfd poll_fd = { .fd = 0, .events = POLLIN };
	char byte;

	return poll(&poll_fd, 1, milliseconds) > 0 && read(0, &byte, 1) == 0;
}

long sample_number(int argc, char **argv, int n, long otherwise)
{
	return n < argc ? atol(argv[n]) : otherwise;
}
