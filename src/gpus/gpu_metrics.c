// SPDX-License-Identifier: MIT
#include "gpus/gpu_metrics.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "base/buf.h"
#include "gpus/gpu_state.h"
#include "gpus/gpus.h"

/* The ids are nvmlGpmMetricId_t's; shares in percent, rates in MiB a second. */
static const struct gpu_metric_info infos[GPU_METRICS_DRAWN] = {
	[GPU_METRIC_GRAPHICS] = { "graphics", "Graphics or compute engine", "an engine was busy",
	                          false, 1 },
	[GPU_METRIC_SM] = { "sm", "SM active", "multiprocessors that had a warp", false, 2 },
	[GPU_METRIC_OCCUPANCY] = { "occupancy", "SM occupancy",
	                           "warps, of those that there is room for", false, 3 },
	[GPU_METRIC_TENSOR] = { "tensor", "Tensor cores", "pipes of the tensor cores", false, 5 },
	[GPU_METRIC_FP32] = { "fp32", "FP32 pipe", "arithmetic in single precision", false, 12 },
	[GPU_METRIC_FP64] = { "fp64", "FP64 pipe", "arithmetic in double precision", false, 11 },
	[GPU_METRIC_FP16] = { "fp16", "FP16 pipe", "arithmetic in half precision", false, 13 },
	[GPU_METRIC_INTEGER] = { "integer", "Integer pipe", "arithmetic with integers", false, 4 },
	[GPU_METRIC_DRAM] = { "dram", "DRAM bandwidth", "bandwidth of the device's memory", false,
	                      10 },
	[GPU_METRIC_PCIE_TX] = { "pcie_tx", "PCIe from the GPU", "bytes a second", true, 20 },
	[GPU_METRIC_PCIE_RX] = { "pcie_rx", "PCIe to the GPU", "bytes a second", true, 21 },
	[GPU_METRIC_NVLINK_TX] = { "nvlink_tx", "NVLink from the GPU", "bytes a second", true, 61 },
	[GPU_METRIC_NVLINK_RX] = { "nvlink_rx", "NVLink to the GPU", "bytes a second", true, 60 },
	[GPU_METRIC_BUSY] = { "busy", "GPU utilisation", "a kernel ran", false, 0 },
	[GPU_METRIC_MEMORY_BUSY] = { "memory_busy", "Memory utilisation",
	                             "memory was read or written", false, 0 },
	[GPU_METRIC_SAMPLED_SM] = { "sm_sampled", "SM active, sampled",
	                            "multiprocessors that had a warp", false, 0 },
	[GPU_METRIC_SAMPLED_TENSOR] = { "tensor_sampled", "Tensor cores, sampled",
	                                "pipes of the tensor cores", false, 0 },
	[GPU_METRIC_SAMPLED_DRAM] = { "dram_sampled", "DRAM bandwidth, sampled",
	                              "bandwidth of the device's memory", false, 0 },
};

const struct gpu_metric_info *gpu_metric_info(enum gpu_metric metric)
{
	return &infos[metric];
}

enum gpu_metric gpu_metric_drawn(const struct gpu_metrics_sample *sample, enum gpu_metric metric)
{
	if (sample->value[metric] == GPU_METRIC_UNKNOWN)
		return GPU_METRICS_DRAWN;
	if (sample->source != GPU_METRICS_STRETCHES)
		return metric;
	switch (metric) {
	case GPU_METRIC_BUSY:
	case GPU_METRIC_MEMORY_BUSY:
		return metric;
	case GPU_METRIC_SM:
		return GPU_METRIC_SAMPLED_SM;
	case GPU_METRIC_TENSOR:
		return GPU_METRIC_SAMPLED_TENSOR;
	case GPU_METRIC_DRAM:
		return GPU_METRIC_SAMPLED_DRAM;
	default:
		return GPU_METRICS_DRAWN;
	}
}

const char *gpu_metrics_source_name(enum gpu_metrics_source source)
{
	static const char *const names[GPU_METRICS_SOURCES] = { "none", "gpm", "utilization",
		                                                "pm" };

	return source < GPU_METRICS_SOURCES ? names[source] : "unknown";
}

void gpu_metric_print(struct buf *out, enum gpu_metric metric, int64_t value)
{
	if (infos[metric].is_rate)
		buf_u64(out, (uint64_t)value);
	else
		buf_fixed(out, (uint64_t)value, 2);
}

static const struct gpu_limits all[] = {
	{ 5, 0, 128, 64, 32, 65536, 64, 48 },    { 5, 2, 128, 64, 32, 65536, 96, 48 },
	{ 5, 3, 128, 64, 32, 65536, 64, 48 },    { 6, 0, 64, 64, 32, 65536, 64, 48 },
	{ 6, 1, 128, 64, 32, 65536, 96, 48 },    { 6, 2, 128, 64, 32, 65536, 64, 48 },
	{ 7, 0, 64, 64, 32, 65536, 96, 96 },     { 7, 2, 64, 64, 32, 65536, 96, 96 },
	{ 7, 5, 64, 32, 16, 65536, 64, 64 },     { 8, 0, 64, 64, 32, 65536, 164, 163 },
	{ 8, 6, 128, 48, 16, 65536, 100, 99 },   { 8, 7, 128, 48, 16, 65536, 164, 163 },
	{ 8, 9, 128, 48, 24, 65536, 100, 99 },   { 9, 0, 128, 64, 32, 65536, 228, 227 },
	{ 10, 0, 128, 64, 32, 65536, 228, 227 }, { 10, 3, 128, 64, 32, 65536, 228, 227 },
	{ 12, 0, 128, 48, 24, 65536, 100, 99 },  { 12, 1, 128, 48, 24, 65536, 100, 99 },
};

const struct gpu_limits *gpu_limits(uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i].major == major && all[i].minor == minor)
			return &all[i];
	}
	return NULL;
}

#define PARTITIONS     4   /* of a multiprocessor: each has its part of the registers */
#define REGISTER_PIECE 256 /* that a warp is given */

static uint64_t rounded_up(uint64_t value, uint64_t piece)
{
	return (value + piece - 1) / piece * piece;
}

static uint64_t blocks_by_registers(const struct gpu_limits *limits, uint64_t warps,
                                    uint32_t registers)
{
	uint64_t of_warp = rounded_up((uint64_t)registers * GPU_THREADS_PER_WARP, REGISTER_PIECE);

	return of_warp ? limits->registers / PARTITIONS / of_warp * PARTITIONS / warps
	               : limits->blocks;
}

/* Since compute capability 8.0 CUDA keeps a KiB of each block for itself. */
static uint64_t blocks_by_shmem(const struct gpu_limits *limits, uint64_t shmem)
{
	bool late = limits->major >= 8;
	uint64_t of_block = rounded_up(shmem + (late ? 1024 : 0), late ? 128 : 256);

	return of_block ? (uint64_t)limits->shmem_kib * 1024 / of_block : limits->blocks;
}

uint32_t gpu_resident_blocks(const struct gpu_limits *limits, uint64_t block_threads,
                             uint32_t thread_registers, uint64_t block_shmem)
{
	uint64_t warps = (block_threads + GPU_THREADS_PER_WARP - 1) / GPU_THREADS_PER_WARP;
	uint64_t by_warps = warps ? limits->warps / warps : 0;
	uint64_t by_registers = warps ? blocks_by_registers(limits, warps, thread_registers) : 0;
	uint64_t by_shmem = blocks_by_shmem(limits, block_shmem), blocks = limits->blocks;

	blocks = blocks < by_warps ? blocks : by_warps;
	blocks = blocks < by_registers ? blocks : by_registers;
	return (uint32_t)(blocks < by_shmem ? blocks : by_shmem);
}

#define SHARE_LEAST 100  /* less is nothing */
#define SHARE_MOST  9800 /* more is all */
#define COPY_LEAST  300  /* the same of copies: small ones are always under way */
#define HALF        (GPU_SHARE_WHOLE / 2)
#define LONGEST_NS  20000000ull /* of a stretch: what goes on is told of meanwhile */
#define OTHER       1500        /* as far from its means */
#define PARTLY_MOST 10          /* samples of one whose share is between */

enum kind { KIND_IDLE, KIND_COPIES, KIND_BUSY, KIND_PARTLY, KIND_PARTLY_COPIES };
enum { OF_BUSY, OF_COPIES, OF_SM, OF_TENSOR, OF_DRAM, OF_ALL };

static const int64_t *value_of(const struct pm_sample *sample, int i)
{
	const int64_t *const values[OF_ALL] = { &sample->busy, &sample->copies, &sample->sm,
		                                &sample->tensor, &sample->dram };

	return values[i];
}

static enum kind kind_of(const struct pm_sample *sample)
{
	if (sample->busy >= SHARE_MOST)
		return KIND_BUSY;
	if (sample->busy >= SHARE_LEAST)
		return KIND_PARTLY;
	if (sample->copies >= SHARE_MOST)
		return KIND_COPIES;
	return sample->copies >= COPY_LEAST ? KIND_PARTLY_COPIES : KIND_IDLE;
}

static int16_t mean(const struct stretches *stretches, int i)
{
	uint64_t ns = stretches->run.end_ns - stretches->run.begin_ns;
	double share = ns ? stretches->sums[i] / (double)ns : 0;

	if (*value_of(&stretches->run, i) == GPU_METRIC_UNKNOWN)
		return GPU_METRIC_UNKNOWN;
	return (int16_t)(share < GPU_SHARE_WHOLE ? share : GPU_SHARE_WHOLE);
}

static void give(struct stretches *stretches)
{
	struct gpu_stretch stretch = { stretches->run.begin_ns, stretches->run.end_ns };

	if (!stretches->any)
		return;
	stretches->any = false;
	stretch.busy = mean(stretches, OF_BUSY);
	if (stretches->kind == KIND_BUSY)
		stretch.busy = GPU_SHARE_WHOLE;
	else if (stretches->kind != KIND_PARTLY)
		stretch.busy = 0;
	stretch.copies = stretches->kind == KIND_COPIES ? GPU_SHARE_WHOLE : 0;
	stretch.sm = mean(stretches, OF_SM);
	stretch.tensor = mean(stretches, OF_TENSOR);
	stretch.dram = mean(stretches, OF_DRAM);
	stretches->each(stretches->data, &stretch);
}

/* Kernels that follow each other without a pause differ in what they use. */
static bool is_other(const struct stretches *stretches, const struct pm_sample *sample)
{
	uint64_t ns = stretches->run.end_ns - stretches->run.begin_ns;

	if (stretches->kind != KIND_BUSY || ns < GPU_STRETCH_OTHER_NS)
		return false;
	for (int i = OF_SM; i < OF_ALL; i++) {
		double off = (double)*value_of(sample, i) - stretches->sums[i] / (double)ns;

		if (off > OTHER || off < -OTHER)
			return true;
	}
	return false;
}

/* A part of a sample, as time of this kind. */
static void add(struct stretches *stretches, const struct pm_sample *sample, uint64_t begin_ns,
                uint64_t end_ns, enum kind kind)
{
	uint64_t ns = end_ns - begin_ns;

	if (end_ns <= begin_ns)
		return;
	if (stretches->any &&
	    (stretches->kind != (int)kind || stretches->run.end_ns != begin_ns ||
	     end_ns - stretches->run.begin_ns > LONGEST_NS || is_other(stretches, sample) ||
	     (kind == KIND_PARTLY && stretches->n_run >= PARTLY_MOST)))
		give(stretches);
	if (!stretches->any) {
		stretches->run = *sample;
		stretches->run.begin_ns = begin_ns;
		stretches->kind = (int)kind;
		stretches->any = true;
		stretches->n_run = 0;
		for (int i = 0; i < OF_ALL; i++)
			stretches->sums[i] = 0;
	}
	stretches->run.end_ns = end_ns;
	stretches->n_run++;
	for (int i = 0; i < OF_ALL; i++)
		stretches->sums[i] += (double)*value_of(sample, i) * (double)ns;
}

/*
 * The held sample lies between what goes on and one of the kind `next`. Where nothing, or copies,
 * and kernels meet in it, or nothing and copies, it is cut where its share says.
 */
static void settle(struct stretches *stretches, enum kind next)
{
	const struct pm_sample held = stretches->held;
	bool copies = kind_of(&held) == KIND_PARTLY_COPIES;
	enum kind full = copies ? KIND_COPIES : KIND_BUSY;
	int64_t share = copies ? held.copies : held.busy;
	uint64_t full_ns = (held.end_ns - held.begin_ns) * (uint64_t)share / GPU_SHARE_WHOLE;
	bool follows = stretches->any && stretches->run.end_ns == held.begin_ns;
	enum kind before = follows ? (enum kind)stretches->kind : KIND_PARTLY;
	uint64_t cut_ns;

	stretches->holds = false;
	if (next == full && before < full) {
		cut_ns = held.end_ns - full_ns;
		add(stretches, &held, held.begin_ns, cut_ns, before);
		add(stretches, &held, cut_ns, held.end_ns, full);
	} else if (before == full && next < full) {
		cut_ns = held.begin_ns + full_ns;
		add(stretches, &held, held.begin_ns, cut_ns, full);
		add(stretches, &held, cut_ns, held.end_ns, next);
	} else if (copies) {
		add(stretches, &held, held.begin_ns, held.end_ns,
		    share < HALF ? KIND_IDLE : KIND_COPIES);
	} else {
		add(stretches, &held, held.begin_ns, held.end_ns, KIND_PARTLY);
	}
}

void stretches_add(struct stretches *stretches, const struct pm_sample *sample)
{
	enum kind kind = kind_of(sample);

	if (stretches->holds)
		settle(stretches, sample->begin_ns == stretches->held.end_ns ? kind : KIND_PARTLY);
	if (kind >= KIND_PARTLY) {
		stretches->held = *sample;
		stretches->holds = true;
	} else {
		add(stretches, sample, sample->begin_ns, sample->end_ns, kind);
	}
}

void stretches_end(struct stretches *stretches)
{
	if (stretches->holds)
		settle(stretches, KIND_PARTLY);
	give(stretches);
}

/* GPUs of which nothing is known yet, the names of what they tell, and counts of their Xids. */

const struct gpu gpu_unknown = {
	.busy_percent = GPU_UNKNOWN,
	.memory_used_bytes = GPU_UNKNOWN,
	.memory_total_bytes = GPU_UNKNOWN,
	.power_mw = GPU_UNKNOWN,
	.power_limit_mw = GPU_UNKNOWN,
	.temperature_c = GPU_UNKNOWN,
	.sm_percent = GPU_UNKNOWN,
	.tensor_percent = GPU_UNKNOWN,
	.dram_percent = GPU_UNKNOWN,
	.compute_major = GPU_UNKNOWN,
	.compute_minor = GPU_UNKNOWN,
	.multiprocessors = GPU_UNKNOWN,
	.clock_hz = GPU_UNKNOWN,
	.memory_bandwidth = GPU_UNKNOWN,
};

const char *gpu_throttle_name(uint64_t *reasons)
{
	/* nvmlClocksEventReason*, from the lowest bit */
	static const char *const names[] = {
		"gpu_idle",     "application_clocks",  "sw_power_cap",        "hw_slowdown",
		"sync_boost",   "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake",
		"display_clock"
	};
	unsigned bit;

	if (!*reasons)
		return NULL;
	bit = (unsigned)__builtin_ctzll(*reasons);
	if (bit < ARRAY_SIZE(names)) {
		*reasons &= *reasons - 1;
		return names[bit];
	}
	*reasons = 0;
	return "other";
}

void gpu_state_unknown(struct gpu_state *state, uint32_t index)
{
	*state = (struct gpu_state){ .index = index };
	for (size_t i = 0; i < GPU_VALUES; i++)
		state->value[i] = GPU_UNKNOWN;
	for (size_t i = 0; i < GPU_METRICS; i++)
		state->metrics.value[i] = GPU_UNKNOWN;
}

void gpu_xids_add_code(struct gpu_xids *xids, uint32_t code, uint64_t count)
{
	uint32_t i = 0;

	while (i < xids->n_codes && xids->codes[i].code != code)
		i++;
	if (i == GPU_STATE_XIDS_MAX) { /* the last place is for all others */
		i--;
		xids->codes[i].code = 0;
	}
	if (i == xids->n_codes) {
		xids->codes[i].code = code;
		xids->codes[i].count = 0;
		xids->n_codes++;
	}
	xids->codes[i].count += count;
}
