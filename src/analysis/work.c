// SPDX-License-Identifier: MIT
#include "analysis/work.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/correlations.h"
#include "analysis/streams.h"
#include "analysis/work_table.h"
#include "base/hash.h"
#include "base/xalloc.h"

#define PLACES_FEW        (1u << 16) /* from here on graphs whose work came make room */
#define MET_MOST          (1u << 12) /* launches and copies whose work came, and should be all of it */
#define PLACES_UNEXPECTED (1u << 12) /* older files do not always say that activities come */
#define CHAINS            (1u << 13) /* of work that came early; a power of two */

struct early {
	const struct process *process; /* NULL: free */
	struct activity activity;
	uint32_t next;   /* of its chain, or of those that the last event has joined */
	uint32_t before; /* in its chain; WORK_NONE: it is the first */
};

struct work {
	struct consumer consumer; /* first */
	bool fed;                 /* by the consumer */
	unsigned owners;
	struct work_table table;
	uint64_t number;

	struct early *early; /* a ring */
	uint32_t *early_chains;
	uint32_t next_early, n_early;
	uint32_t joined; /* of them, by the last event */

	struct correlations *gone; /* what left to make room; NULL: none */
	uint64_t unjoined;

	struct work_now now;
	struct work_done done;   /* this event's; activity NULL: none */
	struct work_call left;   /* where now.left points */
	struct early early_gone; /* what left to make room for `done` */
};

/* ---- room ----------------------------------------------------------------------------------- */

static void let_go(struct work *work, struct work_place *place)
{
	if (place->call.queue == WORK_OPEN) {
		work->left = place->call;
		work->now.left = &work->left;
		work->now.left_place = work_table_number(&work->table, place);
	}
	work_table_drop(&work->table, place);
}

static void mark_gone(struct work *work, uint32_t process, uint64_t correlation,
                      enum correlation_mark mark)
{
	if (!work->gone)
		work->gone = correlations_new();
	correlations_mark(work->gone, process, correlation, mark);
}

static bool is_gone(const struct work *work, uint32_t process, uint64_t correlation,
                    enum correlation_mark mark)
{
	return work->gone && correlations_marks(work->gone, process, correlation) & mark;
}

/* Its work may come yet: then it is known that they were not joined. */
static void push_out(struct work *work, struct work_place *place)
{
	mark_gone(work, place->call.process->id, place->call.correlation, CORRELATION_CALL);
	let_go(work, place);
}

static void make_room(struct work *work)
{
	struct work_table *table = &work->table;
	const struct work_queue *met = table->met_graphs.n ? &table->met_graphs : &table->met;
	bool many_graphs = table->met_graphs.n > table->n / 2 && table->n >= PLACES_FEW;

	if (table->n < table->limit && !many_graphs)
		work_table_grow(table);
	else if (met->n)
		let_go(work, &table->places[met->oldest]);
	else
		push_out(work, &table->places[work_table_heaviest(table)->oldest]);
}

static struct work_place *free_place(struct work *work)
{
	struct work_place *place = work_table_take(&work->table);

	if (place)
		return place;
	make_room(work);
	return work_table_take(&work->table);
}

/* ---- work that came before its call --------------------------------------------------------- */

static uint32_t *early_chain(const struct work *work, uint32_t process, uint64_t correlation)
{
	const uint64_t key[] = { correlation, process };

	return &work->early_chains[hash_long(key, sizeof(key)) & (CHAINS - 1)];
}

static bool is_early_of(const struct early *early, uint32_t process, uint64_t correlation)
{
	return early->process->id == process && early->activity.correlation == correlation;
}

static void take_early(struct work *work, const struct early *early)
{
	uint32_t *chain = early_chain(work, early->process->id, early->activity.correlation);

	*(early->before == WORK_NONE ? chain : &work->early[early->before].next) = early->next;
	if (early->next != WORK_NONE)
		work->early[early->next].before = early->before;
	work->n_early--;
}

static void drop_early(struct work *work, struct early *early)
{
	take_early(work, early);
	work->early_gone = *early;
	early->process = NULL;
	mark_gone(work, work->early_gone.process->id, work->early_gone.activity.correlation,
	          CORRELATION_WORK);
}

/* True where no other one waits for the same call. */
static bool keep_early(struct work *work)
{
	uint32_t process = work->done.process->id, i;
	uint64_t correlation = work->done.activity->correlation;
	struct early *early;
	uint32_t *chain;

	if (!work->early) {
		work->early = xcalloc(WORK_EARLY, sizeof(*work->early));
		work->early_chains = xmalloc(CHAINS * sizeof(*work->early_chains));
		memset(work->early_chains, 0xff, CHAINS * sizeof(*work->early_chains));
	}
	early = &work->early[work->next_early];
	if (early->process)
		drop_early(work, early);
	chain = early_chain(work, process, correlation);
	for (i = *chain; i != WORK_NONE && !is_early_of(&work->early[i], process, correlation);)
		i = work->early[i].next;
	early->process = work->done.process;
	early->activity = *work->done.activity;
	early->next = *chain;
	early->before = WORK_NONE;
	if (*chain != WORK_NONE)
		work->early[*chain].before = work->next_early;
	*chain = work->next_early;
	work->next_early = (work->next_early + 1) % WORK_EARLY;
	work->n_early++;
	return i == WORK_NONE;
}

/* All that waited for the call leave, in the order in which they came. */
static void join_early(struct work *work, const struct work_call *call)
{
	uint32_t at = *early_chain(work, call->process->id, call->correlation), next;

	for (; at != WORK_NONE; at = next) {
		struct early *early = &work->early[at];

		next = early->next;
		if (!is_early_of(early, call->process->id, call->correlation))
			continue;
		take_early(work, early);
		early->process = NULL;
		early->next = work->joined;
		work->joined = at;
	}
}

/* ---- events -------------------------------------------------------------------------------- */

bool call_asks_for_work(const struct call *call)
{
	if (!call->correlation || call->flags & (CALL_NESTED | CALL_FAILED | CALL_CAPTURED))
		return false;
	switch (call->op) {
	case OP_LAUNCH:
	case OP_GRAPH_LAUNCH:
	case OP_COPY:
	case OP_SET:
		return true;
	default:
		return !call->function->api && (call->function->cls == CLASS_LAUNCH ||
		                                call->function->cls == CLASS_TRANSFER);
	}
}

static void set_now(struct work *work, struct work_place *place)
{
	work->now.call = &place->call;
	work->now.place = work_table_number(&work->table, place);
}

/* A wait, which a range can name; and who knows what a function does that cuscope does not know. */
static bool may_be_named(const struct call *call)
{
	if (!call->correlation || call->flags & CALL_NESTED)
		return false;
	return call->op == OP_SYNC ||
	       (!call->function->api && !(call->flags & (CALL_FAILED | CALL_CAPTURED)));
}

static struct work_place *keep_call(struct work *work, const struct event *event,
                                    enum work_queue_kind queue)
{
	const struct call *call = event->call;
	struct work_table *table = &work->table;
	struct work_place *place = work_table_find_hashed(table, event->process, call->correlation);

	if (place)
		let_go(work, place);
	if (queue == WORK_MAY && table->maybes.n >= table->limit / 8)
		push_out(work, &table->places[table->maybes.oldest]);
	place = free_place(work);
	place->call = (struct work_call){
		.process = event->process,
		.function = call->function,
		.correlation = call->correlation,
		.number = call->op == OP_SYNC ? 0 : ++work->number,
		.begin_ns = call->begin_ns,
		.end_ns = call_has_end(call) ? call->end_ns : 0,
		.stream = call_stream(call),
		.tid = event->tid,
		.op = (uint8_t)call->op,
		.asks = queue == WORK_OPEN,
	};
	work_table_add(table, place, queue);
	return place;
}

static bool has_met(const struct work_call *call)
{
	return call->queue == WORK_MET || call->queue == WORK_MET_GRAPH;
}

static void meet(struct work *work, struct work_place *place)
{
	struct work_table *table = &work->table;
	bool graph = place->call.op == OP_GRAPH_LAUNCH;

	if (has_met(&place->call))
		return;
	work_table_meet(table, place, graph ? WORK_MET_GRAPH : WORK_MET);
	if (table->met.n > MET_MOST)
		let_go(work, &table->places[table->met.oldest]);
}

static void see_call(struct work *work, const struct event *event)
{
	bool asks = call_asks_for_work(event->call);

	if (!asks && !may_be_named(event->call))
		return;
	set_now(work, keep_call(work, event, asks ? WORK_OPEN : WORK_MAY));
	work->unjoined +=
		is_gone(work, event->process->id, event->call->correlation, CORRELATION_WORK);
	if (work->n_early)
		join_early(work, work->now.call);
	work->now.early = work->joined != WORK_NONE;
	if (work->now.early)
		meet(work, (struct work_place *)work->now.call);
}

static struct work_place *find_other(struct work *work, const struct event *event,
                                     uint64_t correlation)
{
	struct work_place *place =
		correlation ? work_table_find(&work->table, event->process, correlation) : NULL;

	if (place && event->activity && !place->call.number) /* of a wait */
		place = NULL;
	if (place)
		set_now(work, place);
	else if (correlation)
		work->unjoined += is_gone(work, event->process->id, correlation, CORRELATION_CALL);
	return place;
}

static void see_activity(struct work *work, const struct event *event)
{
	uint64_t correlation = event->activity->correlation;
	struct work_place *place = find_other(work, event, correlation);

	work->table.limit = work->table.most;
	work->done = (struct work_done){ event->process, event->activity };
	if (place) {
		work->now.first = !has_met(&place->call);
		meet(work, place);
	} else if (correlation) {
		work->now.waits = true;
		work->now.first = keep_early(work);
	}
}

static void feed(struct work *work, const struct event *event)
{
	work->joined = WORK_NONE;
	memset(&work->now, 0, sizeof(work->now));
	work->done.activity = NULL;
	work->early_gone.process = NULL;
	if (event->type == EVENT_CALL)
		see_call(work, event);
	else if (event->type == EVENT_ACTIVITY)
		see_activity(work, event);
	else if (event->type == EVENT_RANGE && event->range->kind == RANGE_SYNC)
		find_other(work, event, event->range->correlation);
}

void work_begin(struct work *work, const struct run_info *run)
{
	if (!run->gpu_times && work->table.limit > PLACES_UNEXPECTED)
		work->table.limit = PLACES_UNEXPECTED;
}

void work_event(struct work *work, const struct event *event)
{
	if (!work->fed)
		feed(work, event);
}

void work_feed(struct work *work, const struct event *event)
{
	work->fed = true;
	feed(work, event);
}

/* ---- what was joined ------------------------------------------------------------------------ */

const struct work_now *work_now(const struct work *work)
{
	return &work->now;
}

static void tell_early(const struct early *early, const struct work_call *call, work_tell tell,
                       void *data)
{
	struct work_done done = { call ? call->process : early->process, &early->activity };

	tell(data, &done, call);
}

void work_join(struct work *work, const struct event *event, work_tell tell, void *data)
{
	work_event(work, event);
	work_tell_joined(work, tell, data);
}

void work_tell_joined(const struct work *work, work_tell tell, void *data)
{
	if (work->early_gone.process)
		tell_early(&work->early_gone, NULL, tell, data);
	if (work->done.activity && !work->now.waits)
		tell(data, &work->done, work->now.call);
	for (uint32_t i = work->joined; i != WORK_NONE; i = work->early[i].next)
		tell_early(&work->early[i], work->now.call, tell, data);
}

bool work_is_launched(const struct work_done *done, const struct work_call *call)
{
	return done->activity->kind == ACTIVITY_KERNEL && done->activity->kernel && call &&
	       (call->op == OP_LAUNCH || call->op == OP_GRAPH_LAUNCH);
}

void work_tell_rest(const struct work *work, work_tell tell, void *data)
{
	for (uint32_t i = 0; work->early && i < WORK_EARLY; i++) {
		const struct early *early = &work->early[(work->next_early + i) % WORK_EARLY];

		if (early->process)
			tell_early(early, NULL, tell, data);
	}
}

void work_each_open(const struct work *work,
                    void (*tell)(void *data, const struct work_call *call, uint32_t place),
                    void *data)
{
	const struct work_table *table = &work->table;

	for (size_t i = 0; i < table->n_open; i++) {
		uint32_t at = table->open[i].n ? table->open[i].oldest : WORK_NONE;

		for (; at != WORK_NONE; at = table->places[at].newer)
			tell(data, &table->places[at].call, at);
	}
}

uint64_t work_unjoined(const struct work *work)
{
	return work->unjoined;
}

/* ---- life ----------------------------------------------------------------------------------- */

static int front_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	work_begin((struct work *)self, run);
	return 0;
}

static int front_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct work *work = (struct work *)self;

	if (work->owners > 1) /* somebody asks */
		feed(work, event);
	return 0;
}

static void front_free(struct consumer *self)
{
	work_free((struct work *)self);
}

static const struct consumer_ops front_ops = {
	.begin = front_begin,
	.event = front_event,
	.free = front_free,
};

struct work *work_new(size_t bytes)
{
	struct work *work = xcalloc(1, sizeof(*work));

	work->consumer.ops = &front_ops;
	work->owners = 1;
	work_table_init(&work->table, bytes);
	work->joined = WORK_NONE;
	return work;
}

struct work *work_share(struct work *shared)
{
	if (!shared)
		return work_new(WORK_BYTES);
	shared->owners++;
	return shared;
}

bool work_is_shared(const struct work *work)
{
	return work->owners > 1;
}

struct consumer *work_consumer(struct work *work)
{
	work->fed = true;
	return &work->consumer;
}

void work_free(struct work *work)
{
	if (!work || --work->owners)
		return;
	correlations_free(work->gone);
	work_table_free(&work->table);
	FREE_ALL(work->early, work->early_chains, work);
}
