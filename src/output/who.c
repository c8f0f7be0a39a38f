// SPDX-License-Identifier: MIT
#include "output/who.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/parse.h"
#include "base/text.h"

void who_note(struct who *who, const struct process *process)
{
	*BY_ID(who->pids, who->n, process->id) = process->pid;
}

void who_free(struct who *who)
{
	free(who->pids);
	*who = (struct who){ 0 };
}

static bool has(const struct who *who, uint32_t pid)
{
	for (size_t i = 0; i < who->n; i++) {
		if (pid && who->pids[i] == pid)
			return true;
	}
	return false;
}

static bool is_known(const struct run_identity *identity)
{
	for (int i = 0; i < RUN_IDENTITY_WORDS; i++) {
		if (identity->words[i])
			return true;
	}
	return false;
}

const struct run_identity *who_next(const struct who *who, const struct run_info *run, size_t *at)
{
	while (*at < run->n_identities) {
		const struct run_identity *identity = &run->identities[(*at)++];

		if (is_known(identity) && has(who, identity->pid))
			return identity;
	}
	return NULL;
}

bool who_label(const struct run_identity *identity, enum run_identity_word word, struct buf *text)
{
	if (!identity->words[word])
		return false;
	buf_printf(text, "%s ", run_identity_name(word));
	text_add_safe(text, identity->words[word]);
	return true;
}

void who_json(const struct run_identity *identity, struct json *json)
{
	json_u64(json, "pid", identity->pid);
	for (int i = 0; i < RUN_IDENTITY_WORDS; i++) {
		json_string_if(json, run_identity_name(i), identity->words[i]);
	}
	json_open(json, "own_word", '[');
	for (int i = 0; i < RUN_IDENTITY_WORDS; i++) {
		if (identity->words[i] && identity->own_word >> i & 1)
			json_string(json, NULL, run_identity_name(i));
	}
	json_close(json, ']');
}

#define RANKS_MOST (1u << 24) /* as export's --rank has it */

static bool is_one_of(uint32_t pid, const int *pids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((uint32_t)pids[i] == pid)
			return true;
	}
	return n == 0;
}

static bool number_of(const struct run_identity *identity, enum run_identity_word word,
                      uint64_t *number)
{
	return identity->words[word] && parse_number(identity->words[word], RANKS_MOST, number);
}

bool who_rank(const struct run_info *run, const int *pids, size_t n, unsigned *rank, unsigned *size)
{
	bool known = false;

	*rank = *size = 0;
	for (size_t i = 0; i < run->n_identities; i++) {
		const struct run_identity *identity = &run->identities[i];
		uint64_t its_rank, its_size;

		if (!is_one_of(identity->pid, pids, n) ||
		    !number_of(identity, RUN_IDENTITY_RANK, &its_rank))
			continue;
		if (known && its_rank != *rank)
			return false;
		known = true;
		*rank = (unsigned)its_rank;
		if (number_of(identity, RUN_IDENTITY_WORLD_SIZE, &its_size) && its_size > its_rank)
			*size = (unsigned)its_size;
	}
	return known;
}

bool who_rank_of(const struct run_info *run, uint32_t pid, uint64_t begin_ns, unsigned *rank)
{
	const struct run_identity *identity = run_identity_of(run, pid, begin_ns);
	uint64_t number;

	if (!identity || !number_of(identity, RUN_IDENTITY_RANK, &number))
		return false;
	*rank = (unsigned)number;
	return true;
}
