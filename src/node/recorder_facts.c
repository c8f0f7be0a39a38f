// SPDX-License-Identifier: MIT
#include "node/recorder_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quota.h"
#include "base/xalloc.h"
#include "cuda/api.h"
#include "gpus/gpu_state.h"

#define STALE_NS     5000000000ull /* values that are older are not known any more */
#define SUSPECTS_MAX 256           /* that are remembered; who is none any more gives way */

/* A place that is suspected. One that is none any more stays until its room is wanted. */
struct suspect {
	uint64_t key, person;
	uint64_t turn; /* in which it was one last */
};

struct recorder_facts {
	struct gpu_states *gpus; /* NULL: no rule asks for them */
	struct gpu_state states[GPUS_MAX];
	struct suspect suspects[SUSPECTS_MAX];
	size_t n_suspects;
	uint64_t turn, told;
	size_t no_room;
	struct quota shares; /* of those in the list */
	struct rules_leak leak[RULES_LEAKS_MAX];
	uint64_t told_before; /* this turn */
};

struct recorder_facts *recorder_facts_new(const struct node_settings *settings,
                                          struct gpu_states *gpus)
{
	const struct node_recorder *recorder = &settings->recorder;
	struct recorder_facts *facts = xcalloc(1, sizeof(*facts));

	facts->shares = quota_of_places(SUSPECTS_MAX);
	if (recorder->enabled && (recorder->xid || recorder->memory_percent || recorder->idle_ns))
		facts->gpus = gpus;
	return facts;
}

void recorder_facts_free(struct recorder_facts *facts)
{
	if (facts)
		quota_free(&facts->shares);
	free(facts);
}

/* ---- suspected leaks ----------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3ull;
	return hash;
}

static uint64_t key_of(const struct held_place *place, const char *where)
{
	uint64_t key = mix(0xcbf29ce484222325ull, &place->process->id, sizeof(place->process->id));

	key = mix(key, &place->kind, sizeof(place->kind));
	return mix(key, where, strlen(where));
}

static struct suspect *find(struct recorder_facts *facts, uint64_t key)
{
	for (size_t i = 0; i < facts->n_suspects; i++) {
		if (facts->suspects[i].key == key)
			return &facts->suspects[i];
	}
	return NULL;
}

/* Who was suspected longest ago, and is not now, is forgotten: of one person, or of any. */
static bool forget_one(struct recorder_facts *facts, const uint64_t *person)
{
	struct suspect *oldest = NULL;

	for (size_t i = 0; i < facts->n_suspects; i++) {
		struct suspect *one = &facts->suspects[i];

		if (one->turn == facts->turn || (person && one->person != *person))
			continue;
		if (!oldest || one->turn < oldest->turn)
			oldest = one;
	}
	if (!oldest)
		return false;
	quota_give(&facts->shares, oldest->person, 0, 1);
	*oldest = facts->suspects[--facts->n_suspects];
	return true;
}

/* False: there is no room, for all or for this person's. */
static bool remember(struct recorder_facts *facts, uint64_t key, uint64_t person)
{
	if (facts->n_suspects == SUSPECTS_MAX && !forget_one(facts, NULL))
		return false;
	if (quota_take(&facts->shares, person, 0, 1) &&
	    (!forget_one(facts, &person) || quota_take(&facts->shares, person, 0, 1)))
		return false;
	facts->suspects[facts->n_suspects++] =
		(struct suspect){ .key = key, .person = person, .turn = facts->turn };
	return true;
}

static void tell(struct recorder_facts *facts, const struct held_place *place, uint64_t person,
                 const char *where)
{
	AT_END(buf_free) struct buf bytes = { 0 };
	struct rules_leak *leak = &facts->leak[facts->told % RULES_LEAKS_MAX];

	/* one of each user in a turn: the others of his would be held back */
	for (uint64_t i = facts->told_before; i < facts->told; i++)
		if (facts->leak[i % RULES_LEAKS_MAX].person == person)
			return;
	if (facts->told - facts->told_before == RULES_LEAKS_MAX)
		return;
	facts->told++;
	leak->person = person;
	buf_bytes(&bytes, place->older_bytes);
	snprintf(leak->text, sizeof(leak->text), "%s of %s memory held by process %u (%s), from %s",
	         bytes.data, api_memory_name(place->kind), place->process->pid,
	         place->process->comm, where);
}

static void see_suspect(struct recorder_facts *facts, const struct held_place *place,
                        const struct counts *counts, bool take)
{
	AT_END(buf_free) struct buf where = { 0 };
	const uint64_t person = counts_person(counts, place->process);
	struct suspect *known;
	uint64_t key;

	place_label(place->frame, &where);
	key = key_of(place, where.data ? where.data : "");
	known = find(facts, key);
	if (known)
		known->turn = facts->turn;
	else if (take && remember(facts, key, person))
		tell(facts, place, person, where.data ? where.data : "an unknown place");
	else
		facts->no_room += take;
}

/* Those that are known come first, so that none of them gives way to a new one. */
static void take_suspects(struct recorder_facts *facts, const struct held_place *list, size_t n,
                          const struct counts *counts)
{
	facts->turn++;
	facts->told_before = facts->told;
	facts->no_room = 0;
	for (size_t i = 0; i < 2 * n; i++) {
		const struct held_place *place = &list[i % n];

		if (!place->ended && place->trend == TREND_SUSPECT)
			see_suspect(facts, place, counts, i >= n);
	}
}

/* ---- GPUs ---------------------------------------------------------------------------------- */

/* Of one that hangs or is lost only what it had told of Xids is known. */
static void take_gpu(const struct gpu_state *state, struct rules_gpu *gpu)
{
	bool known = state->read_ns && state->age_ns < STALE_NS;

	*gpu = (struct rules_gpu){ .busy_percent = RULES_UNKNOWN,
		                   .memory_used_bytes = RULES_UNKNOWN,
		                   .memory_total_bytes = RULES_UNKNOWN,
		                   .processes = RULES_UNKNOWN,
		                   .xids = state->xids.total,
		                   .last_xid = state->xids.last };
	snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", state->uuid);
	if (!known)
		return;
	gpu->busy_percent = (int)state->value[GPU_VALUE_BUSY_PERCENT];
	gpu->memory_used_bytes = state->value[GPU_VALUE_MEMORY_USED_BYTES];
	gpu->memory_total_bytes = state->value[GPU_VALUE_MEMORY_TOTAL_BYTES];
	if (state->processes_told)
		gpu->processes = (int)(state->n_processes + state->processes_left_out);
}

static size_t take_gpus(struct recorder_facts *facts, struct rules_gpu gpus[GPUS_MAX],
                        uint64_t now_ns)
{
	size_t n = facts->gpus ? gpu_states_read(facts->gpus, facts->states, GPUS_MAX, now_ns) : 0;

	for (size_t i = 0; i < n; i++)
		take_gpu(&facts->states[i], &gpus[i]);
	return n;
}

void recorder_facts_judged(struct recorder_facts *facts, const struct places *places,
                           const struct counts *counts)
{
	const struct held_place *list;
	size_t n = places_list(places, &list);

	take_suspects(facts, list, n, counts);
}

void recorder_facts_tell(struct recorder_facts *facts, uint64_t now_ns, struct recorder *recorder)
{
	struct rules_gpu gpus[GPUS_MAX];
	struct rules_facts told = { .gpus = gpus, .n_gpus = take_gpus(facts, gpus, now_ns) };

	told.leaks = facts->told;
	told.leaks_no_room = facts->no_room;
	memcpy(told.leak, facts->leak, sizeof(told.leak));
	recorder_tell(recorder, &told);
}
