// SPDX-License-Identifier: MIT
/*
 * What a GPU that is busy is bound by, as its metrics show it. They are of the GPU and not of a
 * process: the finding stands with the process that launched most.
 */
#include <math.h>

#include "analysis/metrics_use.h"
#include "base/array.h"
#include "base/number.h"
#include "report/findings/findings_rules.h"

/* Parts of a GPU that can be what it is bound by, but for links. */
static const enum gpu_metric parts[] = { GPU_METRIC_DRAM, GPU_METRIC_TENSOR, GPU_METRIC_FP32,
	                                 GPU_METRIC_FP64, GPU_METRIC_FP16,   GPU_METRIC_INTEGER };

/* Means while the GPU was busy, in percent and bytes a second; 0: not told. */
struct busy_gpu {
	const struct metrics_gpu *gpu;
	double busy; /* of all the time */
	double mean[GPU_METRICS];
	enum gpu_metric top; /* of the parts */
};

struct verdict {
	const char *title, *suggestion;
};

static const struct verdict memory_bound = {
	"a GPU bound by its memory",
	"move less: fuse kernels that pass on what they have just written, keep data in smaller "
	"types, "
	"and access it in order",
};

static const struct verdict compute_bound = {
	"a GPU bound by computing",
	"the GPU does what it can: less arithmetic, smaller types or tensor cores for what they "
	"can do "
	"would take less time",
};

static const struct verdict pcie_bound = {
	"a GPU that waits for PCIe",
	"copy less, or earlier: keep data on the GPU, copy from pinned memory while kernels run",
};

static const struct verdict nvlink_bound = {
	"a GPU that waits for NVLink",
	"communicate less, or while kernels run: larger batches between exchanges, smaller types",
};

static const struct verdict too_small = {
	"kernels too small for the GPU",
	"more work a kernel: larger batches, fused kernels, several streams or processes at a time",
};

static const struct verdict waits_inside = {
	"kernels that wait inside",
	"something runs on most multiprocessors and is waiting: look at memory latency, barriers "
	"and "
	"divergence with Nsight Compute",
};

/* ---- judging ------------------------------------------------------------------------------- */

static void *make_use(void)
{
	return metrics_use_new();
}

static void free_use(void *state)
{
	metrics_use_free(state);
}

static void take_sample(void *state, const struct gpu_metrics_sample *sample)
{
	metrics_use_add(state, sample);
}

static struct busy_gpu busy_gpu_of(const struct metrics_gpu *gpu)
{
	struct busy_gpu busy = { .gpu = gpu, .top = parts[0] };

	busy.busy = metric_mean(gpu, GPU_METRIC_GRAPHICS);
	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		double mean = metric_busy_mean(gpu, i);

		busy.mean[i] = isnan(mean) ? 0 : mean;
	}
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (busy.mean[parts[i]] > busy.mean[busy.top])
			busy.top = parts[i];
	}
	return busy;
}

static const struct verdict *verdict_of(const struct busy_gpu *busy)
{
	const double *mean = busy->mean;
	double pcie = fmax(mean[GPU_METRIC_PCIE_TX], mean[GPU_METRIC_PCIE_RX]);
	double nvlink = fmax(mean[GPU_METRIC_NVLINK_TX], mean[GPU_METRIC_NVLINK_RX]);

	if (mean[busy->top] >= LIMIT_BOUND)
		return busy->top == GPU_METRIC_DRAM ? &memory_bound : &compute_bound;
	if (mean[busy->top] >= LIMIT_UNUSED)
		return NULL;
	if (pcie >= LIMIT_PCIE_RATE)
		return &pcie_bound;
	if (nvlink >= LIMIT_NVLINK_RATE)
		return &nvlink_bound;
	if (busy->busy < LIMIT_FULLY_BUSY)
		return NULL;
	return mean[GPU_METRIC_SM] < LIMIT_FEW_SM ? &too_small : &waits_inside;
}

/* The one that launched most; NULL: no call is known. */
static const struct finding_process *main_process(const struct finding_verdicts *verdicts)
{
	const struct finding_process *most = NULL;

	for (size_t i = 0; i < verdicts->n_processes; i++) {
		const struct finding_process *process = finding_process(verdicts, i);

		if (process && (!most || process->launches > most->launches))
			most = process;
	}
	return most;
}

/* ---- what is said -------------------------------------------------------------------------- */

static void say_part(struct buf *text, const struct busy_gpu *busy, enum gpu_metric metric,
                     const char *name)
{
	if (busy->gpu->of[metric].busy_ns)
		buf_printf(text, ", %s %.0f %%", name, busy->mean[metric]);
}

static void say_rate(struct buf *text, double rate, const char *name)
{
	if (rate < LIMIT_RATE_SAID)
		return;
	buf_printf(text, ", %s ", name);
	buf_bytes(text, number_rounded(rate));
	buf_puts(text, "/s");
}

/* "GPU 0 was busy for 91 % of the time; while it was, SM active 90 %, tensor cores 12 %, ..." */
static void say_use(struct finding *finding, const struct busy_gpu *busy)
{
	const double *mean = busy->mean;
	struct buf text = { 0 };

	buf_printf(&text, "GPU %u: busy %.0f %%; while it was busy: tensor cores %.0f %%",
	           busy->gpu->gpu, busy->busy, mean[GPU_METRIC_TENSOR]);
	say_part(&text, busy, GPU_METRIC_DRAM, "DRAM");
	if (busy->top != GPU_METRIC_DRAM && busy->top != GPU_METRIC_TENSOR)
		say_part(&text, busy, busy->top, gpu_metric_info(busy->top)->name);
	say_part(&text, busy, GPU_METRIC_SM, "SM active");
	say_part(&text, busy, GPU_METRIC_OCCUPANCY, "occupancy");
	say_rate(&text, fmax(mean[GPU_METRIC_PCIE_TX], mean[GPU_METRIC_PCIE_RX]), "PCIe");
	say_rate(&text, fmax(mean[GPU_METRIC_NVLINK_TX], mean[GPU_METRIC_NVLINK_RX]), "NVLink");
	buf_printf(&text, "; %llu samples, of all processes on this GPU",
	           (unsigned long long)busy->gpu->busy_samples);
	finding_say(finding, &text);
}

static void judge_metrics(void *state, const struct finding_rule *rule,
                          const struct finding_verdicts *verdicts)
{
	const struct finding_process *process = main_process(verdicts);
	const struct metrics_gpu *gpus;
	bool any = false;
	size_t n;

	gpus = metrics_use_gpus(state, &n);
	for (size_t i = 0; i < n && process; i++) {
		struct busy_gpu busy = busy_gpu_of(&gpus[i]);
		const struct verdict *verdict;
		struct finding *finding;

		any |= gpus[i].gpm > 0;
		if (gpus[i].busy_samples < LIMIT_METRICS_SAMPLES || !(busy.busy >= LIMIT_BUSY))
			continue;
		verdict = verdict_of(&busy);
		if (!verdict)
			continue;
		finding = findings_add(verdicts, rule, process);
		finding->title = verdict->title;
		finding->device = gpus[i].gpu;
		finding->of_device = true;
		finding->count = gpus[i].busy_samples;
		say_use(finding, &busy);
		finding->estimate =
			"not known: metrics do not tell how long the same work would take";
		finding->suggestion = verdict->suggestion;
	}
	if (!any)
		findings_cannot_judge(verdicts, rule, "needs GPU metrics by GPM");
}

const struct finding_rule rule_gpu_use = {
	.name = "gpu_use",
	.title = "what a busy GPU is bound by",
	.create = make_use,
	.metrics = take_sample,
	.judge = judge_metrics,
	.free = free_use,
};
