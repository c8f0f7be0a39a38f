// SPDX-License-Identifier: MIT
#include "gpus/nvml/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "base/clock.h"
#include "gpus/gpu_metrics.h"
#include "gpus/nvml/library_path.h"
#include "gpus/nvml/nvml_calls.h"

#define VERSION 1 /* of both structures */

/* The first pair after a pause came out as 0 and NaN on an H200: it is left out. */
#define READINGS_LEFT_OUT 2

#define MIB 1048576.0

/*
 * Metric 1, graphics, takes the driver 0.9 to 1.8 ms each time (580.159.04), and all others
 * together 0.01 ms. So it is asked for once a second, as the mean of that second. Readings of once
 * a second are no exact seconds apart.
 */
#define GRAPHICS_NS    1000000000ull
#define GRAPHICS_EARLY 50000000ull

#define READINGS 3 /* the newest, the one before, and that which graphics were asked for at */

struct gpm {
	const struct nvml *nvml;
	gpm_handle readings[READINGS];
	unsigned newest, graphics;
	unsigned n; /* readings since a pause, up to READINGS_LEFT_OUT */
	uint64_t newest_ns;
	uint64_t graphics_ns; /* when that reading was; 0: there is none since the pause */
	int64_t last_graphics;
	struct gpm_metrics query;
};

static bool has_functions(const struct nvml *nvml)
{
	return nvml->gpm_support && nvml->gpm_alloc && nvml->gpm_free && nvml->gpm_sample &&
	       nvml->gpm_metrics;
}

struct gpm *gpm_open(const struct nvml *nvml, gpu_handle handle)
{
	struct gpm_support support = { .version = VERSION };
	struct gpm *gpm;

	if (!has_functions(nvml) || nvml->gpm_support(handle, &support) != NVML_SUCCESS ||
	    !support.supported)
		return NULL;
	gpm = xcalloc(1, sizeof(*gpm));
	gpm->nvml = nvml;
	gpm->last_graphics = GPU_UNKNOWN;
	for (size_t i = 0; i < READINGS; i++) {
		if (nvml->gpm_alloc(&gpm->readings[i]) != NVML_SUCCESS) {
			gpm_close(gpm);
			return NULL;
		}
	}
	return gpm;
}

void gpm_close(struct gpm *gpm)
{
	if (!gpm)
		return;
	for (size_t i = 0; i < READINGS; i++) {
		if (gpm->readings[i])
			gpm->nvml->gpm_free(gpm->readings[i]);
	}
	free(gpm);
}

static bool is_asked_each_time(enum gpu_metric metric)
{
	return gpu_metric_info(metric)->gpm && metric != GPU_METRIC_GRAPHICS;
}

static int ask(struct gpm *gpm, unsigned first)
{
	gpm->query.version = VERSION;
	gpm->query.first = gpm->readings[first];
	gpm->query.second = gpm->readings[gpm->newest];
	return gpm->nvml->gpm_metrics(&gpm->query);
}

static int ask_for_most(struct gpm *gpm, unsigned first)
{
	struct gpm_metrics *query = &gpm->query;

	query->n = 0;
	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		if (is_asked_each_time(i))
			query->metrics[query->n++] =
				(struct gpm_metric){ .id = gpu_metric_info(i)->gpm };
	}
	return ask(gpm, first);
}

/* Hundredths of a percent, or bytes a second. What no GPU can have done is not believed. */
static int64_t number_of(const struct gpu_metric_info *info, double value)
{
	double number = info->is_rate ? value * MIB : value * 100;

	if (!(number >= 0) ||
	    number > (info->is_rate ? (double)GPU_RATE_MOST : 100.0 * GPU_SHARE_WHOLE))
		return GPU_UNKNOWN;
	return !info->is_rate && number > GPU_SHARE_WHOLE ? GPU_SHARE_WHOLE
	                                                  : (int64_t)(number + 0.5);
}

/* False where one of them is no number: then those beside it are 0, and not true either. */
static bool take_values(const struct gpm_metrics *query, struct gpu_metrics_sample *sample)
{
	const struct gpm_metric *metric = query->metrics;
	bool any = false;

	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		const struct gpu_metric_info *info = gpu_metric_info(i);

		sample->value[i] = GPU_UNKNOWN;
		if (!is_asked_each_time(i))
			continue;
		if (metric->result == NVML_SUCCESS && isnan(metric->value))
			return false;
		if (metric->result == NVML_SUCCESS)
			sample->value[i] = number_of(info, metric->value);
		any |= sample->value[i] != GPU_UNKNOWN;
		metric++;
	}
	return any;
}

/*
 * Whether it is time for it. After a pause it is at once, from the newest two readings, so that
 * something is known of what is short.
 */
static bool graphics_are_due(const struct gpm *gpm)
{
	return !gpm->graphics_ns ||
	       gpm->newest_ns - gpm->graphics_ns >= GRAPHICS_NS - GRAPHICS_EARLY;
}

/* The mean since the reading that they were asked for at before; what it begins at. */
static uint64_t ask_for_graphics(struct gpm *gpm, unsigned before, uint64_t before_ns)
{
	const struct gpu_metric_info *info = gpu_metric_info(GPU_METRIC_GRAPHICS);
	const struct gpm_metric *metric = &gpm->query.metrics[0];
	uint64_t begin_ns = gpm->graphics_ns ? gpm->graphics_ns : before_ns;
	unsigned first = gpm->graphics_ns ? gpm->graphics : before;

	gpm->query.n = 1;
	gpm->query.metrics[0] = (struct gpm_metric){ .id = info->gpm };
	gpm->last_graphics = GPU_UNKNOWN;
	if (ask(gpm, first) == NVML_SUCCESS && metric->result == NVML_SUCCESS &&
	    !isnan(metric->value))
		gpm->last_graphics = number_of(info, metric->value);
	gpm->graphics = gpm->newest;
	gpm->graphics_ns = gpm->newest_ns;
	return begin_ns;
}

static void begin_anew(struct gpm *gpm)
{
	gpm->n = 0;
	gpm->graphics_ns = 0;
	gpm->last_graphics = GPU_UNKNOWN;
}

/* That nobody needs any more. */
static unsigned spare_reading(const struct gpm *gpm)
{
	unsigned i = 0;

	while (i == gpm->newest || (gpm->graphics_ns && i == gpm->graphics))
		i++;
	return i;
}

bool gpm_read(struct gpm *gpm, gpu_handle handle, uint64_t pause_ns,
              struct gpu_metrics_sample *sample, uint64_t *graphics_ns, int *result)
{
	unsigned before = gpm->newest, next = spare_reading(gpm);
	uint64_t before_ns = gpm->newest_ns;

	*graphics_ns = 0;
	*result = gpm->nvml->gpm_sample(handle, gpm->readings[next]);
	if (*result != NVML_SUCCESS) {
		begin_anew(gpm);
		return false;
	}
	gpm->newest = next;
	gpm->newest_ns = clock_now_ns();
	if (gpm->newest_ns - before_ns > pause_ns)
		begin_anew(gpm);
	if (gpm->n < READINGS_LEFT_OUT) {
		gpm->n++;
		return false;
	}
	*result = ask_for_most(gpm, before);
	sample->source = GPU_METRICS_GPM;
	sample->begin_ns = before_ns;
	sample->end_ns = gpm->newest_ns;
	if (*result != NVML_SUCCESS || !take_values(&gpm->query, sample))
		return false;
	if (graphics_are_due(gpm))
		*graphics_ns = ask_for_graphics(gpm, before, before_ns);
	sample->value[GPU_METRIC_GRAPHICS] = gpm->last_graphics;
	return true;
}

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
	ROW(process_utilization, "nvmlDeviceGetProcessUtilization", false),
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
			sample->processes[i].gpus |= 1u << sample->n;
			sample->processes[i].bytes += info->used_bytes;
			return;
		}
	}
	if (sample->n_processes < GPU_PROCESSES_MAX)
		sample->processes[sample->n_processes++] =
			(struct gpu_process){ info->pid, 1u << sample->n, info->used_bytes };
	else
		sample->processes_cut = 1;
}

static void read_processes(struct nvml *nvml, gpu_handle handle, struct gpus_sample *sample)
{
	unsigned n = GPU_PROCESSES_MAX;

	if (!nvml->processes || nvml->processes(handle, &n, nvml->infos) != NVML_SUCCESS) {
		sample->processes_cut = 1; /* where there are too many it tells of none */
		return;
	}
	for (unsigned i = 0; i < n && i < GPU_PROCESSES_MAX; i++)
		add_process(sample, &nvml->infos[i]);
}

void nvml_sample(struct nvml *nvml, struct gpus_sample *sample)
{
	unsigned count = 0;
	int result = nvml->count(&count);

	sample->n = sample->n_processes = 0;
	sample->processes_cut = result != NVML_SUCCESS || count > GPUS_MAX;
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
		if (nvml->handle(i, &handle) != NVML_SUCCESS) {
			sample->processes_cut = 1;
			continue;
		}
		read_gpu(nvml, handle, gpu);
		read_processes(nvml, handle, sample);
		if (nvml->samples) /* who asks once has no use for means */
			read_metrics(nvml, i, handle, gpu);
		sample->n++;
	}
	nvml->samples++;
}
