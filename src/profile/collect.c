// SPDX-License-Identifier: MIT
#include "profile/collect.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/stalls_use.h"
#include "analysis/thread_ids.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/number.h"
#include "base/xalloc.h"

/* What ran, as it is called. Kept once. */
struct collect_name {
	UT_hash_handle hh;
	/* With stacks of their own, and without. */
	uint64_t walked_ns, walked_count, other_ns, other_count;
	const struct stall_row *stalls; /* of a kernel; at the end */
	size_t n_stalls;
	char text[];
};

struct pair_key { /* no padding: it is hashed whole */
	struct collect_name *name;
	const struct stack *stack; /* NULL: was not walked, or is not known */
	const struct process *process;
	uint64_t tid;
	uint64_t node; /* it ran as a node of a graph, whose stack is that of all its runs */
};

struct pair {
	struct pair_key key;
	uint64_t ns, count;
	UT_hash_handle hh;
};

struct collect {
	struct consumer consumer; /* first */
	struct collect_options options;
	struct profile *profile;
	const struct stack **by_place; /* of calls in the window of `work` */
	size_t places;
	const struct stack *stack; /* of the call that the present event joins with its work */
	struct collect_name *names;
	struct pair *pairs;
	struct collect_figures figures;
	uint64_t *pids;    /* a bit of each that was seen */
	size_t n_pids;     /* that there are bits of */
	uint64_t brief_ns; /* blocked stretches below were added up */
	bool host_waits;
	struct stalls_use *stalls;     /* NULL: none were recorded */
	struct thread_ids *thread_ids; /* NULL: threads are not told apart */
	char **thread_names;           /* by those ids; NULL: not known */
	size_t n_thread_names;
	struct buf text;
};

/* ---- what ran ----------------------------------------------------------------------------------
 */

/* By what is in c->text. */
static struct collect_name *keep_name(struct collect *c)
{
	struct collect_name *name = MAP_FIND_BYTES(c->names, c->text.data, c->text.len);

	if (name)
		return name;
	name = xcalloc(1, sizeof(*name) + c->text.len + 1);
	memcpy(name->text, c->text.data, c->text.len);
	HASH_ADD_KEYPTR(hh, c->names, name->text, c->text.len, name);
	return name;
}

static struct collect_name *find_name(struct collect *c, const struct activity *activity)
{
	buf_reset(&c->text);
	profile_gpu_name(activity, &c->text);
	return keep_name(c);
}

static struct pair *find_pair(struct collect *c, const struct pair_key *key)
{
	struct pair *pair = MAP_FIND(c->pairs, key);

	if (pair)
		return pair;
	if (HASH_COUNT(c->pairs) >= COLLECT_PAIRS_MAX) {
		c->figures.pairs_refused++;
		return NULL;
	}
	return MAP_ADD(c->pairs, key, key);
}

/* What ran, and who asked for it. */
struct collect_ran {
	struct collect_name *name;
	const struct stack *stack;
	const struct process *process;
	uint32_t tid;
	bool node; /* of a graph, with its own stack */
};

/* Time of the GPU, or of a hook, under the stack of who asked for it; NULL: it is not known. */
static void take(struct collect *c, const struct collect_ran *ran, uint64_t ns)
{
	struct collect_name *name = ran->name;
	struct pair_key key = { .name = name, .stack = ran->stack, .node = ran->node };
	struct pair *pair;

	if (c->options.profile.per_process || c->options.profile.per_thread)
		key.process = ran->process;
	if (c->options.profile.per_thread)
		key.tid = ran->tid;
	pair = find_pair(c, &key);
	c->figures.gpu_ns += ns;
	if (key.stack && pair) {
		name->walked_ns += key.node ? 0 : ns;
		name->walked_count += !key.node;
		c->figures.gpu_walked_ns += ns;
	}
	if (pair) {
		pair->ns += ns;
		pair->count++;
	} else {
		name->other_ns += ns;
		name->other_count++;
	}
}

static void take_done(void *data, const struct work_done *done, const struct work_call *call)
{
	struct collect *c = data;
	const struct collect_ran ran = { .name = find_name(c, done->activity),
		                         .stack = done->activity->stack ? done->activity->stack
		                                  : call                ? c->stack
		                                                        : NULL,
		                         .process = done->process,
		                         .tid = call ? call->tid : 0,
		                         .node = done->activity->stack != NULL };

	take(c, &ran, activity_duration_ns(done->activity));
}

/* ---- calls that users hook --------------------------------------------------------------------
 */

static void take_hook(struct collect *c, const struct event *event)
{
	const struct call *call = event->call;
	struct collect_ran ran = { .stack = call->stack,
		                   .process = event->process,
		                   .tid = event->tid };

	if (!call_has_end(call)) {
		c->figures.no_end++;
		return;
	}
	buf_reset(&c->text);
	buf_printf(&c->text, PROFILE_HOOK "%s", call->function->name);
	ran.name = keep_name(c);
	take(c, &ran, call_duration_ns(call));
}

/* ---- events ------------------------------------------------------------------------------------
 */

/* Calls come and go in the window; their places are small numbers that are used again. */
static void keep_stack(struct collect *c, uint32_t place, const struct stack *stack)
{
	if (place >= c->places) {
		size_t more = c->places ? 2 * c->places : 1024;

		while (more <= place)
			more *= 2;
		c->by_place = xrealloc(c->by_place, more * sizeof(*c->by_place));
		memset(c->by_place + c->places, 0, (more - c->places) * sizeof(*c->by_place));
		c->places = more;
	}
	c->by_place[place] = stack;
}

static void join(struct collect *c, const struct event *event)
{
	const struct work_now *now = work_now(c->options.work);

	c->stack = NULL;
	if (event->type == EVENT_CALL) {
		c->stack = event->call->stack;
		if (now->call)
			keep_stack(c, now->place, c->stack);
	} else if (now->call && now->place < c->places) {
		c->stack = c->by_place[now->place];
	}
	work_tell_joined(c->options.work, take_done, c);
}

#define PIDS_MAX (4u << 20) /* that the kernel gives to anybody; a file may hold others */

/* A program that a process has become is another process to consumers, with the same pid. */
static void count_process(struct collect *c, uint32_t pid)
{
	size_t words = pid / 64 + 1;

	if (pid >= PIDS_MAX) {
		c->figures.processes++;
		return;
	}
	if (pid >= c->n_pids) {
		c->pids = xrealloc(c->pids, words * sizeof(*c->pids));
		memset(c->pids + c->n_pids / 64, 0, words * sizeof(*c->pids) - c->n_pids / 8);
		c->n_pids = words * 64;
	}
	c->figures.processes += !(c->pids[pid / 64] >> pid % 64 & 1);
	c->pids[pid / 64] |= 1ull << pid % 64;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void name_thread(struct collect *c, const struct event *event)
{
	uint32_t id;

	if (!c->thread_ids)
		return;
	id = thread_ids_of(c->thread_ids, event);
	if (id == THREAD_ID_OTHERS)
		return;
	c->thread_names =
		by_id_room(c->thread_names, &c->n_thread_names, sizeof(*c->thread_names), id);
	free(c->thread_names[id]);
	c->thread_names[id] = xstrdup(event->thread->comm);
}

/* NULL: not known. */
static const char *thread_name(struct collect *c, const struct process *process, uint32_t tid)
{
	const struct event of = { .process = process, .tid = tid };
	uint32_t id =
		c->thread_ids && process ? thread_ids_find(c->thread_ids, &of) : THREAD_ID_OTHERS;

	return id < c->n_thread_names ? c->thread_names[id] : NULL;
}

static void add_sample(struct collect *c, const struct event *event)
{
	const struct sample *from = event->sample;
	struct sample as_sum;
	bool blocked = from->kind == SAMPLE_OFF_CPU;
	struct profile_sample sample = { .kind = blocked ? WEIGHT_OFF_CPU : WEIGHT_CPU,
		                         .ns = from->weight_ns,
		                         .count = from->count,
		                         .stack = from->stack,
		                         .process = event->process,
		                         .tid = event->tid,
		                         .thread = thread_name(c, event->process, event->tid) };

	if (!(c->options.kinds & 1u << sample.kind))
		return;
	if (blocked && c->host_waits && !from->stack && from->blocked <= BLOCKED_INTERRUPT) {
		as_sum = *from; /* what was told for its time alone, see --host-waits */
		as_sum.blocked = BLOCKED_SKIPPED;
		from = &as_sum;
	}
	if (blocked)
		sample.blocked = profile_blocked_name(from, c->brief_ns,
		                                      c->options.profile.per_thread, &c->text);
	profile_add(c->profile, &sample);
}

static int on_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	((struct collect *)self)->brief_ns = run->stacks.blocked_ns;
	((struct collect *)self)->host_waits = run->stacks.host_waits;
	return 0;
}

static int on_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct collect *c = (struct collect *)self;

	if (event->type == EVENT_PROCESS)
		count_process(c, event->process->pid);
	if (event->type == EVENT_THREAD)
		name_thread(c, event);
	if (c->options.work && (event->type == EVENT_CALL || event->type == EVENT_ACTIVITY))
		join(c, event);
	if (event->type == EVENT_STALL) {
		if (!c->stalls)
			c->stalls = stalls_use_new();
		stalls_use_add(c->stalls, event);
	}
	if (event->type == EVENT_OTHER_CALL && event->call->function->layer == LAYER_HOOK &&
	    c->figures.hooks)
		take_hook(c, event);
	if (event->type != EVENT_SAMPLE)
		return 0;
	c->figures.samples += event->sample->kind == SAMPLE_CPU;
	add_sample(c, event);
	return 0;
}

/* Samples of a kernel know no launch: its time is shared out by them, under each stack alike. */
static void add_shares(struct collect *c, const struct collect_name *name,
                       const struct profile_sample *whole)
{
	struct profile_sample part = *whole;
	uint64_t ns = 0, count = 0, samples = 0;

	for (size_t i = 0; i < name->n_stalls; i++) {
		const struct stall_row *row = &name->stalls[i];
		double share;

		number_add(&samples, row->samples);
		share = (double)samples / (double)row->of_kernel;
		part.ns = (uint64_t)((double)whole->ns * share + 0.5) - ns;
		part.count = (uint64_t)((double)whole->count * share + 0.5) - count;
		ns += part.ns;
		count += part.count;
		buf_reset(&c->text);
		buf_printf(&c->text, PROFILE_STALL "%s: %s", row->reason,
		           stall_reason_words(row->reason));
		part.stall = c->text.data;
		if (part.ns && part.count)
			profile_add(c->profile, &part);
		else
			ns -= part.ns, count -= part.count; /* the next one's */
	}
	part.ns = whole->ns - ns;
	part.count = whole->count - count;
	if (part.ns)
		profile_add(c->profile, &part);
}

/* Which rows of stalls are of which kernel that ran. */
static void find_stalls(struct collect *c, const struct stall_row *rows, size_t n)
{
	const struct activity any = { .kind = ACTIVITY_KERNEL };
	struct collect_name *name = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!i || strcmp(rows[i].kernel, rows[i - 1].kernel) != 0) {
			const struct kernel kernel = { .name = rows[i].kernel };
			struct activity activity = any;

			activity.kernel = &kernel;
			buf_reset(&c->text);
			profile_gpu_name(&activity, &c->text);
			name = MAP_FIND_BYTES(c->names, c->text.data, c->text.len);
			if (name)
				name->stalls = &rows[i];
		}
		if (name)
			name->n_stalls++;
	}
}

static void add(struct collect *c, const struct pair *pair, uint64_t ns, uint64_t count)
{
	const struct pair_key *key = &pair->key;
	const struct profile_sample sample = {
		.kind = c->figures.hooks ? WEIGHT_HOOK : WEIGHT_GPU,
		.ns = ns,
		.count = count,
		.stack = key->stack,
		.gpu = key->name->text,
		.process = key->process,
		.tid = (uint32_t)key->tid,
		.thread = thread_name(c, key->process, (uint32_t)key->tid),
	};

	if (key->name->n_stalls)
		add_shares(c, key->name, &sample);
	else
		profile_add(c->profile, &sample);
}

static uint64_t with_more(uint64_t value, uint64_t walked, uint64_t other)
{
	double more = walked ? (double)other / (double)walked : 0;

	return value + (uint64_t)((double)value * more + 0.5);
}

/* Time of the same kernel, or hook, whose calls were not walked goes where that of the others is.
 */
static void add_pair(struct collect *c, const struct pair *pair)
{
	const struct collect_name *name = pair->key.name;

	if (!pair->key.stack) {
		if (!name->walked_ns)
			add(c, pair, pair->ns, pair->count);
		return;
	}
	if (pair->key.node) {
		add(c, pair, pair->ns, pair->count);
		return;
	}
	add(c, pair, with_more(pair->ns, name->walked_ns, name->other_ns),
	    with_more(pair->count, name->walked_count, name->other_count));
}

static void take_run(struct collect_figures *figures, const struct run_info *run)
{
	figures->asked = run->stacks;
	memcpy(figures->lost, run->lost, sizeof(figures->lost));
	figures->begin_ns = run->begin_ns + (uint64_t)run->realtime_offset_ns;
	figures->duration_ns = run->end_ns - run->begin_ns;
}

static int on_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct collect *c = (struct collect *)self;
	struct stall_row *stalls = NULL;
	struct pair *pair, *next;
	size_t n_stalls;

	take_run(&c->figures, run);
	c->stack = NULL;
	if (c->options.work)
		work_tell_rest(c->options.work, take_done, c);
	HASH_ITER (hh, c->pairs, pair, next) {
		if (pair->key.stack)
			continue;
		pair->key.name->other_ns += pair->ns;
		pair->key.name->other_count += pair->count;
		if (pair->key.name->walked_ns)
			c->figures.gpu_guessed_ns += pair->ns;
	}
	if (c->stalls) {
		stalls = stalls_use_reasons(c->stalls, &n_stalls);
		find_stalls(c, stalls, n_stalls);
	}
	HASH_ITER (hh, c->pairs, pair, next)
		add_pair(c, pair);
	free(stalls);
	profile_take_parts(c->profile);
	return 0;
}

static void on_free(struct consumer *self)
{
	struct collect *c = (struct collect *)self;

	MAP_FREE(c->pairs, free);
	MAP_FREE(c->names, free);
	stalls_use_free(c->stalls);
	profile_free(c->profile);
	work_free(c->options.work);
	for (size_t i = 0; i < c->n_thread_names; i++)
		free(c->thread_names[i]);
	free(c->thread_names);
	thread_ids_free(c->thread_ids);
	free(c->by_place);
	free(c->pids);
	buf_free(&c->text);
	free(c);
}

static const struct consumer_ops collect_ops = {
	.begin = on_begin,
	.event = on_event,
	.end = on_end,
	.free = on_free,
	.stalls = true,
};

struct consumer *collect_new(const struct collect_options *options)
{
	struct collect *c = xcalloc(1, sizeof(*c));

	c->consumer.ops = &collect_ops;
	c->options = *options;
	if (options->work)
		c->options.work = work_share(options->work);
	c->figures.hooks = options->kinds == 1u << WEIGHT_HOOK;
	if (options->profile.per_thread)
		c->thread_ids = thread_ids_new();
	c->profile = profile_new(&options->profile);
	return &c->consumer;
}

const struct profile *collect_profile(const struct consumer *collect)
{
	return ((struct collect *)collect)->profile;
}

void collect_figures(const struct consumer *collect, struct collect_figures *figures)
{
	*figures = ((struct collect *)collect)->figures;
}
