// SPDX-License-Identifier: MIT
/*
 * Prototypes and layouts are those of NVML's public interface, which keeps them for good: what
 * changes gets a new suffix (_v2, _v3). Source: NVML API Reference
 * (docs.nvidia.com/deploy/nvml-api); compared with nvidia-smi on an H200 with driver 580.159.04.
 */
#include "gpus/nvml.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "gpus/gpu_limits.h"

#define LIBRARY "libnvidia-ml.so.1"

#define SUCCESS    0
#define SENSOR_GPU 0 /* nvmlTemperatureSensors_t */
#define CLOCK_SM   1 /* nvmlClockType_t */
#define CLOCK_MEM  2

typedef struct nvmlDevice_st *gpu_handle; /* nvmlDevice_t, opaque */

struct utilization { /* nvmlUtilization_t: percent */
	unsigned gpu, memory;
};

struct nvml_memory { /* nvmlMemory_t: bytes; `used` has what the driver keeps for itself in it */
	unsigned long long total, free, used;
};

struct memory_v2 { /* nvmlMemory_v2_t: `used` is what nvidia-smi shows */
	unsigned version;
	unsigned long long total, reserved, free, used;
};

struct pci { /* nvmlPciInfo_t */
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char bus_id[32];
};

#define MEMORY_V2 (sizeof(struct memory_v2) | 2u << 24)

/* nvmlProcessInfo_v2_t, which both _v2 and _v3 of the call fill */
struct process_info {
	unsigned pid;
	unsigned long long used_bytes; /* ~0: not available */
	unsigned gpu_instance, compute_instance;
};

_Static_assert(sizeof(struct process_info) == 24, "nvmlProcessInfo_v2_t");
_Static_assert(sizeof(struct memory_v2) == 40, "nvmlMemory_v2_t");
_Static_assert(sizeof(struct pci) == 68, "nvmlPciInfo_t");

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *count);
	int (*handle)(unsigned index, gpu_handle *gpu);
	int (*name)(gpu_handle handle, char *name, unsigned size);
	int (*utilization)(gpu_handle handle, struct utilization *utilization);
	int (*memory)(gpu_handle handle, struct nvml_memory *memory);
	int (*memory_v2)(gpu_handle handle, struct memory_v2 *memory); /* since driver 510 */
	int (*power)(gpu_handle handle, unsigned *milliwatts);
	int (*power_limit)(gpu_handle handle, unsigned *milliwatts);
	int (*temperature)(gpu_handle handle, int sensor, unsigned *celsius);
	int (*processes)(gpu_handle handle, unsigned *count, struct process_info *infos);
	int (*uuid)(gpu_handle handle, char *uuid, unsigned size);
	int (*pci)(gpu_handle handle, struct pci *pci);
	int (*compute)(gpu_handle handle, int *major, int *minor);
	int (*max_clock)(gpu_handle handle, int clock, unsigned *mhz);
	int (*bus_width)(gpu_handle handle, unsigned *bits); /* these two: since driver 495 */
	int (*cores)(gpu_handle handle, unsigned *cores);
	const char *(*error)(int result);
	/* the first drivers of 535 wrote entries of 32 bytes: room for that many of those */
	struct process_info infos[GPU_PROCESSES_MAX * 4 / 3 + 1];
};

/* ---- loading ------------------------------------------------------------------------------- */

struct nvml_function {
	const char *name;
	size_t offset;
	bool needed;
};

#define ROW(member, name, needed)                                                                  \
	{                                                                                          \
		name, offsetof(struct nvml, member), needed                                        \
	}

static const struct nvml_function functions[] = {
	ROW(init, "nvmlInit_v2", true),
	ROW(shutdown, "nvmlShutdown", true),
	ROW(count, "nvmlDeviceGetCount_v2", true),
	ROW(handle, "nvmlDeviceGetHandleByIndex_v2", true),
	ROW(name, "nvmlDeviceGetName", false),
	ROW(utilization, "nvmlDeviceGetUtilizationRates", false),
	ROW(memory, "nvmlDeviceGetMemoryInfo", false),
	ROW(memory_v2, "nvmlDeviceGetMemoryInfo_v2", false),
	ROW(power, "nvmlDeviceGetPowerUsage", false),
	ROW(power_limit, "nvmlDeviceGetEnforcedPowerLimit", false),
	ROW(temperature, "nvmlDeviceGetTemperature", false),
	ROW(processes, "nvmlDeviceGetComputeRunningProcesses_v3", false),
	ROW(processes, "nvmlDeviceGetComputeRunningProcesses_v2", false),
	ROW(uuid, "nvmlDeviceGetUUID", false),
	ROW(pci, "nvmlDeviceGetPciInfo_v3", false),
	ROW(compute, "nvmlDeviceGetCudaComputeCapability", false),
	ROW(max_clock, "nvmlDeviceGetMaxClockInfo", false),
	ROW(bus_width, "nvmlDeviceGetMemoryBusWidth", false),
	ROW(cores, "nvmlDeviceGetNumGpuCores", false),
	ROW(error, "nvmlErrorString", false),
};

/* What is not there stays NULL; of rows for one member the first that is there counts. */
static const char *find_functions(struct nvml *nvml)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		void **slot = (void **)((char *)nvml + functions[i].offset);

		if (!*slot)
			*slot = dlsym(nvml->library, functions[i].name);
		if (!*slot && functions[i].needed)
			return functions[i].name;
	}
	return NULL;
}

/*
 * A static glibc loads only libraries that were made for the very same glibc, and then a second C
 * library with them. The kernel gives a program without an interpreter no base of one.
 */
bool nvml_is_static(void)
{
	return getauxval(AT_BASE) == 0;
}

static const char *error_text(const struct nvml *nvml, int result)
{
	return nvml->error ? nvml->error(result) : "it failed";
}

/* Loads and initialises; on failure the sentence is in `why`. */
static bool load(struct nvml *nvml, char *why, size_t size)
{
	const char *missing;
	int result;

	nvml->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library) {
		snprintf(why, size, "no GPU figures: " LIBRARY " is not installed here");
		return false;
	}
	missing = find_functions(nvml);
	if (missing) {
		snprintf(why, size, "no GPU figures: " LIBRARY " has no %s", missing);
		return false;
	}
	result = nvml->init();
	if (result != SUCCESS) {
		snprintf(why, size, "no GPU figures: " LIBRARY ": %s", error_text(nvml, result));
		return false;
	}
	return true;
}

struct nvml *nvml_open(char *why, size_t size)
{
	struct nvml *nvml;

	if (nvml_is_static()) {
		snprintf(why, size,
		         "no GPU figures: a static cuscope asks nvidia-smi for them, which is not "
		         "here");
		return NULL;
	}
	nvml = xcalloc(1, sizeof(*nvml));
	if (load(nvml, why, size))
		return nvml;
	if (nvml->library)
		dlclose(nvml->library);
	free(nvml);
	return NULL;
}

void nvml_close(struct nvml *nvml)
{
	if (!nvml)
		return;
	nvml->shutdown();
	dlclose(nvml->library);
	free(nvml);
}

/* ---- reading ------------------------------------------------------------------------------- */

static void read_memory(struct nvml *nvml, gpu_handle handle, struct gpu *gpu)
{
	struct memory_v2 v2 = { .version = MEMORY_V2 };
	struct nvml_memory v1;

	if (nvml->memory_v2 && nvml->memory_v2(handle, &v2) == SUCCESS) {
		gpu->memory_used_bytes = (int64_t)v2.used;
		gpu->memory_total_bytes = (int64_t)v2.total;
	} else if (nvml->memory && nvml->memory(handle, &v1) == SUCCESS) {
		gpu->memory_used_bytes = (int64_t)v1.used;
		gpu->memory_total_bytes = (int64_t)v1.total;
	}
}

/* Memory is clocked on both edges. */
static void read_clocks(struct nvml *nvml, gpu_handle handle, struct gpu *gpu)
{
	unsigned mhz, bits;

	if (!nvml->max_clock)
		return;
	if (nvml->max_clock(handle, CLOCK_SM, &mhz) == SUCCESS)
		gpu->clock_hz = mhz * 1000000ll;
	if (nvml->bus_width && nvml->bus_width(handle, &bits) == SUCCESS &&
	    nvml->max_clock(handle, CLOCK_MEM, &mhz) == SUCCESS)
		gpu->memory_bandwidth = mhz * 1000000ll * 2 * (bits / 8);
}

/* NVML does not tell of multiprocessors, but of the cores in them. */
static void read_multiprocessors(struct nvml *nvml, gpu_handle handle, struct gpu *gpu)
{
	const struct gpu_limits *limits;
	unsigned cores;
	int major, minor;

	if (!nvml->compute || nvml->compute(handle, &major, &minor) != SUCCESS)
		return;
	gpu->compute_major = major;
	gpu->compute_minor = minor;
	limits = gpu_limits((uint32_t)major, (uint32_t)minor);
	if (limits && nvml->cores && nvml->cores(handle, &cores) == SUCCESS)
		gpu->multiprocessors = (int)(cores / limits->cores);
}

static void read_identity(struct nvml *nvml, gpu_handle handle, struct gpu *gpu)
{
	struct pci pci;

	if (!nvml->uuid || nvml->uuid(handle, gpu->uuid, sizeof(gpu->uuid)) != SUCCESS)
		gpu->uuid[0] = '\0';
	gpu->uuid[sizeof(gpu->uuid) - 1] = '\0';
	if (nvml->pci && nvml->pci(handle, &pci) == SUCCESS)
		snprintf(gpu->bus, sizeof(gpu->bus), "%.*s", (int)sizeof(pci.bus_id), pci.bus_id);
}

static void read_gpu(struct nvml *nvml, gpu_handle handle, struct gpu *gpu)
{
	struct utilization utilization;
	unsigned number;

	if (!nvml->name || nvml->name(handle, gpu->name, sizeof(gpu->name)) != SUCCESS)
		snprintf(gpu->name, sizeof(gpu->name), "GPU");
	gpu->name[sizeof(gpu->name) - 1] = '\0';
	read_identity(nvml, handle, gpu);
	read_clocks(nvml, handle, gpu);
	read_multiprocessors(nvml, handle, gpu);
	if (nvml->utilization && nvml->utilization(handle, &utilization) == SUCCESS)
		gpu->busy_percent = (int)utilization.gpu;
	read_memory(nvml, handle, gpu);
	if (nvml->power && nvml->power(handle, &number) == SUCCESS)
		gpu->power_mw = number;
	if (nvml->power_limit && nvml->power_limit(handle, &number) == SUCCESS)
		gpu->power_limit_mw = number;
	if (nvml->temperature && nvml->temperature(handle, SENSOR_GPU, &number) == SUCCESS)
		gpu->temperature_c = (int)number;
}

static void add_process(struct gpus_sample *sample, const struct process_info *info)
{
	if (info->used_bytes == ~0ull)
		return;
	for (size_t i = 0; i < sample->n_processes; i++) {
		if (sample->processes[i].pid == info->pid) {
			sample->processes[i].bytes += info->used_bytes;
			return;
		}
	}
	if (sample->n_processes < GPU_PROCESSES_MAX)
		sample->processes[sample->n_processes++] =
			(struct gpu_process){ info->pid, info->used_bytes };
}

static void read_processes(struct nvml *nvml, gpu_handle handle, struct gpus_sample *sample)
{
	unsigned n = GPU_PROCESSES_MAX;

	if (!nvml->processes || nvml->processes(handle, &n, nvml->infos) != SUCCESS)
		return;
	for (unsigned i = 0; i < n && i < GPU_PROCESSES_MAX; i++)
		add_process(sample, &nvml->infos[i]);
}

static const struct gpu unknown_gpu = {
	.busy_percent = GPU_UNKNOWN,
	.memory_used_bytes = GPU_UNKNOWN,
	.memory_total_bytes = GPU_UNKNOWN,
	.power_mw = GPU_UNKNOWN,
	.power_limit_mw = GPU_UNKNOWN,
	.temperature_c = GPU_UNKNOWN,
	.compute_major = GPU_UNKNOWN,
	.compute_minor = GPU_UNKNOWN,
	.multiprocessors = GPU_UNKNOWN,
	.clock_hz = GPU_UNKNOWN,
	.memory_bandwidth = GPU_UNKNOWN,
};

void nvml_sample(struct nvml *nvml, struct gpus_sample *sample)
{
	unsigned count = 0;
	int result = nvml->count(&count);

	sample->n = sample->n_processes = 0;
	if (result != SUCCESS)
		snprintf(sample->why, sizeof(sample->why), LIBRARY ": %s",
		         error_text(nvml, result));
	else if (count > GPUS_MAX)
		snprintf(sample->why, sizeof(sample->why), "%u more GPUs are not shown",
		         count - GPUS_MAX);
	for (unsigned i = 0; i < count && i < GPUS_MAX; i++) {
		struct gpu *gpu = &sample->gpus[sample->n];
		gpu_handle handle;

		*gpu = unknown_gpu;
		if (nvml->handle(i, &handle) != SUCCESS)
			continue;
		read_gpu(nvml, handle, gpu);
		read_processes(nvml, handle, sample);
		sample->n++;
	}
}

/* ---- without it ---------------------------------------------------------------------------- */

/*
 * "Model: \t\t NVIDIA H200" is a line of the file. The UUID of a GPU that sleeps has question
 * marks: then it is not known.
 */
static bool read_information(const char *path, struct gpu *gpu)
{
	FILE *file = fopen(path, "re");
	char line[160];
	bool found = false;

	while (file && fgets(line, sizeof(line), file)) {
		found |= sscanf(line, "Model: %95[^\n]", gpu->name) == 1;
		sscanf(line, "GPU UUID: %47s", gpu->uuid);
		sscanf(line, "Bus Location: %31s", gpu->bus);
	}
	if (strchr(gpu->uuid, '?'))
		gpu->uuid[0] = '\0';
	if (file)
		fclose(file);
	return found;
}

void gpus_from_proc(struct gpus_sample *sample)
{
	glob_t found = { 0 };

	sample->n = sample->n_processes = 0;
	if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc && sample->n < GPUS_MAX; i++) {
			sample->gpus[sample->n] = unknown_gpu;
			sample->n += read_information(found.gl_pathv[i], &sample->gpus[sample->n]);
		}
	}
	globfree(&found);
}
