// SPDX-License-Identifier: MIT
#include "account/walk.h"

#include "base/array.h"

#define WALK_DEPTH 8  /* threads that wait for each other in a row */
#define WALK_ASKS  64 /* of the budget: who ran is asked of so many threads */

/* An asynchronous copy that takes longer waits: its memory is not pinned. */
#define WALK_COPY_NS 50000

struct walker {
	const struct walk *walk;
	const struct walker *caller; /* of the thread that waits for this one */
	struct fact_thread *of;
	uint32_t thread, via;
	const struct fact_rest *awaited; /* in which that thread waits for this one, */
	enum account_cause awaits;       /* and for what */
	unsigned depth;
	bool gil; /* it has Python's lock, which the thread waits for that the GPU waits for */
};

/* A stretch in which nothing changes. */
struct stretch {
	uint64_t begin_ns, end_ns;
	const struct fact_call *call; /* that it is in; NULL: none */
	const struct fact_rest *rest; /* the same */
	size_t next_call;             /* the first that ends later */
	bool of_sum;                  /* `rest` is like it, and is counted where it is */
};

/* Of a few bytes from the GPU it is the wait that takes the time. */
static enum account_cause walk_cause_of_copy(const struct fact_call *call)
{
	return call->small == 1 + DIRECTION_D2H ? ACCOUNT_SYNCHRONISATION : ACCOUNT_COPY_CALL;
}

enum account_cause walk_cause_of_call(const struct fact_call *call)
{
	switch (call->op) {
	case OP_SYNC:
		return call->waited ? walk_cause_of_copy(call) : ACCOUNT_SYNCHRONISATION;
	case OP_ALLOC:
	case OP_FREE:
	case OP_MAP:
	case OP_UNMAP:
		return ACCOUNT_ALLOCATION;
	case OP_LAUNCH:
	case OP_GRAPH_LAUNCH:
	case OP_HOST_LAUNCH:
		return ACCOUNT_LAUNCHING;
	case OP_COPY:
	case OP_SET:
		if (!call->blocking && !call->waited && !call->pageable &&
		    call->end_ns - call->begin_ns <= WALK_COPY_NS)
			return ACCOUNT_LAUNCHING;
		return walk_cause_of_copy(call);
	default:
		return ACCOUNT_DRIVER;
	}
}

enum account_cause account_cause_of_rest(const struct fact_rest *rest)
{
	static const enum account_cause causes[WAIT_COUNT] = {
		[WAIT_UNKNOWN] = ACCOUNT_OTHER_WAIT, [WAIT_CPU] = ACCOUNT_NO_CPU,
		[WAIT_DISK] = ACCOUNT_DISK,          [WAIT_NETWORK] = ACCOUNT_NETWORK,
		[WAIT_PIPE] = ACCOUNT_PIPE,          [WAIT_LOCK] = ACCOUNT_LOCK,
		[WAIT_SLEEP] = ACCOUNT_SLEEP,        [WAIT_FAULT] = ACCOUNT_FAULT,
		[WAIT_SWAP] = ACCOUNT_SWAP,          [WAIT_DEVICE] = ACCOUNT_OTHER_WAIT,
		[WAIT_EVENTS] = ACCOUNT_OTHER_WAIT,  [WAIT_CHILD] = ACCOUNT_CHILD,
		[WAIT_STOP] = ACCOUNT_OTHER_WAIT,    [WAIT_CALL] = ACCOUNT_OTHER_WAIT,
	};

	if (rest->gil)
		return ACCOUNT_GIL;
	return rest->wait < ARRAY_SIZE(causes) ? causes[rest->wait] : ACCOUNT_OTHER_WAIT;
}

static bool walker_is_whole(const struct walker *walker, enum account_cause cause)
{
	return (cause && cause == walker->walk->whole) ||
	       (cause == ACCOUNT_COMPUTING && walker->walk->computes && !walker->caller);
}

static double walker_share(const struct walker *walker, enum account_cause cause)
{
	return walker_is_whole(walker, cause) ? 1 : walker->walk->share;
}

static double walker_scaled(const struct walker *walker, uint64_t ns)
{
	return walker->walk->scale * (double)ns;
}

static void walker_count_whole(const struct walker *walker, enum account_cause cause, uint64_t ns)
{
	if (walker->walk->whole_ns && walker_is_whole(walker, cause))
		*walker->walk->whole_ns += walker_scaled(walker, ns);
}

static struct account_part *walker_add_key(const struct walker *walker, struct part_key key,
                                           uint64_t ns)
{
	key.thread = walker->thread;
	key.via = walker->via;
	return parts_add(walker->walk->parts, &key, walker_scaled(walker, ns),
	                 walker_share(walker, key.cause));
}

static struct account_part *walker_add(const struct walker *walker, enum account_cause cause,
                                       uint32_t chain, uint64_t ns)
{
	return walker_add_key(walker, (struct part_key){ .cause = cause, .chain = chain }, ns);
}

/* No stack is walked of a thread that would run on: it is where it is seen to run next. */
static uint32_t walker_chain_of_rest(const struct walker *walker, const struct fact_rest *rest)
{
	struct fact_thread *of = walker->of;
	size_t at;

	if (rest->chain || !of->n_samples)
		return rest->chain;
	at = facts_sample_at(of, rest->end_ns);
	return of->samples[at < of->n_samples ? at : at - 1].chain;
}

static void walker_add_rest(const struct walker *walker, const struct stretch *stretch,
                            enum account_cause cause)
{
	const struct fact_rest *rest = stretch->rest;
	uint32_t chain = cause == ACCOUNT_NO_CPU ? walker_chain_of_rest(walker, rest) : rest->chain;
	struct part_key key = { .cause = cause,
		                .chain = chain,
		                .rival = cause == ACCOUNT_NO_CPU ? rest->rival_pid : 0 };
	uint64_t ns = stretch->end_ns - stretch->begin_ns;
	struct account_part *part = walker_add_key(walker, key, ns);

	walker_count_whole(walker, cause, ns);
	part->count -= stretch->of_sum;
	if (!part->longest ||
	    part->longest->end_ns - part->longest->begin_ns < rest->end_ns - rest->begin_ns)
		part->longest = rest;
}

/* ---- on a CPU -------------------------------------------------------------------------------- */

static enum account_cause walker_cause_of_call(const struct walker *walker,
                                               const struct fact_call *call)
{
	enum account_cause cause = walk_cause_of_call(call);

	return walker->walk->alone && cause == ACCOUNT_SYNCHRONISATION ? ACCOUNT_GPU_WAIT : cause;
}

static enum account_cause walker_cause(const struct walker *walker, const struct stretch *stretch,
                                       const struct fact_call *next)
{
	if (walker->gil)
		return ACCOUNT_GIL;
	if (next && facts_pause_is_short(walker->of, stretch->next_call))
		return next->waited || next->pageable ? walker_cause_of_call(walker, next)
		                                      : ACCOUNT_LAUNCHING;
	return walker->walk->facts->files_samples || walker->walk->facts->files_rests
	               ? ACCOUNT_COMPUTING
	               : ACCOUNT_HOST;
}

/* The host's half of a copy is one, as it is where CUDA makes it. The driver compiles, too, when it
 * loads a module. A call that was not recorded is one where the program has called it. */
static enum account_cause walker_cause_of_sample(const struct fact_sample *sample,
                                                 enum account_cause cause, bool in_call)
{
	if (sample->compiles && cause == (in_call ? ACCOUNT_DRIVER : ACCOUNT_COMPUTING))
		return ACCOUNT_COMPILING;
	if (in_call)
		return cause;
	if (sample->fault)
		return ACCOUNT_FAULT;
	if (sample->in_cuda && sample->chain && cause == ACCOUNT_COMPUTING)
		return ACCOUNT_DRIVER;
	return sample->copies && cause == ACCOUNT_COMPUTING ? ACCOUNT_COPY_CALL : cause;
}

/* Time on a CPU, `ns` of the stretch, by the samples in it. */
static void walker_add_samples(const struct walker *walker, const struct stretch *stretch,
                               uint64_t ns, struct part_key key, bool in_call)
{
	struct fact_thread *of = walker->of;
	uint64_t *budget = walker->walk->budget;

	parts_add_cpu(walker->walk->parts, &key, walker_scaled(walker, ns),
	              walker_share(walker, key.cause));
	for (size_t i = facts_sample_at(of, stretch->begin_ns);
	     i < of->n_samples && of->samples[i].time_ns < stretch->end_ns && *budget; i++) {
		--*budget;
		key.chain = of->samples[i].chain;
		parts_add_sample(walker->walk->parts, &key,
		                 walker_cause_of_sample(&of->samples[i], key.cause, in_call),
		                 walker->walk->scale);
	}
}

static uint64_t walker_add_sums(const struct walker *walker, const struct stretch *stretch);

static void walker_ran(const struct walker *walker, const struct stretch *stretch)
{
	struct fact_thread *of = walker->of;
	const struct fact_call *next =
		stretch->next_call < of->n_calls ? &of->calls[stretch->next_call] : NULL;
	uint64_t ns = stretch->end_ns - stretch->begin_ns - walker_add_sums(walker, stretch);
	struct part_key key = { .cause = walker_cause(walker, stretch, next),
		                .chain = next ? next->chain : 0,
		                .thread = walker->thread,
		                .via = walker->via };

	if (key.cause == ACCOUNT_HOST) /* the next call is not where it was */
		key.chain = 0;
	walker_count_whole(walker, key.cause, ns);
	key.awaited = key.cause == ACCOUNT_LAUNCHING && next->awaited;
	walker_add_samples(walker, stretch, ns, key, false);
}

/* ---- in calls -------------------------------------------------------------------------------- */

/* Not all calls have stacks; where it was on a CPU samples say the places of them all, else the
 * wait does. Then which call it was is not kept. */
static void walker_add_call(const struct walker *walker, const struct stretch *stretch)
{
	const struct fact_call *call = stretch->call;
	enum account_cause cause = walker_cause_of_call(walker, call);
	uint32_t chain = call->by_sample ? 0 : call->chain;

	if (!chain && stretch->rest)
		chain = stretch->rest->chain;
	struct part_key key = { .cause = cause,
		                .thread = walker->thread,
		                .via = walker->via,
		                .awaited = cause == ACCOUNT_LAUNCHING && call->awaited };

	walker_count_whole(walker, cause, stretch->end_ns - stretch->begin_ns);
	key.chain = chain ? chain : call->chain;
	if (!chain && walker->walk->facts->files_samples) {
		walker_add_samples(walker, stretch, stretch->end_ns - stretch->begin_ns, key, true);
		return;
	}
	parts_take_call(walker_add_key(walker, key, stretch->end_ns - stretch->begin_ns), call);
}

/* ---- blocked --------------------------------------------------------------------------------- */

static bool walker_has(const struct walker *walker, uint32_t thread)
{
	for (; walker; walker = walker->caller)
		if (walker->thread == thread)
			return true;
	return false;
}

static bool cause_has_waker(enum account_cause cause)
{
	switch (cause) {
	case ACCOUNT_GIL:
	case ACCOUNT_LOCK:
	case ACCOUNT_PIPE:
	case ACCOUNT_NETWORK:
	case ACCOUNT_CHILD:
	case ACCOUNT_OTHER_WAIT:
	case ACCOUNT_DISK: /* locks of files, too */
		return true;
	default:
		return false;
	}
}

static void walker_go(struct walker *walker, uint64_t begin_ns, uint64_t end_ns);

/*
 * Who ended the wait. A time-out is none, and a wake-up by the network comes in whatever thread
 * runs: then it is who ran meanwhile, of the same process for a lock, of its peer for a socket.
 */
static uint32_t walker_waker(const struct walker *walker, const struct stretch *stretch,
                             enum account_cause cause)
{
	const struct fact_rest *rest = stretch->rest;
	const struct facts *facts = walker->walk->facts;
	uint64_t middle = stretch->begin_ns + (stretch->end_ns - stretch->begin_ns) / 2;

	if (rest->waker != FACTS_NONE)
		return rest->waker;
	if (cause != ACCOUNT_GIL || *walker->walk->budget < WALK_ASKS)
		return FACTS_NONE;
	*walker->walk->budget -= WALK_ASKS;
	return facts_running(facts, machine_pid(walker->of->process), middle, walker->thread);
}

static enum account_cause walker_cause_of_rest(const struct walker *walker,
                                               const struct fact_rest *rest)
{
	return rest->for_gpu && !walker->caller ? ACCOUNT_SYNCHRONISATION
	                                        : account_cause_of_rest(rest);
}

/*
 * By sums a thread waits for one that waits for it: one asks and the other answers, in rounds that
 * are too short to be told one by one. Who asks has that time, since the other waits to be asked.
 */
static void walker_add_round(const struct walker *walker, const struct stretch *stretch,
                             uint32_t thread)
{
	struct stretch part = *stretch;

	while (walker->caller->thread != thread)
		walker = walker->caller;
	part.rest = walker->awaited;
	walker_add_rest(walker->caller, &part, walker->awaits);
}

/* The thread that ended it is asked for the same time. */
static void walker_blocked(const struct walker *walker, const struct stretch *stretch)
{
	enum account_cause cause = walker_cause_of_rest(walker, stretch->rest);
	uint32_t thread = cause_has_waker(cause) && walker->depth < WALK_DEPTH
	                          ? walker_waker(walker, stretch, cause)
	                          : FACTS_NONE;

	if (thread == FACTS_NONE || walker_has(walker, thread)) {
		if (stretch->of_sum && thread != FACTS_NONE && thread != walker->thread)
			walker_add_round(walker, stretch, thread);
		else
			walker_add_rest(walker, stretch, cause);
		return;
	}

	struct walker waker = {
		.walk = walker->walk,
		.caller = walker,
		.of = &walker->walk->facts->threads[thread],
		.thread = thread,
		.awaited = stretch->rest,
		.awaits = cause,
		.depth = walker->depth + 1,
		.gil = walker->gil || (cause == ACCOUNT_GIL && !walker->via),
	};

	waker.via = parts_via(
		walker->walk->parts,
		&(struct account_via){ walker->via, cause, walker->thread, stretch->rest->chain });
	walker_go(&waker, stretch->begin_ns, stretch->end_ns);
}

#define WALK_NEAR 8 /* rests to either side that are asked */

/* Those that are told of the time of a sum were chosen by chance. */
static const struct fact_rest *sum_told_by(struct fact_thread *of, size_t sum, uint64_t time_ns)
{
	uint64_t begin_ns = sum ? of->sums[sum - 1].end_ns : 0, end_ns = of->sums[sum].end_ns;
	size_t at = facts_rest_at(of, time_ns);

	for (size_t i = 0; i < 2 * WALK_NEAR; i++) {
		size_t k = i % 2 ? at - 1 - i / 2 : at + i / 2;

		if (k < of->n_rests && of->rests[k].how != BLOCKED_PREEMPTED &&
		    of->rests[k].end_ns > begin_ns && of->rests[k].begin_ns < end_ns)
			return &of->rests[k];
	}
	return NULL;
}

/* It is before that call, and has a row of what the thread waited for in it. */
static bool pause_is_told(struct fact_thread *of, size_t call)
{
	size_t at;

	if (call >= of->n_calls || !facts_pause_is_short(of, call))
		return false;
	at = facts_rest_at(of, of->calls[call - 1].end_ns);
	return at < of->n_rests && of->rests[at].begin_ns < of->calls[call].begin_ns;
}

struct walk_untold walk_untold(struct fact_thread *of, uint64_t begin_ns, uint64_t end_ns,
                               size_t next_call)
{
	size_t at = facts_sum_at(of, begin_ns);
	const struct fact_sum *sum = at < of->n_sums ? &of->sums[at] : NULL;
	uint64_t ns = end_ns - begin_ns;
	struct walk_untold untold = { 0 };

	if (!sum || !sum->untold_ns || pause_is_told(of, next_call))
		return untold;

	double share = (double)ns / (double)sum->untold_ns;
	double blocked = share * (double)sum->blocked_ns, ready = share * (double)sum->ready_ns;

	untold.blocked_ns = blocked < (double)ns ? (uint64_t)blocked : ns;
	ns -= untold.blocked_ns;
	untold.ready_ns = ready < (double)ns ? (uint64_t)ready : ns;
	untold.like = sum_told_by(of, at, begin_ns);
	return untold;
}

static uint64_t walker_add_sums(const struct walker *walker, const struct stretch *stretch)
{
	struct walk_untold untold =
		walk_untold(walker->of, stretch->begin_ns, stretch->end_ns, stretch->next_call);
	uint64_t blocked_ns = untold.blocked_ns, ready_ns = untold.ready_ns;
	struct stretch part = *stretch;

	part.rest = untold.like;
	part.of_sum = true;
	part.end_ns = part.begin_ns + blocked_ns;
	if (blocked_ns && part.rest)
		walker_blocked(walker, &part);
	else if (blocked_ns)
		walker_add(walker, ACCOUNT_OTHER_WAIT, 0, blocked_ns);
	if (ready_ns)
		walker_add(walker, ACCOUNT_NO_CPU,
		           walker_chain_of_rest(walker,
		                                &(struct fact_rest){ .end_ns = stretch->end_ns }),
		           ready_ns);
	return blocked_ns + ready_ns;
}

/* ---- a thread's time ------------------------------------------------------------------------- */

/* Up to where nothing changes. */
static void stretch_find(const struct walker *walker, struct stretch *stretch, uint64_t end_ns,
                         size_t rest)
{
	struct fact_thread *of = walker->of;

	stretch->end_ns = end_ns;
	stretch->call = NULL;
	stretch->rest = NULL;
	if (stretch->next_call < of->n_calls) {
		const struct fact_call *call = &of->calls[stretch->next_call];
		bool in = call->begin_ns <= stretch->begin_ns;
		uint64_t border = in ? call->end_ns : call->begin_ns;

		stretch->call = in ? call : NULL;
		if (border < stretch->end_ns)
			stretch->end_ns = border;
	}
	if (rest < of->n_rests) {
		const struct fact_rest *now = &of->rests[rest];
		uint64_t begin = stretch->begin_ns;
		uint64_t border = begin < now->begin_ns   ? now->begin_ns
		                  : begin < now->ready_ns ? now->ready_ns
		                                          : now->end_ns;

		stretch->rest = now->begin_ns <= begin ? now : NULL;
		if (border < stretch->end_ns)
			stretch->end_ns = border;
	}
	if (!stretch->call && !stretch->rest) {
		size_t sum = facts_sum_at(of, stretch->begin_ns);

		if (sum < of->n_sums && of->sums[sum].end_ns < stretch->end_ns)
			stretch->end_ns = of->sums[sum].end_ns;
	}
}

static void walker_stretch(struct walker *walker, const struct stretch *stretch)
{
	if (stretch->rest && stretch->begin_ns >= stretch->rest->ready_ns)
		walker_add_rest(walker, stretch, ACCOUNT_NO_CPU);
	else if (stretch->call)
		walker_add_call(walker, stretch);
	else if (stretch->rest)
		walker_blocked(walker, stretch);
	else
		walker_ran(walker, stretch);
}

static void walker_go(struct walker *walker, uint64_t begin_ns, uint64_t end_ns)
{
	struct fact_thread *of = walker->of;
	struct stretch stretch = { .begin_ns = begin_ns };
	size_t rest = facts_rest_at(of, begin_ns);

	stretch.next_call = facts_call_at(of, begin_ns);
	while (stretch.begin_ns < end_ns) {
		if (!*walker->walk->budget) {
			walker_add(walker, ACCOUNT_UNKNOWN, 0, end_ns - stretch.begin_ns);
			return;
		}
		if (!(--*walker->walk->budget % SPILL_PASSED))
			spill_look(walker->walk->facts->spill);
		while (stretch.next_call < of->n_calls &&
		       of->calls[stretch.next_call].end_ns <= stretch.begin_ns)
			stretch.next_call++;
		while (rest < of->n_rests && of->rests[rest].end_ns <= stretch.begin_ns)
			rest++;
		stretch_find(walker, &stretch, end_ns, rest);
		walker_stretch(walker, &stretch);
		stretch.begin_ns = stretch.end_ns;
	}
}

void walk_thread(const struct walk *walk, uint32_t thread, uint64_t begin_ns, uint64_t end_ns,
                 uint32_t via)
{
	struct walker walker = {
		.walk = walk,
		.of = &walk->facts->threads[thread],
		.thread = thread,
		.via = via,
	};

	walker_go(&walker, begin_ns, end_ns);
}
