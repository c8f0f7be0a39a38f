// SPDX-License-Identifier: MIT
#include "report/diagnosis/diagnosis.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/missed.h"
#include "analysis/thread_ids.h"
#include "base/array.h"
#include "base/xalloc.h"
#include "report/diagnosis/diagnosis_evidence.h"
#include "trace/consumers.h"

#define GAP_NS       20000 /* as report gaps has it */
#define THREADS_MOST 256   /* whose samples are kept where there are no GPU times */

struct diagnosed_thread {
	const struct process *process;
	uint32_t tid;
	uint64_t first_ns; /* its first call */
	struct gap_stacks stacks;
	struct gap_stacks pending; /* since its last call: none of its time if no other comes */
};

struct diagnoser {
	struct consumer *gaps, *findings, *use;
	bool gpu_times;
	/* Without GPU times: */
	struct thread_ids *ids;
	struct diagnosed_thread **threads; /* by id */
	size_t n_threads, n_kept;
	struct stack_places *places;
	size_t room; /* for stacks */
};

struct diagnoser *diagnoser_new(struct work *work)
{
	struct diagnoser *diagnoser = xcalloc(1, sizeof(*diagnoser));

	diagnoser->gaps = gaps_new(
		&(struct gaps_options){ .threshold_ns = GAP_NS, .longest = 1, .work = work });
	diagnoser->findings = findings_new_without_launches(work);
	diagnoser->use = thread_use_new();
	diagnoser->gpu_times = true;
	diagnoser->ids = thread_ids_new();
	diagnoser->places = stack_places_new();
	diagnoser->room = GAP_STACKS_MOST;
	return diagnoser;
}

void diagnoser_free(struct diagnoser *diagnoser)
{
	for (size_t i = 0; i < diagnoser->n_threads; i++) {
		if (diagnoser->threads[i]) {
			gap_stacks_free(&diagnoser->threads[i]->stacks);
			gap_stacks_free(&diagnoser->threads[i]->pending);
		}
		free(diagnoser->threads[i]);
	}
	free(diagnoser->threads);
	consumer_free(diagnoser->gaps);
	consumer_free(diagnoser->findings);
	consumer_free(diagnoser->use);
	thread_ids_free(diagnoser->ids);
	stack_places_free(diagnoser->places);
	free(diagnoser);
}

/* ---- events -------------------------------------------------------------------------------- */

void diagnoser_begin(struct diagnoser *diagnoser, const struct run_info *run)
{
	diagnoser->gpu_times = run->gpu_times;
}

static void see_call(struct diagnoser *diagnoser, const struct event *event)
{
	uint32_t id = thread_ids_of(diagnoser->ids, event);
	struct diagnosed_thread *thread;

	if (id == THREAD_ID_OTHERS)
		return;
	diagnoser->threads = by_id_room(diagnoser->threads, &diagnoser->n_threads,
	                                sizeof(struct diagnosed_thread *), id);
	thread = diagnoser->threads[id];
	if (thread && thread->pending.known.samples)
		gap_stacks_move(&thread->stacks, &thread->pending, &diagnoser->room);
	if (thread || diagnoser->n_kept == THREADS_MOST)
		return;
	thread = diagnoser->threads[id] = xcalloc(1, sizeof(*thread));
	diagnoser->n_kept++;
	thread->process = event->process;
	thread->tid = event->tid;
	thread->first_ns = event->call->begin_ns;
}

/* From a thread's first call on; those after its last are left behind. */
static void see_sample(struct diagnoser *diagnoser, const struct event *event)
{
	uint32_t id = thread_ids_find(diagnoser->ids, event);
	struct gap_sampled sampled = { .stack = event->sample->stack,
		                       .ns = event->sample->weight_ns,
		                       .blocked = event->sample->kind == SAMPLE_OFF_CPU };
	struct diagnosed_thread *thread;
	uint64_t since_ns;

	thread = id < diagnoser->n_threads ? diagnoser->threads[id] : NULL;
	if (!thread || !event->sample->stack || event->time_ns <= thread->first_ns ||
	    !sample_is_placed(event->sample))
		return;
	since_ns = event->time_ns - thread->first_ns;
	if (sampled.blocked && sampled.ns > since_ns)
		sampled.ns = since_ns;
	gap_stacks_add(&thread->pending, &diagnoser->room, &sampled);
	gap_sampling_of(&thread->pending.known, event->process, event->tid);
}

int diagnoser_event(struct diagnoser *diagnoser, const struct event *event, struct err *err)
{
	int rc;

	if (diagnoser->gpu_times)
		rc = diagnoser->gaps->ops->event(diagnoser->gaps, event, err);
	else
		rc = diagnoser->use->ops->event(diagnoser->use, event, err);
	if (diagnoser->gpu_times || rc)
		return rc ? rc : diagnoser->findings->ops->event(diagnoser->findings, event, err);
	if (event->type == EVENT_THREAD)
		thread_ids_renew(diagnoser->ids, event);
	else if (event->type == EVENT_CALL)
		see_call(diagnoser, event);
	else if (event->type == EVENT_SAMPLE)
		see_sample(diagnoser, event);
	return diagnoser->findings->ops->event(diagnoser->findings, event, err);
}

/* ---- evidence ------------------------------------------------------------------------------ */

/* The one that launched most, of equal ones the one with more calls. */
static const struct thread_use_row *launching_thread(struct diagnoser *diagnoser)
{
	const struct thread_use_row *rows, *most = NULL;
	size_t n;

	rows = thread_use_rows(diagnoser->use, &n);
	for (size_t i = 0; i < n; i++) {
		uint64_t launches = rows[i].launches + rows[i].graph_launches;

		if (rows[i].tid && launches &&
		    (!most || launches > most->launches + most->graph_launches))
			most = &rows[i];
	}
	return most;
}

static void gather_thread(struct diagnoser *diagnoser, struct diagnosis_evidence *evidence)
{
	const struct thread_use_row *row = evidence->thread = launching_thread(diagnoser);

	for (size_t i = 0; row && i < diagnoser->n_threads; i++) {
		struct diagnosed_thread *thread = diagnoser->threads[i];
		const struct gap_stacks *stacks;

		if (!thread || thread->process != row->process || thread->tid != row->tid)
			continue;
		thread->stacks.known.gap_ns = row->last_ns - row->first_ns;
		stacks = &thread->stacks;
		gap_host_free(&evidence->host);
		gap_host_sum_up(&stacks, 1, diagnoser->places, &evidence->host);
		evidence->places = diagnoser->places;
	}
}

static void free_evidence(struct diagnosis_evidence *evidence)
{
	gaps_conclusion_free(&evidence->conclusion);
	gap_host_free(&evidence->host);
}

static void gather_gpu(struct diagnoser *diagnoser, const struct gap_line *gpu,
                       struct diagnosis_evidence *evidence)
{
	evidence->gpu = gpu;
	evidence->places = gaps_places(diagnoser->gaps);
	gaps_conclude(gpu, evidence->about->begin_ns, evidence->places, &evidence->conclusion);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static const char *state_of(const struct gap_place *place)
{
	return place->blocked_ns > place->cpu_ns ? "blocked" : "on a CPU";
}

static const char *hint_of(const struct diagnosis_evidence *evidence,
                           const struct diagnosis_rule *rule, const struct gap_host *host,
                           bool calls)
{
	const char *hint;
	bool blocked;

	if (!evidence->gpu || !host->n || gap_host_trust(&host->known) <= GAP_TRUST_GUESS)
		return rule->hint;
	blocked = !calls && host->places[0].blocked_ns > host->places[0].cpu_ns;
	hint = diagnosis_hint(host->places[0].stack, blocked);
	if (!hint && blocked)
		hint = rule->hint_blocked;
	return hint ? hint : rule->hint;
}

static void add_row(struct diagnosis *diagnosis, const struct diagnosis_evidence *evidence,
                    const struct diagnosis_rule *rule)
{
	const struct gaps_conclusion *conclusion = &evidence->conclusion;
	bool calls = diagnosis_by_calls(evidence, rule);
	const struct gap_host *host = calls           ? &conclusion->calls
	                              : evidence->gpu ? &conclusion->host
	                                              : &evidence->host;
	struct diagnosis_row *row;

	diagnosis->rows = xrealloc(diagnosis->rows, (diagnosis->n_rows + 1) * sizeof(*row));
	row = &diagnosis->rows[diagnosis->n_rows++];
	*row = (struct diagnosis_row){ .rule = rule->name,
		                       .judged = rule->verdict != NOT_JUDGED,
		                       .healthy = rule->verdict == HEALTHY };
	row->of_gpu = evidence->gpu != NULL;
	if (row->of_gpu) {
		row->device = evidence->gpu->device;
		row->time_ns = conclusion->steady_ns;
		row->idle = gaps_percent(conclusion->idle_ns, conclusion->steady_ns);
		row->reason = gaps_percent(conclusion->reason_ns, conclusion->steady_ns);
	} else if (evidence->thread) {
		row->time_ns = evidence->thread->last_ns - evidence->thread->first_ns;
	}
	row->hint = hint_of(evidence, rule, host, calls);
	if (!rule->where)
		return;
	row->known = host->known;
	row->trust = gap_host_trust(&host->known);
	if (!host->n || row->trust <= GAP_TRUST_GUESS)
		return;
	row->place = gap_place_label(evidence->places, &host->places[0]);
	row->place_share = gap_host_share(host, gap_place_ns(&host->places[0]));
	row->state = calls ? NULL : state_of(&host->places[0]);
}

/* ---- what else matters --------------------------------------------------------------------- */

static void add_at(struct buf *out, const struct diagnosis_evidence *evidence, uint64_t at_ns)
{
	uint64_t begin_ns = evidence->about->begin_ns;

	buf_duration(out, at_ns > begin_ns ? at_ns - begin_ns : 0);
}

static bool say_lost(const struct diagnosis_evidence *evidence, struct buf *out)
{
	const struct run_info *run = evidence->about->run;
	uint64_t lost = missed_events(run->lost);

	if (!lost || gaps_percent(lost, lost + evidence->about->tally->calls) < LIMIT_LOST)
		return false;
	buf_u64(out, lost);
	buf_printf(out, " events were lost, so all of this is of a part%s.",
	           missed_of(run->lost, MISSED_FOR_RINGS) ? ": record with a larger --ring-size"
	                                                  : "");
	return true;
}

static bool say_start(const struct diagnosis_evidence *evidence, struct buf *out)
{
	const struct diagnosis_run *about = evidence->about;
	uint64_t ns;

	if (!evidence->gpu || about->part || evidence->gpu->first_ns <= about->begin_ns)
		return false;
	ns = evidence->gpu->first_ns - about->begin_ns;
	if (ns < LIMIT_START_NS || gaps_percent(ns, about->duration_ns) < LIMIT_START)
		return false;
	buf_puts(out, "Before that, the GPU had no work for ");
	buf_duration(out, ns);
	buf_printf(out, ", which is %.0f %% of the recording: the start of the program.",
	           gaps_percent(ns, about->duration_ns));
	return true;
}

static bool say_apart(const struct diagnosis_evidence *evidence, struct buf *out)
{
	const struct gap_line *gpu = evidence->gpu;

	if (!gpu || !gpu->n_apart ||
	    gaps_percent(gpu->apart_ns, gap_line_span_ns(gpu)) < LIMIT_APART)
		return false;
	buf_printf(out, "Left out of this %s a pause of ",
	           gpu->n_apart > 1 ? "are longer pauses, among them" : "is");
	buf_duration(out, gpu_gap_ns(&gpu->apart[0]));
	buf_puts(out, " at ");
	add_at(out, evidence, gpu->apart[0].begin_ns);
	if (gpu->apart[0].place)
		buf_printf(out, ", of which the host was for %.0f %% in %s",
		           gaps_percent(gpu->apart[0].place_ns, gpu_gap_ns(&gpu->apart[0])),
		           gpu->apart[0].place);
	buf_putc(out, '.');
	return true;
}

static bool is_covered(const struct diagnosis_rule *rule, const struct finding *finding)
{
	for (size_t i = 0; i < ARRAY_SIZE(rule->covers) && rule->covers[i]; i++) {
		if (!strcmp(rule->covers[i], finding->rule))
			return true;
	}
	return !strcmp(finding->rule, "low_use"); /* idle time again */
}

static void add_finding(const struct finding *finding, double share, struct buf *out)
{
	buf_printf(out, "Besides, up to %.0f %% of the time goes to %s", share, finding->title);
	if (finding->n_lines && finding->lines[0].share >= LIMIT_LINE_BESIDES)
		buf_printf(out, ", mostly in %s", finding->lines[0].line);
	buf_puts(out, " ('cuscope report FILE findings').");
}

static bool say_finding(const struct diagnosis_evidence *evidence,
                        const struct diagnosis_rule *rule, struct buf *out)
{
	for (size_t i = 0; i < evidence->n_findings; i++) {
		const struct finding *finding = &evidence->findings[i];
		double share = gaps_percent(finding->lost_ns, finding->span_ns);

		if (!finding->lost_known || share < LIMIT_BESIDES || is_covered(rule, finding))
			continue;
		add_finding(finding, share, out);
		return true;
	}
	return false;
}

/* The most urgent of what else there is to say. */
static void add_besides(const struct diagnosis_evidence *evidence,
                        const struct diagnosis_rule *rule, struct diagnosis *diagnosis)
{
	struct buf text = { 0 }, *out;

	if (evidence->about->chosen)
		return;
	if (say_lost(evidence, &text) || say_start(evidence, &text) || say_apart(evidence, &text) ||
	    say_finding(evidence, rule, &text)) {
		out = diagnosis_sentence(diagnosis);
		if (out)
			buf_puts(out, text.data);
	}
	buf_free(&text);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void tell(const struct diagnosis_evidence *evidence, const struct diagnosis_rule *rule,
                 const char *hint, struct diagnosis *diagnosis)
{
	struct buf *out;

	rule->what(evidence, diagnosis_sentence(diagnosis));
	if (rule->where)
		rule->where(evidence, diagnosis);
	if (hint) {
		out = diagnosis_sentence(diagnosis);
		buf_printf(out, "%s %s.", rule->verdict == WRONG ? "Try" : "To go on, try", hint);
	}
	add_besides(evidence, rule, diagnosis);
}

static uint64_t steady_idle_ns(const struct gap_line *gpu)
{
	return gpu->idle_ns - gpu->apart_ns;
}

/* One with too much idle time comes first, then one that is busy, then one too short to judge. */
static int urgency(const struct gap_line *gpu)
{
	if (gaps_steady_ns(gpu) < LIMIT_GPU_SPAN_NS)
		return 0;
	return gaps_is_busy(gpu) ? 1 : 2;
}

/* Of the most urgent GPUs, the one that was idle for longest speaks for all. */
static size_t worst_gpu(const struct gap_line *const *gpus, size_t n)
{
	size_t worst = 0;

	for (size_t i = 1; i < n; i++) {
		int more = urgency(gpus[i]) - urgency(gpus[worst]);

		if (more > 0 || (!more && steady_idle_ns(gpus[i]) > steady_idle_ns(gpus[worst])))
			worst = i;
	}
	return worst;
}

static bool is_idle_for_longest(const struct gap_line *const *gpus, size_t n, size_t which)
{
	for (size_t i = 0; i < n; i++) {
		if (steady_idle_ns(gpus[i]) > steady_idle_ns(gpus[which]))
			return false;
	}
	return true;
}

void diagnoser_conclude(struct diagnoser *diagnoser, const struct diagnosis_run *run,
                        struct diagnosis *diagnosis)
{
	struct diagnosis_evidence evidence = { .about = run };
	const struct gap_line *const *gpus;
	const struct diagnosis_rule *rule;
	size_t n, worst;

	memset(diagnosis, 0, sizeof(*diagnosis));
	gaps_finish(diagnoser->gaps);
	gpus = gaps_devices(diagnoser->gaps, &n);
	if (run->chosen)
		n = 0; /* nothing is said of them */
	worst = worst_gpu(gpus, n);
	evidence.n_gpus = n;
	evidence.idle_for_longest = is_idle_for_longest(gpus, n, worst);
	evidence.findings = findings_rows(diagnoser->findings, run->run, &evidence.n_findings);
	if (!n && !run->chosen)
		gather_thread(diagnoser, &evidence);
	for (size_t i = 0; i < n || !i; i++) {
		if (n)
			gather_gpu(diagnoser, gpus[i], &evidence);
		rule = diagnosis_rule_for(&evidence);
		add_row(diagnosis, &evidence, rule);
		if (i == worst)
			tell(&evidence, rule, diagnosis->rows[i].hint, diagnosis);
		gaps_conclusion_free(&evidence.conclusion);
		memset(&evidence.conclusion, 0, sizeof(evidence.conclusion));
	}
	free_evidence(&evidence);
}

void diagnosis_free(struct diagnosis *diagnosis)
{
	for (size_t i = 0; i < DIAGNOSIS_SENTENCES; i++)
		buf_free(&diagnosis->sentence[i]);
	free(diagnosis->rows);
	memset(diagnosis, 0, sizeof(*diagnosis));
}
