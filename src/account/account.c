// SPDX-License-Identifier: MIT
#include "account/account.h"

#include <stdlib.h>
#include <string.h>

#include "account/account_inside.h"
#include "account/facts_inside.h"
#include "account/waits.h"
#include "account/walk.h"
#include "base/order.h"
#include "base/xalloc.h"

#define ACCOUNT_PEERS     16    /* other GPUs that are asked who is late */
#define ACCOUNT_CALLS     64    /* before one that came late, among which one asked for work */
#define ACCOUNT_LEAVES_NS 50000 /* one GPU leaves a collective so much later than another */

/* ---- why it did nothing ---------------------------------------------------------------------- */

static void idle_add(const struct maker *maker, const struct cut *cut, uint64_t begin_ns,
                     uint64_t end_ns, struct part_key key, double share)
{
	begin_ns = facts_max(begin_ns, cut->begin_ns);
	end_ns = facts_min(end_ns, cut->end_ns);
	key.via = cut->via;
	if (begin_ns < end_ns)
		parts_add(maker->parts, &key, end_ns - begin_ns, share);
}

static void idle_walk(const struct walk *walk, const struct cut *cut, uint32_t thread,
                      uint64_t begin_ns, uint64_t end_ns)
{
	begin_ns = facts_max(begin_ns, cut->begin_ns);
	end_ns = facts_min(end_ns, cut->end_ns);
	if (begin_ns < end_ns)
		walk_thread(walk, thread, begin_ns, end_ns, cut->via);
}

/*
 * A function of the host is in its stream's way, or in that of a stream that it waits for: CUDA
 * runs it on a thread of its own, which is asked then; where no stack has told which that is,
 * whoever runs is. FACTS_NONE: none does.
 */
static uint32_t idle_host_function(const struct maker *maker, uint32_t thread, uint64_t begin_ns,
                                   uint64_t end_ns)
{
	const struct facts *facts = maker->facts;
	const struct process *process = facts->threads[thread].process;
	uint64_t middle_ns = begin_ns + (end_ns - begin_ns) / 2;
	uint32_t runs = facts_host_function(facts, process, middle_ns);

	if (runs != FACTS_NONE || !facts_has_host_functions(facts, process))
		return runs;
	return facts_running(facts, machine_pid(process), middle_ns, thread);
}

/*
 * Work that was there before something else began, on a stream that had nothing to do, and that
 * began only after that had ended, and the GPU had paused: it waited for that. They could have run
 * side by side, and of two that take turns each is waited for by the other.
 */
static double idle_turn_ns(const struct facts *facts, size_t number, const struct fact_call *call)
{
	const struct fact_work *work = &facts->works[number];
	const struct fact_work *before = number ? work - 1 : work;
	const struct fact_work *own = number > 1 ? work - 2 : work;
	uint64_t ns, before_ns;

	if (before == work || before->gpu != work->gpu || before->process != work->process ||
	    before->stream == work->stream || call->end_ns > before->begin_ns ||
	    before->class == FACT_COMMUNICATION || work->class == FACT_COMMUNICATION ||
	    work->sampled)
		return 0;
	if (own != work && own->gpu == work->gpu && own->end_ns > before->begin_ns)
		return 0;
	ns = work->end_ns - work->begin_ns;
	before_ns = before->end_ns - before->begin_ns;
	return (double)facts_min(ns, before_ns) / 2;
}

/* Asked for, and not begun: little of that is the GPU's way, more is a wait of its stream. */
static void idle_queued(const struct maker *maker, const struct cut *cut,
                        const struct gpu_segment *idle, uint64_t begin_ns,
                        const struct fact_call *call, uint32_t thread, double share)
{
	uint64_t from_ns = facts_max(begin_ns, cut->begin_ns),
		 to_ns = facts_min(idle->end_ns, cut->end_ns);
	struct walk walk = walk_of(maker->facts, maker->parts, maker->budget);
	struct part_key key = { ACCOUNT_TURNAROUND, call->chain, thread, cut->via };
	uint32_t runs = FACTS_NONE;
	struct cut in = *cut;
	double turn_ns;

	if (from_ns >= to_ns)
		return;
	turn_ns = idle_turn_ns(maker->facts, idle->work, call);
	if (turn_ns > 0 || idle->end_ns - begin_ns > gpu_queue_ns(maker->facts)) {
		key.cause = ACCOUNT_STREAM_WAIT;
		runs = idle_host_function(maker, thread, begin_ns, idle->end_ns);
	}
	if (runs != FACTS_NONE) {
		walk.share = share;
		in.via = parts_via(maker->parts,
		                   &(struct account_via){ cut->via, ACCOUNT_STREAM_WAIT, thread,
		                                          call->chain });
		idle_walk(&walk, &in, runs, from_ns, to_ns);
		return;
	}
	parts_add(maker->parts, &key, to_ns - from_ns, share)->gain_ns +=
		turn_ns * (double)(to_ns - from_ns) / (double)(idle->end_ns - begin_ns);
}

/* Of what is left of a pause after a wait for the GPU: its share of that is owed to the wait. */
static void idle_owed(const struct maker *maker, const struct cut *cut, double left_ns,
                      const struct gpu_debt *debt)
{
	struct part_key key = { debt->cause, debt->chain, debt->thread, cut->via };
	const struct fact_call *call = debt->call;
	double owed_ns = left_ns * debt->share;
	struct account_part *part;

	if (owed_ns <= 0)
		return;
	part = parts_add(maker->parts, &key, 0, 0);
	part->ns += owed_ns;
	part->gain_ns += owed_ns;
	if (call)
		parts_take_call(part, call);
}

/*
 * From when on what the thread did made it late: what it does while the GPU still works delays its
 * next call as much as what it does after that. Before its last call that asked for work it may
 * have been ahead, and before a wait for the GPU it had time.
 */
static uint64_t idle_late_since(const struct facts *facts, const struct gpu_segment *idle,
                                const struct fact_call *call, uint32_t number)
{
	struct fact_thread *thread = &facts->threads[number];
	const struct fact_work *work = &facts->works[idle->work];
	const struct fact_call *before = call, *last = NULL;
	size_t rest = facts_rest_at(thread, idle->begin_ns);
	uint32_t other;

	if ((rest < thread->n_rests && thread->rests[rest].for_gpu) ||
	    (call->blocking && call->begin_ns < idle->begin_ns))
		return idle->begin_ns;
	for (size_t i = 0; i < ACCOUNT_CALLS && before > thread->calls && !last; i++) {
		before--;
		if (before->correlation || before->end_ns - before->begin_ns > gpu_queue_ns(facts))
			last = before;
	}
	if (!last)
		return idle->begin_ns;
	before = idle->work && work[-1].gpu == work->gpu ? facts_call_of(facts, work - 1, &other)
	                                                 : NULL;
	return facts_min(facts_max(last->end_ns, before ? before->end_ns : 0), idle->begin_ns);
}

/*
 * What made it late. A pause that is twice as long as what the thread did before it says all of
 * that; the shorter it is beside it the more chance has chosen what it says, and the more of it is
 * what was done before.
 */
static void idle_late(const struct maker *maker, const struct cut *cut, struct walk *walk,
                      uint32_t thread, uint64_t since_ns, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t from_ns = facts_max(begin_ns, cut->begin_ns),
		 to_ns = facts_min(end_ns, cut->end_ns);
	double before_ns = (double)(begin_ns - since_ns), late_ns = (double)(end_ns - begin_ns);
	double before = late_ns < 2 * before_ns ? 1 - late_ns / (2 * before_ns) : 0;

	if (from_ns >= to_ns)
		return;
	walk->scale = 1 - before;
	walk_thread(walk, thread, from_ns, to_ns, cut->via);
	walk->scale = before > 0 ? before * (double)(to_ns - from_ns) / before_ns : 0;
	if (before > 0)
		walk_thread(walk, thread, since_ns, begin_ns, cut->via);
}

/* Up to the call's end it was not asked for. Calls that are what the wait is are not owed to it: it
 * is gained by their removal as well; nor is what the host computes once it has the data that it
 * waited for, which it could not have computed before. */
static void idle_asked_late(const struct maker *maker, const struct cut *cut,
                            const struct gpu_segment *idle, const struct gpu_debt *debt,
                            const struct fact_call *call, uint32_t thread)
{
	uint64_t in_call = facts_min(call->end_ns, idle->end_ns), begin_ns = idle->begin_ns;
	uint64_t since_ns = idle_late_since(maker->facts, idle, call, thread);
	struct walk walk = walk_of(maker->facts, maker->parts, maker->budget);
	double own_ns = 0;

	walk.whole_ns = &own_ns;
	if (debt) {
		begin_ns = facts_min(facts_max(debt->end_ns, begin_ns), idle->end_ns);
		since_ns = facts_min(facts_max(debt->end_ns, since_ns), begin_ns);
		idle_walk(&walk, cut, thread, idle->begin_ns, begin_ns);
		walk.whole = debt->cause;
		walk.computes = debt->call && debt->call->to_host;
		walk.share -= debt->share;
	}
	idle_late(maker, cut, &walk, thread, since_ns, begin_ns, in_call);
	idle_queued(maker, cut, idle, facts_max(begin_ns, in_call), call, thread, walk.share);
	begin_ns = facts_max(begin_ns, cut->begin_ns);
	if (debt && begin_ns < cut->end_ns)
		idle_owed(maker, cut, (double)(cut->end_ns - begin_ns) - own_ns, debt);
}

/* No work ended it: what the thread did that asks for most. */
static void idle_unended(const struct maker *maker, const struct cut *cut)
{
	struct walk walk = walk_of(maker->facts, maker->parts, maker->budget);

	if (cut->account->thread != FACTS_NONE)
		idle_walk(&walk, cut, cut->account->thread, cut->begin_ns, cut->end_ns);
	else
		idle_add(maker, cut, cut->begin_ns, cut->end_ns,
		         (struct part_key){ ACCOUNT_UNKNOWN, 0, FACTS_NONE, 0 }, 1);
}

static void idle_explain(const struct maker *maker, const struct cut *cut,
                         const struct gpu_time *gpu, const struct gpu_segment *idle)
{
	const struct facts *facts = maker->facts;
	const struct gpu_debt *debt = gpu_debt_of(gpu, idle);
	const struct fact_call *call = NULL;
	uint32_t thread = FACTS_NONE;

	if (idle->work >= facts->n_works) {
		idle_unended(maker, cut);
		return;
	}
	call = facts_call_of(facts, &facts->works[idle->work], &thread);
	if (!call)
		idle_add(maker, cut, cut->begin_ns, cut->end_ns,
		         (struct part_key){ ACCOUNT_UNKNOWN, 0, FACTS_NONE, 0 }, 1);
	else if (call->end_ns > idle->begin_ns)
		idle_asked_late(maker, cut, idle, debt, call, thread);
	else
		idle_queued(maker, cut, idle, idle->begin_ns, call, thread, 1);
}

/* ---- what ran -------------------------------------------------------------------------------- */

static void busy_add(const struct maker *maker, const struct cut *cut, enum account_cause cause,
                     const struct gpu_segment *segment, bool awaited)
{
	const struct fact_work *work = &maker->facts->works[segment->work];
	uint32_t thread = FACTS_NONE;
	const struct fact_call *call = facts_call_of(maker->facts, work, &thread);
	/* of a stretch it is not known which calls it was asked for by */
	bool known = call && (!work->sampled || work->class == FACT_COPY);
	uint32_t chain = work->chain ? work->chain : known ? call->chain : 0;
	struct part_key key = { cause, chain, known ? thread : FACTS_NONE, cut->via,
		                .awaited = awaited };
	struct account_part *part = parts_add(maker->parts, &key, cut->end_ns - cut->begin_ns, 1);

	if (work->sampled)
		return;
	if (!part->work ||
	    part->work->end_ns - part->work->begin_ns < work->end_ns - work->begin_ns)
		part->work = work;
}

/* Up to where another stream waits for them, and then. */
static void kernels_add(const struct maker *maker, struct cut cut, const struct gpu_time *gpu,
                        const struct gpu_segment *segment)
{
	uint64_t end_ns = cut.end_ns;
	uint64_t since_ns = gpu_awaited_since(gpu, maker->facts, segment->work);

	cut.end_ns = facts_max(cut.begin_ns, facts_min(end_ns, since_ns));
	if (cut.end_ns > cut.begin_ns)
		busy_add(maker, &cut, ACCOUNT_KERNELS, segment, false);
	cut.begin_ns = cut.end_ns;
	cut.end_ns = end_ns;
	if (cut.end_ns > cut.begin_ns)
		busy_add(maker, &cut, ACCOUNT_KERNELS, segment, true);
}

void segment_explain(const struct maker *maker, const struct cut *cut, const struct gpu_time *gpu,
                     const struct gpu_segment *segment)
{
	switch (segment->state) {
	case STATE_KERNELS:
		kernels_add(maker, *cut, gpu, segment);
		break;
	case STATE_COPIES:
		busy_add(maker, cut, ACCOUNT_COPIES, segment, false);
		break;
	case STATE_COMMUNICATION:
		busy_add(maker, cut, ACCOUNT_COMMUNICATION, segment, false);
		break;
	case STATE_IDLE:
		idle_explain(maker, cut, gpu, segment);
		break;
	}
}

/* ---- communication --------------------------------------------------------------------------- */

/* Who is late at a time, and until when that is so. */
struct late {
	struct gpu_time *last; /* comes last, and all others wait for it; NULL: all are there */
	uint64_t until_ns;     /* it joins, or the first of all leaves */
};

/* Of those that are in one collective. */
static struct late peers_late_in(const struct maker *maker, const struct collective *collective,
                                 uint64_t time_ns, uint64_t end_ns)
{
	const struct facts *facts = maker->facts;
	struct late late = { NULL, end_ns };

	for (uint32_t i = collective->first; i < collective->first + collective->n; i++) {
		uint32_t work = facts_work_of_call(facts, i);

		--*maker->budget;
		if (work == FACTS_NONE)
			continue;

		const struct fact_work *peer = &facts->works[work];

		if (peer->begin_ns > time_ns && (!late.last || peer->begin_ns > late.until_ns))
			late = (struct late){ &maker->gpus[peer->gpu], peer->begin_ns };
		else if (!late.last && peer->end_ns > time_ns && peer->end_ns < late.until_ns)
			late.until_ns = peer->end_ns;
	}
	return late;
}

static uint64_t person_of(const struct maker *maker, const struct gpu_time *gpu)
{
	return collectives_person(maker->facts->works[gpu->first].process);
}

/* Where collectives are not known, by when GPUs of the same user communicate: that another's do at
 * that time says nothing. Who joins only after `end_ns` is not waited for. */
static struct late peers_late(const struct maker *maker, const struct gpu_time *self,
                              uint64_t time_ns, uint64_t end_ns)
{
	struct late late = { NULL, end_ns };
	size_t asked = 0;

	for (size_t i = 0; i < maker->facts->n_gpus && asked < ACCOUNT_PEERS; i++) {
		struct gpu_time *peer = &maker->gpus[i];

		if (peer == self || !peer->n_talks ||
		    person_of(maker, peer) != person_of(maker, self))
			continue;
		asked++;
		--*maker->budget;

		const struct gpu_talk *talk = gpu_time_talk(peer, time_ns);

		if (!talk || talk->begin_ns > end_ns + ACCOUNT_LEAVES_NS)
			continue;
		if (talk->begin_ns > time_ns && (!late.last || talk->begin_ns > late.until_ns))
			late = (struct late){ peer, talk->begin_ns };
		else if (!late.last && talk->end_ns < late.until_ns)
			late.until_ns = talk->end_ns;
	}
	return late;
}

/* What it does then, up to cut->end_ns at most. */
static void peer_explain(const struct maker *maker, struct cut *cut, struct gpu_time *peer)
{
	const struct gpu_segment *does = &peer->segments[gpu_time_at(peer, cut->begin_ns)];
	/* nothing yet: it is waited for as it is between two pieces of its work */
	const struct gpu_segment before = { facts_min(cut->begin_ns, maker->facts->begin_ns),
		                            does->begin_ns, does->work, STATE_IDLE, 0 };

	if (cut->begin_ns < before.end_ns)
		does = &before;
	cut->end_ns = facts_min(cut->end_ns, does->end_ns);
	segment_explain(maker, cut, peer, does);
}

static void communication_explain(const struct maker *maker, struct cut cut,
                                  const struct gpu_time *self, const struct gpu_segment *segment)
{
	struct account_via waits = { cut.via, ACCOUNT_COMMUNICATION, FACTS_NONE, 0 };
	uint64_t end_ns = cut.end_ns, work_end_ns = maker->facts->works[segment->work].end_ns;
	const struct collective *collective = facts_collective_of(maker->facts, segment->work);

	while (cut.begin_ns < end_ns) {
		struct late late = { NULL, end_ns };

		if (collective && *maker->budget >= collective->n)
			late = peers_late_in(maker, collective, cut.begin_ns, end_ns);
		else if (!collective && *maker->budget >= ACCOUNT_PEERS)
			late = peers_late(maker, self, cut.begin_ns, work_end_ns);
		cut.end_ns = facts_min(end_ns, late.until_ns);
		if (late.last) {
			cut.via = parts_via(maker->parts, &waits);
			peer_explain(maker, &cut, late.last);
		} else {
			cut.via = waits.before;
			segment_explain(maker, &cut, self, segment);
		}
		cut.begin_ns = cut.end_ns;
	}
}

bool account_part_is_for_peers(const struct accounts *accounts, const struct account_part *part)
{
	uint32_t via = part->via;

	while (via && accounts->vias[via].before)
		via = accounts->vias[via].before;
	return via && accounts->vias[via].cause == ACCOUNT_COMMUNICATION;
}

/* ---- accounts -------------------------------------------------------------------------------- */

/* Parts of a segment that lie in that span, and in no pause of measuring. */
static void segment_measured(const struct maker *maker, struct account *account,
                             const struct gpu_time *gpu, const struct gpu_segment *segment,
                             const struct fact_span *in, struct measured *part)
{
	uint64_t end_ns = facts_min(segment->end_ns, in->end_ns);

	for (part->end_ns = facts_max(segment->begin_ns, in->begin_ns);
	     measured_next(part, end_ns);) {
		struct cut cut = { part->begin_ns, part->end_ns, 0, account };

		if (segment->state == STATE_COMMUNICATION)
			communication_explain(maker, cut, gpu, segment);
		else
			segment_explain(maker, &cut, gpu, segment);
	}
}

/* The thread that asks for most of what a process runs; FACTS_NONE: none is known. */
static uint32_t asking_thread(const struct facts *facts, const struct process *process)
{
	uint32_t most = FACTS_NONE;

	for (uint32_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].process == process && facts->threads[i].asks &&
		    (most == FACTS_NONE || facts->threads[i].asks > facts->threads[most].asks))
			most = i;
	return most;
}

/* Of the account that is made next. */
static uint64_t from_of(const struct maker *maker)
{
	return maker->from_ns ? maker->from_ns[maker->accounts->n] : 0;
}

static void account_of_gpu(const struct maker *maker, uint32_t number)
{
	const struct gpu_time *gpu = &maker->gpus[number];
	const struct fact_work *first = &maker->facts->works[gpu->first];
	const struct fact_span all = { from_of(maker), UINT64_MAX, 0 };
	struct account *account = &maker->accounts->of[maker->accounts->n++];
	struct measured part = measured_of(maker->facts, first->process);

	account->process = first->process;
	account->gpu = number;
	account->device = first->device;
	account->thread = asking_thread(maker->facts, first->process);
	account->first_ns = gpu->segments[0].begin_ns;
	account->begin_ns = facts_max(account->first_ns, all.begin_ns);
	account->end_ns = gpu->segments[gpu->n - 1].end_ns;
	account->longest_stream_ns = gpu_longest_stream_ns(maker->facts, gpu);
	for (size_t i = gpu_time_at(maker->gpus + number, all.begin_ns); i < gpu->n;
	     i = spill_next(maker->facts->spill, i))
		segment_measured(maker, account, gpu, &gpu->segments[i], &all, &part);
	account->not_measured_ns = part.not_measured_ns;
	parts_finish(maker->parts, account);
}

/* In those parts of the time in which the process was measured; returns how long the others are. */
static uint64_t thread_walk(const struct walk *walk, const struct process *process, uint32_t number,
                            uint64_t begin_ns, uint64_t end_ns)
{
	struct measured part = measured_of(walk->facts, process);

	for (part.end_ns = begin_ns; measured_next(&part, end_ns);)
		walk_thread(walk, number, part.begin_ns, part.end_ns, 0);
	return part.not_measured_ns;
}

/* Without GPU times: from its first call that asks to its last, or on to the recording's end. */
static void account_of_thread(const struct maker *maker, uint32_t number)
{
	const struct facts *facts = maker->facts;
	const struct fact_thread *thread = &facts->threads[number];
	uint64_t from_ns = from_of(maker);
	struct account *account = &maker->accounts->of[maker->accounts->n++];
	struct walk walk = walk_of(facts, maker->parts, maker->budget);
	size_t first = 0, last = thread->n_calls - 1;

	walk.alone = true;
	while (!thread->calls[first].correlation)
		first++;
	while (!thread->calls[last].correlation)
		last--;
	account->process = thread->process;
	account->gpu = account->device = FACTS_NONE;
	account->thread = number;
	account->first_ns = thread->calls[first].begin_ns;
	account->begin_ns = facts_max(account->first_ns, from_ns);
	account->end_ns = facts_ended(facts, thread->process)
	                          ? thread->calls[last].end_ns
	                          : facts_max(facts->end_ns, thread->calls[last].end_ns);
	account->not_measured_ns =
		thread_walk(&walk, account->process, number, account->begin_ns, account->end_ns);
	parts_finish(maker->parts, account);
}

static void account_of_span(const struct maker *maker, struct account *account,
                            const struct fact_span *span, struct measured *part)
{
	struct walk walk = walk_of(maker->facts, maker->parts, maker->budget);
	struct gpu_time *gpu;

	walk.alone = true;
	if (account->gpu == FACTS_NONE) {
		walk_thread(&walk, account->thread, span->begin_ns, span->end_ns, 0);
		return;
	}
	gpu = &maker->gpus[account->gpu];
	for (size_t i = gpu_time_at(gpu, span->begin_ns);
	     i < gpu->n && gpu->segments[i].begin_ns < span->end_ns; i++)
		segment_measured(maker, account, gpu, &gpu->segments[i], span, part);
}

void account_of_spans(struct account *part, const struct facts *facts, struct gpu_time *gpus,
                      const struct account *of, const struct fact_span *spans, size_t n,
                      uint64_t *budget)
{
	struct measured measured = measured_of(facts, of->process);
	struct maker maker = {
		.facts = facts, .gpus = gpus, .parts = parts_new(facts), .budget = budget
	};

	*part = (struct account){ .process = of->process,
		                  .gpu = of->gpu,
		                  .device = of->device,
		                  .thread = of->thread,
		                  .first_ns = of->first_ns,
		                  .begin_ns = of->begin_ns,
		                  .end_ns = of->end_ns };
	for (size_t i = 0; i < n; i++)
		account_of_span(&maker, part, &spans[i], &measured);
	parts_finish(maker.parts, part);
	parts_free(maker.parts);
}

void account_of_thread_alone(struct account *alone, const struct facts *facts,
                             const struct account *of, uint32_t thread, uint64_t *budget,
                             struct account_via **vias, size_t *n_vias)
{
	struct parts *parts = parts_new(facts);
	struct walk walk = walk_of(facts, parts, budget);

	*alone = (struct account){ .process = of->process,
		                   .gpu = FACTS_NONE,
		                   .device = FACTS_NONE,
		                   .thread = thread,
		                   .begin_ns = of->begin_ns,
		                   .end_ns = of->end_ns };
	alone->not_measured_ns = thread_walk(&walk, of->process, thread, of->begin_ns, of->end_ns);
	parts_finish(parts, alone);
	*vias = parts_take_vias(parts, n_vias);
	parts_free(parts);
}

struct ranked {
	uint32_t number;
	uint64_t most;
};

ORDER_BY(ranked_order, struct ranked, DOWN(most), UP(number));

/* Those with most work, each given to `make`. */
static void accounts_rank(struct maker *maker, struct ranked *ranked, size_t n,
                          void (*make)(const struct maker *maker, uint32_t number))
{
	SORT(ranked, n, ranked_order);
	maker->accounts->left_out = n > ACCOUNTS_MAX ? n - ACCOUNTS_MAX : 0;
	for (size_t i = 0; i < n && i < ACCOUNTS_MAX; i++)
		make(maker, ranked[i].number);
}

static void accounts_make_from(struct accounts *accounts, const struct facts *facts,
                               const uint64_t *from_ns)
{
	uint64_t budget = ACCOUNT_BUDGET;
	struct maker maker = { .facts = facts,
		               .accounts = accounts,
		               .parts = parts_new(facts),
		               .budget = &budget,
		               .from_ns = from_ns };
	size_t most = facts->n_gpus > facts->n_threads ? facts->n_gpus : facts->n_threads;
	struct ranked *ranked = xcalloc(most + 1, sizeof(*ranked));
	size_t n = 0;

	memset(accounts, 0, sizeof(*accounts));
	accounts->of = xcalloc(ACCOUNTS_MAX, sizeof(*accounts->of));
	maker.gpus = gpu_times_of(facts);
	for (uint32_t i = 0; i < facts->n_gpus; i++)
		if (maker.gpus[i].n)
			ranked[n++] =
				(struct ranked){ i, maker.gpus[i].last - maker.gpus[i].first };
	if (n) {
		accounts_rank(&maker, ranked, n, account_of_gpu);
	} else {
		for (uint32_t i = 0; i < facts->n_threads; i++)
			if (facts->threads[i].asks)
				ranked[n++] = (struct ranked){ i, facts->threads[i].asks };
		accounts_rank(&maker, ranked, n, account_of_thread);
	}
	accounts->vias = parts_take_vias(maker.parts, &accounts->n_vias);
	parts_free(maker.parts);
	free(ranked);
}

void accounts_make(struct accounts *accounts, const struct facts *facts)
{
	accounts_make_from(accounts, facts, NULL);
}

void accounts_make_again(struct accounts *accounts, const struct facts *facts,
                         const uint64_t *from_ns)
{
	accounts_clear(accounts);
	accounts_make_from(accounts, facts, from_ns);
}

double account_ns(const struct account *account, enum account_cause first, enum account_cause last)
{
	double ns = 0;

	for (size_t i = 0; i < account->n_parts; i++)
		if (account->parts[i].cause >= first && account->parts[i].cause <= last)
			ns += account->parts[i].ns;
	return ns;
}

void accounts_clear(struct accounts *accounts)
{
	for (size_t i = 0; i < accounts->n; i++)
		free(accounts->of[i].parts);
	free(accounts->of);
	free(accounts->vias);
	memset(accounts, 0, sizeof(*accounts));
}
