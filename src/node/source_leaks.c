// SPDX-License-Identifier: MIT
/*
 * Places whose old memory grew each time that they were looked at: memleak's judgement. What it
 * says is copied when it is made, since a process may be forgotten before the next one.
 */
#include "node/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/place.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "watch/places.h"

#define PLACE_BYTES    256
#define FUNCTION_BYTES 64

struct suspect {
	char pid[16], process[16], function[FUNCTION_BYTES], place[PLACE_BYTES];
	const char *kind;
	uint64_t bytes;
};

struct source {
	uint64_t judged_ns;
	struct suspect *suspects;
	size_t n, left_out;
};

static const struct metric_family suspected = {
	"cuscope_suspected_leak_bytes", METRIC_GAUGE, "bytes",
	"Old memory of a place that held more each time it was looked at"
};

static const struct metric_family left_out = {
	"cuscope_suspected_leaks_left_out", METRIC_GAUGE, NULL,
	"Places suspected to leak for which there is no series"
};

static void *begin(const struct node_settings *settings)
{
	return xcalloc(1, sizeof(struct source));
}

static void end(void *state)
{
	struct source *source = state;

	free(source->suspects);
	free(source);
}

static void copy_place(const struct held_place *place, struct suspect *suspect)
{
	AT_END(buf_free) struct buf where = { 0 };

	place_label(place->frame, &where);
	snprintf(suspect->pid, sizeof(suspect->pid), "%u", place->process->pid);
	snprintf(suspect->process, sizeof(suspect->process), "%s", place->process->comm);
	snprintf(suspect->function, sizeof(suspect->function), "%s",
	         place->function ? place->function->name : "");
	snprintf(suspect->place, sizeof(suspect->place), "%s", where.data ? where.data : "");
	suspect->kind = api_memory_name(place->kind);
	suspect->bytes = place->older_bytes;
}

/* Two stacks of one label are one series. */
static void add_suspect(struct source *source, const struct suspect *suspect)
{
	for (size_t i = 0; i < source->n; i++) {
		struct suspect *other = &source->suspects[i];

		if (strcmp(other->pid, suspect->pid) || strcmp(other->process, suspect->process) ||
		    strcmp(other->function, suspect->function) || other->kind != suspect->kind ||
		    strcmp(other->place, suspect->place))
			continue;
		other->bytes += suspect->bytes;
		return;
	}
	source->suspects[source->n++] = *suspect;
}

/* Those in their user's share, or those that are not, which take what is left. */
static void take_suspects(struct source *source, const struct node_view *view, bool in_share)
{
	struct quota shares = quota_of_places(view->settings->leak_places);
	const struct held_place *places;
	size_t n = places_list(view->places, &places);
	struct suspect suspect;

	for (size_t i = 0; i < n; i++) {
		if (places[i].ended || places[i].trend != TREND_SUSPECT ||
		    !quota_take(&shares, counts_person(view->counts, places[i].process), 0, 1) !=
		            in_share)
			continue;
		if (source->n == view->settings->leak_places) {
			source->left_out++;
			continue;
		}
		memset(&suspect, 0, sizeof(suspect));
		copy_place(&places[i], &suspect);
		add_suspect(source, &suspect);
	}
	quota_free(&shares);
}

static void judge(struct source *source, const struct node_view *view)
{
	uint64_t most = view->settings->leak_places;

	source->judged_ns = view->leaks_ns;
	source->suspects = xrealloc(source->suspects, (most + 1) * sizeof(*source->suspects));
	source->n = 0;
	source->left_out = 0;
	take_suspects(source, view, true);
	take_suspects(source, view, false);
}

static void fill(void *state, const struct node_view *view, struct metrics *metrics)
{
	struct source *source = state;

	if (view->leaks_ns != source->judged_ns)
		judge(source, view);
	metrics_family(metrics, &suspected);
	for (size_t i = 0; i < source->n; i++) {
		const struct suspect *s = &source->suspects[i];

		metrics_add(metrics,
		            metrics_labels(metrics, 0, "pid", s->pid, "process", s->process, "kind",
		                           s->kind, "function", s->function, "place", s->place,
		                           NULL),
		            s->bytes, 0, 0);
	}
	metrics_one(metrics, &left_out, source->left_out, 0, 0);
}

const struct node_source source_leaks = {
	.name = "leaks", .begin = begin, .fill = fill, .end = end
};
