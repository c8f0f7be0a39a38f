// SPDX-License-Identifier: MIT
/* Devices, the thread's context, errors. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

#define DEVICES_MAX 64

_Static_assert(sizeof(struct cudaDeviceProp) == 1008, "as in CUDA 13.0");

static __thread struct {
	int device;
	unsigned int epoch; /* of the context that is current; 0: none yet */
	cudaError_t last_error;
} thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[DEVICES_MAX];
static unsigned int epoch = 1; /* cudaDeviceReset makes all threads bind again */

__attribute__((constructor)) static void runtime_prepare(void)
{
	faults_read();
}

cudaError_t runtime_result(int result)
{
	if (__builtin_expect(result != cudaSuccess, 0))
		thread.last_error = (cudaError_t)result;
	return (cudaError_t)result;
}

cudaError_t runtime_driver(void)
{
	static bool initialised;
	if (__atomic_load_n(&initialised, __ATOMIC_ACQUIRE))
		return cudaSuccess;
	if (!driver_load())
		return cudaErrorInsufficientDriver;
	cudaError_t result = (cudaError_t)drv.cuInit(0);
	if (result == cudaSuccess)
		__atomic_store_n(&initialised, true, __ATOMIC_RELEASE);
	return result;
}

static cudaError_t bind(int device)
{
	int count;
	cudaError_t result = runtime_driver();
	if (result == cudaSuccess)
		result = (cudaError_t)drv.cuDeviceGetCount(&count);
	if (result != cudaSuccess)
		return result;
	if (device < 0 || device >= count || device >= DEVICES_MAX)
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&lock);
	if (!primary[device])
		result = (cudaError_t)drv.cuDevicePrimaryCtxRetain(&primary[device], device);
	if (result == cudaSuccess)
		result = (cudaError_t)drv.cuCtxSetCurrent(primary[device]);
	if (result == cudaSuccess) {
		thread.device = device;
		thread.epoch = epoch;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

cudaError_t runtime_context(void)
{
	if (__builtin_expect(thread.epoch == __atomic_load_n(&epoch, __ATOMIC_ACQUIRE), 1))
		return cudaSuccess;
	return bind(thread.device);
}

static cudaError_t device_reset(void)
{
	pthread_mutex_lock(&lock);
	CUresult result = drv.cuDevicePrimaryCtxReset_v2(thread.device);
	primary[thread.device] = NULL;
	__atomic_store_n(&epoch, epoch + 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return (cudaError_t)result;
}

static cudaError_t device_get(int *device)
{
	if (!device)
		return cudaErrorInvalidValue;
	CUdevice current;
	if (thread.epoch && drv.cuCtxGetDevice_v2(&current, NULL) == CUDA_SUCCESS)
		*device = current;
	else
		*device = thread.device;
	return cudaSuccess;
}

static cudaError_t device_count(int *count)
{
	return count ? (cudaError_t)drv.cuDeviceGetCount(count) : cudaErrorInvalidValue;
}

static cudaError_t device_properties(struct cudaDeviceProp *properties, int device)
{
	if (!properties)
		return cudaErrorInvalidValue;
	memset(properties, 0, sizeof(*properties));
	CUresult result = drv.cuDeviceGetName(properties->name, sizeof(properties->name), device);
	if (result != CUDA_SUCCESS)
		return (cudaError_t)result;
	const struct {
		CUdevice_attribute attribute;
		int *value;
	} wanted[] = {
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &properties->maxThreadsPerBlock },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &properties->maxThreadsDim[0] },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &properties->maxThreadsDim[1] },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &properties->maxThreadsDim[2] },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &properties->maxGridSize[0] },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &properties->maxGridSize[1] },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &properties->maxGridSize[2] },
		{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, &properties->warpSize },
		{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &properties->multiProcessorCount },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &properties->major },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &properties->minor },
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		drv.cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, device);
	drv.cuDeviceGetUuid_v2((CUuuid *)&properties->uuid, device);
	return (cudaError_t)drv.cuDeviceTotalMem_v2(&properties->totalGlobalMem, device);
}

static cudaError_t driver_version(int *version)
{
	if (!version)
		return cudaErrorInvalidValue;
	*version = 0; /* what the real runtime says where there is no driver */
	return driver_load() ? (cudaError_t)drv.cuDriverGetVersion(version) : cudaSuccess;
}

static cudaError_t runtime_version(int *version)
{
	if (!version)
		return cudaErrorInvalidValue;
	*version = CUDART_MAJOR * 1000;
	return cudaSuccess;
}

static cudaError_t driver_entry(const char *name, void **function, unsigned int version,
                                unsigned long long flags,
                                enum cudaDriverEntryPointQueryResult *status)
{
	__typeof__(cuGetProcAddress_v2) *get;
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	get = (__typeof__(get))driver_symbol("cuGetProcAddress_v2");
	if (!get || !name || !function)
		return cudaErrorInvalidValue;
	CUresult result = get(name, function, (int)version, flags, &found);
	if (status)
		*status = (enum cudaDriverEntryPointQueryResult)found;
	return (cudaError_t)result;
}

static cudaError_t sim_callback(CUsimCallback call, void *data)
{
	return drv.cuSimCallback ? (cudaError_t)drv.cuSimCallback(call, data)
	                         : cudaErrorNotSupported;
}

static cudaError_t nothing(void)
{
	return cudaSuccess;
}

RT_DRIVER(cudaGetDeviceCount, (int *, count), device_count(count))
RT_DRIVER(cudaGetDevice, (int *, device), device_get(device))
RT_DRIVER(cudaSetDevice, (int, device), bind(device))
RT_DRIVER(cudaInitDevice, (int, device, unsigned int, device_flags, unsigned int, flags),
          bind(device))
RT_DRIVER(cudaGetDeviceProperties, (struct cudaDeviceProp *, properties, int, device),
          device_properties(properties, device))
RT_DRIVER(cudaDeviceGetAttribute, (int *, value, enum cudaDeviceAttr, attribute, int, device),
          drv.cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device))
RT_DRIVER(cudaDeviceCanAccessPeer, (int *, can, int, device, int, peer),
          drv.cuDeviceCanAccessPeer(can, device, peer))
RT_DRIVER(cudaDeviceGetPCIBusId, (char *, id, int, len, int, device),
          drv.cuDeviceGetPCIBusId(id, len, device))
RT_DRIVER(cudaDeviceGetByPCIBusId, (int *, device, const char *, id),
          drv.cuDeviceGetByPCIBusId(device, id))
RT_DRIVER(cudaGetDriverEntryPointByVersion,
          (const char *, name, void **, function, unsigned int, version, unsigned long long, flags,
           enum cudaDriverEntryPointQueryResult *, status),
          driver_entry(name, function, version, flags, status))
RT_DRIVER(cudaGetDriverEntryPoint,
          (const char *, name, void **, function, unsigned long long, flags,
           enum cudaDriverEntryPointQueryResult *, status),
          driver_entry(name, function, CUDART_MAJOR * 1000, flags, status))
RT_DRIVER(cudaSetDeviceFlags, (unsigned int, flags), nothing())
RT(cudaDeviceSynchronize, (), drv.cuCtxSynchronize())
RT(cudaDeviceReset, (), device_reset())
RT(cudaDeviceGetLimit, (size_t *, value, enum cudaLimit, limit),
   drv.cuCtxGetLimit(value, (CUlimit)limit))
RT(cudaDeviceSetLimit, (enum cudaLimit, limit, size_t, value),
   drv.cuCtxSetLimit((CUlimit)limit, value))
RT(cudaDeviceGetStreamPriorityRange, (int *, least, int *, greatest),
   drv.cuCtxGetStreamPriorityRange(least, greatest))
RT_PLAIN(cudaDriverGetVersion, (int *, version), driver_version(version))
RT_PLAIN(cudaRuntimeGetVersion, (int *, version), runtime_version(version))
RT_PLAIN(cudaProfilerStart, (), nothing())
RT_PLAIN(cudaProfilerStop, (), nothing())
RT_DRIVER(cudaSimCallback, (CUsimCallback, call, void *, data), sim_callback(call, data))
#if CUDART_MAJOR < 13
RT_DRIVER(cudaGetDeviceProperties_v2, (struct cudaDeviceProp *, properties, int, device),
          device_properties(properties, device))
RT(cudaThreadSynchronize, (), drv.cuCtxSynchronize())
RT(cudaThreadExit, (), device_reset())
#endif

/* These neither fail nor leave an error behind. */
__attribute__((visibility("default"))) cudaError_t cudaGetLastError(void)
{
	cudaError_t error = thread.last_error;
	thread.last_error = cudaSuccess;
	return error;
}

__attribute__((visibility("default"))) cudaError_t cudaPeekAtLastError(void)
{
	return thread.last_error;
}
