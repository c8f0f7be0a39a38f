// SPDX-License-Identifier: MIT
#include "analysis/collectives_inside.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/map.h"
#include "base/vec.h"

#define GROUP_MAX 256 /* calls of a group; what is beyond has no kernel */
#define LAUNCHES  16  /* of a thread that are remembered */

struct rank_key {
	uint64_t handle;
	uint32_t process, padding;
};

struct rank_entry {
	struct rank_key key;
	uint32_t rank; /* the row: a handle can be another communicator's later */
	uint32_t splits;
	UT_hash_handle hh;
};

struct told_key {
	uint64_t id[2], person;
	int32_t number;
	uint32_t file;
};

struct told_entry {
	struct told_key key;
	uint32_t told; /* the row */
	UT_hash_handle hh;
};

struct thread_key {
	uint32_t process, tid;
};

struct thread_entry {
	struct thread_key key;
	struct launch {
		uint64_t correlation, begin_ns;
	} launches[LAUNCHES];
	uint32_t n_launches; /* ever */
	uint32_t depth, n_group;
	uint32_t group[GROUP_MAX]; /* calls */
	UT_hash_handle hh;
};

void collectives_init(struct collectives *collectives)
{
	*collectives = (struct collectives){ .own = xcalloc(1, sizeof(*collectives->own)) };
	tables_begin(collectives);
}

void collectives_clear(struct collectives *collectives)
{
	struct collectives_own *own = collectives->own;

	MAP_FREE(own->ranks, free);
	MAP_FREE(own->comms, free);
	MAP_FREE(own->threads, free);
	MAP_FREE(own->told_ranks, free);
	FREE_ALL(own->functions, own->kernels, own->told, own->processes, own->missing,
	         own->behind);
	for (int i = 0; i < COLLECTIVES_TABLES; i++)
		quota_free(&own->shares[i]);
	FREE_ALL(own, collectives->ranks, collectives->comms, collectives->calls, collectives->all,
	         collectives->told, collectives->claims, collectives->left);
	*collectives = (struct collectives){ 0 };
}

/* ---- who is in which communicator ------------------------------------------------------------ */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

/* Of a rank's person. */
static uint32_t comm_make(struct collectives *collectives, const struct rank_entry *rank,
                          const uint64_t id[2], uint32_t size)
{
	struct collectives_own *own = collectives->own;
	struct comm_key key = { { id[0], id[1] }, collectives->ranks[rank->rank].person };
	struct comm_entry *entry = MAP_FIND(own->comms, &key);

	if (!entry) {
		entry = MAP_ADD(own->comms, key, &key);
		entry->comm = (uint32_t)collectives->n_comms;
		*VEC_ADD(collectives->comms, collectives->n_comms) = (struct collective_comm){
			.id = { id[0], id[1] }, .person = key.person, .size = size
		};
	}
	return entry->comm;
}

/* A new one, of that handle from now on; NULL: there is no room. */
static struct rank_entry *rank_make(struct collectives *collectives, const struct event *event,
                                    uint64_t handle)
{
	struct rank_key key = { handle, event->process->id, 0 };
	struct rank_entry *entry;

	if (!table_take(collectives, COLLECTIVES_RANKS, collectives->n_ranks, event->process))
		return NULL;
	entry = MAP_MAKE(collectives->own->ranks, key, &key);
	entry->rank = (uint32_t)collectives->n_ranks;
	entry->splits = 0;
	*VEC_ADD(collectives->ranks, collectives->n_ranks) =
		(struct collective_rank){ .process = event->process,
		                          .person = collectives_person(event->process),
		                          .handle = handle,
		                          .comm = COLLECTIVES_NONE,
		                          .number = -1 };
	return entry;
}

static struct rank_entry *rank_find(struct collectives *collectives, const struct event *event,
                                    uint64_t handle)
{
	const struct rank_key key = { handle, event->process->id, 0 };

	return MAP_FIND(collectives->own->ranks, &key);
}

/* A communicator that a process made with others: all have its id. */
static void rank_made(struct collectives *collectives, const struct event *event,
                      const struct function_means *means)
{
	const struct call *call = event->call;
	const uint64_t id[2] = { call_word(means, call, WORD_ID), 0 };
	uint64_t handle = call_word(means, call, WORD_COMM);
	struct rank_entry *entry = handle ? rank_make(collectives, event, handle) : NULL;

	if (!entry || !id[0])
		return;
	collectives->ranks[entry->rank].made = true;
	collectives->ranks[entry->rank].number = (int32_t)call_word(means, call, WORD_RANK);
	collectives->ranks[entry->rank].comm =
		comm_make(collectives, entry, id, (uint32_t)call_word(means, call, WORD_RANKS));
}

/* All ranks of a communicator are this process's, in the order of their handles. */
static void ranks_made(struct collectives *collectives, const struct event *event,
                       const struct function_means *means)
{
	const struct call *call = event->call;
	uint64_t devices = call_word(means, call, WORD_DEVICES);
	uint64_t first = call_word(means, call, WORD_COMM0);
	const uint64_t id[2] = { mix(mix(mix(0, machine_pid(event->process)), first),
		                     call->begin_ns),
		                 COLLECTIVES_IN_ONE };
	uint32_t comm = COLLECTIVES_NONE;

	for (uint32_t i = 0; i < devices && i < COLLECTIVES_ALL; i++) {
		uint64_t handle = call_word(means, call, (enum word)(WORD_COMM0 + i));
		struct rank_entry *entry = handle ? rank_make(collectives, event, handle) : NULL;

		if (!entry)
			continue;
		if (comm == COLLECTIVES_NONE)
			comm = comm_make(collectives, entry, id, (uint32_t)devices);
		collectives->ranks[entry->rank].made = true;
		collectives->ranks[entry->rank].number = (int32_t)i;
		collectives->ranks[entry->rank].comm = comm;
	}
}

/* A part of one: that of the same color in all that were in the same split of it. */
static void rank_split(struct collectives *collectives, const struct event *event,
                       const struct function_means *means)
{
	const struct call *call = event->call;
	struct rank_entry *from = rank_find(collectives, event, call_word(means, call, WORD_COMM));
	uint64_t handle = call_word(means, call, WORD_MADE);
	uint32_t comm = from ? collectives->ranks[from->rank].comm : COLLECTIVES_NONE;
	uint64_t id[2] = { 0, 0 };
	struct rank_entry *entry;

	if (from)
		from->splits++;
	if (from && comm != COLLECTIVES_NONE) {
		id[0] = mix(mix(collectives->comms[comm].id[0], from->splits),
		            call_word(means, call, WORD_COLOR));
		id[1] = 1;
	}
	entry = handle ? rank_make(collectives, event, handle) : NULL;
	if (entry)
		collectives->ranks[entry->rank].made = true;
	if (entry && id[1])
		collectives->ranks[entry->rank].comm = comm_make(collectives, entry, id, 0);
}

/* Its handle can be another one's from now on. */
static void rank_destroyed(struct collectives *collectives, const struct event *event,
                           const struct function_means *means)
{
	struct rank_entry *entry =
		rank_find(collectives, event, call_word(means, event->call, WORD_COMM));

	if (!entry)
		return;
	collectives->ranks[entry->rank].gone = true;
	HASH_DEL(collectives->own->ranks, entry);
	free(entry);
}

void collectives_exit(struct collectives *collectives, const struct process *process)
{
	struct rank_entry *entry, *next;

	if (!collectives_know(collectives, process))
		return;
	HASH_ITER (hh, collectives->own->ranks, entry, next) {
		if (collectives->ranks[entry->rank].process != process)
			continue;
		collectives->ranks[entry->rank].gone = true;
		HASH_DEL(collectives->own->ranks, entry);
		free(entry);
	}
}

bool collectives_are_full(const struct collectives *collectives)
{
	return collectives->n_ranks >= COLLECTIVES_RANKS_MOST;
}

bool collectives_know(const struct collectives *collectives, const struct process *process)
{
	const struct collectives_own *own = collectives->own;

	return process->id < own->n_processes && own->processes[process->id];
}

/* RAS calls a communicator that was seen to be made by another name: ranks whose creation was not
 * seen are in it all the same. Once: a name is of one communicator. */
static void comm_is_also(struct collectives *collectives, uint32_t comm, const uint64_t id[2])
{
	struct collectives_own *own = collectives->own;
	struct comm_key key = { { id[0], id[1] }, collectives->comms[comm].person };
	struct comm_entry *entry = MAP_FIND(own->comms, &key);

	if (entry && (entry->other || entry->comm == comm))
		return;
	if (!entry)
		entry = MAP_ADD(own->comms, key, &key);
	else
		for (size_t i = 0; i < collectives->n_ranks; i++)
			if (collectives->ranks[i].comm == entry->comm)
				collectives->ranks[i].comm = comm;
	entry->comm = comm;
	entry->other = true;
}

/* Its creation says better what it is: most others were seen in that as well. */
static void rank_known(struct collectives *collectives, const struct event *event,
                       const struct function_means *means)
{
	const struct call *call = event->call;
	const uint64_t id[2] = { call_word(means, call, WORD_ID),
		                 call_word(means, call, WORD_ID2) };
	uint64_t handle = call_word(means, call, WORD_COMM);
	struct rank_entry *entry = rank_find(collectives, event, handle);
	struct collective_rank *rank;
	bool first;

	if (!entry)
		entry = rank_make(collectives, event, handle);
	if (entry && collectives->ranks[entry->rank].number < 0)
		collectives->ranks[entry->rank].number = (int32_t)call_word(means, call, WORD_RANK);
	if (!entry)
		return;
	rank = &collectives->ranks[entry->rank];
	first = !rank->ras_id[0];
	memcpy(rank->ras_id, id, sizeof(id));
	if (rank->comm == COLLECTIVES_NONE)
		rank->comm = comm_make(collectives, entry, id,
		                       (uint32_t)call_word(means, call, WORD_RANKS));
	else if (rank->made && id[0] && first)
		comm_is_also(collectives, rank->comm, id);
}

static struct collective_told *told_of(struct collectives *collectives, const struct told_key *key,
                                       const struct process *by)
{
	struct told_entry *entry = MAP_FIND(collectives->own->told_ranks, key);

	if (!entry && !table_take(collectives, COLLECTIVES_TOLD_RANKS, collectives->n_told, by))
		return NULL;
	if (!entry) {
		entry = MAP_ADD(collectives->own->told_ranks, key, key);
		entry->told = (uint32_t)collectives->n_told;
		*VEC_ADD(collectives->told, collectives->n_told) =
			(struct collective_told){ .id = { key->id[0], key->id[1] },
			                          .person = key->person,
			                          .number = key->number,
			                          .file = key->file };
	}
	return &collectives->told[entry->told];
}

static void rank_keep(struct collectives *collectives, const struct event *event,
                      const struct function_means *means, const uint64_t *counts)
{
	const struct call *call = event->call;
	const struct told_key key = { { call_word(means, call, WORD_ID),
		                        call_word(means, call, WORD_ID2) },
		                      collectives_person(event->process),
		                      (int32_t)call_word(means, call, WORD_RANK),
		                      event->process->file };
	struct collective_told *told = told_of(collectives, &key, event->process);
	uint64_t state = call_word(means, call, WORD_STATE);

	if (!told)
		return;
	collectives->own->told_anew = true;
	if (!told->first_ns)
		told->first_ns = told->moved_ns = call->begin_ns;
	else if (memcmp(told->counts, counts, sizeof(told->counts)) != 0)
		told->moved_ns = call->end_ns;
	told->last_ns = call->end_ns;
	told->size = (uint32_t)call_word(means, call, WORD_RANKS);
	told->process = call_word(means, call, WORD_PID) ? event->process : NULL;
	told->missing = state & 1;
	told->failed = state & 2;
	memcpy(told->counts, counts, sizeof(told->counts));
	snprintf(told->host, sizeof(told->host), "%s", call->text ? call->text : "");
}

static void rank_told(struct collectives *collectives, const struct event *event,
                      const struct function_means *means)
{
	struct collectives_own *own = collectives->own;
	const struct call *call = event->call;
	struct told_counts told = { .id = { call_word(means, call, WORD_ID),
		                            call_word(means, call, WORD_ID2) },
		                    .begin_ns = call->begin_ns,
		                    .end_ns = call->end_ns,
		                    .process = event->process->id,
		                    .number = (int32_t)call_word(means, call, WORD_RANK) };

	for (unsigned kind = 0; kind < COLLECTIVES_TOLD; kind++)
		told.counts[kind] = call_word(means, call, (enum word)(WORD_COUNTS + kind));
	if (means->meaning == MEANS_RANK)
		rank_keep(collectives, event, means, told.counts);
	if ((means->meaning == MEANS_RANK && !call_word(means, call, WORD_PID)) ||
	    !table_take(collectives, COLLECTIVES_COUNTS, own->n_told, event->process))
		return;
	*VEC_ADD(own->told, own->n_told) = told;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* NULL: there is no room. */
static struct thread_entry *thread_of(struct collectives *collectives, const struct event *event)
{
	struct collectives_own *own = collectives->own;
	struct thread_key key = { event->process->id, event->tid };
	struct thread_entry *thread = MAP_FIND(own->threads, &key);

	if (thread ||
	    !table_take(collectives, COLLECTIVES_THREADS, HASH_COUNT(own->threads), event->process))
		return thread;
	return MAP_ADD(own->threads, key, &key);
}

static void thread_launched(struct thread_entry *thread, const struct call *call)
{
	thread->launches[thread->n_launches++ % LAUNCHES] =
		(struct launch){ call->correlation, call->begin_ns };
}

/* The first launch that it made within a call; 0: none. */
static uint64_t thread_launch_in(const struct thread_entry *thread, const struct call *call)
{
	uint32_t n = thread->n_launches < LAUNCHES ? thread->n_launches : LAUNCHES;
	const struct launch *found = NULL;

	for (uint32_t i = 0; i < n; i++) {
		const struct launch *launch = &thread->launches[i];

		if (launch->begin_ns >= call->begin_ns && launch->begin_ns <= call->end_ns &&
		    (!found || launch->begin_ns < found->begin_ns))
			found = launch;
	}
	return found ? found->correlation : 0;
}

static void collective_add(struct collectives *collectives, const struct event *event,
                           const struct function_means *means)
{
	const struct call *call = event->call;
	uint64_t handle = call_word(means, call, WORD_COMM);
	struct rank_entry *entry = rank_find(collectives, event, handle);
	struct thread_entry *thread = thread_of(collectives, event);
	struct collective_rank *rank;

	if (!entry)
		entry = rank_make(collectives, event, handle);
	if (!entry) {
		table_left_out(collectives, COLLECTIVES_CALLS, event->process->person);
		collectives->left_out++;
		return;
	}
	rank = &collectives->ranks[entry->rank];
	rank->n_calls++;
	rank->last_ns = call->begin_ns;
	if (collectives->most ? collectives->n_calls >= collectives->most
	                      : !table_take(collectives, COLLECTIVES_CALLS, collectives->n_calls,
	                                    event->process)) {
		collectives->left_out++;
		return;
	}
	collectives->calls =
		vec_room(collectives->calls, collectives->n_calls, sizeof(*collectives->calls));
	collectives->calls[collectives->n_calls] = (struct collective_call){
		.begin_ns = call->begin_ns,
		.end_ns = call->end_ns > call->begin_ns ? call->end_ns : call->begin_ns,
		.bytes = call_word(means, call, WORD_BYTES),
		.rank = entry->rank,
		.tid = event->tid,
		.kind = means->kind,
	};
	if (thread && thread->depth && thread->n_group < GROUP_MAX)
		thread->group[thread->n_group++] = (uint32_t)collectives->n_calls;
	else if (thread && !thread->depth)
		collectives->calls[collectives->n_calls].correlation =
			thread_launch_in(thread, call);
	collectives->n_calls++;
}

/*
 * What a group asked for is launched at its end, for each communicator one kernel after the other
 * in the order of their first calls; where there are more than one for each, the first is told.
 */
static void group_end(struct collectives *collectives, const struct event *event)
{
	struct thread_entry *thread = thread_of(collectives, event);
	uint64_t since = event->call->begin_ns;
	uint32_t n, first;

	if (!thread || !thread->depth || --thread->depth)
		return;
	n = thread->n_launches < LAUNCHES ? thread->n_launches : LAUNCHES;
	first = thread->n_launches - n;
	while (first < thread->n_launches && thread->launches[first % LAUNCHES].begin_ns < since)
		first++;
	for (uint32_t i = 0; i < thread->n_group; i++) {
		struct collective_call *call = &collectives->calls[thread->group[i]];

		for (uint32_t j = 0; j < i && !call->joined; j++)
			call->joined = collectives->calls[thread->group[j]].rank == call->rank;
		if (event->call->end_ns > call->end_ns)
			call->end_ns = event->call->end_ns;
		if (!call->joined && first < thread->n_launches)
			call->correlation = thread->launches[first++ % LAUNCHES].correlation;
	}
	thread->n_group = 0;
}

void groups_forget(struct collectives *collectives)
{
	struct thread_entry *thread, *next;

	HASH_ITER (hh, collectives->own->threads, thread, next)
		thread->n_group = 0;
}

static void other_call(struct collectives *collectives, const struct event *event)
{
	struct collectives_own *own = collectives->own;
	const struct function_means *means = function_means(own, event->call->function);
	struct thread_entry *thread;

	if (means->meaning == MEANS_NOTHING)
		return;
	*BY_ID(own->processes, own->n_processes, event->process->id) = true;
	switch (means->meaning) {
	case MEANS_COLLECTIVE:
		collective_add(collectives, event, means);
		break;
	case MEANS_GROUP_BEGIN:
		thread = thread_of(collectives, event);
		if (thread)
			thread->depth++;
		break;
	case MEANS_GROUP_END:
		group_end(collectives, event);
		break;
	case MEANS_MADE:
		rank_made(collectives, event, means);
		break;
	case MEANS_MADE_ALL:
		ranks_made(collectives, event, means);
		break;
	case MEANS_SPLIT:
		rank_split(collectives, event, means);
		break;
	case MEANS_DESTROYED:
		rank_destroyed(collectives, event, means);
		break;
	case MEANS_KNOWN:
		rank_known(collectives, event, means);
		break;
	case MEANS_BOTH:
		rank_known(collectives, event, means);
		rank_told(collectives, event, means);
		break;
	case MEANS_RANK:
		rank_told(collectives, event, means);
		break;
	default:
		break;
	}
}

void collectives_event(struct collectives *collectives, const struct event *event)
{
	struct thread_entry *thread;

	if (event->type == EVENT_OTHER_CALL) {
		if (event->call->function->layer == LAYER_HOOK)
			other_call(collectives, event);
		return;
	}
	if (event->type != EVENT_CALL || event->call->op != OP_LAUNCH ||
	    !collectives_know(collectives, event->process) || !event->call->correlation)
		return;
	thread = thread_of(collectives, event);
	if (thread)
		thread_launched(thread, event->call);
}

void collectives_kernel(struct collectives *collectives, const struct event *event)
{
	struct collectives_own *own = collectives->own;
	const struct activity *activity = event->activity;

	if (!activity->correlation ||
	    !table_take(collectives, COLLECTIVES_KERNELS, own->n_kernels, event->process))
		return;
	*VEC_ADD(own->kernels, own->n_kernels) =
		(struct collective_kernel){ activity->correlation, activity->begin_ns,
		                            activity->end_ns, event->process->id };
}
