// SPDX-License-Identifier: MIT
/* Initialisation and what a device says about itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "context.h"
#include "ioctls.h"
#include "start.h"

static int devices = 1;
static size_t memory_bytes = (size_t)16 << 30;

int device_count(void)
{
	return devices;
}

size_t device_memory_bytes(void)
{
	return memory_bytes;
}

void device_read_settings(void)
{
	const char *text = getenv("SIMCUDA_DEVICES");
	if (text && *text)
		devices = atoi(text);
	if (devices < 0 || devices > DEVICES_MAX)
		devices = DEVICES_MAX;
	text = getenv("SIMCUDA_MEMORY");
	if (text && *text)
		memory_bytes = strtoull(text, NULL, 0);
}

static pthread_once_t settings_read = PTHREAD_ONCE_INIT;
static pthread_once_t event_thread_started = PTHREAD_ONCE_INIT;

static void read_settings(void)
{
	clock_read_settings();
	device_read_settings();
}

static CUresult initialise(unsigned int flags)
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (__atomic_load_n(&gate, __ATOMIC_ACQUIRE) & GATE_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_once(&settings_read, read_settings);
	if (devices == 0)
		return CUDA_ERROR_NO_DEVICE;
	ioctls_of_init();
	gate_open();
	pthread_once(&event_thread_started, start_event_thread);
	start_injection();
	return CUDA_SUCCESS;
}

static bool device_exists(CUdevice device)
{
	return device >= 0 && device < devices;
}

static CUresult get_int(int *value, int is)
{
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	*value = is;
	return CUDA_SUCCESS;
}

static CUresult device_get(CUdevice *device, int ordinal)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

/* Copies a text about a device, cut to the caller's room as the real driver does. */
static CUresult device_text(char *to, int len, CUdevice device, const char *fmt)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!to || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(to, (size_t)len, fmt, device + 1);
	return CUDA_SUCCESS;
}

static CUresult device_by_bus(CUdevice *device, const char *id)
{
	int number = 0;
	if (!device || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(id, "%*x:%x:", &number) != 1 || !device_exists(number - 1))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = number - 1;
	return CUDA_SUCCESS;
}

static CUresult device_uuid(CUuuid *uuid, CUdevice device)
{
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	memcpy(uuid->bytes, "simulated device", sizeof(uuid->bytes));
	uuid->bytes[15] = (char)device;
	return CUDA_SUCCESS;
}

static CUresult device_total(size_t *bytes, CUdevice device)
{
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = memory_bytes;
	return CUDA_SUCCESS;
}

static const struct {
	CUdevice_attribute attribute;
	int value;
} attributes[] = {
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152 },
	{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
	{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1500000 },
	{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 100 },
	{ CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
	{ CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
	{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
	{ CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1 },
	{ CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
	{ CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
};

static CUresult device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	if (!value || (int)attribute <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*value = 0;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		if (attributes[i].attribute == attribute)
			*value = attributes[i].value;
	}
	return CUDA_SUCCESS;
}

static CUresult device_capability(int *major, int *minor, CUdevice device)
{
	CUresult result =
		device_attribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	if (result != CUDA_SUCCESS)
		return result;
	return device_attribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

static CUresult device_peer(int *can, CUdevice device, CUdevice peer)
{
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device) || !device_exists(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*can = device != peer;
	return CUDA_SUCCESS;
}

static CUresult sim_callback(CUsimCallback call, void *data)
{
	if (!call)
		return CUDA_ERROR_INVALID_VALUE;
	call(data);
	return CUDA_SUCCESS;
}

/* SIMCUDA_VERSION=12040: an older driver, as far as its word goes. */
static int driver_version(void)
{
	const char *version = getenv("SIMCUDA_VERSION");

	return version ? atoi(version) : CUDA_VERSION;
}

API_ALWAYS(cuInit, (unsigned int, flags), initialise(flags))
API_ALWAYS(cuDriverGetVersion, (int *, version), get_int(version, driver_version()))
API_ALWAYS(cuSimCallback, (CUsimCallback, call, void *, data), sim_callback(call, data))
API(cuDeviceGet, (CUdevice *, device, int, ordinal), device_get(device, ordinal))
API(cuDeviceGetCount, (int *, count), get_int(count, devices))
API(cuDeviceGetName, (char *, name, int, len, CUdevice, device),
    device_text(name, len, device, "Simulated GPU %d"))
API(cuDeviceGetPCIBusId, (char *, id, int, len, CUdevice, device),
    device_text(id, len, device, "0000:%02X:00.0"))
API(cuDeviceGetByPCIBusId, (CUdevice *, device, const char *, id), device_by_bus(device, id))
API(cuDeviceGetUuid, (CUuuid *, uuid, CUdevice, device), device_uuid(uuid, device))
API(cuDeviceGetUuid_v2, (CUuuid *, uuid, CUdevice, device), device_uuid(uuid, device))
API(cuDeviceTotalMem_v2, (size_t *, bytes, CUdevice, device), device_total(bytes, device))
API(cuDeviceGetAttribute, (int *, value, CUdevice_attribute, attribute, CUdevice, device),
    device_attribute(value, attribute, device))
API(cuDeviceComputeCapability, (int *, major, int *, minor, CUdevice, device),
    device_capability(major, minor, device))
API(cuDeviceCanAccessPeer, (int *, can, CUdevice, device, CUdevice, peer),
    device_peer(can, device, peer))
