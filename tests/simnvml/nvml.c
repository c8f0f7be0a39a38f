// SPDX-License-Identifier: MIT
/*
 * A libnvidia-ml.so.1 for tests, with the functions that cuscope asks for and figures that are
 * easily told apart: GPU n is busy for 10 + n percent, and so on.
 *
 *   SIMNVML_GPUS=N          how many there are (1)
 *   SIMNVML_PID=PID         uses 1 GiB on every GPU, and its kernels run for "process_busy" percent
 *                           of the time (25); further "processes" have the next numbers, and "pid"
 * of the settings counts before this SIMNVML_FAIL=init       the driver is not loaded
 *   SIMNVML_FAIL=figures    GPUs tell nothing but their names
 *   SIMNVML_FAIL=v2         an older driver
 *   SIMNVML_SLOW=MS         initialising takes so long
 *   SIMNVML_FILE=PATH       settings that can be changed at any time: settings.h; their names are
 *                           those of answer() and setting() in the functions here
 *
 * Layouts and numbers: NVML API Reference (docs.nvidia.com/deploy/nvml-api).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "settings.h"

struct process_info {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};

struct process_utilization {
	unsigned pid;
	unsigned long long time_us;
	unsigned sm, memory, encoder, decoder;
};

struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

struct pci_info {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char bus_id[32];
};

/* Prototypes, since nobody includes a header of this. */
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetName(void *device, char *name, unsigned size);
int nvmlDeviceGetUtilizationRates(void *device, unsigned percent[2]);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long bytes[3]);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process_info *infos);
int nvmlDeviceGetProcessUtilization(void *device, struct process_utilization *samples,
                                    unsigned *count, unsigned long long since_us);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size);
int nvmlDeviceGetPciInfo_v3(void *device, struct pci_info *pci);
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor);
int nvmlDeviceGetMaxClockInfo(void *device, int clock, unsigned *mhz);
int nvmlDeviceGetMemoryBusWidth(void *device, unsigned *bits);
int nvmlDeviceGetNumGpuCores(void *device, unsigned *cores);
const char *nvmlErrorString(int result);

static unsigned first_process(const struct device *device)
{
	return (unsigned)setting(device, "pid", number("SIMNVML_PID", 0));
}

int nvmlInit_v2(void)
{
	usleep(1000 * number("SIMNVML_SLOW", 0));
	return fails("init") ? DRIVER_NOT_LOADED : SUCCESS;
}

int nvmlShutdown(void)
{
	return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = number("SIMNVML_GPUS", 1);
	return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	if (index >= number("SIMNVML_GPUS", 1) || index >= GPUS_MOST)
		return INVALID_ARGUMENT;
	devices[index] = (struct device){ (int)index, -1 };
	*device = &devices[index];
	return setting(&devices[index], "lost", 0) != 0 ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetName(void *device, char *name, unsigned size)
{
	const struct device *of = device;

	if (of->mig >= 0)
		snprintf(name, size, "NVIDIA Simulated %d MIG 1g.10gb", of->index);
	else
		snprintf(name, size, "NVIDIA Simulated %d", of->index);
	return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned percent[2])
{
	percent[0] = (unsigned)setting(device, "busy", 10 + ((struct device *)device)->index);
	percent[1] = (unsigned)setting(device, "memory_busy", 5);
	return answer(device, "utilization");
}

/* Of the first version, with what the driver keeps for itself in what is used. */
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long bytes[3])
{
	bytes[0] = 80ull << 30;
	bytes[2] = (21ull + (unsigned)((struct device *)device)->index) << 30;
	bytes[1] = bytes[0] - bytes[2];
	return fails("figures") ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory)
{
	if (memory->version != (sizeof(*memory) | 2u << 24))
		return INVALID_ARGUMENT;
	memory->total = 80ull << 30;
	memory->used = (unsigned long long)setting(device, "used_gib",
	                                           20 + ((struct device *)device)->index)
	               << 30;
	memory->free = memory->total - memory->used;
	return fails("v2") ? NOT_SUPPORTED : answer(device, "memory");
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
	*milliwatts = (unsigned)setting(device, "power",
	                                300000 + 1000 * ((struct device *)device)->index);
	return answer(device, "power");
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts)
{
	*milliwatts = 700000;
	return answer(device, "power_limit");
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
	*celsius = sensor == 0 ? 40 + (unsigned)((struct device *)device)->index : 99;
	return answer(device, "temperature");
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process_info *infos)
{
	unsigned pid = first_process(device), room = *count;
	unsigned n = (unsigned)setting(device, "processes", pid ? 1 : 0);
	bool mig = setting(device, "migs", 0) > 0;

	*count = n;
	if (n > room)
		return INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < n; i++)
		infos[i] = (struct process_info){
			pid + i, (unsigned long long)setting(device, "process_mib", 1024) << 20,
			mig ? 1 : ~0u, mig ? 0 : ~0u
		};
	return answer(device, "processes");
}

/*
 * A sample a second of each process that used the GPU, an older one before it. As the real one
 * does, it tells of them however old they are ("process_late", seconds).
 */
int nvmlDeviceGetProcessUtilization(void *device, struct process_utilization *samples,
                                    unsigned *count, unsigned long long since_us)
{
	unsigned pid = first_process(device), room = *count, busy;
	unsigned n = (unsigned)setting(device, "processes", pid ? 1 : 0);
	unsigned long long now_us =
		(unsigned long long)(time(NULL) - (time_t)setting(device, "process_late", 0)) *
		1000000;

	busy = (unsigned)setting(device, "process_busy", 25);
	if (setting(device, "migs", 0) > 0)
		return NOT_SUPPORTED;
	if (!n || !busy)
		return NOT_FOUND;
	*count = 2 * n;
	if (2 * n > room)
		return INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < 2 * n; i++)
		samples[i] = (struct process_utilization){
			.pid = pid + i / 2,
			.time_us = now_us - (i % 2 ? 0 : 1000000),
			.sm = i % 2 ? busy : 99,
		};
	return answer(device, "process_utilization");
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size)
{
	const struct device *of = device;

	snprintf(uuid, size, "%s-00000000-0000-0000-0000-%011x%x", of->mig >= 0 ? "MIG" : "GPU",
	         of->mig + 1, of->index);
	return answer(device, "uuid");
}

int nvmlDeviceGetPciInfo_v3(void *device, struct pci_info *pci)
{
	snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02x:00.0",
	         0x18 + ((struct device *)device)->index);
	return fails("figures") ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
	*major = 9;
	*minor = 0;
	return fails("figures") ? NOT_SUPPORTED : SUCCESS;
}

/* 1: of multiprocessors, 2: of memory. */
int nvmlDeviceGetMaxClockInfo(void *device, int clock, unsigned *mhz)
{
	*mhz = clock == 2 ? 3201 : 1980;
	return fails("figures") ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetMemoryBusWidth(void *device, unsigned *bits)
{
	*bits = 6144;
	return fails("figures") || fails("v2") ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetNumGpuCores(void *device, unsigned *cores)
{
	*cores = 16896;
	return fails("figures") || fails("v2") ? NOT_SUPPORTED : SUCCESS;
}

const char *nvmlErrorString(int result)
{
	return result == DRIVER_NOT_LOADED ? "Driver Not Loaded"
	       : result == GPU_IS_LOST     ? "GPU is lost"
	                                   : "Unknown Error";
}
