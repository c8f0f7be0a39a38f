// SPDX-License-Identifier: MIT
/*
 * The rules, in the order in which they are asked: the first that applies makes the diagnosis.
 * Their limits, with reasons, are in diagnosis_limits.h; what makes the reasons of gaps is in
 * gap_cause.c.
 */
#include <string.h>

#include "base/text.h"
#include "report/diagnosis/diagnosis_evidence.h"

#define NEEDS_GPU_TIMES                                                                            \
	"recording with --gpu as well, which tells how busy the GPU was and with what"

/* ---- what applies -------------------------------------------------------------------------- */

static bool if_chosen(const struct diagnosis_evidence *e)
{
	return e->about->chosen;
}

static bool if_nothing(const struct diagnosis_evidence *e)
{
	return !e->about->tally->calls && !e->gpu;
}

/* What is not there may be in what could not be read. */
static bool if_nothing_read(const struct diagnosis_evidence *e)
{
	const struct run_info *run = e->about->run;

	return if_nothing(e) && (run->damaged_chunks || run->end_damaged || run->cut_short);
}

static bool if_no_work(const struct diagnosis_evidence *e)
{
	const struct tally *tally = e->about->tally;

	return !e->gpu && !tally->launches && !tally->graph_launches && !tally->all_copies.count &&
	       !tally->sets.count;
}

static bool if_short(const struct diagnosis_evidence *e)
{
	return e->gpu &&
	       (e->conclusion.reason == GAPS_SINGLE || e->conclusion.steady_ns < LIMIT_GPU_SPAN_NS);
}

static bool is_reason(const struct diagnosis_evidence *e, enum gaps_reason reason)
{
	return e->gpu && e->conclusion.reason == reason;
}

static bool if_busy(const struct diagnosis_evidence *e)
{
	return is_reason(e, GAPS_BUSY);
}

static bool if_launches(const struct diagnosis_evidence *e)
{
	return is_reason(e, GAPS_HOST) && e->conclusion.launches;
}

static bool if_host(const struct diagnosis_evidence *e)
{
	return is_reason(e, GAPS_HOST);
}

static bool if_sync(const struct diagnosis_evidence *e)
{
	return is_reason(e, GAPS_SYNC);
}

static bool if_copy(const struct diagnosis_evidence *e)
{
	return is_reason(e, GAPS_COPY);
}

static bool if_streams(const struct diagnosis_evidence *e)
{
	return is_reason(e, GAPS_WAITING);
}

static bool if_turnaround(const struct diagnosis_evidence *e)
{
	return is_reason(e, GAPS_TURNAROUND);
}

static bool if_unexplained(const struct diagnosis_evidence *e)
{
	return e->gpu;
}

static bool if_no_gpu_work(const struct diagnosis_evidence *e)
{
	return !e->gpu && e->about->run->gpu_times;
}

static uint64_t thread_ns(const struct diagnosis_evidence *e)
{
	return e->thread->last_ns - e->thread->first_ns;
}

/* Calls that overlap come to more than their thread's time. */
static uint64_t outside_ns(const struct diagnosis_evidence *e)
{
	return e->thread->call_ns < thread_ns(e) ? thread_ns(e) - e->thread->call_ns : 0;
}

static double share_of_thread(const struct diagnosis_evidence *e, uint64_t ns)
{
	return gaps_percent(ns < thread_ns(e) ? ns : thread_ns(e), thread_ns(e));
}

static bool if_thread_waits(const struct diagnosis_evidence *e)
{
	return e->thread && e->about->run->returns &&
	       share_of_thread(e, e->thread->sync_ns) >= LIMIT_WAITING;
}

static bool if_thread_calls(const struct diagnosis_evidence *e)
{
	return e->thread && e->about->run->returns &&
	       share_of_thread(e, e->thread->call_ns - e->thread->sync_ns) >= LIMIT_CALLING;
}

static bool if_thread_outside(const struct diagnosis_evidence *e)
{
	return e->thread && e->about->run->returns && thread_ns(e) >= LIMIT_GPU_SPAN_NS &&
	       share_of_thread(e, outside_ns(e)) > 100 - LIMIT_CALLING;
}

static bool always(const struct diagnosis_evidence *e)
{
	return true;
}

/* ---- what is said -------------------------------------------------------------------------- */

/* "GPU 0 was idle for 87 % of 12.300 s", or "Of 8 GPUs GPU 3 was idle for longest: for ..." */
static void add_idle(const struct diagnosis_evidence *e, struct buf *out)
{
	const struct gaps_conclusion *conclusion = &e->conclusion;

	if (e->n_gpus > 1)
		buf_printf(out, "Of %zu GPUs ", e->n_gpus);
	buf_printf(out, "GPU %u was idle for ", e->gpu->device);
	if (e->n_gpus > 1 && e->idle_for_longest)
		buf_puts(out, "longest: for ");
	buf_printf(out, "%.0f %% of ", gaps_percent(conclusion->idle_ns, conclusion->steady_ns));
	buf_duration(out, conclusion->steady_ns);
}

/* "; for 44 % of the time " where there are other reasons, else ": " */
static void add_reason(const struct diagnosis_evidence *e, struct buf *out)
{
	const struct gaps_conclusion *conclusion = &e->conclusion;

	add_idle(e, out);
	if (gaps_percent(conclusion->reason_ns, conclusion->idle_ns) >= LIMIT_WHOLE_REASON)
		buf_puts(out, ": ");
	else
		buf_printf(out, "; for %.0f %% of the time ",
		           gaps_percent(conclusion->reason_ns, conclusion->steady_ns));
}

static void say_chosen(const struct diagnosis_evidence *e, struct buf *out)
{
	buf_puts(out, "Only a choice of calls was read, so there is no diagnosis of the whole.");
}

static void say_nothing(const struct diagnosis_evidence *e, struct buf *out)
{
	buf_printf(out, "There is nothing to judge: no call of CUDA was recorded%s.",
	           e->about->part ? " in this part of the trace" : "");
}

static void say_nothing_read(const struct diagnosis_evidence *e, struct buf *out)
{
	buf_puts(out, "There is nothing to judge: no call of CUDA is in what could be read of the "
	              "file.");
}

static void say_no_work(const struct diagnosis_evidence *e, struct buf *out)
{
	buf_puts(out, "There is nothing to judge: no call of CUDA that was recorded asked the GPU "
	              "for work.");
}

static void say_short(const struct diagnosis_evidence *e, struct buf *out)
{
	buf_printf(out, "There is too little to judge: GPU %u worked for ", e->gpu->device);
	buf_duration(out, e->gpu->last_ns - e->gpu->first_ns);
	buf_puts(out, " from its first work to its last.");
}

static void say_busy(const struct diagnosis_evidence *e, struct buf *out)
{
	const struct gpu_kernel *kernels;
	uint64_t all_ns = 0;
	size_t n;

	buf_puts(out, "Nothing is wrong with how the GPU is fed: ");
	if (e->n_gpus > 1)
		buf_printf(out, "of %zu GPUs ", e->n_gpus);
	buf_printf(out, "GPU %u was %sbusy for %.1f %% of ", e->gpu->device,
	           e->n_gpus > 1 && e->idle_for_longest ? "idle for longest, and " : "",
	           gaps_percent(e->gpu->busy_ns, e->conclusion.steady_ns));
	buf_duration(out, e->conclusion.steady_ns);
	kernels = gpu_use_kernels(e->about->tally->gpu->use, &n);
	for (size_t i = 0; i < n; i++)
		all_ns += kernels[i].ns;
	if (n) {
		buf_printf(out, ", with %.0f %% of the kernels' time in ",
		           gaps_percent(kernels[0].ns, all_ns));
		text_add_name(out, kernels[0].name, 60);
	}
	buf_putc(out, '.');
}

static void say_launches(const struct diagnosis_evidence *e, struct buf *out)
{
	add_reason(e, out);
	buf_puts(out, "its work, of ");
	buf_duration(out, e->gpu->activities ? e->gpu->busy_ns / e->gpu->activities : 0);
	buf_puts(out, " a piece, was over before the host had launched the next.");
}

static void say_host(const struct diagnosis_evidence *e, struct buf *out)
{
	add_reason(e, out);
	buf_puts(out, "it waited for the host, which had not asked for more work.");
}

/* The call that took most of the gaps, if it is one of those that are spoken of. */
static void add_call_like(const struct diagnosis_evidence *e, const char *part, struct buf *out)
{
	const struct function *call = e->conclusion.call;

	if (call && strstr(call->name, part))
		buf_printf(out, " (%s)", call->name);
}

static void say_sync(const struct diagnosis_evidence *e, struct buf *out)
{
	add_reason(e, out);
	buf_puts(out, "the host had waited for it to end");
	add_call_like(e, "Synchronize", out);
	buf_puts(out, " before it asked for more.");
}

static void say_copy(const struct diagnosis_evidence *e, struct buf *out)
{
	add_reason(e, out);
	buf_puts(out, "the host was in copies that it has to wait for");
	add_call_like(e, "Memcpy", out);
	buf_putc(out, '.');
}

static void say_streams(const struct diagnosis_evidence *e, struct buf *out)
{
	add_reason(e, out);
	buf_puts(out, "its streams waited for events, for each other or for nodes of a graph.");
}

static void say_turnaround(const struct diagnosis_evidence *e, struct buf *out)
{
	add_reason(e, out);
	buf_puts(out, "kernels were queued, but so many and so short that the pauses between them "
	              "add up.");
}

static void say_unexplained(const struct diagnosis_evidence *e, struct buf *out)
{
	add_idle(e, out);
	buf_puts(out, ", and nothing that was recorded tells why.");
}

static void say_no_gpu_work(const struct diagnosis_evidence *e, struct buf *out)
{
	buf_puts(out, "No work on a GPU is in what was read, so what it waited for is not known.");
}

/* How busy the GPU was is not known; the thread that launches is. */
static void add_of_thread(const struct diagnosis_evidence *e, uint64_t ns, const char *what,
                          struct buf *out)
{
	buf_puts(out, "How busy the GPU was is not known, since GPU times were not recorded; ");
	diagnosis_add_thread(out, e->thread->process, e->thread->tid, false);
	buf_printf(out, " %s for %.0f %% of ", what, share_of_thread(e, ns));
	buf_duration(out, thread_ns(e));
}

static void say_thread_waits(const struct diagnosis_evidence *e, struct buf *out)
{
	add_of_thread(e, e->thread->sync_ns, "waited for the GPU", out);
	buf_puts(out, ", so the GPU probably had work for as long.");
}

static void say_thread_calls(const struct diagnosis_evidence *e, struct buf *out)
{
	add_of_thread(e, e->thread->call_ns - e->thread->sync_ns,
	              "was in calls of CUDA that are no waits", out);
	buf_puts(out, ", so the GPU probably waited for them.");
}

static void say_thread_outside(const struct diagnosis_evidence *e, struct buf *out)
{
	add_of_thread(e, outside_ns(e), "was outside of CUDA", out);
	buf_puts(out, ", so the GPU probably waited for it.");
}

static void say_not_known(const struct diagnosis_evidence *e, struct buf *out)
{
	buf_printf(out, "What the GPU waited for is not known, since %s not recorded.",
	           e->about->run->returns ? "GPU times were" : "durations were");
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct diagnosis_rule rules[] = {
	{ "chosen", NOT_JUDGED, if_chosen, say_chosen, NULL, NULL, { 0 } },
	{ "nothing_read", NOT_JUDGED, if_nothing_read, say_nothing_read, NULL, NULL, { 0 } },
	{ "nothing_recorded",
	  NOT_JUDGED,
	  if_nothing,
	  say_nothing,
	  NULL,
	  "recording the process that uses CUDA (-p), or its command; what was missed stands below",
	  { 0 } },
	{ "no_work", NOT_JUDGED, if_no_work, say_no_work, NULL, NULL, { 0 } },
	{ "short", NOT_JUDGED, if_short, say_short, NULL, "a longer recording", { 0 } },
	{ "busy",
	  HEALTHY,
	  if_busy,
	  say_busy,
	  NULL,
	  "faster kernels: lower precision, fused kernels, larger tiles ('cuscope report FILE "
	  "cuda_gpu_kern_sum' has them by time)",
	  { 0 } },
	{ "launches",
	  WRONG,
	  if_launches,
	  say_launches,
	  diagnosis_where_launches,
	  "fewer and larger launches: fused kernels, CUDA graphs (torch.compile with "
	  "mode=\"reduce-overhead\"), larger batches",
	  { "short_kernels", "launch_calls" } },
	{ "host",
	  WRONG,
	  if_host,
	  say_host,
	  diagnosis_where_host,
	  "doing this beside the GPU's work, in other threads or processes, or less of it",
	  { "launch_calls" },
	  .hint_blocked = "asking earlier for what it waits for there, or for more of it at once" },
	{ "synchronisation",
	  WRONG,
	  if_sync,
	  say_sync,
	  diagnosis_where_waits,
	  "asking for the next step before waiting for this one, or waiting less often",
	  { "needless_sync", "sync_copies", "polling" } },
	{ "copies",
	  WRONG,
	  if_copy,
	  say_copy,
	  diagnosis_where_waits,
	  "pinned memory (pin_memory=True) and copies that the host does not wait for "
	  "(non_blocking=True)",
	  { "sync_copies", "pageable_copies", "small_copies", "copy_overlap" } },
	{ "streams",
	  WRONG,
	  if_streams,
	  say_streams,
	  NULL,
	  "fewer events between streams, and work that is independent of the default stream "
	  "('cuscope report FILE gaps' has the longest)",
	  { "default_stream", "communication" } },
	{ "turnaround",
	  WRONG,
	  if_turnaround,
	  say_turnaround,
	  NULL,
	  "fewer and larger kernels, or CUDA graphs",
	  { "short_kernels" } },
	{ "unexplained",
	  WRONG,
	  if_unexplained,
	  say_unexplained,
	  NULL,
	  "recording with every program that uses this GPU, and with a larger --ring-size where "
	  "records were lost",
	  { 0 } },
	{ "no_gpu_work", NOT_JUDGED, if_no_gpu_work, say_no_gpu_work, NULL, NULL, { 0 } },
	{ "waits",
	  HEALTHY,
	  if_thread_waits,
	  say_thread_waits,
	  diagnosis_where_thread,
	  NEEDS_GPU_TIMES,
	  { "needless_sync" } },
	{ "calls",
	  WRONG,
	  if_thread_calls,
	  say_thread_calls,
	  diagnosis_where_thread,
	  NEEDS_GPU_TIMES,
	  { "launch_calls" } },
	{ "outside",
	  WRONG,
	  if_thread_outside,
	  say_thread_outside,
	  diagnosis_where_thread,
	  NEEDS_GPU_TIMES,
	  { 0 } },
	{ "not_known", NOT_JUDGED, always, say_not_known, NULL, NEEDS_GPU_TIMES, { 0 } },
};

const struct diagnosis_rule *diagnosis_rule_for(const struct diagnosis_evidence *evidence)
{
	const struct diagnosis_rule *rule = rules;

	while (!rule->applies(evidence))
		rule++;
	return rule;
}
