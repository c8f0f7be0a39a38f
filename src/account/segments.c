// SPDX-License-Identifier: MIT
/* What a stretch of a GPU's time consists of: what ran, whom it waited for, and why it did nothing.
 */
#include "account/account_inside.h"
#include "account/facts_inside.h"
#include "account/waits.h"
#include "account/walk.h"

#define ACCOUNT_PEERS     16    /* other GPUs that are asked who is late */
#define ACCOUNT_CALLS     64    /* before one that came late, among which one asked for work */
#define ACCOUNT_LEAVES_NS 50000 /* one GPU leaves a collective so much later than another */
#define ACCOUNT_TURN      1024  /* at most so much work of a stream's turn is looked at */

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

/* One more of a turn: what a stream runs while no other does. */
static bool turn_has(const struct fact_work *turn, const struct fact_work *work)
{
	return work->gpu == turn->gpu && work->process == turn->process &&
	       work->stream == turn->stream && work->class != FACT_COMMUNICATION && !work->sampled;
}

/* What ran in the turn that ends with it since another stream had something to do. */
static uint64_t turn_before_ns(const struct facts *facts, size_t last, uint64_t since_ns)
{
	uint64_t ns = 0;

	for (size_t i = 0; i <= last && i < ACCOUNT_TURN; i++) {
		const struct fact_work *work = &facts->works[last - i];

		if (!turn_has(&facts->works[last], work) || work->begin_ns < since_ns)
			break;
		if (i < last && work[-1].gpu == work->gpu && work[-1].end_ns > work->begin_ns)
			break;
		ns += work->end_ns - work->begin_ns;
	}
	return ns;
}

/* What runs in the turn that begins with it and had been asked for by then. */
static uint64_t turn_after_ns(const struct facts *facts, size_t first)
{
	const struct fact_work *turn = &facts->works[first];
	uint64_t ns = turn->end_ns - turn->begin_ns;

	for (size_t i = 1; i < ACCOUNT_TURN && first + i < facts->n_works; i++) {
		uint32_t thread;
		const struct fact_call *call = NULL;

		if (turn_has(turn, turn + i))
			call = facts_call_of(facts, turn + i, &thread);
		if (!call || call->end_ns > turn->begin_ns)
			break;
		ns += turn[i].end_ns - turn[i].begin_ns;
	}
	return ns;
}

/*
 * Work that was there before something else began, on a stream that had nothing to do, and that
 * began only after that had ended, and the GPU had paused: it waited for that. They could have run
 * side by side, and of two that take turns each is waited for by the other. A turn is of all that a
 * stream runs before the other goes on.
 */
static double idle_turn_ns(const struct facts *facts, size_t number, const struct fact_call *call)
{
	const struct fact_work *work = &facts->works[number];
	uint64_t before_ns;

	if (!number || work[-1].gpu != work->gpu || work[-1].process != work->process ||
	    work[-1].stream == work->stream || work[-1].class == FACT_COMMUNICATION ||
	    work->class == FACT_COMMUNICATION || work->sampled)
		return 0;
	before_ns = turn_before_ns(facts, number - 1, call->end_ns);
	return before_ns ? (double)facts_min(before_ns, turn_after_ns(facts, number)) / 2 : 0;
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

void communication_explain(const struct maker *maker, struct cut cut, const struct gpu_time *self,
                           const struct gpu_segment *segment)
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
