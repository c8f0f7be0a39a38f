// SPDX-License-Identifier: MIT
/*
 * The GPUs of the machine, with the labels of DCGM's exporter: gpu, UUID, modelName. One that has
 * not answered for a while has no readings: what is counted of it stays.
 */
#include "node/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "gpus/gpu_state.h"

#define STALE_NS 5000000000ull

struct source {
	struct gpu_state gpus[GPUS_MAX];
	size_t n;
	metric_labels labels[GPUS_MAX];
	char driver[96];
};

static void *begin(const struct node_settings *settings)
{
	return xcalloc(1, sizeof(struct source));
}

static bool is_known(const struct gpu_state *gpu)
{
	return gpu->read_ns && gpu->age_ns < STALE_NS;
}

/* ---- readings ------------------------------------------------------------------------------ */

/* Rows of one family stand together; `label` tells them apart. */
struct value_row {
	struct metric_family family;
	enum gpu_value value;
	unsigned decimals; /* the value counts in tenths, hundredths, ... of the unit */
	const char *label, *of;
};

#define GAUGE(name, unit, help, value, decimals)                                                   \
	{                                                                                          \
		{ "cuscope_gpu_" name, METRIC_GAUGE, unit, help }, value, decimals, NULL, NULL     \
	}
#define COUNTER(name, unit, help, value, decimals)                                                 \
	{                                                                                          \
		{ "cuscope_gpu_" name, METRIC_COUNTER, unit, help }, value, decimals, NULL, NULL   \
	}
#define KIND(type, name, help, value, kind)                                                        \
	{                                                                                          \
		{ "cuscope_gpu_" name, type, NULL, help }, value, 0, "kind", kind                  \
	}

static const struct value_row values[] = {
	GAUGE("busy_ratio", "ratio", "Share of the last sample period in which a kernel ran",
	      GPU_VALUE_BUSY_PERCENT, 2),
	GAUGE("memory_busy_ratio", "ratio",
	      "Share of the last sample period in which its memory was read or written",
	      GPU_VALUE_MEMORY_BUSY_PERCENT, 2),
	GAUGE("memory_used_bytes", "bytes", "Device memory in use", GPU_VALUE_MEMORY_USED_BYTES, 0),
	GAUGE("memory_total_bytes", "bytes", "Device memory there is", GPU_VALUE_MEMORY_TOTAL_BYTES,
	      0),
	GAUGE("power_watts", "watts", "Power drawn", GPU_VALUE_POWER_MW, 3),
	GAUGE("power_limit_watts", "watts", "Power that may be drawn", GPU_VALUE_POWER_LIMIT_MW, 3),
	COUNTER("energy_joules", "joules", "Energy since the driver was loaded",
	        GPU_VALUE_ENERGY_MJ, 3),
	GAUGE("temperature_celsius", "celsius", "Temperature", GPU_VALUE_TEMPERATURE_C, 0),
	GAUGE("memory_temperature_celsius", "celsius", "Temperature of its memory",
	      GPU_VALUE_MEMORY_TEMPERATURE_C, 0),
	GAUGE("sm_clock_hertz", "hertz", "Clock of the multiprocessors", GPU_VALUE_SM_CLOCK_HZ, 0),
	GAUGE("memory_clock_hertz", "hertz", "Clock of its memory", GPU_VALUE_MEMORY_CLOCK_HZ, 0),
	GAUGE("performance_state", NULL, "0 is the fastest, 15 the slowest",
	      GPU_VALUE_PERFORMANCE_STATE, 0),
	COUNTER("pcie_transmitted_bytes", "bytes", "Bytes from the GPU since the driver was loaded",
	        GPU_VALUE_PCIE_TX_BYTES, 0),
	COUNTER("pcie_received_bytes", "bytes", "Bytes to the GPU since the driver was loaded",
	        GPU_VALUE_PCIE_RX_BYTES, 0),
	COUNTER("pcie_replays", NULL, "Packets that were sent anew", GPU_VALUE_PCIE_REPLAYS, 0),
	GAUGE("pcie_generation", NULL, "Generation of the link now: lower while the GPU is idle",
	      GPU_VALUE_PCIE_GENERATION, 0),
	GAUGE("pcie_lanes", NULL, "Lanes of the link now", GPU_VALUE_PCIE_WIDTH, 0),
	KIND(METRIC_COUNTER, "ecc_errors", "Errors of memory since the driver was loaded",
	     GPU_VALUE_ECC_CORRECTED, "corrected"),
	KIND(METRIC_COUNTER, "ecc_errors", "Errors of memory since the driver was loaded",
	     GPU_VALUE_ECC_UNCORRECTED, "uncorrected"),
	KIND(METRIC_COUNTER, "lifetime_ecc_errors", "Errors of memory since the GPU was made",
	     GPU_VALUE_ECC_CORRECTED_EVER, "corrected"),
	KIND(METRIC_COUNTER, "lifetime_ecc_errors", "Errors of memory since the GPU was made",
	     GPU_VALUE_ECC_UNCORRECTED_EVER, "uncorrected"),
	KIND(METRIC_GAUGE, "retired_pages", "Pages of memory that are not used any more",
	     GPU_VALUE_RETIRED_PAGES_CORRECTED, "corrected"),
	KIND(METRIC_GAUGE, "retired_pages", "Pages of memory that are not used any more",
	     GPU_VALUE_RETIRED_PAGES_UNCORRECTED, "uncorrected"),
	GAUGE("retired_pages_pending", NULL, "1: a page waits for a reset to be retired",
	      GPU_VALUE_RETIRED_PAGES_PENDING, 0),
	KIND(METRIC_GAUGE, "remapped_rows", "Rows of memory that others stand in for",
	     GPU_VALUE_REMAPPED_ROWS_CORRECTED, "corrected"),
	KIND(METRIC_GAUGE, "remapped_rows", "Rows of memory that others stand in for",
	     GPU_VALUE_REMAPPED_ROWS_UNCORRECTED, "uncorrected"),
	GAUGE("remapped_rows_pending", NULL, "1: a row waits for a reset to be remapped",
	      GPU_VALUE_REMAPPED_ROWS_PENDING, 0),
	GAUGE("remapped_rows_failed", NULL, "1: there was no row left to stand in",
	      GPU_VALUE_REMAPPED_ROWS_FAILED, 0),
	COUNTER("nvlink_transmitted_bytes", "bytes",
	        "Bytes from the GPU by all links, since the driver was loaded",
	        GPU_VALUE_NVLINK_TX_BYTES, 0),
	COUNTER("nvlink_received_bytes", "bytes",
	        "Bytes to the GPU by all links, since the driver was loaded",
	        GPU_VALUE_NVLINK_RX_BYTES, 0),
	KIND(METRIC_COUNTER, "nvlink_errors", "Errors of all links", GPU_VALUE_NVLINK_FLIT_ERRORS,
	     "flit"),
	KIND(METRIC_COUNTER, "nvlink_errors", "Errors of all links", GPU_VALUE_NVLINK_DATA_ERRORS,
	     "data"),
	KIND(METRIC_COUNTER, "nvlink_errors", "Errors of all links", GPU_VALUE_NVLINK_REPLAYS,
	     "replay"),
	KIND(METRIC_COUNTER, "nvlink_errors", "Errors of all links", GPU_VALUE_NVLINK_RECOVERIES,
	     "recovery"),
};

static void add_value(const struct source *source, const struct value_row *row,
                      struct metrics *metrics)
{
	for (size_t i = 0; i < source->n; i++) {
		int64_t value = source->gpus[i].value[row->value];

		if (value != GPU_UNKNOWN && is_known(&source->gpus[i]))
			metrics_add(metrics,
			            metrics_labels(metrics, source->labels[i], row->label, row->of,
			                           NULL),
			            (uint64_t)value, row->decimals, 0);
	}
}

static void add_values(const struct source *source, struct metrics *metrics)
{
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (!i || strcmp(values[i].family.name, values[i - 1].family.name) != 0)
			metrics_family(metrics, &values[i].family);
		add_value(source, &values[i], metrics);
	}
}

static const struct metric_family throttled = {
	"cuscope_gpu_throttled", METRIC_GAUGE, NULL,
	"1: its clocks are held down for this reason, of which gpu_idle is no complaint"
};

/* All reasons, so that one that begins has been 0 before. */
static void add_throttled(const struct source *source, struct metrics *metrics)
{
	metrics_family(metrics, &throttled);
	for (size_t i = 0; i < source->n; i++) {
		int64_t now = source->gpus[i].value[GPU_VALUE_THROTTLE_REASONS];
		uint64_t left = GPU_THROTTLE_ALL;

		while (now != GPU_UNKNOWN && is_known(&source->gpus[i]) && left) {
			uint64_t before = left;
			const char *reason = gpu_throttle_name(&left);

			metrics_add(
				metrics,
				metrics_labels(metrics, source->labels[i], "reason", reason, NULL),
				((uint64_t)now & (before ^ left)) != 0, 0, 0);
		}
	}
}

/* ---- how well they are used ---------------------------------------------------------------- */

static const struct metric_family uses[GPU_METRICS] = {
#define SHARE(name, help)                                                                          \
	{                                                                                          \
		"cuscope_gpu_" name "_ratio", METRIC_GAUGE, "ratio", help                          \
	}
#define RATE(name, help)                                                                           \
	{                                                                                          \
		"cuscope_gpu_" name "_bytes_per_second", METRIC_GAUGE, "bytes_per_second", help    \
	}
	[GPU_METRIC_GRAPHICS] = SHARE("graphics_active", "GPM: an engine was busy"),
	[GPU_METRIC_SM] = SHARE("sm_active", "GPM: multiprocessors that had a warp"),
	[GPU_METRIC_OCCUPANCY] = SHARE("sm_occupancy", "GPM: warps, of those there is room for"),
	[GPU_METRIC_TENSOR] = SHARE("tensor_active", "GPM: pipes of the tensor cores"),
	[GPU_METRIC_FP32] = SHARE("fp32_active", "GPM: arithmetic in single precision"),
	[GPU_METRIC_FP64] = SHARE("fp64_active", "GPM: arithmetic in double precision"),
	[GPU_METRIC_FP16] = SHARE("fp16_active", "GPM: arithmetic in half precision"),
	[GPU_METRIC_INTEGER] = SHARE("integer_active", "GPM: arithmetic with integers"),
	[GPU_METRIC_DRAM] = SHARE("dram_active", "GPM: bandwidth of the device's memory"),
	[GPU_METRIC_PCIE_TX] = RATE("pcie_transmit", "GPM: from the GPU by PCIe"),
	[GPU_METRIC_PCIE_RX] = RATE("pcie_receive", "GPM: to the GPU by PCIe"),
	[GPU_METRIC_NVLINK_TX] = RATE("nvlink_transmit", "GPM: from the GPU by all links"),
	[GPU_METRIC_NVLINK_RX] = RATE("nvlink_receive", "GPM: to the GPU by all links"),
};

static bool has_gpm(const struct gpu_state *gpu)
{
	return is_known(gpu) && gpu->metrics.source == GPU_METRICS_GPM;
}

static void add_uses(const struct source *source, struct metrics *metrics)
{
	for (enum gpu_metric m = 0; m < GPU_METRICS; m++) {
		if (!uses[m].name) /* of NVML's utilisation, which is there already */
			continue;
		metrics_family(metrics, &uses[m]);
		for (size_t i = 0; i < source->n; i++) {
			int64_t value = source->gpus[i].metrics.value[m];

			if (value != GPU_UNKNOWN && has_gpm(&source->gpus[i]))
				metrics_add(metrics, source->labels[i], (uint64_t)value,
				            gpu_metric_info(m)->is_rate ? 0 : 4, 0);
		}
	}
}

/* ---- Xids ---------------------------------------------------------------------------------- */

static const struct metric_family xids = { "cuscope_gpu_xids", METRIC_COUNTER, NULL,
	                                   "Xids, errors that the driver tells of" };
static const struct metric_family xid_codes = { "cuscope_gpu_xids_by_code", METRIC_COUNTER, NULL,
	                                        "Xids by their number" };
static const struct metric_family last_xid = { "cuscope_gpu_last_xid", METRIC_GAUGE, NULL,
	                                       "The number of the last Xid; 0: none came" };

static void add_codes(const struct source *source, size_t gpu, uint64_t created_ns,
                      struct metrics *metrics)
{
	const struct gpu_xids *told = &source->gpus[gpu].xids;
	char code[16];

	for (uint32_t i = 0; i < told->n_codes; i++) {
		snprintf(code, sizeof(code), "%u", told->codes[i].code);
		metrics_add(metrics,
		            metrics_labels(metrics, source->labels[gpu], "xid",
		                           told->codes[i].code ? code : "other", NULL),
		            told->codes[i].count, 0, created_ns);
	}
}

static void add_xids(const struct source *source, uint64_t created_ns, struct metrics *metrics)
{
	metrics_family(metrics, &xids);
	for (size_t i = 0; i < source->n; i++) {
		if (source->gpus[i].xids_told || source->gpus[i].xids.total)
			metrics_add(metrics, source->labels[i], source->gpus[i].xids.total, 0,
			            created_ns);
	}
	metrics_family(metrics, &xid_codes);
	for (size_t i = 0; i < source->n; i++)
		add_codes(source, i, created_ns, metrics);
	metrics_family(metrics, &last_xid);
	for (size_t i = 0; i < source->n; i++) {
		if (source->gpus[i].xids_told || source->gpus[i].xids.total)
			metrics_add(metrics, source->labels[i], source->gpus[i].xids.last, 0, 0);
	}
}

/* ---- what each process has of them --------------------------------------------------------- */

static const struct metric_family process_memory = {
	"cuscope_process_gpu_memory_bytes", METRIC_GAUGE, "bytes",
	"NVML: memory of a GPU that a process has, with its context and code"
};
static const struct metric_family process_busy = { "cuscope_process_gpu_busy_ratio", METRIC_GAUGE,
	                                           "ratio",
	                                           "NVML: share of its last sample period in which "
	                                           "kernels of a process ran; of other: the sum of "
	                                           "such shares, which can be above 1" };

struct process_figures {
	int64_t bytes, busy_percent; /* GPU_UNKNOWN: of none is known */
};

static void add_figure(int64_t *sum, int64_t figure)
{
	if (figure != GPU_UNKNOWN)
		*sum = (*sum == GPU_UNKNOWN ? 0 : *sum) + figure;
}

/* Of each process with series, and of all others together, which is the last. */
static void sum_processes(const struct gpu_state *gpu, const struct counted_process *const *shown,
                          size_t n, struct process_figures *figures)
{
	for (size_t i = 0; i <= n; i++)
		figures[i] = (struct process_figures){ GPU_UNKNOWN, GPU_UNKNOWN };
	for (uint32_t i = 0; i < gpu->n_processes && is_known(gpu); i++) {
		const struct gpu_state_process *process = &gpu->processes[i];
		size_t at = 0;

		while (at < n && (shown[at]->ended || shown[at]->process->pid != process->pid))
			at++;
		add_figure(&figures[at].bytes, process->bytes);
		add_figure(&figures[at].busy_percent, process->busy_percent);
	}
}

static metric_labels process_labels(const struct counted_process *process, metric_labels gpu,
                                    struct metrics *metrics)
{
	char pid[16];

	if (!process)
		return metrics_labels(metrics, gpu, "process", "other", NULL);
	snprintf(pid, sizeof(pid), "%u", process->process->pid);
	return metrics_labels(metrics, gpu, "pid", pid, "process", process->process->comm, NULL);
}

/* Families stand together, so that one figure of all GPUs comes after the other. */
static void add_processes(const struct source *source, const struct node_view *view,
                          struct metrics *metrics)
{
	static const struct metric_family *const families[] = { &process_memory, &process_busy };
	const struct counted_process *const *shown;
	size_t n = counts_shown(view->counts, &shown);
	struct process_figures *figures = xcalloc(n + 1, sizeof(*figures));

	for (size_t family = 0; family < ARRAY_SIZE(families); family++) {
		metrics_family(metrics, families[family]);
		for (size_t gpu = 0; gpu < source->n; gpu++) {
			sum_processes(&source->gpus[gpu], shown, n, figures);
			for (size_t i = 0; i <= n; i++) {
				int64_t figure =
					family ? figures[i].busy_percent : figures[i].bytes;

				if (figure != GPU_UNKNOWN)
					metrics_add(metrics,
					            process_labels(i < n ? shown[i] : NULL,
					                           source->labels[gpu], metrics),
					            (uint64_t)figure, family ? 2 : 0, 0);
			}
		}
	}
	free(figures);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static const struct metric_family machine = { "cuscope_gpus", METRIC_GAUGE, NULL,
	                                      "GPUs of the machine" };
static const struct metric_family info = { "cuscope_gpu", METRIC_INFO, NULL,
	                                   "Where a GPU is, and its driver" };
static const struct metric_family up = {
	"cuscope_gpu_up", METRIC_GAUGE, NULL,
	"1: it answers; 0: it is lost, refuses, or has not answered for two seconds"
};
static const struct metric_family starts = { "cuscope_agent_nvml_starts", METRIC_COUNTER, NULL,
	                                     "Processes started to call NVML: one, if all is "
	                                     "well" };
static const struct metric_family ends = { "cuscope_agent_nvml_ends", METRIC_COUNTER, NULL,
	                                   "Such processes that ended by themselves, were silent, "
	                                   "or said what cannot be" };
static const struct metric_family cpu = { "cuscope_agent_nvml_cpu_seconds", METRIC_COUNTER,
	                                  "seconds", "Processor time of these processes" };
static const struct metric_family resident = { "cuscope_agent_nvml_resident_bytes", METRIC_GAUGE,
	                                       "bytes", "Memory of the one that runs" };

static void add_process(const struct node_view *view, struct metrics *metrics)
{
	static const char *const names[] = { "ended", "silent", "refused" };
	struct gpu_process_figures figures;
	uint64_t counts[ARRAY_SIZE(names)];

	gpu_states_figures(view->gpus, &figures);
	counts[0] = figures.ended;
	counts[1] = figures.silent;
	counts[2] = figures.refused;
	metrics_one(metrics, &starts, figures.starts, 0, view->started_ns);
	metrics_family(metrics, &ends);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		metrics_add(metrics, metrics_labels(metrics, 0, "why", names[i], NULL), counts[i],
		            0, view->started_ns);
	metrics_one(metrics, &cpu, figures.cpu_ns, 9, view->started_ns);
	metrics_one(metrics, &resident, figures.resident_bytes, 0, 0);
}

static void read_gpus(struct source *source, const struct node_view *view, struct metrics *metrics)
{
	char number[24];

	source->n = gpu_states_read(view->gpus, source->gpus, GPUS_MAX, view->page->time_ns);
	gpu_states_driver(view->gpus, source->driver, sizeof(source->driver));
	for (size_t i = 0; i < source->n; i++) {
		snprintf(number, sizeof(number), "%zu", i);
		source->labels[i] =
			metrics_labels(metrics, 0, "gpu", number, "UUID", source->gpus[i].uuid,
		                       "modelName", source->gpus[i].model, NULL);
	}
}

static void fill(void *state, const struct node_view *view, struct metrics *metrics)
{
	struct source *source = state;

	if (!view->gpus)
		return;
	read_gpus(source, view, metrics);
	metrics_one(metrics, &machine, source->n, 0, 0);
	metrics_family(metrics, &info);
	for (size_t i = 0; i < source->n; i++)
		metrics_add(metrics,
		            metrics_labels(metrics, source->labels[i], "pci_bus_id",
		                           source->gpus[i].bus, "driver", source->driver, NULL),
		            1, 0, 0);
	metrics_family(metrics, &up);
	for (size_t i = 0; i < source->n; i++)
		metrics_add(metrics, source->labels[i], source->gpus[i].answer == GPU_ANSWER_GOOD,
		            0, 0);
	add_values(source, metrics);
	add_throttled(source, metrics);
	add_uses(source, metrics);
	add_xids(source, view->started_ns, metrics);
	add_processes(source, view, metrics);
	add_process(view, metrics);
}

const struct node_source source_gpus = {
	.name = "gpus", .begin = begin, .fill = fill, .end = free
};
