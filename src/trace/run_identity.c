// SPDX-License-Identifier: MIT
#include "trace/run_identity.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "trace/define.h"
#include "trace/format.h"
#include "trace/objects.h"

#define WORD_MAX 256           /* bytes of one that are kept */
#define FIRST_NS 1000000000ull /* before a process is told of, its first call can have begun */

const char *run_identity_name(enum run_identity_word word)
{
	static const char *const names[RUN_IDENTITY_WORDS] = {
		"user", "container",  "pod",        "namespace", "slurm_job", "slurm_step",
		"rank", "local_rank", "world_size", "command",   "unit"
	};

	return names[word];
}

void run_identity_clear(struct run_identity *identity)
{
	for (size_t i = 0; i < RUN_IDENTITY_WORDS; i++) {
		free(identity->words[i]);
		identity->words[i] = NULL;
	}
	identity->own_word = 0;
}

static bool is_known(const struct run_identity *identity)
{
	for (size_t i = 0; i < RUN_IDENTITY_WORDS; i++) {
		if (identity->words[i])
			return true;
	}
	return false;
}

const struct run_identity *run_identity_of(const struct run_info *run, uint64_t key,
                                           uint64_t begin_ns)
{
	const struct run_identity *found = NULL;

	for (size_t i = 0; i < run->n_identities; i++) {
		const struct run_identity *one = &run->identities[i];

		if (one->pid == (uint32_t)key && one->machine == key >> 32 &&
		    (one->since_ns <= begin_ns || (!found && one->since_ns - begin_ns < FIRST_NS)))
			found = one;
	}
	return found && is_known(found) ? found : NULL;
}

/* ---- in files ------------------------------------------------------------------------------- */

static void add_one(struct buf *raw, const struct run_identity *identity)
{
	AT_END(buf_free) struct buf body = { 0 };

	record_varint(&body, identity->pid);
	record_varint(&body, identity->since_ns);
	record_varint(&body, identity->own_word);
	for (size_t i = 0; i < RUN_IDENTITY_WORDS; i++)
		record_text(&body, identity->words[i] ? identity->words[i] : "");
	record_add(raw, RUN_IDENTITY, &body);
}

static void add_gpus(struct buf *raw, const struct run_identity *identity)
{
	AT_END(buf_free) struct buf body = { 0 };

	record_varint(&body, identity->pid);
	record_varint(&body, identity->since_ns);
	record_varint(&body, identity->gpus);
	record_add(raw, RUN_IDENTITY_GPUS, &body);
}

static void add_memory(struct buf *raw, const struct run_identity *identity)
{
	AT_END(buf_free) struct buf body = { 0 };

	record_varint(&body, identity->pid);
	record_varint(&body, identity->since_ns);
	record_varint(&body, identity->memory_whole);
	for (size_t i = 0; i < RUN_MEMORIES; i++) {
		record_varint(&body, identity->memory[i].time_ns);
		record_varint(&body, identity->memory[i].bytes);
	}
	record_add(raw, RUN_IDENTITY_MEMORY, &body);
}

/* One of whom nothing is known ends what is known of another, who had the number before. */
static bool ends_another(const struct run_info *run, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (run->identities[i].pid == run->identities[at].pid)
			return true;
	}
	return false;
}

void run_identities_add(struct buf *raw, const struct run_info *run)
{
	AT_END(buf_free) struct buf body = { 0 };

	for (size_t i = 0; i < run->n_identities; i++) {
		if (is_known(&run->identities[i]) || ends_another(run, i))
			add_one(raw, &run->identities[i]);
		if (is_known(&run->identities[i]) && run->identities[i].gpus)
			add_gpus(raw, &run->identities[i]);
		if (is_known(&run->identities[i]) &&
		    run->identities[i].memory[RUN_MEMORY_FIRST].time_ns)
			add_memory(raw, &run->identities[i]);
	}
	if (!run->identities_left_out)
		return;
	record_varint(&body, run->identities_left_out);
	record_add(raw, RUN_IDENTITIES_LOST, &body);
}

/* A file can be anybody's: no more is kept of a word than one has. */
static char *read_word(struct bytes *body)
{
	char *word = record_string(body);

	if (*word && strlen(word) <= WORD_MAX)
		return word;
	free(word);
	return NULL;
}

void run_identity_read(struct run_info *run, struct bytes *body)
{
	struct run_identity *all = (struct run_identity *)run->identities, *one;

	if (run->n_identities == RUN_IDENTITIES_MAX)
		return;
	if (!all)
		run->identities = all = xcalloc(RUN_IDENTITIES_MAX, sizeof(*all));
	one = &all[run->n_identities++];
	one->pid = (uint32_t)bytes_varint(body);
	one->since_ns = bytes_varint(body);
	one->own_word = (uint32_t)bytes_varint(body);
	for (size_t i = 0; i < RUN_IDENTITY_WORDS && body->at < body->end; i++)
		one->words[i] = read_word(body);
}

/* What comes behind the process that it is of; NULL: there is none. */
static struct run_identity *read_whose(struct run_info *run, struct bytes *body)
{
	struct run_identity *all = (struct run_identity *)run->identities;
	struct run_identity *last = run->n_identities ? &all[run->n_identities - 1] : NULL;
	uint64_t pid = bytes_varint(body), since_ns = bytes_varint(body);

	return last && last->pid == pid && last->since_ns == since_ns ? last : NULL;
}

void run_identity_read_gpus(struct run_info *run, struct bytes *body)
{
	struct run_identity *of = read_whose(run, body);

	if (of)
		of->gpus = (uint32_t)bytes_varint(body);
}

static bool is_memory(const struct run_memory *memory)
{
	return memory->time_ns && memory->time_ns < FORMAT_TIME_MAX && memory->bytes < INT64_MAX;
}

void run_identity_read_memory(struct run_info *run, struct bytes *body)
{
	struct run_identity *of = read_whose(run, body), read;
	bool good = of != NULL;

	read.memory_whole = bytes_varint(body) != 0;
	for (size_t i = 0; i < RUN_MEMORIES; i++) {
		read.memory[i].time_ns = bytes_varint(body);
		read.memory[i].bytes = bytes_varint(body);
		good = good && is_memory(&read.memory[i]);
	}
	if (!good)
		return;
	of->memory_whole = read.memory_whole;
	memcpy(of->memory, read.memory, sizeof(of->memory));
}

void run_identities_free(struct run_info *run)
{
	struct run_identity *all = (struct run_identity *)run->identities;

	for (size_t i = 0; all && i < run->n_identities; i++)
		run_identity_clear(&all[i]);
	free(all);
}
