// SPDX-License-Identifier: MIT
#include "gpus/nvml/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "gpus/gpu_limits.h"
#include "gpus/nvml/gpm.h"
#include "gpus/nvml/library_path.h"
#include "gpus/nvml/nvml_calls.h"

#define PAUSE_NS 60000000000ull /* without a sample: a program that was stopped */

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
	ROW(driver, "nvmlSystemGetDriverVersion", false),
	ROW(energy, "nvmlDeviceGetTotalEnergyConsumption", false),
	ROW(clock, "nvmlDeviceGetClockInfo", false),
	ROW(throttle, "nvmlDeviceGetCurrentClocksEventReasons", false), /* since driver 535 */
	ROW(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons", false),
	ROW(performance, "nvmlDeviceGetPerformanceState", false),
	ROW(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", false),
	ROW(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", false),
	ROW(ecc, "nvmlDeviceGetTotalEccErrors", false),
	ROW(fields, "nvmlDeviceGetFieldValues", false),
	ROW(mig_mode, "nvmlDeviceGetMigMode", false),
	ROW(mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex", false),
	ROW(gpu_instance, "nvmlDeviceGetGpuInstanceId", false),
	ROW(compute_instance, "nvmlDeviceGetComputeInstanceId", false),
	ROW(event_set, "nvmlEventSetCreate", false),
	ROW(event_free, "nvmlEventSetFree", false),
	ROW(event_register, "nvmlDeviceRegisterEvents", false),
	ROW(event_wait, "nvmlEventSetWait_v2", false),
	ROW(gpm_support, "nvmlGpmQueryDeviceSupport", false), /* these five: since driver 520 */
	ROW(gpm_alloc, "nvmlGpmSampleAlloc", false),
	ROW(gpm_free, "nvmlGpmSampleFree", false),
	ROW(gpm_sample, "nvmlGpmSampleGet", false),
	ROW(gpm_metrics, "nvmlGpmMetricsGet", false),
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

const char *nvml_error(const struct nvml *nvml, int result)
{
	return nvml->error ? nvml->error(result) : "it failed";
}

/* Where it is in no place that is known, the loader looks for it as root has told it to. */
static void *load_library(const char *folders, char *why, size_t size)
{
	char path[4096], refused[4096];
	void *library;

	library_path_find(NVML_LIBRARY, folders, path, sizeof(path), refused, sizeof(refused));
	library = dlopen(*path ? path : NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library)
		return library;
	if (*path)
		snprintf(why, size, "no GPU figures: %s", dlerror());
	else if (*refused)
		snprintf(why, size, "no GPU figures: others than root may change %s", refused);
	else
		snprintf(why, size, "no GPU figures: " NVML_LIBRARY " is not installed here");
	return NULL;
}

/* Loads and initialises; on failure the sentence is in `why`. */
static bool load(struct nvml *nvml, const char *folders, char *why, size_t size)
{
	const char *missing;
	int result;

	nvml->library = load_library(folders, why, size);
	if (!nvml->library)
		return false;
	missing = find_functions(nvml);
	if (missing) {
		snprintf(why, size, "no GPU figures: " NVML_LIBRARY " has no %s", missing);
		return false;
	}
	result = nvml->init();
	if (result != NVML_SUCCESS) {
		snprintf(why, size, "no GPU figures: " NVML_LIBRARY ": %s",
		         nvml_error(nvml, result));
		return false;
	}
	return true;
}

struct nvml *nvml_open(const char *folders, char *why, size_t size)
{
	struct nvml *nvml = xcalloc(1, sizeof(*nvml));

	if (load(nvml, folders, why, size))
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
	for (size_t i = 0; i < GPUS_MAX; i++)
		gpm_close(nvml->gpm[i]);
	nvml->shutdown();
	dlclose(nvml->library);
	free(nvml);
}

/* ---- reading ------------------------------------------------------------------------------- */

static void read_memory(struct nvml *nvml, gpu_handle handle, struct gpu *gpu)
{
	struct memory_v2 v2 = { .version = MEMORY_V2 };
	struct nvml_memory v1;

	if (nvml->memory_v2 && nvml->memory_v2(handle, &v2) == NVML_SUCCESS) {
		gpu->memory_used_bytes = (int64_t)v2.used;
		gpu->memory_total_bytes = (int64_t)v2.total;
	} else if (nvml->memory && nvml->memory(handle, &v1) == NVML_SUCCESS) {
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
	if (nvml->max_clock(handle, NVML_CLOCK_SM, &mhz) == NVML_SUCCESS)
		gpu->clock_hz = mhz * 1000000ll;
	if (nvml->bus_width && nvml->bus_width(handle, &bits) == NVML_SUCCESS &&
	    nvml->max_clock(handle, NVML_CLOCK_MEM, &mhz) == NVML_SUCCESS)
		gpu->memory_bandwidth = mhz * 1000000ll * 2 * (bits / 8);
}

/* NVML does not tell of multiprocessors, but of the cores in them. */
static void read_multiprocessors(struct nvml *nvml, gpu_handle handle, struct gpu *gpu)
{
	const struct gpu_limits *limits;
	unsigned cores;
	int major, minor;

	if (!nvml->compute || nvml->compute(handle, &major, &minor) != NVML_SUCCESS)
		return;
	gpu->compute_major = major;
	gpu->compute_minor = minor;
	limits = gpu_limits((uint32_t)major, (uint32_t)minor);
	if (limits && nvml->cores && nvml->cores(handle, &cores) == NVML_SUCCESS)
		gpu->multiprocessors = (int)(cores / limits->cores);
}

static void read_identity(struct nvml *nvml, gpu_handle handle, struct gpu *gpu)
{
	struct pci pci;

	if (!nvml->uuid || nvml->uuid(handle, gpu->uuid, sizeof(gpu->uuid)) != NVML_SUCCESS)
		gpu->uuid[0] = '\0';
	gpu->uuid[sizeof(gpu->uuid) - 1] = '\0';
	if (nvml->pci && nvml->pci(handle, &pci) == NVML_SUCCESS)
		snprintf(gpu->bus, sizeof(gpu->bus), "%.*s", (int)sizeof(pci.bus_id), pci.bus_id);
}

static void read_gpu(struct nvml *nvml, gpu_handle handle, struct gpu *gpu)
{
	struct utilization utilization;
	unsigned number;

	if (!nvml->name || nvml->name(handle, gpu->name, sizeof(gpu->name)) != NVML_SUCCESS)
		snprintf(gpu->name, sizeof(gpu->name), "GPU");
	gpu->name[sizeof(gpu->name) - 1] = '\0';
	read_identity(nvml, handle, gpu);
	read_clocks(nvml, handle, gpu);
	read_multiprocessors(nvml, handle, gpu);
	if (nvml->utilization && nvml->utilization(handle, &utilization) == NVML_SUCCESS)
		gpu->busy_percent = (int)utilization.gpu;
	read_memory(nvml, handle, gpu);
	if (nvml->power && nvml->power(handle, &number) == NVML_SUCCESS)
		gpu->power_mw = number;
	if (nvml->power_limit && nvml->power_limit(handle, &number) == NVML_SUCCESS)
		gpu->power_limit_mw = number;
	if (nvml->temperature &&
	    nvml->temperature(handle, NVML_SENSOR_GPU, &number) == NVML_SUCCESS)
		gpu->temperature_c = (int)number;
}

static int whole_percent(int64_t hundredths)
{
	return hundredths < 0 ? GPU_UNKNOWN : (int)((hundredths + 50) / 100);
}

static void read_metrics(struct nvml *nvml, unsigned i, gpu_handle handle, struct gpu *gpu)
{
	struct gpu_metrics_sample sample;
	uint64_t graphics_ns;
	int result;

	if (!nvml->gpm[i])
		nvml->gpm[i] = gpm_open(nvml, handle);
	if (!nvml->gpm[i] ||
	    !gpm_read(nvml->gpm[i], handle, PAUSE_NS, &sample, &graphics_ns, &result))
		return;
	gpu->sm_percent = whole_percent(sample.value[GPU_METRIC_SM]);
	gpu->tensor_percent = whole_percent(sample.value[GPU_METRIC_TENSOR]);
	gpu->dram_percent = whole_percent(sample.value[GPU_METRIC_DRAM]);
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

	if (!nvml->processes || nvml->processes(handle, &n, nvml->infos) != NVML_SUCCESS)
		return;
	for (unsigned i = 0; i < n && i < GPU_PROCESSES_MAX; i++)
		add_process(sample, &nvml->infos[i]);
}

void nvml_sample(struct nvml *nvml, struct gpus_sample *sample)
{
	unsigned count = 0;
	int result = nvml->count(&count);

	sample->n = sample->n_processes = 0;
	if (result != NVML_SUCCESS)
		snprintf(sample->why, sizeof(sample->why), NVML_LIBRARY ": %s",
		         nvml_error(nvml, result));
	else if (count > GPUS_MAX)
		snprintf(sample->why, sizeof(sample->why), "%u more GPUs are not shown",
		         count - GPUS_MAX);
	for (unsigned i = 0; i < count && i < GPUS_MAX; i++) {
		struct gpu *gpu = &sample->gpus[sample->n];
		gpu_handle handle;

		*gpu = gpu_unknown;
		if (nvml->handle(i, &handle) != NVML_SUCCESS)
			continue;
		read_gpu(nvml, handle, gpu);
		read_processes(nvml, handle, sample);
		if (nvml->samples) /* who asks once has no use for means */
			read_metrics(nvml, i, handle, gpu);
		sample->n++;
	}
	nvml->samples++;
}
