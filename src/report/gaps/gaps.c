// SPDX-License-Identifier: MIT
#include "report/gaps/gaps_inside.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/work.h"
#include "report/gaps/gap_device.h"
#include "report/gaps/gap_meanwhile.h"
#include "base/xalloc.h"

/* Pieces that are not settled: a device's can be covered late, by kernels beside many others. */
#define DEVICE_PIECES  16384
#define PROCESS_PIECES 1024
#define STREAM_PIECES  256

#define FORGET_SAMPLES 4096 /* between two looks at samples that nobody needs */

#define SWEEP_EVENTS 65536 /* between two looks at gaps whose call was not known */

static void free_line(struct gaps_line *line)
{
	for (size_t i = 0; i < GAP_CAUSES; i++)
		gap_functions_free(&line->functions[i]);
	gap_cover_free(&line->cover);
	gap_meanwhile_free(line->meanwhile);
	gap_device_free(line->device);
	free(line);
}

/* ---- lines --------------------------------------------------------------------------------- */

static struct gaps_line *find_line(const struct gaps *gaps, const struct gaps_line_key *key)
{
	struct gaps_line *found;

	HASH_FIND(hh, gaps->lines, key, sizeof(*key), found);
	return found;
}

/* NULL: there are too many. */
static struct gaps_line *line_of(struct gaps *gaps, struct gaps_line_key key,
                                 const struct event *event)
{
	static const size_t most[] = { GAPS_DEVICES, GAPS_PROCESSES, GAPS_STREAMS };
	static const size_t pieces[] = { DEVICE_PIECES, PROCESS_PIECES, STREAM_PIECES };
	struct gaps_line *line = find_line(gaps, &key);

	if (line || gaps->n_lines[key.kind] == most[key.kind])
		return line;
	gaps->n_lines[key.kind]++;
	line = xcalloc(1, sizeof(*line));
	line->key = key;
	line->row.device = key.device;
	line->row.process = key.kind == KIND_DEVICE ? NULL : event->process;
	line->row.context = key.context;
	line->row.stream = key.stream;
	gap_cover_init(&line->cover, pieces[key.kind]);
	if (key.kind == KIND_DEVICE) {
		line->device = gap_device_new();
		line->meanwhile = gap_meanwhile_new();
		line->row.host = line->meanwhile->stacks;
		line->row.calls = line->meanwhile->calls;
		line->row.waits = &line->meanwhile->waits;
	}
	HASH_ADD(hh, gaps->lines, key, sizeof(line->key), line);
	return line;
}

static struct gaps_line *device_line(struct gaps *gaps, const struct event *event)
{
	return line_of(gaps,
	               (struct gaps_line_key){ KIND_DEVICE, event->activity->device, 0, 0, 0 },
	               event);
}

static struct gaps_line *process_line(struct gaps *gaps, const struct event *event)
{
	return line_of(gaps,
	               (struct gaps_line_key){ KIND_PROCESS, event->activity->device,
	                                       event->process->id, 0, 0 },
	               event);
}

/* With its device and process; NULL: there are too many of one of them. */
static struct gaps_line *stream_line(struct gaps *gaps, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct gaps_line_key key = { KIND_STREAM, activity->device, event->process->id,
		                     activity->context, activity->stream };
	struct gaps_line *line = gaps->last, *on, *of;

	if (line && !memcmp(&line->key, &key, sizeof(key)))
		return line;
	line = find_line(gaps, &key);
	if (line)
		return gaps->last = line;
	on = device_line(gaps, event);
	of = on ? process_line(gaps, event) : NULL;
	line = of ? line_of(gaps, key, event) : NULL;
	if (!line)
		return NULL;
	line->on = on;
	line->of = of;
	return gaps->last = line;
}

/* ---- gaps ---------------------------------------------------------------------------------- */

/* The call that a gap counts for, and how long it was in it. */
static const struct function *function_of(const struct gap_verdict *verdict, uint64_t gap_ns,
                                          uint64_t *ns)
{
	*ns = verdict->late ? verdict->longest_ns : gap_ns;
	if (verdict->late)
		return verdict->longest;
	return verdict->by ? verdict->by : verdict->ask;
}

static void count_calls(struct gaps_line *line, const struct gap_verdict *verdict, uint64_t gap_ns)
{
	struct gap_sum *sum = &line->row.cause[verdict->cause];
	uint64_t ns;
	const struct function *function = function_of(verdict, gap_ns, &ns);

	if (verdict->late) {
		sum->host_ns += verdict->host_ns;
		sum->cuda_ns += verdict->cuda_ns;
	}
	if (function && line->device)
		gap_functions_add(&line->functions[verdict->cause], function, ns);
}

static void count_length(struct gaps *gaps, struct gap_sum *sum, uint64_t ns)
{
	if (ns < gaps->options.threshold_ns) {
		sum->short_count++;
		sum->short_ns += ns;
		return;
	}
	sum->count++;
	sum->ns += ns;
	if (ns > sum->longest_ns)
		sum->longest_ns = ns;
}

static void count_gap(struct gaps *gaps, struct gaps_line *line, const struct gap_work *before,
                      uint64_t begin_ns, const struct gap_piece *piece)
{
	const struct gap_verdict *verdict = &piece->verdict;
	uint64_t ns = piece->begin_ns - begin_ns;
	struct gpu_gap gap = {
		.device = line->row.device,
		.begin_ns = begin_ns,
		.end_ns = piece->begin_ns,
		.before = *before,
		.after = piece->first,
		.verdict = *verdict,
	};

	line->row.idle_ns += ns;
	if (!line->device)
		line->row.hta_ns[verdict->hta] += ns;
	count_length(gaps, &line->row.cause[verdict->cause], ns);
	count_calls(line, verdict, ns);
	if (line->device)
		gap_meanwhile_count(line->meanwhile, gaps->threads, &gap,
		                    ns >= gaps->options.threshold_ns &&
		                            longest_wants(&gaps->of_devices, &gap));
	if (ns < gaps->options.threshold_ns)
		return;
	longest_keep(line->device ? &gaps->of_devices : &gaps->of_streams, &gap);
	if (line->device && !verdict->asked)
		gaps->limits.no_call++;
}

static void judge(struct gaps *gaps, struct gaps_line *line, size_t i)
{
	struct gap_piece *piece = gap_cover_piece(&line->cover, i);
	const struct gap_work *before;
	uint64_t begin_ns;

	if (piece->judged || !gap_cover_gap(&line->cover, i, &begin_ns, &before))
		return;
	piece->judged = gap_judge(gaps->calls, begin_ns, before, &piece->first, piece->release,
	                          &piece->verdict);
}

static void settle(struct gaps *gaps, struct gaps_line *line)
{
	const struct gap_work *before;
	struct gap_piece *piece;
	uint64_t begin_ns;

	if (line->key.kind != KIND_PROCESS && gap_cover_gap(&line->cover, 0, &begin_ns, &before)) {
		piece = gap_cover_piece(&line->cover, 0);
		judge(gaps, line, 0);
		if (piece->not_measured)
			line->row.not_measured_ns += piece->begin_ns - begin_ns;
		else
			count_gap(gaps, line, before, begin_ns, piece);
	}
	gap_cover_settle(&line->cover);
}

/* ---- activities ---------------------------------------------------------------------------- */

static void add_work(struct gaps *gaps, struct gaps_line *line, const struct gap_work *work)
{
	const struct gap_device *device;
	const struct gap_work *before;
	struct gap_piece *piece;
	uint64_t begin_ns;
	size_t at;

	line->row.activities++;
	while (gap_cover_is_full(&line->cover))
		settle(gaps, line);
	piece = gap_cover_add(&line->cover, work);
	if (!piece || piece->judged || line->key.kind == KIND_PROCESS)
		return; /* the gap before it is as it was, or nobody asks */
	at = gap_cover_index(&line->cover, piece);
	if (!gap_cover_gap(&line->cover, at, &begin_ns, &before))
		return;
	device = line->device ? line->device : line->on->device;
	piece->not_measured = !gap_device_was_measured(device, begin_ns, piece->begin_ns);
	if (line->on && piece->begin_ns - begin_ns >= gaps->options.threshold_ns)
		piece->release =
			gap_device_release(device, &piece->first, line->nonblocking, begin_ns);
	judge(gaps, line, at);
}

static void learn_handle(struct gaps *gaps, struct gaps_line *line, uint64_t ask)
{
	const struct gap_call_kept *call = gap_calls_find(gaps->calls, ask);

	if (!call || call->op == OP_GRAPH_LAUNCH) /* whose nodes can be on other streams */
		return;
	line->row.knows_handle = true;
	line->row.handle = call->stream;
	line->nonblocking = call->nonblocking;
}

static void count_activity(struct gaps *gaps, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct gaps_line *line = stream_line(gaps, event);
	const struct work_call *ask = work_now(gaps->work)->call;
	struct gap_work work = {
		.process = event->process,
		.ask = ask ? ask->number : 0,
		.kernel = activity->kernel,
		.begin_ns = activity->begin_ns,
		.end_ns = activity->begin_ns + activity_duration_ns(activity),
		.correlation = activity->correlation,
		.context = activity->context,
		.stream = activity->stream,
		.kind = activity->kind,
		.direction = activity->direction,
	};

	if (!line) { /* its device can still be one of those that are known */
		gaps->limits.left_out++;
		line = device_line(gaps, event);
		if (line)
			add_work(gaps, line, &work);
		return;
	}
	if (!line->row.knows_handle)
		learn_handle(gaps, line, work.ask);
	add_work(gaps, line, &work);
	add_work(gaps, line->of, &work);
	add_work(gaps, line->on, &work);
	gap_device_end(line->on->device, &work, line->nonblocking);
}

/* The call of what ran before it returned: it was not known then. */
static void learn_call(void *data, const struct work_done *done, const struct work_call *call)
{
	const struct event event = { .type = EVENT_ACTIVITY,
		                     .process = done->process,
		                     .activity = done->activity };
	struct gaps_line *line = stream_line(data, &event);

	if (!line)
		return;
	if (!line->row.knows_handle)
		learn_handle(data, line, call->number);
	gap_cover_learn(&line->cover, done->process, done->activity, call->number);
	gap_cover_learn(&line->on->cover, done->process, done->activity, call->number);
}

/* ---- other events -------------------------------------------------------------------------- */

/* A device was not measured when one of the processes that use it was not. */
static void count_not_measured(struct gaps *gaps, const struct event *event)
{
	struct gaps_line *line, *next;

	HASH_ITER (hh, gaps->lines, line, next) {
		struct gaps_line_key key = { KIND_PROCESS, line->key.device, event->process->id, 0,
			                     0 };
		if (line->device && find_line(gaps, &key))
			gap_device_not_measured(line->device, event->range);
	}
}

/* Calls that an activity came before are known by now, and will be forgotten later. */
static void sweep(struct gaps *gaps)
{
	struct gaps_line *line, *next;

	HASH_ITER (hh, gaps->lines, line, next) {
		for (size_t i = line->cover.n; i-- && line->key.kind != KIND_PROCESS;)
			judge(gaps, line, i);
	}
}

/* Before samples are forgotten, gaps of their time are told of. */
static void settle_until(struct gaps *gaps, uint64_t time_ns)
{
	struct gaps_line *line, *next;

	HASH_ITER (hh, gaps->lines, line, next) {
		while (line->device && line->cover.n > 1 &&
		       gap_cover_piece(&line->cover, 0)->end_ns <= time_ns)
			settle(gaps, line);
	}
}

/* No gap that is to be told of begins before what was settled. */
static void forget_samples(struct gaps *gaps)
{
	struct gaps_line *line, *next;
	uint64_t until_ns = UINT64_MAX;

	HASH_ITER (hh, gaps->lines, line, next) {
		uint64_t settled_ns = line->cover.begun ? line->cover.settled_ns : 0;

		if (line->device && settled_ns < until_ns)
			until_ns = settled_ns;
	}
	if (until_ns != UINT64_MAX)
		gap_threads_forget(gaps->threads, until_ns);
}

/* Of threads that made a call: no other has asked for work. */
static void see_sample(struct gaps *gaps, const struct event *event)
{
	uint32_t thread = gap_calls_thread(gaps->calls, event);
	uint64_t due_ns = gap_threads_due(gaps->threads, thread);

	if (due_ns)
		settle_until(gaps, due_ns);
	if (++gaps->samples % FORGET_SAMPLES == 0)
		forget_samples(gaps);
	gap_threads_sample(gaps->threads, thread, event);
}

static int gaps_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct gaps *gaps = (struct gaps *)self;

	work_event(gaps->work, event);
	gap_calls_event(gaps->calls, event);
	if (event->type == EVENT_CALL && gap_threads_wait(gaps->threads))
		gap_threads_ended(gaps->threads, gap_calls_thread(gaps->calls, event), event->call,
		                  event->time_ns);
	if (work_now(gaps->work)->early)
		work_tell_joined(gaps->work, learn_call, gaps);
	if (event->type == EVENT_ACTIVITY)
		count_activity(gaps, event);
	else if (event->type == EVENT_RANGE && event->range->kind == RANGE_NOT_MEASURED)
		count_not_measured(gaps, event);
	else if (event->type == EVENT_SAMPLE)
		see_sample(gaps, event);
	if (++gaps->events % SWEEP_EVENTS == 0)
		sweep(gaps);
	return 0;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void find_most(const struct gaps_line *line, enum gap_cause cause, struct gap_sum *sum)
{
	struct gap_function most = gap_functions_most(&line->functions[cause]);

	sum->most = most.function;
	sum->most_ns = most.ns;
}

static void leave_out(struct gaps *gaps, struct gaps_line *line, const struct gpu_gap *gap)
{
	const struct gap_verdict *verdict = &gap->verdict;
	struct gap_sum *sum = &line->row.steady[verdict->cause];
	uint64_t gap_ns = gpu_gap_ns(gap), ns;
	const struct function *function = function_of(verdict, gap_ns, &ns);
	bool is_short = gap_ns < gaps->options.threshold_ns;

	*(is_short ? &sum->short_count : &sum->count) -= 1;
	*(is_short ? &sum->short_ns : &sum->ns) -= gap_ns;
	if (verdict->late) {
		sum->host_ns -= verdict->host_ns;
		sum->cuda_ns -= verdict->cuda_ns;
	}
	if (function)
		gap_functions_take(&line->functions[verdict->cause], function, ns);
	line->row.apart_ns += gap_ns;
}

/* After all of its gaps are counted. */
static void find_steady(struct gaps *gaps, struct gaps_line *line)
{
	size_t n_giants;
	const struct gpu_gap *giants = gap_meanwhile_giants(line->meanwhile, &n_giants);
	struct gap_line *row = &line->row;
	uint64_t n_gaps = 0;

	for (size_t i = 0; i < GAP_CAUSES; i++) {
		find_most(line, (enum gap_cause)i, &row->cause[i]);
		row->steady[i] = row->cause[i];
		row->steady[i].longest_ns = 0;
		n_gaps += row->cause[i].count + row->cause[i].short_count;
	}
	row->apart = giants;
	row->n_apart = gap_longest_apart(giants, n_giants, n_gaps, gap_line_span_ns(row));
	for (size_t i = 0; i < row->n_apart; i++)
		leave_out(gaps, line, &giants[i]);
	gap_meanwhile_join(line->meanwhile, gaps->threads, giants + row->n_apart,
	                   n_giants - row->n_apart);
	for (size_t i = 0; i < GAP_CAUSES; i++)
		find_most(line, (enum gap_cause)i, &row->steady[i]);
}

void gaps_finish(struct consumer *self)
{
	struct gaps *gaps = (struct gaps *)self;
	struct gaps_line *line, *next;

	if (gaps->finished)
		return;
	gaps->finished = true;
	HASH_ITER (hh, gaps->lines, line, next) {
		while (line->cover.n)
			settle(gaps, line);
		line->row.first_ns = line->cover.first_ns;
		line->row.last_ns = line->cover.last_ns;
		line->row.busy_ns = line->cover.busy_ns;
		if (!line->device)
			continue;
		gaps->limits.late += line->cover.late;
		find_steady(gaps, line);
	}
}

static void gaps_free(struct consumer *self)
{
	struct gaps *gaps = (struct gaps *)self;
	struct gaps_line *line, *next;

	HASH_ITER (hh, gaps->lines, line, next) {
		HASH_DELETE(hh, gaps->lines, line);
		free_line(line);
	}
	for (size_t i = 0; i < KIND_COUNT; i++)
		free(gaps->rows[i]);
	gap_calls_free(gaps->calls);
	gap_threads_free(gaps->threads);
	work_free(gaps->work);
	longest_free(&gaps->of_devices);
	longest_free(&gaps->of_streams);
	free(gaps);
}

static const struct consumer_ops gaps_ops = { .event = gaps_event, .free = gaps_free };

struct consumer *gaps_new(const struct gaps_options *options)
{
	struct gaps *gaps = xcalloc(1, sizeof(*gaps));

	gaps->consumer.ops = &gaps_ops;
	gaps->options = *options;
	gaps->work = work_share(options->work);
	gaps->calls = gap_calls_new(gaps->work);
	gaps->threads = gap_threads_new();
	longest_init(&gaps->of_devices, sizeof(struct gpu_gap), options->longest, gap_longer);
	longest_init(&gaps->of_streams, sizeof(struct gpu_gap), options->longest, gap_longer);
	return &gaps->consumer;
}
