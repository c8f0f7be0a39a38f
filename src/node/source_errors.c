// SPDX-License-Identifier: MIT
/*
 * Errors by function and code. A pair has its place from when it is first seen, and keeps it. The
 * pairs for which there is no place are one, so a program that makes up codes makes no series.
 * Nobody but root brings more than a part of them, or one user could leave no place for others'
 * errors. Whose a process was that has ended is not known: it may be anybody's, so these share
 * less.
 */
#include "node/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "cuda/error.h"
#include "probe/person.h"

#define PAIRS_MOST 100
#define SHARE_MOST 40 /* of them that one person brings: person.h */
#define GONE_MOST  20 /* and all that are gone, who may be one more of the same */
#define NAME_MOST  80

struct pair {
	char function[NAME_MOST], code[NAME_MOST];
	uint64_t count;
	uint64_t person; /* whose process brought it */
};

struct source {
	struct pair pairs[PAIRS_MOST + 1]; /* the last is all others */
	size_t n;
	const struct process *asked; /* of this page, who was asked for last; or NULL */
	uint64_t person;             /* and whose it is */
};

static const struct metric_family errors = { "cuscope_errors", METRIC_COUNTER, NULL,
	                                     "Calls that failed, by function and code" };

static void *begin(const struct node_settings *settings)
{
	struct source *source = xcalloc(1, sizeof(*source));

	snprintf(source->pairs[PAIRS_MOST].function, NAME_MOST, "other");
	snprintf(source->pairs[PAIRS_MOST].code, NAME_MOST, "other");
	return source;
}

static void code_of(const struct watch_result *row, char text[NAME_MOST])
{
	const char *name = cuda_error_name(row->function->layer, row->result);

	if (name)
		snprintf(text, NAME_MOST, "%s", name);
	else if (row->result > UINT16_MAX)
		snprintf(text, NAME_MOST, "other");
	else
		snprintf(text, NAME_MOST, "%d", row->result);
}

static bool has_share(const struct source *source, uint64_t person)
{
	size_t its = 0;

	for (size_t i = 0; i < source->n; i++)
		its += source->pairs[i].person == person;
	return person == PERSON_ROOT || its < (person == PERSON_UNKNOWN ? GONE_MOST : SHARE_MOST);
}

/* Rows of a process follow each other mostly. The number of one that has ended may be another's. */
static uint64_t person_of(struct source *source, const struct watch_result *row)
{
	if (row->ended || !row->process->pid)
		return PERSON_UNKNOWN;
	if (source->asked != row->process)
		source->person = person_of_process((pid_t)row->process->pid);
	source->asked = row->process;
	return source->person;
}

static struct pair *pair_of(struct source *source, const struct watch_result *row)
{
	char code[NAME_MOST];
	struct pair *pair;
	uint64_t person;

	if (!row->function)
		return &source->pairs[PAIRS_MOST];
	code_of(row, code);
	for (size_t i = 0; i < source->n; i++) {
		pair = &source->pairs[i];
		if (!strncmp(pair->function, row->function->name, NAME_MOST - 1) &&
		    !strcmp(pair->code, code))
			return pair;
	}
	if (source->n == PAIRS_MOST)
		return &source->pairs[PAIRS_MOST];
	person = person_of(source, row);
	if (!has_share(source, person))
		return &source->pairs[PAIRS_MOST];
	pair = &source->pairs[source->n++];
	pair->person = person;
	snprintf(pair->function, NAME_MOST, "%s", row->function->name);
	memcpy(pair->code, code, NAME_MOST);
	return pair;
}

/* What came since the page before: rows become others when processes are not told apart any more.
 */
static void take(struct source *source, const struct watch_results *results)
{
	source->asked = NULL;
	for (size_t i = 0; i < results->n_rows; i++) {
		const struct watch_result *row = &results->rows[i];

		if (counts_is_error(row) && row->count > row->before)
			pair_of(source, row)->count += row->count - row->before;
	}
}

static void fill(void *state, const struct node_view *view, struct metrics *metrics)
{
	struct source *source = state;

	take(source, view->page->results);
	metrics_family(metrics, &errors);
	for (size_t i = 0; i <= PAIRS_MOST; i++) {
		const struct pair *pair = &source->pairs[i];

		if (pair->count)
			metrics_add(metrics,
			            metrics_labels(metrics, 0, "function", pair->function, "code",
			                           pair->code, NULL),
			            pair->count, 0, view->started_ns);
	}
}

const struct node_source source_errors = {
	.name = "errors", .begin = begin, .fill = fill, .end = free
};
