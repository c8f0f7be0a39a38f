// SPDX-License-Identifier: MIT
/* Of the answer what is of several persons: who says that he is in a communicator of others, and
 * what there was no room for. */
#include <stdio.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "probe/person.h"
#include "report/why_inside.h"
#include "report/why_words.h"

#define CLAIMS_TOLD  4 /* communicators */
#define PERSONS_TOLD 8 /* of each, and of whom something is left out */

static const struct {
	const char *key, *words;
} tables[COLLECTIVES_TABLES] = {
	[COLLECTIVES_CALLS] = { "calls", "calls of collectives" },
	[COLLECTIVES_KERNELS] = { "kernels", "kernels of communication" },
	[COLLECTIVES_RANKS] = { "ranks", "communicators in processes" },
	[COLLECTIVES_THREADS] = { "threads", "calls and launches of further threads" },
	[COLLECTIVES_COUNTS] = { "counts", "counts of NCCL's RAS" },
	[COLLECTIVES_TOLD_RANKS] = { "told_ranks", "ranks that NCCL's RAS told of" },
};

static size_t claims_alike(const struct collectives *of, size_t first)
{
	const struct collective_claim *claims = of->claims;
	size_t n = 1;

	while (first + n < of->n_claims && claims[first + n].id[0] == claims[first].id[0] &&
	       claims[first + n].id[1] == claims[first].id[1])
		n++;
	return n;
}

static void claim_add(const struct collective_claim *claims, size_t n, struct buf *out)
{
	buf_printf(out, "Communicator %08lx is said to be theirs by processes of ",
	           claims->id[0] >> 32);
	for (size_t i = 0; i < n && i < PERSONS_TOLD; i++) {
		buf_puts(out, !i ? "" : i + 1 == n ? " and " : ", ");
		person_add(claims[i].person, out);
	}
	if (n > PERSONS_TOLD)
		buf_printf(out, " and %zu more", n - PERSONS_TOLD);
	buf_puts(out, ": anybody can say that, so ranks of each are matched among themselves");
}

/* Whether ranks of one communicator that an older file does not tell apart are of several users, as
 * far as it says who they are. */
static bool are_mixed(const struct facts *facts)
{
	const struct collectives *of = &facts->collectives;
	AT_END(at_end_free) const char **users = xcalloc(of->n_comms + 1, sizeof(char *));

	for (size_t i = 0; i < of->n_ranks; i++) {
		const struct collective_rank *rank = &of->ranks[i];
		const char *user = rank->person == PROCESS_UNTOLD
		                           ? why_words_user(facts, rank->process)
		                           : NULL;

		if (!user || rank->comm == COLLECTIVES_NONE)
			continue;
		if (users[rank->comm] && strcmp(users[rank->comm], user) != 0)
			return true;
		users[rank->comm] = user;
	}
	return false;
}

static void left_add(const struct collectives_left *left, struct buf *out)
{
	bool any = false;

	buf_puts(out, "of ");
	person_add(left->person, out);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (!left->n[i])
			continue;
		buf_printf(out, "%s%lu %s", any ? ", " : " ", left->n[i], tables[i].words);
		any = true;
	}
}

void why_words_persons(const struct facts *facts, void (*each)(void *data, const char *sentence),
                       void *data)
{
	const struct collectives *of = &facts->collectives;
	AT_END(buf_free) struct buf words = { 0 };
	size_t told = 0;

	for (size_t i = 0, n; i < of->n_claims; i += n, told++) {
		n = claims_alike(of, i);
		if (told >= CLAIMS_TOLD)
			continue;
		words.len = 0;
		claim_add(&of->claims[i], n, &words);
		each(data, words.data);
	}
	words.len = 0;
	buf_printf(&words, "%zu more communicators are said to be theirs by several users",
	           told - CLAIMS_TOLD);
	if (told > CLAIMS_TOLD)
		each(data, words.data);
	if (are_mixed(facts))
		each(data, "The recording is older than ranks of users are told apart: those of "
		           "several are in one communicator, which any of them can have said");
	words.len = 0;
	buf_puts(&words, "Left out, as there was no room for more: ");
	for (size_t i = 0; i < of->n_left && i < PERSONS_TOLD; i++) {
		buf_puts(&words, i ? "; " : "");
		left_add(&of->left[i], &words);
	}
	if (of->n_left > PERSONS_TOLD)
		buf_printf(&words, "; and some of %zu more", of->n_left - PERSONS_TOLD);
	if (of->n_left)
		each(data, words.data);
}

static void add_sentence(void *data, const char *sentence)
{
	buf_puts(data, sentence);
	buf_puts(data, ".\n");
}

void why_add_persons(const struct why *why)
{
	why_words_persons(&why->facts, add_sentence, why->out);
}

void why_json_comm(struct json *json, uint64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "%016lx", id);
	json_string(json, "communicator", text);
}

static void json_person(struct json *json, const char *key, uint64_t person)
{
	AT_END(buf_free) struct buf text = { 0 };

	person_add(person, &text);
	json_string(json, key, text.data);
}

static void json_claims(const struct collectives *of, struct json *json)
{
	json_open(json, "claimed", '[');
	for (size_t i = 0, n, told = 0; i < of->n_claims && told < CLAIMS_TOLD; i += n, told++) {
		n = claims_alike(of, i);
		json_open(json, NULL, '{');
		why_json_comm(json, of->claims[i].id[0]);
		json_u64(json, "n_users", n);
		json_open(json, "users", '[');
		for (size_t k = 0; k < n && k < PERSONS_TOLD; k++)
			json_person(json, NULL, of->claims[i + k].person);
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void json_left(const struct collectives *of, struct json *json)
{
	json_open(json, "left_out", '[');
	for (size_t i = 0; i < of->n_left; i++) {
		json_open(json, NULL, '{');
		json_person(json, "user", of->left[i].person);
		for (size_t k = 0; k < ARRAY_SIZE(tables); k++)
			json_u64_if(json, tables[k].key, of->left[i].n[k]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void why_json_persons(const struct why *why, struct json *json)
{
	const struct collectives *of = &why->facts.collectives;

	if (of->n_claims)
		json_claims(of, json);
	if (of->n_left)
		json_left(of, json);
}

void why_words_comm_of(uint64_t id, uint64_t person, bool claimed, struct buf *out)
{
	buf_printf(out, "%08lx", id >> 32);
	if (!claimed)
		return;
	buf_puts(out, " of ");
	person_add(person, out);
}

void why_words_comm(const struct facts *facts, uint32_t number, struct buf *out)
{
	const struct collective_comm *comm =
		number == COLLECTIVES_NONE ? NULL : &facts->collectives.comms[number];

	if (comm)
		why_words_comm_of(comm->id[0], comm->person, comm->claimed, out);
	else
		buf_putc(out, '?');
}
