// SPDX-License-Identifier: MIT
#include "sample.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct counter {
	struct counter *next;
	char name[96];
	uint64_t value;
};

struct failure {
	struct failure *next;
	const char *function;
	int code;
	uint64_t value;
};

struct live {
	struct live *next;
	uint64_t address, bytes;
};

#define LIVE_BUCKETS 4096

static const char *const group_names[GROUPS] = {
	[CALLS] = "calls",	     [UNFINISHED] = "unfinished", [LAUNCHES] = "launches",
	[CAPTURED] = "captured",     [BYTES] = "bytes",		  [ALLOC_BYTES] = "alloc_bytes",
	[CALL_BYTES] = "call_bytes", [NUMBERS] = "numbers",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter *counters[GROUPS];
static struct failure *failures;
static struct live *lives[LIVE_BUCKETS];
static uint64_t live_count, live_bytes, peak_bytes, threads = 1;

struct counter *counter_get(enum group group, const char *name)
{
	pthread_mutex_lock(&lock);
	struct counter *counter = counters[group];
	while (counter && strcmp(counter->name, name) != 0)
		counter = counter->next;
	if (!counter) {
		counter = calloc(1, sizeof(*counter));
		if (!counter)
			sample_die("no memory");
		snprintf(counter->name, sizeof(counter->name), "%s", name);
		counter->next = counters[group];
		counters[group] = counter;
	}
	pthread_mutex_unlock(&lock);
	return counter;
}

void counter_add(struct counter *counter, uint64_t n)
{
	__atomic_fetch_add(&counter->value, n, __ATOMIC_RELAXED);
}

void count(enum group group, const char *name, uint64_t n)
{
	counter_add(counter_get(group, name), n);
}

int call_ended(const char *function, int result)
{
	pthread_mutex_lock(&lock);
	struct failure *failure = failures;
	while (failure && (failure->code != result || strcmp(failure->function, function) != 0))
		failure = failure->next;
	if (!failure) {
		failure = calloc(1, sizeof(*failure));
		if (!failure)
			sample_die("no memory");
		failure->function = function;
		failure->code = result;
		failure->next = failures;
		failures = failure;
	}
	failure->value++;
	pthread_mutex_unlock(&lock);
	return result;
}

void count_bytes(const char *function, const char *direction, uint64_t bytes)
{
	count(BYTES, direction, bytes);
	count(CALL_BYTES, function, bytes);
}

void count_alloc(const char *function, const char *kind, uint64_t address, uint64_t bytes)
{
	count_bytes(function, "alloc", bytes);
	count(ALLOC_BYTES, kind, bytes);
	struct live *live = calloc(1, sizeof(*live));
	if (!live)
		sample_die("no memory");
	live->address = address;
	live->bytes = bytes;
	pthread_mutex_lock(&lock);
	struct live **bucket = &lives[(address >> 9) % LIVE_BUCKETS];
	live->next = *bucket;
	*bucket = live;
	live_count++;
	live_bytes += bytes;
	if (live_bytes > peak_bytes)
		peak_bytes = live_bytes;
	pthread_mutex_unlock(&lock);
}

void count_free(uint64_t address)
{
	uint64_t bytes = 0;
	pthread_mutex_lock(&lock);
	for (struct live **link = &lives[(address >> 9) % LIVE_BUCKETS]; *link;
	     link = &(*link)->next) {
		struct live *live = *link;
		if (live->address != address)
			continue;
		bytes = live->bytes;
		live_count--;
		live_bytes -= bytes;
		*link = live->next;
		free(live);
		break;
	}
	pthread_mutex_unlock(&lock);
	count(BYTES, "free", bytes);
}

void count_thread(void)
{
	__atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
}

/* Counters stay where they are, since call sites point at them. */
void sample_forget(void)
{
	for (int group = 0; group < GROUPS; group++) {
		for (struct counter *counter = counters[group]; counter; counter = counter->next)
			counter->value = 0;
	}
	for (struct failure *failure = failures; failure; failure = failure->next)
		failure->value = 0;
	for (size_t i = 0; i < LIVE_BUCKETS; i++) {
		while (lives[i]) {
			struct live *live = lives[i];
			lives[i] = live->next;
			free(live);
		}
	}
	live_count = live_bytes = peak_bytes = 0;
	threads = 1;
}

static void write_group(FILE *out, enum group group)
{
	const char *comma = "";
	fprintf(out, ",\"%s\":{", group_names[group]);
	for (struct counter *counter = counters[group]; counter; counter = counter->next) {
		if (counter->value == 0)
			continue;
		fprintf(out, "%s\"%s\":%llu", comma, counter->name,
			(unsigned long long)counter->value);
		comma = ",";
	}
	fputc('}', out);
}

static bool failed_before(const struct failure *failure)
{
	for (const struct failure *other = failures; other != failure; other = other->next) {
		if (other->value && strcmp(other->function, failure->function) == 0)
			return true;
	}
	return false;
}

/* Codes of one function stand together. */
static void write_failures(FILE *out)
{
	const char *comma = "";
	fputs(",\"errors\":{", out);
	for (const struct failure *failure = failures; failure; failure = failure->next) {
		if (failure->value == 0 || failed_before(failure))
			continue;
		const char *inner = "";
		fprintf(out, "%s\"%s\":{", comma, failure->function);
		for (const struct failure *same = failure; same; same = same->next) {
			if (same->value == 0 || strcmp(same->function, failure->function) != 0)
				continue;
			fprintf(out, "%s\"%d\":%llu", inner, same->code,
				(unsigned long long)same->value);
			inner = ",";
		}
		fputc('}', out);
		comma = ",";
	}
	fputc('}', out);
}

/* One write, so that processes of one program do not mix their lines. */
static void append(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		sample_die("%s: %s", path, strerror(errno));
	close(fd);
}

void sample_finish(void)
{
	char *text = NULL;
	size_t len = 0;
	const char *path = getenv("SAMPLE_COUNTS");
	if (!path || !*path)
		return;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		sample_die("no memory");
	fprintf(out, "{\"program\":\"%s\",\"pid\":%d,\"ppid\":%d,\"threads\":%llu",
		program_invocation_short_name, getpid(), getppid(), (unsigned long long)threads);
	pthread_mutex_lock(&lock);
	for (int group = 0; group < GROUPS; group++)
		write_group(out, (enum group)group);
	write_failures(out);
	fprintf(out, ",\"live\":{\"count\":%llu,\"bytes\":%llu,\"peak\":%llu}}\n",
		(unsigned long long)live_count, (unsigned long long)live_bytes,
		(unsigned long long)peak_bytes);
	pthread_mutex_unlock(&lock);
	fclose(out);
	append(path, text, len);
	free(text);
}

void sample_die(const char *fmt, ...)
{
	va_list args;
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void *library(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW);
	if (!handle)
		sample_die("%s", dlerror());
	return handle;
}

void *sample_symbol(const char *name)
{
	const char *cudart = getenv("SAMPLE_CUDART");
	bool runtime = strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0;
	/* dlopen gives the same handle every time. */
	void *from = library(runtime ? (cudart && *cudart ? cudart : "libcudart.so.13")
				     : "libcuda.so.1");
	void *function = dlsym(from, name);
	if (!function)
		sample_die("%s", dlerror());
	return function;
}
