// SPDX-License-Identifier: MIT
/* Facts of metrics and of calls that stand beside the account of time. */
#include <math.h>
#include <stdlib.h>

#include "analysis/by_id.h"
#include "base/buf.h"
#include "base/vec.h"
#include "report/findings/findings.h"

struct finding *findings_add(struct findings *findings, const char *cause)
{
	struct finding *row = VEC_ADD(findings->rows, findings->n);

	*row = (struct finding){ .cause = cause, .device = FACTS_NONE };
	return row;
}

void findings_clear(struct findings *findings)
{
	for (size_t i = 0; i < findings->n; i++) {
		free(findings->rows[i].title);
		free(findings->rows[i].seen);
	}
	free(findings->rows);
	*findings = (struct findings){ 0 };
}

/* ---- metrics ------------------------------------------------------------------------------- */

#define BUSY_SAMPLES 20   /* two seconds of them, at ten a second */
#define BUSY_PERCENT 50.0 /* less, and what a GPU is bound by is not its problem */

static const char *bound_hint(enum why_bound bound)
{
	switch (bound) {
	case BOUND_DRAM:
		return "move less: fuse kernels that pass on what they have just written, keep "
		       "data in smaller types, and access it in order";
	case BOUND_TENSOR:
	case BOUND_FP32:
		return "the GPU does what it can: less arithmetic or smaller types would take less "
		       "time";
	case BOUND_FP32_ALONE:
		return "matrices in TF32 or in a type of 16 bits, which the tensor cores can "
		       "multiply";
	case BOUND_SMALL:
		return "more work a kernel: larger batches, fused kernels, several streams or "
		       "processes at a time";
	default:
		return "look at memory latency, barriers and divergence with Nsight Compute";
	}
}

static void add_share(struct buf *text, const struct metrics_gpu *gpu, enum gpu_metric metric,
                      const char *name)
{
	if (gpu->of[metric].busy_ns)
		buf_printf(text, ", %s %.0f %%", name, metric_busy_mean(gpu, metric));
}

void findings_add_bounds(struct findings *findings, const struct metrics_use *metrics)
{
	size_t n;
	const struct metrics_gpu *gpus = metrics_use_gpus(metrics, &n);

	for (size_t i = 0; i < n; i++) {
		enum why_bound bound = why_bound_of(metrics, gpus[i].gpu);
		double busy = metric_mean(&gpus[i], GPU_METRIC_GRAPHICS);
		struct buf title = { 0 }, seen = { 0 };
		struct finding *row;

		if (bound == BOUND_UNKNOWN || gpus[i].busy_samples < BUSY_SAMPLES ||
		    !(busy >= BUSY_PERCENT))
			continue;
		row = findings_add(findings, "bound");
		row->device = gpus[i].gpu;
		row->count = gpus[i].busy_samples;
		buf_puts(&title, "what bounds kernels: ");
		why_bound_text(metrics, gpus[i].gpu, &title);
		row->title = title.data;
		buf_printf(&seen, "GPU %u: busy %.0f %%; while it was busy: ", gpus[i].gpu, busy);
		buf_printf(&seen, "tensor cores %.0f %%",
		           metric_busy_mean(&gpus[i], GPU_METRIC_TENSOR));
		add_share(&seen, &gpus[i], GPU_METRIC_FP32, "FP32 pipe");
		add_share(&seen, &gpus[i], GPU_METRIC_DRAM, "DRAM");
		add_share(&seen, &gpus[i], GPU_METRIC_SM, "SM active");
		add_share(&seen, &gpus[i], GPU_METRIC_OCCUPANCY, "occupancy");
		buf_printf(&seen, "; %lu samples, of all processes on this GPU",
		           gpus[i].busy_samples);
		row->seen = seen.data;
		row->hint = bound_hint(bound);
	}
}

/* ---- small copies in a row ----------------------------------------------------------------- */

#define ROW_LEAST  4    /* two or three are what a kernel's arguments need */
#define ROWS_LEAST 10   /* fewer can be chance */
#define ROWS_SHARE 0.01 /* of the time of the recording, in calls that one copy would save */

/* Of a process. */
struct small_copies {
	const struct process *process;
	uint64_t rows, copies, ns; /* ns: of all but the first of each row */
	uint64_t ahead_ns;         /* of `chain`, less than what others have */
	uint32_t chain;
};

/* The place that most of the time is in, if one has far more than all others. */
static void vote(struct small_copies *small, uint32_t chain, uint64_t ns)
{
	if (small->chain == chain) {
		small->ahead_ns += ns;
	} else if (small->ahead_ns >= ns) {
		small->ahead_ns -= ns;
	} else {
		small->chain = chain;
		small->ahead_ns = ns - small->ahead_ns;
	}
}

static bool goes_on(const struct fact_call *call, const struct fact_call *before)
{
	return call->small && call->small == before->small;
}

static void see_thread(const struct facts *facts, const struct fact_thread *thread,
                       struct small_copies *small)
{
	for (size_t i = 0, next; i < thread->n_calls; i = next) {
		uint64_t ns = 0;

		for (next = spill_next(facts->spill, i);
		     next < thread->n_calls &&
		     goes_on(&thread->calls[next], &thread->calls[next - 1]);
		     next++)
			ns += thread->calls[next].end_ns - thread->calls[next].begin_ns;
		if (next - i < ROW_LEAST)
			continue;
		small->rows++;
		small->copies += next - i;
		small->ns += ns;
		vote(small, thread->calls[i].chain, ns);
	}
}

static void add_small_copies(struct findings *findings, const struct small_copies *small,
                             const struct chains *chains)
{
	struct finding *row = findings_add(findings, "small_copies");
	struct buf title = { 0 }, seen = { 0 };

	row->pid = small->process->pid;
	row->count = small->copies;
	buf_puts(&title, "small copies that could be one");
	if (small->chain && 2 * small->ahead_ns > small->ns) {
		buf_puts(&title, " in ");
		chains_label(chains, small->chain, 3, &title);
	}
	row->title = title.data;
	buf_printf(&seen,
	           "%lu copies below 64 KiB came in %lu rows of %d or more in one direction "
	           "with no other call between them: %s in all calls but the first of each row; "
	           "how much of it the GPU waited for, the account has",
	           small->copies, small->rows, ROW_LEAST, TEXT_DURATION(small->ns));
	row->seen = seen.data;
	row->hint = "gather what is copied in a row in one pinned buffer and copy it once, or use "
		    "cudaMemcpyBatchAsync";
}

void findings_add_small_copies(struct findings *findings, const struct facts *facts)
{
	struct small_copies *all = NULL; /* by id of the process */
	size_t n = 0;

	for (size_t i = 0; i < facts->n_threads; i++) {
		const struct process *process = facts->threads[i].process;
		struct small_copies *small;

		if (!process)
			continue;
		small = BY_ID(all, n, process->id);
		small->process = process;
		see_thread(facts, &facts->threads[i], small);
	}
	for (size_t i = 0; i < n; i++)
		if (all[i].rows >= ROWS_LEAST &&
		    (double)all[i].ns >= ROWS_SHARE * (double)(facts->end_ns - facts->begin_ns))
			add_small_copies(findings, &all[i], facts->chains);
	free(all);
}
