// SPDX-License-Identifier: MIT
/*
 * What nvcc's constructors register: fat binaries, kernels under their host stubs, variables. The
 * driver sees a fat binary when the first of its kernels or variables is used.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

#define BUCKETS 1024

struct fatbin {
	struct fatbin *next;
	const void *wrapper;
	CUlibrary library; /* NULL until it is needed */
};

struct entry {
	struct entry *next;
	const void *host; /* stub of a kernel, or variable */
	char *name;
	size_t bytes; /* of a variable; 0: a kernel */
	struct fatbin *fatbin;
	CUkernel kernel; /* NULL until it is needed */
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct fatbin *fatbins;
static struct entry *entries[BUCKETS];

static struct entry **bucket(const void *host)
{
	uintptr_t bits = (uintptr_t)host;
	return &entries[(bits >> 4 ^ bits >> 14) % BUCKETS];
}

static struct entry *entry_find(const void *host)
{
	struct entry *entry = *bucket(host);
	while (entry && entry->host != host)
		entry = entry->next;
	return entry;
}

static void entry_add(void **handle, const void *host, const char *name, size_t bytes)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	if (!entry)
		return; /* a launch will say that the function is not known */
	entry->host = host;
	entry->name = strdup(name);
	entry->bytes = bytes;
	entry->fatbin = (struct fatbin *)handle;
	pthread_rwlock_wrlock(&lock);
	entry->next = *bucket(host);
	*bucket(host) = entry;
	pthread_rwlock_unlock(&lock);
}

/* Called with the lock held for writing. */
static CUresult fatbin_load(struct fatbin *fatbin)
{
	if (fatbin->library)
		return CUDA_SUCCESS;
	return drv.cuLibraryLoadData(&fatbin->library, fatbin->wrapper, NULL, NULL, 0, NULL, NULL,
	                             0);
}

static cudaError_t kernel_load(const void *host, CUkernel *kernel)
{
	CUresult result = CUDA_SUCCESS;
	pthread_rwlock_wrlock(&lock);
	struct entry *entry = entry_find(host);
	if (!entry || entry->bytes) {
		pthread_rwlock_unlock(&lock);
		return cudaErrorInvalidDeviceFunction;
	}
	if (!entry->kernel) {
		result = fatbin_load(entry->fatbin);
		if (result == CUDA_SUCCESS)
			result = drv.cuLibraryGetKernel(&entry->kernel, entry->fatbin->library,
			                                entry->name);
	}
	*kernel = entry->kernel;
	pthread_rwlock_unlock(&lock);
	return (cudaError_t)result;
}

CUfunction kernel_resolve(const void *function)
{
	CUkernel kernel = NULL;
	pthread_rwlock_rdlock(&lock);
	const struct entry *entry = entry_find(function);
	bool registered = entry && entry->bytes == 0;
	if (registered)
		kernel = entry->kernel;
	pthread_rwlock_unlock(&lock);
	/* What is not registered is taken for a handle; the driver says whether it is one. */
	if (!registered)
		return CUDART_MAJOR < 13 ? NULL : (CUfunction)function;
	if (!kernel && kernel_load(function, &kernel) != cudaSuccess)
		return NULL;
	return (CUfunction)kernel;
}

cudaError_t symbol_resolve(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
	CUresult result = CUDA_SUCCESS;
	pthread_rwlock_wrlock(&lock);
	struct entry *entry = entry_find(symbol);
	bool known = entry && entry->bytes;
	if (known)
		result = fatbin_load(entry->fatbin);
	if (known && result == CUDA_SUCCESS)
		result =
			drv.cuLibraryGetGlobal(address, bytes, entry->fatbin->library, entry->name);
	pthread_rwlock_unlock(&lock);
	return known ? (cudaError_t)result : cudaErrorInvalidSymbol;
}

static cudaError_t symbol_address(void **address, const void *symbol)
{
	CUdeviceptr found;
	size_t bytes;
	if (!address)
		return cudaErrorInvalidValue;
	cudaError_t result = symbol_resolve(symbol, &found, &bytes);
	if (result == cudaSuccess)
		*address = (void *)(uintptr_t)found;
	return result;
}

static cudaError_t symbol_size(size_t *size, const void *symbol)
{
	CUdeviceptr found;
	return size ? symbol_resolve(symbol, &found, size) : cudaErrorInvalidValue;
}

/* ---- what code of nvcc's calls --------------------------------------------------------------- */

#define EXPORT __attribute__((visibility("default")))

EXPORT void **__cudaRegisterFatBinary(void *wrapper)
{
	struct fatbin *fatbin = calloc(1, sizeof(*fatbin));
	if (!fatbin)
		return NULL;
	fatbin->wrapper = wrapper;
	pthread_rwlock_wrlock(&lock);
	fatbin->next = fatbins;
	fatbins = fatbin;
	pthread_rwlock_unlock(&lock);
	return (void **)fatbin;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
}

static void entries_remove(const struct fatbin *fatbin)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		struct entry **link = &entries[i];
		while (*link) {
			struct entry *entry = *link;
			if (entry->fatbin != fatbin) {
				link = &entry->next;
				continue;
			}
			*link = entry->next;
			free(entry->name);
			free(entry);
		}
	}
}

EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	struct fatbin *fatbin = (struct fatbin *)handle;
	if (!fatbin)
		return;
	pthread_rwlock_wrlock(&lock);
	for (struct fatbin **link = &fatbins; *link; link = &(*link)->next) {
		if (*link == fatbin) {
			*link = fatbin->next;
			break;
		}
	}
	entries_remove(fatbin);
	CUlibrary library = fatbin->library;
	pthread_rwlock_unlock(&lock);
	if (library)
		drv.cuLibraryUnload(library);
	free(fatbin);
}

EXPORT void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                                   const char *device_name, int thread_limit, void *thread_index,
                                   void *block_index, void *block_dim, void *grid_dim,
                                   int *warp_size)
{
	entry_add(handle, host_function, device_name, 0);
}

EXPORT void __cudaRegisterVar(void **handle, char *host_variable, char *device_address,
                              const char *device_name, int external, size_t bytes, int constant,
                              int global)
{
	entry_add(handle, host_variable, device_name, bytes);
}

EXPORT char __cudaInitModule(void **handle);
EXPORT char __cudaInitModule(void **handle)
{
	return 1;
}

#if CUDART_MAJOR >= 13
/* As the real one: the handle is the host stub where the kernel cannot be had. */
static cudaError_t get_kernel(cudaKernel_t *kernel, const void *host)
{
	CUkernel found = NULL;
	if (!kernel || !host)
		return cudaErrorInvalidValue;
	*kernel = (cudaKernel_t)host;
	cudaError_t result = kernel_load(host, &found);
	if (result == cudaSuccess)
		*kernel = found;
	return result;
}

RT_DRIVER(__cudaGetKernel, (cudaKernel_t *, kernel, const void *, host), get_kernel(kernel, host))
RT_DRIVER(cudaGetKernel, (cudaKernel_t *, kernel, const void *, host), get_kernel(kernel, host))
#endif
RT(cudaGetSymbolAddress, (void **, address, const void *, symbol), symbol_address(address, symbol))
RT(cudaGetSymbolSize, (size_t *, size, const void *, symbol), symbol_size(size, symbol))
