// SPDX-License-Identifier: MIT
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct driver drv;
static void *library;

/* Nobody listens while there is no driver. */
static const struct sim_profiler nobody;
const struct sim_profiler *runtime_profiler = &nobody;

/* "cuMemcpyHtoDAsync_v2_ptsz" is asked for as "cuMemcpyHtoDAsync", per thread. */
static void split(const char *name, char *base, size_t room, cuuint64_t *flags)
{
	size_t len = strcspn(name, "_");
	if (len >= room)
		len = room - 1;
	memcpy(base, name, len);
	base[len] = '\0';
	*flags = strstr(name, "_pt") ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
	                             : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
}

/* CUDA 13 gave these another meaning: the runtime wants the one that it knows. */
static int version_of(const char *name)
{
	return strcmp(name, "cuCtxSynchronize") == 0 ? 12080 : CUDA_VERSION;
}

static bool find(__typeof__(cuGetProcAddress_v2) *get, const char *name, void *to)
{
	char base[64];
	cuuint64_t flags;
	CUdriverProcAddressQueryResult status;
	split(name, base, sizeof(base), &flags);
	return get(base, to, version_of(name), flags, &status) == CUDA_SUCCESS &&
	       *(void **)to != NULL;
}

static bool fill(struct driver *table)
{
	__typeof__(cuGetProcAddress_v2) *get = dlsym(library, "cuGetProcAddress_v2");
	if (!get)
		return false;
	bool all = true;
#define FIND(name)              all &= find(get, #name, &table->name);
#define FIND_PAIR(name, suffix) FIND(name) FIND(name##suffix)
	DRIVER_FUNCTIONS(FIND)
	DRIVER_STREAM_FUNCTIONS(FIND_PAIR)
#undef FIND
#undef FIND_PAIR
	table->cuSimCallback = dlsym(library, "cuSimCallback");
	return all;
}

/* Under this the real runtime asks the driver for a table; by it, it is known where it has no names. */
static const unsigned char interface_id[16] __attribute__((used)) = {
	0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9
};

bool driver_load(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool loaded;
	if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE))
		return true;
	pthread_mutex_lock(&lock);
	if (!loaded) {
		library = dlopen("libcuda.so.1", RTLD_NOW);
		struct driver table;
		if (library && fill(&table)) {
			drv = table;
			const struct sim_profiler *profiler = dlsym(library, SIM_PROFILER_NAME);
			if (profiler)
				__atomic_store_n(&runtime_profiler, profiler, __ATOMIC_RELEASE);
			__atomic_store_n(&loaded, true, __ATOMIC_RELEASE);
		} else if (library) {
			dlclose(library);
		}
	}
	pthread_mutex_unlock(&lock);
	return loaded;
}

void *driver_symbol(const char *name)
{
	return library ? dlsym(library, name) : NULL;
}
