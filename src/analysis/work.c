// SPDX-License-Identifier: MIT
#include "analysis/work.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/correlations.h"
#include "analysis/gpu_ids.h"
#include "analysis/streams.h"
#include "base/xalloc.h"

#define PLACES            (1u << 10) /* at first; it grows as they are needed */
#define PLACES_FEW        (1u << 16) /* from here on graphs whose work came make room */
#define MET_MOST          (1u << 12) /* launches and copies whose work came, and should be all of it */
#define PLACES_UNEXPECTED (1u << 12) /* older files do not always say that activities come */
#define CHAINS            (1u << 13) /* of work that came early; a power of two */
#define NONE              UINT32_MAX

/* What a place is in: see queue_of(). */
enum { FREE, OPEN, MAY, MET, MET_GRAPH };

/* By age. */
struct work_queue {
	uint32_t oldest, newest, n;
};

struct work_place {
	struct work_call call;
	uint32_t chain; /* the next place of the same hash; of a free one, the next free one */
	uint32_t newer, older; /* of its queue */
};

struct early {
	const struct process *process; /* NULL: free */
	struct activity activity;
	uint64_t idle_since_ns;
	uint32_t next; /* of its chain, or of those that the last event has joined */
};

struct work {
	struct consumer consumer; /* first */
	bool fed;                 /* by the consumer */
	unsigned owners;
	uint32_t limit; /* of places: `most`, or few where no activity is expected */

	struct work_place *places; /* those from `used` on were never used */
	uint32_t *chains;
	uint32_t n, used, most, free; /* n: a power of two, but for the last step to `most` */
	uint32_t n_chains;            /* a power of two */
	struct work_queue *open;      /* by process id */
	size_t n_open;
	uint32_t heaviest, processes; /* id of a process with many open calls; that have any */
	struct work_queue maybes, met, met_graphs;
	uint64_t open_calls, number;

	struct early *early; /* a ring */
	uint32_t *early_chains;
	uint32_t next_early, n_early;
	uint32_t joined; /* of them, by the last event */

	struct correlations *gone; /* what left to make room; NULL: none */
	uint64_t unjoined;

	struct gpu_ids *gpus;
	uint64_t end_ns[GPU_IDS_MAX]; /* of what ran there */

	struct work_now now;
	struct work_done done;   /* this event's; activity NULL: none */
	struct work_call left;   /* where now.left points */
	struct early early_gone; /* what left to make room for `done` */
};

static const struct work_queue empty = { NONE, NONE, 0 };

/* ---- places --------------------------------------------------------------------------------- */

static uint32_t place_of(const struct work *work, const struct work_place *place)
{
	return (uint32_t)(place - work->places);
}

static uint32_t hash(uint32_t process, uint64_t correlation)
{
	/* the numbers of a process follow each other: no two of some thousand meet */
	return (uint32_t)(correlation + process * 0x9e3779b1ull);
}

static uint32_t *chain_of(const struct work *work, const struct work_call *call)
{
	return &work->chains[hash(call->process->id, call->correlation) & (work->n_chains - 1)];
}

static void into_chain(struct work *work, struct work_place *place)
{
	uint32_t *chain = chain_of(work, &place->call);

	place->chain = *chain;
	*chain = place_of(work, place);
}

static void out_of_chain(struct work *work, const struct work_place *place)
{
	uint32_t *link = chain_of(work, &place->call);

	while (*link != place_of(work, place))
		link = &work->places[*link].chain;
	*link = place->chain;
}

static void grow(struct work *work)
{
	uint32_t n = work->n ? 2 * work->n : PLACES;

	work->n = n < work->limit ? n : work->limit;
	work->places = xrealloc(work->places, work->n * sizeof(*work->places));
	if (work->n_chains >= work->n)
		return;
	work->n_chains = work->n_chains ? 2 * work->n_chains : PLACES;
	work->chains = xrealloc(work->chains, work->n_chains * sizeof(*work->chains));
	memset(work->chains, 0xff, work->n_chains * sizeof(*work->chains));
	for (uint32_t i = 0; i < work->used; i++) {
		if (work->places[i].call.queue != FREE)
			into_chain(work, &work->places[i]);
	}
}

static struct work_place *find(const struct work *work, const struct process *process,
                               uint64_t correlation)
{
	if (!work->n)
		return NULL;
	for (uint32_t i = work->chains[hash(process->id, correlation) & (work->n_chains - 1)];
	     i != NONE; i = work->places[i].chain) {
		const struct work_call *call = &work->places[i].call;

		if (call->correlation == correlation && call->process == process)
			return &work->places[i];
	}
	return NULL;
}

const struct work_call *work_find(const struct work *work, const struct process *process,
                                  uint64_t correlation)
{
	const struct work_place *place = correlation ? find(work, process, correlation) : NULL;

	return place ? &place->call : NULL;
}

/* ---- queues --------------------------------------------------------------------------------- */

static struct work_queue *open_of(struct work *work, uint32_t process)
{
	size_t had = work->n_open;

	work->open = by_id_room(work->open, &work->n_open, sizeof(*work->open), process);
	while (had < work->n_open)
		work->open[had++] = empty;
	return &work->open[process];
}

static struct work_queue *queue_of(struct work *work, const struct work_call *call)
{
	if (call->queue == OPEN)
		return open_of(work, call->process->id);
	if (call->queue == MAY)
		return &work->maybes;
	return call->queue == MET ? &work->met : &work->met_graphs;
}

static void into_queue(struct work *work, struct work_place *place, uint8_t which)
{
	uint32_t at = place_of(work, place);
	struct work_queue *queue;

	place->call.queue = which;
	queue = queue_of(work, &place->call);
	place->older = queue->newest;
	place->newer = NONE;
	if (queue->newest == NONE)
		queue->oldest = at;
	else
		work->places[queue->newest].newer = at;
	queue->newest = at;
	queue->n++;
	work->open_calls += which == OPEN;
	work->processes += which == OPEN && queue->n == 1;
}

static void out_of_queue(struct work *work, const struct work_place *place)
{
	struct work_queue *queue = queue_of(work, &place->call);

	if (place->older == NONE)
		queue->oldest = place->newer;
	else
		work->places[place->older].newer = place->newer;
	if (place->newer == NONE)
		queue->newest = place->older;
	else
		work->places[place->newer].older = place->older;
	queue->n--;
	work->open_calls -= place->call.queue == OPEN;
	work->processes -= place->call.queue == OPEN && !queue->n;
}

/* ---- room ----------------------------------------------------------------------------------- */

static void let_go(struct work *work, struct work_place *place)
{
	if (place->call.queue == OPEN) {
		work->left = place->call;
		work->now.left = &work->left;
		work->now.left_place = place_of(work, place);
	}
	out_of_queue(work, place);
	out_of_chain(work, place);
	place->call.queue = FREE;
	place->chain = work->free;
	work->free = place_of(work, place);
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

/*
 * One that has at least half as many as they have on average, and was the one that had most when
 * it was last looked: so looking is rare, and none that has little loses anything.
 */
static struct work_queue *heaviest(struct work *work)
{
	struct work_queue *open = &work->open[work->heaviest];

	if (2ull * open->n * work->processes > work->open_calls)
		return open;
	for (uint32_t i = 0; i < work->n_open; i++) {
		if (work->open[i].n > work->open[work->heaviest].n)
			work->heaviest = i;
	}
	return &work->open[work->heaviest];
}

static void make_room(struct work *work)
{
	const struct work_queue *met = work->met_graphs.n ? &work->met_graphs : &work->met;
	bool many_graphs = work->met_graphs.n > work->n / 2 && work->n >= PLACES_FEW;

	if (work->n < work->limit && !many_graphs)
		grow(work);
	else if (met->n)
		let_go(work, &work->places[met->oldest]);
	else
		push_out(work, &work->places[heaviest(work)->oldest]);
}

static struct work_place *free_place(struct work *work)
{
	struct work_place *place;

	if (work->free == NONE && work->used == work->n)
		make_room(work);
	if (work->free == NONE)
		return &work->places[work->used++];
	place = &work->places[work->free];
	work->free = place->chain;
	return place;
}

/* ---- work that came before its call --------------------------------------------------------- */

static uint32_t *early_chain(const struct work *work, uint32_t process, uint64_t correlation)
{
	return &work->early_chains[hash(process, correlation) & (CHAINS - 1)];
}

static bool is_early_of(const struct early *early, uint32_t process, uint64_t correlation)
{
	return early->process->id == process && early->activity.correlation == correlation;
}

static void drop_early(struct work *work, uint32_t at)
{
	struct early *early = &work->early[at];
	uint32_t *link = early_chain(work, early->process->id, early->activity.correlation);

	while (*link != at)
		link = &work->early[*link].next;
	*link = early->next;
	work->n_early--;
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
		drop_early(work, work->next_early);
	chain = early_chain(work, process, correlation);
	for (i = *chain; i != NONE && !is_early_of(&work->early[i], process, correlation);)
		i = work->early[i].next;
	early->process = work->done.process;
	early->activity = *work->done.activity;
	early->idle_since_ns = work->done.idle_since_ns;
	early->next = *chain;
	*chain = work->next_early;
	work->next_early = (work->next_early + 1) % WORK_EARLY;
	work->n_early++;
	return i == NONE;
}

/* All that waited for the call leave, in the order in which they came. */
static void join_early(struct work *work, const struct work_call *call)
{
	uint32_t *link = early_chain(work, call->process->id, call->correlation);

	while (*link != NONE) {
		uint32_t at = *link;
		struct early *early = &work->early[at];

		if (!is_early_of(early, call->process->id, call->correlation)) {
			link = &early->next;
			continue;
		}
		*link = early->next;
		early->next = work->joined;
		early->process = NULL;
		work->joined = at;
		work->n_early--;
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
	work->now.place = place_of(work, place);
}

/* A wait, which a range can name; and who knows what a function does that cuscope does not know. */
static bool may_be_named(const struct call *call)
{
	if (!call->correlation || call->flags & CALL_NESTED)
		return false;
	return call->op == OP_SYNC ||
	       (!call->function->api && !(call->flags & (CALL_FAILED | CALL_CAPTURED)));
}

static struct work_place *keep_call(struct work *work, const struct event *event, uint8_t queue)
{
	const struct call *call = event->call;
	struct work_place *place = find(work, event->process, call->correlation);

	if (place)
		let_go(work, place);
	if (queue == MAY && work->maybes.n >= work->limit / 8)
		push_out(work, &work->places[work->maybes.oldest]);
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
		.asks = queue == OPEN,
	};
	into_chain(work, place);
	into_queue(work, place, queue);
	return place;
}

static bool has_met(const struct work_call *call)
{
	return call->queue == MET || call->queue == MET_GRAPH;
}

static void meet(struct work *work, struct work_place *place)
{
	if (has_met(&place->call))
		return;
	out_of_queue(work, place);
	if (place->call.op == OP_GRAPH_LAUNCH) {
		into_queue(work, place, MET_GRAPH);
		return;
	}
	into_queue(work, place, MET);
	if (work->met.n > MET_MOST)
		let_go(work, &work->places[work->met.oldest]);
}

static void see_call(struct work *work, const struct event *event)
{
	bool asks = call_asks_for_work(event->call);

	if (!asks && !may_be_named(event->call))
		return;
	set_now(work, keep_call(work, event, asks ? OPEN : MAY));
	work->unjoined +=
		is_gone(work, event->process->id, event->call->correlation, CORRELATION_WORK);
	if (work->n_early)
		join_early(work, work->now.call);
	work->now.early = work->joined != NONE;
	if (work->now.early)
		meet(work, (struct work_place *)work->now.call);
}

/* Since when the GPU was idle that an activity ran on. */
static uint64_t idle_since(struct work *work, const struct event *event)
{
	const struct activity *activity = event->activity;
	uint32_t gpu = gpu_ids_of(work->gpus, event);
	uint64_t end_ns;

	if (gpu == GPU_ID_NONE)
		return 0;
	end_ns = work->end_ns[gpu];
	if (activity->end_ns > end_ns)
		work->end_ns[gpu] = activity->end_ns;
	return end_ns <= activity->begin_ns ? end_ns : 0;
}

static struct work_place *find_other(struct work *work, const struct event *event,
                                     uint64_t correlation)
{
	struct work_place *place = correlation ? find(work, event->process, correlation) : NULL;

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

	work->limit = work->most;
	work->done = (struct work_done){ event->process, event->activity, idle_since(work, event) };
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
	work->joined = NONE;
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
	if (!run->gpu_times && work->limit > PLACES_UNEXPECTED)
		work->limit = PLACES_UNEXPECTED;
}

void work_event(struct work *work, const struct event *event)
{
	if (!work->fed)
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
	struct work_done done = { call ? call->process : early->process, &early->activity,
		                  early->idle_since_ns };

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
	for (uint32_t i = work->joined; i != NONE; i = work->early[i].next)
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
	for (size_t i = 0; i < work->n_open; i++) {
		uint32_t at = work->open[i].n ? work->open[i].oldest : NONE;

		for (; at != NONE; at = work->places[at].newer)
			tell(data, &work->places[at].call, at);
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
	work->most = (uint32_t)(bytes / (sizeof(*work->places) + sizeof(*work->chains)));
	work->limit = work->most;
	work->free = work->joined = NONE;
	work->maybes = work->met = work->met_graphs = empty;
	work->gpus = gpu_ids_new();
	return work;
}

struct work *work_share(struct work *shared)
{
	if (!shared)
		return work_new(WORK_BYTES);
	shared->owners++;
	return shared;
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
	gpu_ids_free(work->gpus);
	correlations_free(work->gone);
	free(work->places);
	free(work->chains);
	free(work->open);
	free(work->early);
	free(work->early_chains);
	free(work);
}
