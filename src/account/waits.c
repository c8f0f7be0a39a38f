// SPDX-License-Identifier: MIT
#include "account/waits.h"

#include "account/walk.h"
#include "base/array.h"

#define WAITS_QUEUE_NS 50000  /* what is asked for begins so soon, if nothing is in its way */
#define WAITS_TOLD_NS  200000 /* that a function of the host runs, and whom it wakes */
#define WAITS_POLLS    10     /* samples, and of so many one, make a thread one that polls */
#define WAITS_CALLS    64     /* calls of so short a time that are looked at */
#define WAITS_FEW      16     /* that are asked for between two waits */
#define WAITS_AFTER    16     /* works that begin as another ends, of which one waited for it, */
#define WAITS_BEFORE   64     /* and before it, among which its stream's last is looked for; */
#define WAITS_SOON     16     /* so soon after it, of the time that it took */

uint64_t gpu_queue_ns(const struct facts *facts)
{
	return WAITS_QUEUE_NS + facts->resolution_ns;
}

/* The host's lead that a wait took, while a GPU is gone through. */
struct lead {
	struct gpu_debt debt;
	uint64_t begin_ns, waited_ns; /* of the wait, 0: there was none */
	uint64_t left_ns;             /* of what it took */
};

static uint64_t span_ns(uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* The longest call that was under way as the GPU ran dry, but those that ask for work. */
static bool wait_find_call(const struct facts *facts, struct fact_thread *thread, uint64_t dry_ns,
                           const struct fact_call *but, struct lead *wait)
{
	uint64_t near_ns = gpu_queue_ns(facts);
	size_t at = facts_call_at(thread, dry_ns > near_ns ? dry_ns - near_ns : 0);

	wait->waited_ns = 0;
	for (size_t i = 0; i < WAITS_CALLS && at < thread->n_calls; at++, i++) {
		const struct fact_call *call = &thread->calls[at];
		uint64_t waited = span_ns(call->begin_ns, facts_min(call->end_ns, dry_ns));
		enum account_cause cause = walk_cause_of_call(call);

		if (call->begin_ns >= dry_ns)
			break;
		if (call == but || cause == ACCOUNT_LAUNCHING || waited <= wait->waited_ns)
			continue;
		*wait = (struct lead){ .debt = { .call = call,
			                         .cause = cause,
			                         .chain = call->chain,
			                         .end_ns = call->end_ns },
			               .begin_ns = call->begin_ns,
			               .waited_ns = waited };
	}
	return wait->waited_ns;
}

/* Since its last call before. Such calls are not recorded: samples say that it makes them. */
static bool wait_find_poll(struct fact_thread *thread, uint64_t dry_ns, struct lead *wait)
{
	size_t at = facts_call_at(thread, dry_ns);

	if (thread->polls < WAITS_POLLS || WAITS_POLLS * thread->polls < thread->n_samples || !at ||
	    (at < thread->n_calls && thread->calls[at].begin_ns < dry_ns))
		return false;
	*wait = (struct lead){ .debt = { .cause = ACCOUNT_SYNCHRONISATION,
		                         .chain = thread->poll_chain,
		                         .end_ns = dry_ns },
		               .begin_ns = thread->calls[at - 1].end_ns };
	wait->waited_ns = span_ns(wait->begin_ns, dry_ns);
	return true;
}

/*
 * It was blocked until just after the GPU ran dry, in a process that has the GPU's end told to it
 * by functions of the host: whoever woke it had waited for that. One that asks for work itself had
 * not: it hands work on, and functions of the host must not call CUDA. A rest takes no lead where
 * it began only meanwhile.
 */
static bool wait_find_rest(const struct facts *facts, struct fact_thread *thread, uint64_t dry_ns,
                           struct lead *wait)
{
	size_t at = facts_rest_at(thread, dry_ns);
	struct fact_rest *rest = at < thread->n_rests ? &thread->rests[at] : NULL;

	if (!rest || !facts_has_host_functions(facts, thread->process) ||
	    rest->begin_ns > dry_ns + gpu_queue_ns(facts) || rest->ready_ns < dry_ns ||
	    rest->ready_ns - dry_ns > WAITS_TOLD_NS + facts->resolution_ns ||
	    rest->waker == FACTS_NONE || facts->threads[rest->waker].process != thread->process ||
	    facts->threads[rest->waker].asks || rest->gil)
		return false;
	rest->for_gpu = true;
	*wait = (struct lead){ .debt = { .cause = ACCOUNT_SYNCHRONISATION,
		                         .chain = rest->chain,
		                         .end_ns = rest->ready_ns },
		               .begin_ns = rest->begin_ns,
		               .waited_ns = span_ns(rest->begin_ns, dry_ns) };
	return wait->waited_ns;
}

/* In the pause before that call: waits without a row, like one that was for the GPU; 0: none. */
static uint64_t pause_waited_ns(struct fact_thread *thread, size_t call, uint32_t *chain)
{
	uint64_t begin_ns = thread->calls[call - 1].end_ns, end_ns = thread->calls[call].begin_ns;
	struct walk_untold untold = { 0 };

	if (begin_ns < end_ns)
		untold = walk_untold(thread, begin_ns, end_ns, call);
	if (!untold.like || !untold.like->for_gpu ||
	    2 * untold.blocked_ns < untold.like->ready_ns - untold.like->begin_ns)
		return 0;
	*chain = untold.like->chain;
	return untold.blocked_ns;
}

/* It was told when the GPU ran dry, and by a wait that has no row. */
static bool wait_find_untold(struct fact_thread *thread, uint64_t dry_ns, struct lead *wait)
{
	size_t at = facts_call_at(thread, dry_ns);
	uint64_t begin_ns, ns;
	uint32_t chain;

	if (!at || at >= thread->n_calls || thread->calls[at].begin_ns < dry_ns)
		return false;
	ns = pause_waited_ns(thread, at, &chain);
	begin_ns = thread->calls[at - 1].end_ns;
	if (!ns)
		return false;
	*wait = (struct lead){ .debt = { .cause = ACCOUNT_SYNCHRONISATION,
		                         .chain = chain,
		                         .end_ns = facts_max(begin_ns + ns, dry_ns) },
		               .begin_ns = begin_ns,
		               .waited_ns = facts_min(ns, span_ns(begin_ns, dry_ns)) };
	return wait->waited_ns;
}

/* How the thread had waited as the GPU ran dry: of several ways the longest. */
static bool wait_find(const struct facts *facts, struct fact_thread *thread, uint64_t dry_ns,
                      const struct fact_call *but, struct lead *wait)
{
	struct lead rest;
	bool found = wait_find_call(facts, thread, dry_ns, but, wait);

	if ((wait_find_rest(facts, thread, dry_ns, &rest) ||
	     wait_find_untold(thread, dry_ns, &rest)) &&
	    (!found || rest.waited_ns > wait->waited_ns)) {
		*wait = rest;
		return true;
	}
	return found || wait_find_poll(thread, dry_ns, wait);
}

/* It takes what lead the host would have had, and so no more than an earlier one has taken. */
static void lead_wait(struct lead *lead, const struct lead *wait, uint32_t thread)
{
	uint64_t left = lead->debt.thread == thread ? lead->left_ns : 0;

	if (lead->waited_ns && lead->debt.thread == thread && lead->begin_ns >= wait->begin_ns)
		return; /* it is in the lead already */
	if (left < wait->waited_ns) {
		*lead = *wait;
		lead->left_ns = wait->waited_ns;
		lead->debt.thread = thread;
		return;
	}
	lead->debt.end_ns = wait->debt.end_ns;
	lead->begin_ns = wait->begin_ns;
}

static void debt_add(const struct facts *facts, struct gpu_time *gpu, struct gpu_segment *idle,
                     const struct gpu_debt *debt)
{
	*SPILL_ADD(facts->spill, gpu->debts, gpu->n_debts) = *debt;
	idle->debt = (uint32_t)gpu->n_debts;
}

/* The host came too late with that call. */
static void lead_pause(const struct facts *facts, struct gpu_time *gpu, struct gpu_segment *idle,
                       const struct fact_call *call, uint32_t thread, struct lead *lead)
{
	struct gpu_debt debt;
	struct lead wait;
	uint64_t ns, owed;

	if (wait_find(facts, &facts->threads[thread], idle->begin_ns, call, &wait))
		lead_wait(lead, &wait, thread);
	if (!lead->left_ns || lead->debt.thread != thread)
		return;
	debt = lead->debt;
	ns = span_ns(facts_max(debt.end_ns, idle->begin_ns), idle->end_ns);
	owed = facts_min(lead->left_ns, ns);
	debt.share = ns ? (double)owed / (double)ns : 0;
	lead->left_ns -= owed;
	debt_add(facts, gpu, idle, &debt);
}

/* Work that was there already: by how much the host is ahead, which is not to be had again. */
static void lead_work(struct lead *lead, const struct fact_work *work, const struct fact_call *call,
                      uint32_t thread)
{
	uint64_t ahead = span_ns(call->end_ns, work->begin_ns);

	if (thread != lead->debt.thread)
		return;
	lead->left_ns = facts_min(lead->left_ns, span_ns(ahead, lead->waited_ns));
}

/* Which of the rests were for the GPU: those that have no row are like them. */
static void gpu_mark_rests(const struct gpu_time *gpu, const struct facts *facts)
{
	for (size_t i = 0; i < gpu->n; i = spill_next(facts->spill, i)) {
		const struct gpu_segment *idle = &gpu->segments[i];
		const struct fact_work *work =
			idle->work < facts->n_works ? &facts->works[idle->work] : NULL;
		uint32_t thread;
		struct lead wait;

		if (work && idle->state == STATE_IDLE &&
		    facts_has_host_functions(facts, work->process) &&
		    facts_call_of(facts, work, &thread))
			wait_find_rest(facts, &facts->threads[thread], idle->begin_ns, &wait);
	}
}

void gpu_find_debts(struct gpu_time *gpu, const struct facts *facts)
{
	struct lead lead = { .debt.thread = FACTS_NONE };

	gpu_mark_rests(gpu, facts);

	for (size_t i = 0; i < gpu->n; i = spill_next(facts->spill, i)) {
		struct gpu_segment *segment = &gpu->segments[i];
		const struct fact_work *work =
			segment->work < facts->n_works ? &facts->works[segment->work] : NULL;
		uint32_t thread;
		const struct fact_call *call = work ? facts_call_of(facts, work, &thread) : NULL;

		if (!call)
			continue;
		if (segment->state != STATE_IDLE)
			lead_work(&lead, work, call, thread);
		else if (call->end_ns > segment->begin_ns)
			lead_pause(facts, gpu, segment, call, thread, &lead);
	}
}

/* ---- of streams for each other --------------------------------------------------------------- */

/* Since when work on another stream waited for that one, though it had been asked for, and its
 * stream had nothing to do; UINT64_MAX: it did not. */
static uint64_t work_waits_since(const struct facts *facts, const struct gpu_time *gpu,
                                 const struct fact_work *work, size_t for_number)
{
	const struct fact_work *for_work = &facts->works[for_number];
	const struct fact_work *first = &facts->works[gpu->first], *before = work;
	uint32_t thread, for_thread;
	const struct fact_call *call = facts_call_of(facts, work, &thread);
	uint64_t since_ns = call ? call->end_ns : UINT64_MAX;

	if (work->stream == for_work->stream || work->process != for_work->process ||
	    work->class == FACT_COMMUNICATION || !call || since_ns > for_work->end_ns ||
	    call == facts_call_of(facts, for_work, &for_thread))
		return UINT64_MAX;
	for (size_t i = 0; i < WAITS_BEFORE && before > first; i++) {
		before--;
		if (before->stream == work->stream && before->process == work->process)
			return facts_max(since_ns, before->end_ns);
	}
	return before > first ? UINT64_MAX : since_ns;
}

uint64_t gpu_awaited_since(const struct gpu_time *gpu, const struct facts *facts, size_t number)
{
	const struct fact_work *work = &facts->works[number];
	uint64_t ns = work->end_ns - work->begin_ns, since_ns = UINT64_MAX;
	uint64_t queue_ns = gpu_queue_ns(facts), soon_ns = facts_max(queue_ns, ns / WAITS_SOON);
	size_t at;

	if (!work->few || ns <= queue_ns)
		return UINT64_MAX;
	at = gpu->first + ARRAY_BEFORE(gpu->last - gpu->first, i,
	                               facts->works[gpu->first + i].begin_ns < work->end_ns);
	for (size_t i = 0; i < WAITS_AFTER && at + i < gpu->last &&
	                   facts->works[at + i].begin_ns <= work->end_ns + soon_ns;
	     i++)
		since_ns = facts_min(since_ns,
		                     work_waits_since(facts, gpu, &facts->works[at + i], number));
	return since_ns < work->end_ns - queue_ns ? since_ns : UINT64_MAX;
}

/* ---- between launches ------------------------------------------------------------------------ */

/* It returned when what was asked for before was done. */
static bool call_waits(const struct fact_call *call)
{
	return call->op == OP_SYNC || call->blocking;
}

/* The thread waited for the GPU between the call before and this one. */
static bool thread_waits_between(struct fact_thread *thread, size_t call, size_t *rest)
{
	const struct fact_call *before = &thread->calls[call - 1], *next = before + 1;
	bool waits = false;
	uint32_t chain;

	for (; *rest < thread->n_rests && thread->rests[*rest].begin_ns < next->begin_ns; ++*rest)
		waits |= thread->rests[*rest].for_gpu &&
		         thread->rests[*rest].begin_ns >= before->end_ns;
	return waits || (thread->n_sums && pause_waited_ns(thread, call, &chain));
}

static void thread_find_awaited(const struct facts *facts, struct fact_thread *thread)
{
	size_t since = 0, asked = WAITS_FEW + 1, rest = 0;

	thread->awaits = thread->awaited = 0;
	for (size_t i = 0; i < thread->n_calls; i = spill_next(facts->spill, i)) {
		struct fact_call *call = &thread->calls[i];
		bool between = i && thread_waits_between(thread, i, &rest);

		if (between || call_waits(call)) {
			if (asked <= WAITS_FEW) {
				thread->awaits += asked > 0;
				thread->awaited += asked;
				call->awaited = !between;
			}
			for (size_t k = since; asked <= WAITS_FEW && k < i; k++)
				thread->calls[k].awaited = true;
			since = i + !between;
			asked = 0;
		}
		asked += call->correlation && !call_waits(call) && !call->waited;
	}
}

void gpu_find_awaited(const struct facts *facts)
{
	for (size_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].asks)
			thread_find_awaited(facts, &facts->threads[i]);
}
