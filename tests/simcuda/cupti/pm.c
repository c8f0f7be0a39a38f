// SPDX-License-Identifier: MIT
/*
 * PM sampling of the simulated GPUs, whatever process uses them: from what the simulated driver
 * notes in SIMCUDA_BUSY. Of CUDA 12.8 and newer; it needs libnvperf_host.so to be loaded. As on an
 * H200 a decoding looks what there is 45 us after it began, samples that an image has no room for
 * are lost, and what is enabled keeps its first interval.
 *
 *   SIMCUPTI_PM_BUFFER=N   the hardware's buffer has room for N samples
 *   SIMCUPTI_PM_FULL=1     an image that is full gives CUPTI_ERROR_OUT_OF_MEMORY, and that is soon
 *   SIMCUPTI_PM_PLAIN=1    engines are not told: neither of kernels nor of copies
 *   SIMCUPTI_PM_COST_NS=N  what a sample takes of a CPU
 *   SIMCUPTI_PM_DECODE_NS=N what a decoding does, however few samples it has
 *   SIMCUPTI_PM_SLOW_NS=N  what a sample waits for
 *   SIMCUPTI_PM_CLEAR_NS=N what clearing an image takes of a CPU
 *   SIMCUPTI_PM_HANG=N     after N times decoding does not return any more
 */
#include "cupti.h"

#if CUPTI_RELEASE >= 12080

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../busy_log.h"
#include "gpus/nvml/pm_calls.h"

#define DEVICES  8
#define SAMPLES  4096
#define LOOKS_NS 45000

struct pm_object_of { /* of a device */
	uint32_t device;
	bool enabled, runs;
	uint64_t interval_ns, next_ns; /* where the next sample begins */
	unsigned long decoded;
	uint32_t image_room; /* samples */
};

struct pm_image {
	uint32_t n, room;
	struct {
		uint64_t begin, end;
		double busy, copies; /* percent */
	} of[SAMPLES];
};

static struct busy_log *busy;
static struct pm_object_of objects[DEVICES];
static unsigned long room, plain, full, cost_ns, decode_ns, slow_ns, clear_ns, hang_after;

static unsigned long number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoul(text, NULL, 10) : otherwise;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#define PM_CALL(name, type)                                                                        \
	CUPTI_API enum result name(type *given);                                                   \
	enum result name(type *given)

PM_CALL(cuptiProfilerInitialize, struct pm_plain)
{
	FAIL_ON_DEMAND();
	if (!dlopen("libnvperf_host.so", RTLD_NOW | RTLD_NOLOAD))
		return RESULT_UNKNOWN;
	busy = busy_log_open();
	room = number("SIMCUPTI_PM_BUFFER", 1000000);
	plain = number("SIMCUPTI_PM_PLAIN", 0);
	full = number("SIMCUPTI_PM_FULL", 0);
	cost_ns = number("SIMCUPTI_PM_COST_NS", 0);
	decode_ns = number("SIMCUPTI_PM_DECODE_NS", 0);
	slow_ns = number("SIMCUPTI_PM_SLOW_NS", 0);
	clear_ns = number("SIMCUPTI_PM_CLEAR_NS", 0);
	hang_after = number("SIMCUPTI_PM_HANG", 0);
	return RESULT_SUCCESS;
}

PM_CALL(cuptiDeviceGetChipName, struct pm_chip)
{
	FAIL_ON_DEMAND();
	given->name = "SIM100";
	return given->device < DEVICES ? RESULT_SUCCESS : RESULT_INVALID_PARAMETER;
}

PM_CALL(cuptiPmSamplingGetCounterAvailability, struct pm_availability)
{
	FAIL_ON_DEMAND();
	given->bytes = 16;
	return RESULT_SUCCESS;
}

/* Names that this host object was given, as bits. */
struct pm_host_of {
	uint32_t n, known[16];
};

static const char *const names[] = {
	"sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
	"gr__cycles_active.avg.pct_of_peak_sustained_elapsed",
	"gpu__engine_cycles_active_any_syncce.avg.pct_of_peak_sustained_elapsed",
	"dram__throughput.avg.pct_of_peak_sustained_elapsed",
	"sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
};
enum { NAME_SM, NAME_ENGINE, NAME_COPY, NAME_DRAM, NAME_TENSOR, NAMES };

static uint32_t name_find(const char *name)
{
	uint32_t i = 0;

	while (i < NAMES && strcmp(names[i], name))
		i++;
	return plain && (i == NAME_ENGINE || i == NAME_COPY) ? NAMES : i;
}

PM_CALL(cuptiProfilerHostInitialize, struct pm_host)
{
	FAIL_ON_DEMAND();
	given->host = calloc(1, sizeof(struct pm_host_of));
	return given->type == PM_TYPE ? RESULT_SUCCESS : RESULT_INVALID_PARAMETER;
}

PM_CALL(cuptiProfilerHostDeinitialize, struct pm_object)
{
	FAIL_ON_DEMAND();
	free(given->object);
	return RESULT_SUCCESS;
}

PM_CALL(cuptiProfilerHostConfigAddMetrics, struct pm_add)
{
	FAIL_ON_DEMAND();
	for (size_t i = 0; i < given->n; i++) {
		if (name_find(given->names[i]) == NAMES)
			return RESULT_INVALID_PARAMETER;
	}
	((struct pm_host_of *)given->host)->n = (uint32_t)given->n;
	return RESULT_SUCCESS;
}

PM_CALL(cuptiProfilerHostGetConfigImageSize, struct pm_config_size)
{
	FAIL_ON_DEMAND();
	given->bytes = sizeof(uint32_t);
	return RESULT_SUCCESS;
}

PM_CALL(cuptiProfilerHostGetConfigImage, struct pm_config)
{
	FAIL_ON_DEMAND();
	memcpy(given->image, given->host, sizeof(uint32_t));
	return RESULT_SUCCESS;
}

PM_CALL(cuptiProfilerHostGetNumOfPasses, struct pm_passes)
{
	FAIL_ON_DEMAND();
	given->n = 1;
	return RESULT_SUCCESS;
}

PM_CALL(cuptiPmSamplingEnable, struct pm_enable)
{
	FAIL_ON_DEMAND();
	if (given->device >= DEVICES)
		return RESULT_INVALID_PARAMETER;
	if (objects[given->device].enabled)
		return (enum result)PM_HARDWARE_BUSY;
	objects[given->device] =
		(struct pm_object_of){ .device = (uint32_t)given->device, .enabled = true };
	given->object = &objects[given->device];
	return RESULT_SUCCESS;
}

PM_CALL(cuptiPmSamplingDisable, struct pm_object)
{
	FAIL_ON_DEMAND();
	((struct pm_object_of *)given->object)->enabled = false;
	return RESULT_SUCCESS;
}

PM_CALL(cuptiPmSamplingSetConfig, struct pm_set)
{
	FAIL_ON_DEMAND();
	struct pm_object_of *object = given->object;
	if (!object->interval_ns)
		object->interval_ns = given->interval;
	return RESULT_SUCCESS;
}

PM_CALL(cuptiPmSamplingGetCounterDataSize, struct pm_data_size)
{
	FAIL_ON_DEMAND();
	given->bytes = sizeof(struct pm_image);
	((struct pm_object_of *)given->object)->image_room = (uint32_t)given->samples;
	return given->samples <= SAMPLES ? RESULT_SUCCESS : RESULT_INVALID_PARAMETER;
}

static void spin(uint64_t ns)
{
	uint64_t until = now_ns() + ns;

	while (ns && now_ns() < until)
		;
}

PM_CALL(cuptiPmSamplingCounterDataImageInitialize, struct pm_data)
{
	FAIL_ON_DEMAND();
	struct pm_object_of *object = given->object;
	((struct pm_image *)(void *)given->image)->room = full ? 256 : object->image_room;
	((struct pm_image *)(void *)given->image)->n = 0;
	spin(clear_ns);
	return RESULT_SUCCESS;
}

PM_CALL(cuptiPmSamplingStart, struct pm_object)
{
	FAIL_ON_DEMAND();
	struct pm_object_of *object = given->object;
	object->next_ns = now_ns();
	object->runs = true;
	return RESULT_SUCCESS;
}

PM_CALL(cuptiPmSamplingStop, struct pm_object)
{
	FAIL_ON_DEMAND();
	((struct pm_object_of *)given->object)->runs = false;
	return RESULT_SUCCESS;
}

static uint64_t common(const struct busy_entry *entry, uint64_t begin, uint64_t end)
{
	uint64_t from = entry->begin_ns > begin ? entry->begin_ns : begin;
	uint64_t to = entry->end_ns < end ? entry->end_ns : end;

	return to > from ? to - from : 0;
}

/* Entries come nearly in order: those of the last 512 that begin before this may be of it. */
static uint64_t entries_before(uint64_t n, uint64_t ns)
{
	uint64_t low = n > BUSY_ENTRIES ? n - BUSY_ENTRIES : 0, high = n;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (busy->entries[middle % BUSY_ENTRIES].begin_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low + 64 < n ? low + 64 : n;
}

/* Streams that run at once are not told apart from one that runs as long: shares end at 100. */
static void fill(const struct pm_object_of *object, struct pm_image *image)
{
	uint64_t begin = object->next_ns, end = begin + object->interval_ns, run[2] = { 0 };
	uint64_t n = busy ? entries_before(__atomic_load_n(&busy->n, __ATOMIC_ACQUIRE), end) : 0;

	for (uint64_t i = n > 512 ? n - 512 : 0; i < n; i++) {
		const struct busy_entry *entry = &busy->entries[i % BUSY_ENTRIES];

		if (__atomic_load_n(&entry->end_ns, __ATOMIC_ACQUIRE) > begin &&
		    entry->device == object->device && entry->begin_ns < end)
			run[entry->copies] += common(entry, begin, end);
	}
	image->of[image->n].begin = begin - settings.behind_ns;
	image->of[image->n].end = end - settings.behind_ns;
	for (int i = 0; i < 2; i++)
		run[i] = run[i] < object->interval_ns ? run[i] : object->interval_ns;
	image->of[image->n].busy = 100.0 * (double)run[0] / (double)object->interval_ns;
	image->of[image->n].copies = 100.0 * (double)run[1] / (double)object->interval_ns;
	image->n++;
}

static void take_time(void)
{
	spin(cost_ns);
	if (slow_ns)
		nanosleep(&(struct timespec){ .tv_nsec = (long)slow_ns }, NULL);
}

PM_CALL(cuptiPmSamplingDecodeData, struct pm_decode)
{
	FAIL_ON_DEMAND();
	struct pm_object_of *object = given->object;
	struct pm_image *image = (void *)given->image;
	uint64_t now;

	object->decoded++;
	spin(LOOKS_NS);
	now = now_ns();
	spin(decode_ns);
	while (hang_after && object->decoded > hang_after)
		sleep(1);
	given->overflow =
		now > object->next_ns && (now - object->next_ns) / object->interval_ns > room;
	if (given->overflow)
		object->next_ns = now;
	while (object->next_ns + object->interval_ns <= now && image->n < image->room) {
		fill(object, image);
		object->next_ns += object->interval_ns;
		take_time();
	}
	while (object->next_ns + object->interval_ns <= now)
		object->next_ns += object->interval_ns;
	given->stopped = image->n == image->room;
	return full && given->stopped ? (enum result)PM_OUT_OF_MEMORY : RESULT_SUCCESS;
}

PM_CALL(cuptiPmSamplingGetCounterDataInfo, struct pm_data_info)
{
	FAIL_ON_DEMAND();
	const struct pm_image *image = (const void *)given->image;
	given->room = image->room;
	given->populated = given->completed = image->n;
	return RESULT_SUCCESS;
}

PM_CALL(cuptiPmSamplingCounterDataGetSampleInfo, struct pm_sample_info)
{
	FAIL_ON_DEMAND();
	const struct pm_image *image = (const void *)given->image;
	if (given->index >= image->n)
		return RESULT_INVALID_PARAMETER;
	given->begin = image->of[given->index].begin;
	given->end = image->of[given->index].end;
	return RESULT_SUCCESS;
}

PM_CALL(cuptiProfilerHostEvaluateToGpuValues, struct pm_values)
{
	FAIL_ON_DEMAND();
	const struct pm_image *image = (const void *)given->image;
	if (given->index >= image->n)
		return RESULT_INVALID_PARAMETER;
	for (size_t i = 0; i < given->n; i++) {
		double busy_percent = image->of[given->index].busy;
		double copies = image->of[given->index].copies;
		const double values[NAMES + 1] = {
			[NAME_SM] = 0.6 * busy_percent,
			[NAME_ENGINE] = busy_percent,
			[NAME_COPY] = copies,
			[NAME_DRAM] = 0.3 * copies,
			[NAME_TENSOR] = 0.4 * busy_percent,
		};
		given->values[i] = values[name_find(given->names[i])];
	}
	return RESULT_SUCCESS;
}

#endif
