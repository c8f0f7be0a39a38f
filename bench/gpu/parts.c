// SPDX-License-Identifier: MIT
/*
 * The parts of what `--gpu` asks of CUPTI, each alone or together, in a process that has CUPTI
 * already (PyTorch): bench/gpu/parts turns them on and off between windows of training steps. What
 * CUPTI writes is thrown away. Built with src among the folders of headers.
 *
 *   parts_open()                0: CUPTI is here
 *   parts_begin(what)           0: the parts of `what` (enum part) are on
 *   parts_end()                 0: CUPTI has left the process
 *   parts_launch_ns(n, times)   nanoseconds that the launch of an empty kernel keeps its thread,
 *                               the mean of `times` times `n` launches. The GPU is waited for after
 *                               each `n`, out of the time: else a long loop tells how long the GPU
 *                               takes for a kernel
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/lib/cupti_abi.h"
#include "agent/lib/cupti_calls.h"

#define BUFFERS      32
#define BUFFER_BYTES ((size_t)256 << 10)
#define FLUSH_MS     100
#define PTX          ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry partsEmpty() { ret; }\n"

enum part {
	PART_KERNELS = 1 << 0,
	PART_COPIES = 1 << 1, /* and sets */
	PART_WAITS = 1 << 2,
	PART_OVERHEAD = 1 << 3,
	PART_GRAPHS = 1 << 4,    /* as wholes */
	PART_FLUSH = 1 << 5,     /* each 100 ms, by a thread of its own */
	PART_CLOCK = 1 << 6,     /* times by CLOCK_MONOTONIC */
	PART_CALLBACKS = 1 << 7, /* on calls that ask for work, which do nothing */
	PART_TIMES = 1 << 8,     /* callbacks that read the clock at both ends, and keep it */
	PART_SUBSCRIBER = 1 << 9,
	PART_READ = 1 << 10, /* records are looked at, one by one */
};

static const struct {
	unsigned part;
	uint32_t kind;
} kinds[] = {
	{ PART_KERNELS, CUPTI_KIND_KERNEL },        { PART_COPIES, CUPTI_KIND_MEMCPY },
	{ PART_COPIES, CUPTI_KIND_MEMCPY_PEER },    { PART_COPIES, CUPTI_KIND_MEMSET },
	{ PART_WAITS, CUPTI_KIND_SYNCHRONIZATION }, { PART_OVERHEAD, CUPTI_KIND_OVERHEAD },
	{ PART_GRAPHS, CUPTI_KIND_GRAPH_TRACE },
};
#define N_KINDS (sizeof(kinds) / sizeof(*kinds))

static struct {
#define FUNCTION(name, since, arguments) uint32_t(*name) arguments;
	CUPTI_FUNCTIONS(FUNCTION)
#undef FUNCTION
} f;

static unsigned on;
static cupti_subscriber subscriber;
static pthread_t flusher;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stop = PTHREAD_COND_INITIALIZER;
static bool stopping;
static uint8_t *memory, *free_ones[BUFFERS];
static size_t n_free;
static uint64_t sum; /* of what records and callbacks had: nothing is left out by the compiler */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* ---- called by CUPTI ----------------------------------------------------------------------- */

static void give(uint8_t **buffer, size_t *bytes, size_t *records)
{
	pthread_mutex_lock(&lock);
	*buffer = n_free ? free_ones[--n_free] : NULL;
	pthread_mutex_unlock(&lock);
	*bytes = *buffer ? BUFFER_BYTES : 0;
	*records = 0;
}

static void take(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	struct cupti_record *record = NULL;

	while (on & PART_READ && valid &&
	       f.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_OK)
		__atomic_fetch_add(&sum, record->kind, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock);
	free_ones[n_free++] = buffer;
	pthread_mutex_unlock(&lock);
}

static void on_call(void *user, uint32_t domain, uint32_t id, const void *data)
{
	static __thread uint64_t kept[2];

	if (on & PART_TIMES)
		kept[((const struct cupti_callback_data *)data)->site != CUPTI_ENTER] = now_ns();
	if (kept[1] < kept[0])
		__atomic_store_n(&sum, kept[1], __ATOMIC_RELAXED);
}

/* ---- on and off ---------------------------------------------------------------------------- */

static int is_cupti(struct dl_phdr_info *info, size_t bytes, void *path)
{
	if (!strstr(info->dlpi_name, "/libcupti.so"))
		return 0;
	*(const char **)path = info->dlpi_name;
	return 1;
}

int parts_open(void);
int parts_begin(unsigned what);
int parts_end(void);
double parts_launch_ns(int n, int times);

int parts_open(void)
{
	const char *path = NULL;
	void *library;

	if (f.cuptiFinalize)
		return 0;
	dl_iterate_phdr(is_cupti, &path);
	library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : dlopen("libcupti.so", RTLD_NOW);
	if (!library)
		return -1;
#define FUNCTION(name, since, arguments) *(void **)&f.name = dlsym(library, #name);
	CUPTI_FUNCTIONS(FUNCTION)
#undef FUNCTION
	memory = malloc(BUFFERS * BUFFER_BYTES);
	for (n_free = 0; memory && n_free < BUFFERS; n_free++)
		free_ones[n_free] = memory + n_free * BUFFER_BYTES;
	return f.cuptiFinalize && memory ? 0 : -1;
}

static void *flush(void *unused)
{
	struct timespec until;

	pthread_mutex_lock(&lock);
	while (!stopping) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += FLUSH_MS * 1000000l;
		until.tv_sec += until.tv_nsec / 1000000000l;
		until.tv_nsec %= 1000000000l;
		pthread_cond_timedwait(&stop, &lock, &until);
		pthread_mutex_unlock(&lock);
		f.cuptiActivityFlushAll(0);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void enable_callbacks(void)
{
#define CALL(number, name, class, shape)                                                           \
	f.cuptiEnableCallback(1, subscriber, CUPTI_DOMAIN_DRIVER, number);
	CUPTI_DRIVER_CALLS(CALL)
#undef CALL
#define CALL(number, name, class, shape)                                                           \
	f.cuptiEnableCallback(1, subscriber, CUPTI_DOMAIN_RUNTIME, number);
	CUPTI_RUNTIME_CALLS(CALL)
#undef CALL
}

int parts_begin(unsigned what)
{
	on = what;
	if (what & (PART_CALLBACKS | PART_SUBSCRIBER) &&
	    f.cuptiSubscribe(&subscriber, on_call, NULL))
		return 1;
	if (what & PART_CLOCK && f.cuptiActivityRegisterTimestampCallback(now_ns))
		return 2;
	if (f.cuptiActivityRegisterCallbacks(give, take))
		return 3;
	if (what & PART_CALLBACKS)
		enable_callbacks();
	for (size_t i = 0; i < N_KINDS; i++) {
		if (kinds[i].part & what && f.cuptiActivityEnable(kinds[i].kind))
			return 4;
	}
	stopping = false;
	return what & PART_FLUSH ? pthread_create(&flusher, NULL, flush, NULL) : 0;
}

int parts_end(void)
{
	if (on & PART_FLUSH) {
		pthread_mutex_lock(&lock);
		stopping = true;
		pthread_cond_signal(&stop);
		pthread_mutex_unlock(&lock);
		pthread_join(flusher, NULL);
	}
	for (size_t i = 0; i < N_KINDS; i++) {
		if (kinds[i].part & on)
			f.cuptiActivityDisable(kinds[i].kind);
	}
	f.cuptiActivityFlushAll(1);
	if (subscriber)
		f.cuptiUnsubscribe(subscriber);
	subscriber = NULL;
	return (int)f.cuptiFinalize();
}

/* ---- launches ------------------------------------------------------------------------------ */

typedef int launch_function(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, void *, void **, void **);

double parts_launch_ns(int n, int times)
{
	static launch_function *launch;
	static int (*synchronize)(void);
	static void *kernel;
	uint64_t took = 0;

	if (!launch) {
		void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
		int (*load)(void **, const void *);
		int (*get)(void **, void *, const char *);
		void *module;

		*(void **)&load = dlsym(driver, "cuModuleLoadData");
		*(void **)&get = dlsym(driver, "cuModuleGetFunction");
		*(void **)&synchronize = dlsym(driver, "cuCtxSynchronize");
		if (load(&module, PTX) || get(&kernel, module, "partsEmpty"))
			return -1;
		*(void **)&launch = dlsym(driver, "cuLaunchKernel");
	}
	for (int i = 0; i < times; i++) {
		uint64_t begin;

		synchronize();
		begin = now_ns();
		for (int k = 0; k < n; k++)
			launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
		took += now_ns() - begin;
	}
	synchronize();
	return (double)took / n / times;
}
