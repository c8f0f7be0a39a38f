// SPDX-License-Identifier: MIT
/*
 * The places of facts: chains of the user's frames, made of stacks when all is known of them. What
 * a thread does in which no frame is the user's is at the place of the thread that waits for it: a
 * framework runs the backward half of a training on a thread of its own.
 *
 * And who the peer of a socket of this machine is: a wake-up by the network has no thread that made
 * it, but comes while the sender has the CPU. So it is the process of the recording that runs as
 * the waits of a thread at one place end, and does not run as often between them.
 */
#include "account/facts_inside.h"

#include <stdlib.h>
#include <string.h>

#include "account/keyed.h"
#include "analysis/by_id.h"
#include "analysis/place.h"
#include "base/xalloc.h"

/* A thread of a pool waits for another one of it, which the user's thread never waits for. */
#define PLACE_ROUNDS 3

/* Whose the innermost frame of a chain is, from the surest on not the user's to the surest: native
 * code without lines can be a library's. */
enum whose { WHOSE_NOT_KNOWN, WHOSE_OTHERS, WHOSE_NATIVE, WHOSE_USERS, WHOSE_PYTHON };

static bool whose_is_native(enum whose whose)
{
	return whose == WHOSE_NATIVE || whose == WHOSE_USERS;
}

struct placer {
	struct facts *facts;
	uint8_t *whose; /* enum whose, by chain */
	size_t n_whose;
	uint32_t *waits; /* by thread: the one that waits for it mostly; FACTS_NONE */
};

/* Its own, or that of a caller. */
static bool chain_has_line(const struct chains *chains, uint32_t chain)
{
	while (chain && !chains_frame(chains, chain)->line)
		chain = chains_parent(chains, chain);
	return chain;
}

static enum whose placer_whose(struct placer *placer, uint32_t chain)
{
	struct chains *chains = placer->facts->chains;
	uint8_t *whose;
	enum place_rank rank;

	if (!chain)
		return WHOSE_OTHERS;
	whose = BY_ID(placer->whose, placer->n_whose, chain);
	if (*whose)
		return *whose;
	rank = chains_rank(chains, chains_frame(chains, chain));
	if (rank <= PLACE_PYTHON_LIBRARY && chains_is_users(chains, chain))
		*whose = WHOSE_PYTHON;
	else if (rank != PLACE_NATIVE)
		*whose = WHOSE_OTHERS;
	else
		*whose = chain_has_line(chains, chain) ? WHOSE_USERS : WHOSE_NATIVE;
	return *whose;
}

/* What frames of CUDA's or the kernel's alone say is no place. */
static uint32_t chain_of_stack(const struct facts *facts, const struct stack *stack)
{
	uint32_t chain = chains_of(facts->chains, stack);
	const struct stack_frame *frame = chains_frame(facts->chains, chain);

	if (frame && (frame->kind == FRAME_CUDA || frame->kind == FRAME_KERNEL_MODE ||
	              frame->kind == FRAME_DRIVER))
		return 0;
	return chain;
}

/* A stack, by its number and 1, which rows have until they have chains. */
struct numbered {
	uint32_t chain;
	bool cut;      /* it ends before the program's begin */
	bool copies;   /* its innermost function copies memory */
	bool compiles; /* a compiler runs in it */
	bool in_cuda;  /* it is in a call of CUDA's, but none that polls */
	bool of_cuda;  /* of a thread of CUDA's */
	bool for_cuda; /* and CUDA has called a function of the program's in it */
};

static bool is_of_libc(const struct stack_frame *frame)
{
	return frame->module &&
	       (!strncmp(frame->module, "libc.so", 7) || !strncmp(frame->module, "libc-", 5));
}

/*
 * In a function of the C library's for memory. All of its functions that others call have names but
 * those of which it chooses one for the CPU: memcpy and its like.
 */
static bool stack_copies(const struct stack *stack)
{
	const struct stack_frame *inner = stack->n_frames ? stack->frames[0] : NULL;
	const char *name = inner ? inner->function : NULL;

	if (!inner || inner->kind != FRAME_NATIVE || !is_of_libc(inner))
		return false;
	if (name)
		return !strncmp(name + strspn(name, "_"), "mem", 3);
	return stack->n_frames > 1 && !is_of_libc(stack->frames[1]);
}

static bool is_of_system(const struct stack_frame *frame)
{
	return frame->kind == FRAME_KERNEL_MODE || frame->kind == FRAME_DRIVER ||
	       is_of_libc(frame) || (frame->module && !strcmp(frame->module, "[vdso]"));
}

/* In CUDA, whoever has called it, and in nothing that CUDA calls but the system. */
static bool stack_in_cuda(const struct stack *stack)
{
	const char *module;
	size_t i = 0;

	while (i < stack->n_frames && is_of_system(stack->frames[i]))
		i++;
	if (i == stack->n_frames || stack->frames[i]->kind != FRAME_CUDA)
		return false;
	module = stack->frames[i]->module;
	return module && (!strncmp(module, "libcuda.", 8) || !strncmp(module, "libcudart", 9));
}

/* From the outside on the system's frames, then CUDA's: from it on inwards so many; 0: it is none
 * of a thread of CUDA's. */
static size_t stack_of_cuda(struct chains *chains, const struct stack *stack)
{
	size_t i = stack->n_frames;

	while (i && chains_rank(chains, stack->frames[i - 1]) == PLACE_SYSTEM)
		i--;
	return i && stack->frames[i - 1]->kind == FRAME_CUDA ? i : 0;
}

static bool frames_have_programs(struct chains *chains, const struct stack *stack, size_t n)
{
	while (n && chains_rank(chains, stack->frames[n - 1]) > PLACE_NATIVE)
		n--;
	return n;
}

/* Each stack is looked at once: millions of rows have one. */
static struct numbered *facts_number(struct facts *facts)
{
	struct numbered *numbered = xcalloc(facts->n_stacks + 1, sizeof(*numbered));

	for (size_t i = 0; i < facts->n_stacks; i++) {
		const struct stack *stack = facts->stacks[i];
		struct numbered *of = &numbered[i + 1];
		size_t within;

		if (!stack)
			continue;
		of->chain = chain_of_stack(facts, stack);
		of->cut = stack->end != STACK_WHOLE && stack->end != STACK_BY_POINTERS;
		of->copies = stack_copies(stack);
		of->compiles = chains_compile(facts->chains, stack);
		of->in_cuda = stack_in_cuda(stack) && !facts_stack_polls(stack);
		within = of->cut ? 0 : stack_of_cuda(facts->chains, stack);
		of->of_cuda = within;
		of->for_cuda = frames_have_programs(facts->chains, stack, within);
	}
	return numbered;
}

/*
 * Where a thread is whose stack this is, and that was at `seen` before: deep in a library's code
 * the stack is cut before it is at a line of the user's, or of Python where it is Python's.
 */
static uint32_t placer_chain(struct placer *placer, const struct numbered *of, uint32_t seen)
{
	enum whose whose = placer_whose(placer, of->chain);

	if (!of->cut || !seen || whose == WHOSE_PYTHON ||
	    (whose_is_native(whose) && whose_is_native(placer_whose(placer, seen))))
		return of->chain;
	return seen;
}

static void thread_has(struct fact_thread *thread, const struct numbered *of)
{
	thread->of_cuda |= of->of_cuda;
	thread->is_cudas |= of->for_cuda;
}

static void placer_samples(struct placer *placer, struct fact_thread *thread,
                           const struct numbered *numbered)
{
	uint32_t seen = 0;

	for (size_t i = 0; i < thread->n_samples; i = spill_next(placer->facts->spill, i)) {
		const struct numbered *of = &numbered[thread->samples[i].chain];

		if (!of->cut && placer_whose(placer, of->chain) != WHOSE_OTHERS)
			seen = of->chain;
		thread->samples[i].chain = placer_chain(placer, of, seen);
		thread->samples[i].copies = of->copies;
		thread->samples[i].compiles = of->compiles;
		thread->samples[i].in_cuda = of->in_cuda;
		thread_has(thread, of);
	}
}

/* Of another row of the thread's, whose samples have their places already. */
static uint32_t placer_row(struct placer *placer, struct fact_thread *thread, uint64_t time_ns,
                           const struct numbered *of)
{
	size_t at = of->cut ? facts_sample_at(thread, time_ns) : 0;

	return placer_chain(placer, of, at ? thread->samples[at - 1].chain : 0);
}

static void placer_make_chains(struct placer *placer)
{
	struct facts *facts = placer->facts;
	struct numbered *numbered;

	if (!facts->n_stacks) /* no row has one: none is written to */
		return;
	numbered = facts_number(facts);
	for (size_t i = 0; i < facts->n_threads; i++) {
		struct fact_thread *thread = &facts->threads[i];

		placer_samples(placer, thread, numbered);
		for (size_t k = 0; k < thread->n_calls; k = spill_next(facts->spill, k)) {
			struct fact_call *call = &thread->calls[k];

			call->chain =
				placer_row(placer, thread, call->begin_ns, &numbered[call->chain]);
		}
		for (size_t k = 0; k < thread->n_rests; k = spill_next(facts->spill, k)) {
			struct fact_rest *rest = &thread->rests[k];
			const struct numbered *of = &numbered[rest->chain];

			rest->for_cuda = of->for_cuda;
			thread_has(thread, of);
			rest->chain = placer_row(placer, thread, rest->begin_ns, of);
		}
		thread->poll_chain = numbered[thread->poll_chain].chain;
	}
	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i)) {
		struct fact_work *work = &facts->works[i];

		if (work->chain) /* few have one, and what is written to is written out again */
			work->chain = numbered[work->chain].chain;
	}
	free(numbered);
}

/* The call that a sample was taken in, or a little before. */
static struct fact_call *call_of_sample(struct fact_thread *thread,
                                        const struct fact_sample *sample)
{
	size_t at = facts_call_at(thread, sample->time_ns);
	struct fact_call *call = at < thread->n_calls ? &thread->calls[at] : NULL;

	return call && call->begin_ns < sample->time_ns + FACTS_SHORT_PAUSE_NS ? call : NULL;
}

/* Stacks of few calls are walked, and of those that are recorded inside of processes none. */
static void placer_calls_by_samples(struct placer *placer)
{
	for (size_t i = 0; i < placer->facts->n_threads; i++) {
		struct fact_thread *thread = &placer->facts->threads[i];

		for (size_t k = 0; k < thread->n_samples; k = spill_next(placer->facts->spill, k)) {
			struct fact_call *call = call_of_sample(thread, &thread->samples[k]);

			if (!call || (call->chain && !call->by_sample_before))
				continue;
			call->chain = thread->samples[k].chain;
			call->by_sample = true;
			call->by_sample_before = call->begin_ns > thread->samples[k].time_ns;
		}
	}
}

/* The thread of its process that waits for it in lines of the user's, if one does so for longer
 * than all others do. */
static void placer_find_waits(struct placer *placer)
{
	const struct facts *facts = placer->facts;
	uint64_t *ahead_ns = xcalloc(facts->n_threads + 1, sizeof(*ahead_ns));

	for (size_t i = 0; i < facts->n_threads; i++)
		placer->waits[i] = FACTS_NONE;
	for (uint32_t i = 0; i < facts->n_threads; i++)
		for (size_t k = 0; k < facts->threads[i].n_rests; k = spill_next(facts->spill, k)) {
			const struct fact_rest *rest = &facts->threads[i].rests[k];
			uint32_t waker = rest->waker;
			uint64_t ns = rest->ready_ns - rest->begin_ns;

			if (waker == FACTS_NONE || rest->gil ||
			    facts->threads[waker].process != facts->threads[i].process ||
			    placer_whose(placer, rest->chain) < WHOSE_USERS)
				continue;
			if (placer->waits[waker] == i) {
				ahead_ns[waker] += ns;
			} else if (ahead_ns[waker] > ns) {
				ahead_ns[waker] -= ns;
			} else {
				placer->waits[waker] = i;
				ahead_ns[waker] = ns - ahead_ns[waker];
			}
		}
	free(ahead_ns);
}

/* What is known of a thread's places. */
struct own {
	size_t users, others;
};

static void own_count(struct placer *placer, struct own *own, uint32_t chain)
{
	if (chain)
		*(placer_whose(placer, chain) < WHOSE_USERS ? &own->others : &own->users) += 1;
}

/*
 * A thread that mostly runs the user's frames is at its own places, also where no stack says which:
 * its calls have few stacks, and that it works while another waits for it does not make them that
 * one's.
 */
static bool placer_has_own(struct placer *placer, const struct fact_thread *thread)
{
	struct own own = { 0 };

	for (size_t i = 0; i < thread->n_calls; i = spill_next(placer->facts->spill, i))
		own_count(placer, &own, thread->calls[i].chain);
	for (size_t i = 0; i < thread->n_samples; i = spill_next(placer->facts->spill, i))
		own_count(placer, &own, thread->samples[i].chain);
	for (size_t i = 0; i < thread->n_rests; i = spill_next(placer->facts->spill, i))
		own_count(placer, &own, thread->rests[i].chain);
	return own.users > own.others;
}

/* The line in which that thread waited then; else as it was. */
static uint32_t placer_place(struct placer *placer, struct fact_thread *waits, uint64_t time_ns,
                             uint32_t chain)
{
	size_t at;

	if (placer_whose(placer, chain) >= WHOSE_USERS)
		return chain;
	at = facts_rest_at(waits, time_ns);
	if (at == waits->n_rests || waits->rests[at].begin_ns > time_ns ||
	    placer_whose(placer, waits->rests[at].chain) < WHOSE_USERS)
		return chain;
	return chains_called(placer->facts->chains, waits->rests[at].chain);
}

static void placer_place_thread(struct placer *placer, struct fact_thread *thread,
                                struct fact_thread *waits)
{
	for (size_t i = 0; i < thread->n_calls; i = spill_next(placer->facts->spill, i))
		thread->calls[i].chain = placer_place(placer, waits, thread->calls[i].begin_ns,
		                                      thread->calls[i].chain);
	for (size_t i = 0; i < thread->n_samples; i = spill_next(placer->facts->spill, i))
		thread->samples[i].chain = placer_place(placer, waits, thread->samples[i].time_ns,
		                                        thread->samples[i].chain);
	for (size_t i = 0; i < thread->n_rests; i = spill_next(placer->facts->spill, i))
		thread->rests[i].chain = placer_place(placer, waits, thread->rests[i].begin_ns,
		                                      thread->rests[i].chain);
}

/* ---- peers of sockets ------------------------------------------------------------------------ */

#define PEER_WAITS      64    /* of a place that are asked, where there are few places */
#define PEER_ASKED      16384 /* of all places: each of them asks all candidates' threads */
#define PEER_PLACES     1024 /* so that each has enough; waits at others are left out, and counted */
#define PEER_CANDIDATES 32   /* processes that are asked */
#define PEER_RUNS       0.5  /* shares of the waits */
#define PEER_MORE       0.3

/* Waits of a thread for a socket at one place. */
struct peer {
	struct peer_key {
		uint32_t thread, chain;
	} key;
	uint64_t pid;     /* machine_pid(); 0: not known */
	uint64_t last_ns; /* the end of the wait before */
	uint32_t waits;
	struct {
		uint32_t at_end,
			between; /* how often it ran: as the wait ended, and before it began */
	} runs[PEER_CANDIDATES];
};

struct peers {
	struct facts *facts;
	uint64_t pids[PEER_CANDIDATES];
	size_t n_pids, waits; /* waits: of a place that are asked */
	uint64_t left_out;
	struct keyed of;
};

static bool rest_has_peer(const struct fact_rest *rest)
{
	return rest->wait == WAIT_NETWORK && rest->waker == FACTS_NONE && !rest->waker_tid;
}

/* Tells of each such wait. */
static void peers_each(struct peers *peers, void (*tell)(const struct peers *peers,
                                                         struct peer *peer, struct fact_rest *rest))
{
	struct facts *facts = peers->facts;
	struct peer *peer;

	peers->left_out = 0;

	for (uint32_t i = 0; i < facts->n_threads; i++)
		for (size_t k = 0; k < facts->threads[i].n_rests; k = spill_next(facts->spill, k)) {
			struct fact_rest *rest = &facts->threads[i].rests[k];

			if (!rest_has_peer(rest))
				continue;
			peer = keyed_row(&peers->of, &(struct peer_key){ i, rest->chain },
			                 PEER_PLACES);
			if (peer)
				tell(peers, peer, rest);
			else
				peers->left_out++;
		}
}

static void peer_is_there(const struct peers *peers, struct peer *peer, struct fact_rest *rest)
{
	(void)peers;
	(void)peer;
	(void)rest;
}

static bool peer_ran(const struct peers *peers, const struct peer *peer, size_t candidate,
                     uint64_t time_ns)
{
	return facts_running(peers->facts, peers->pids[candidate], time_ns, peer->key.thread) !=
	       FACTS_NONE;
}

static void peer_hears(const struct peers *peers, struct peer *peer, struct fact_rest *rest)
{
	const struct facts *facts = peers->facts;
	uint64_t middle = peer->last_ns + (rest->begin_ns - peer->last_ns) / 2;
	bool before = peer->last_ns;

	peer->last_ns = rest->end_ns;
	if (!before || peer->waits == peers->waits)
		return;
	peer->waits++;
	for (size_t i = 0; i < peers->n_pids; i++) {
		if (peers->pids[i] == machine_pid(facts->threads[peer->key.thread].process))
			continue;
		peer->runs[i].at_end += peer_ran(peers, peer, i, rest->ready_ns - 1);
		peer->runs[i].between += peer_ran(peers, peer, i, middle);
	}
}

/* Of those that run as the waits end, the one that runs least else. */
static void peer_choose(const struct peers *peers, struct peer *peer)
{
	double most = PEER_MORE * peer->waits;

	for (size_t i = 0; i < peers->n_pids; i++) {
		double more = (double)peer->runs[i].at_end - peer->runs[i].between;

		if (peer->runs[i].at_end >= PEER_RUNS * peer->waits && more > most) {
			most = more;
			peer->pid = peers->pids[i];
		}
	}
}

static void peer_is_told(const struct peers *peers, struct peer *peer, struct fact_rest *rest)
{
	if (peer->pid)
		rest->waker = facts_running(peers->facts, peer->pid, rest->ready_ns - 1,
		                            peer->key.thread);
}

static void facts_find_peers(struct facts *facts)
{
	struct peers peers = { .facts = facts,
		               .of = { .row_bytes = sizeof(struct peer),
		                       .key_bytes = sizeof(struct peer_key) } };

	for (uint64_t pid = 0; peers.n_pids < PEER_CANDIDATES; peers.pids[peers.n_pids++] = pid) {
		pid = facts_pid_after(facts, pid);
		if (!pid)
			break;
	}
	peers_each(&peers, peer_is_there);
	peers.waits = PEER_ASKED / (peers.of.n + 1);
	if (peers.waits > PEER_WAITS)
		peers.waits = PEER_WAITS;
	facts->left_out += peers.left_out;
	peers_each(&peers, peer_hears);
	for (size_t i = 0; i < peers.of.n; i++)
		peer_choose(&peers, keyed_at(&peers.of, i));
	peers_each(&peers, peer_is_told);
	keyed_free(&peers.of);
}

/* Threads without places of their own, which others wait for; returns whether there were any. */
static bool placer_place_threads(struct placer *placer)
{
	struct facts *facts = placer->facts;
	bool placed = false;

	placer_find_waits(placer);
	for (size_t i = 0; i < facts->n_threads; i++) {
		if (placer->waits[i] == FACTS_NONE || placer_has_own(placer, &facts->threads[i]))
			continue;
		placer_place_thread(placer, &facts->threads[i], &facts->threads[placer->waits[i]]);
		placed = true;
	}
	return placed;
}

/* Memory that is copied elsewhere is the program's own matter. */
static void placer_find_copies(const struct placer *placer)
{
	const struct facts *facts = placer->facts;
	bool *copied = xcalloc(chains_count(facts->chains) + 1, sizeof(*copied));

	for (size_t i = 0; i < facts->n_threads; i++)
		for (size_t k = 0; k < facts->threads[i].n_calls; k = spill_next(facts->spill, k)) {
			const struct fact_call *call = &facts->threads[i].calls[k];

			copied[call->chain] |= call->chain && call->op == OP_COPY && !call->small;
		}
	for (size_t i = 0; i < facts->n_threads; i++)
		for (size_t k = 0; k < facts->threads[i].n_samples;
		     k = spill_next(facts->spill, k)) {
			struct fact_sample *sample = &facts->threads[i].samples[k];

			sample->copies = sample->copies && copied[sample->chain];
		}
	free(copied);
}

void facts_place(struct facts *facts)
{
	struct placer placer = { .facts = facts };

	placer_make_chains(&placer);
	placer_calls_by_samples(&placer);
	placer.waits = xcalloc(facts->n_threads + 1, sizeof(*placer.waits));
	for (size_t i = 0; i < PLACE_ROUNDS && placer_place_threads(&placer); i++)
		;
	facts_alike(facts);
	placer_find_copies(&placer);
	free(placer.waits);
	free(placer.whose);
	facts_find_peers(facts);
}
