// SPDX-License-Identifier: MIT
#include "analysis/missed.h"

#include <string.h>

#include "base/text.h"

#define NAMES_SHOWN 8 /* of functions that share a reason; the JSON summary has them all */

/* Calls whose arguments could not be read and calls that came late are there all the same. */
static const struct lost_row {
	const char *key, *word;
} lost_rows[LOST_COUNT] = {
	[LOST_RING_FULL] = { "ring_full", "lost" },
	[LOST_THREADS_FULL] = { "threads_full", "lost" },
	[LOST_NO_ENTRY] = { "no_entry", "lost" },
	[LOST_TOO_DEEP] = { "too_deep", "lost" },
	[LOST_UNREADABLE] = { "unreadable", "incomplete" },
	[LOST_LATE] = { "late", "late" },
};

static const struct miss_row {
	const char *key, *text;
} miss_rows[] = {
	[MISS_NOT_HOOKED] = { "not_hooked", "not hooked" },
	[MISS_HOOKED_LATE] = { "hooked_late", "hooked late" },
	[MISS_UNHOOKED] = { "unhooked", "unhooked by the governor" },
	[MISS_ENTRY_ONLY] = { "entry_only", "entries only, without results and durations" },
	[MISS_ESTIMATED] = { "estimated", "estimated" },
};

const char *missed_lost_key(enum lost_reason reason)
{
	return lost_rows[reason].key;
}

const char *missed_kind_key(enum miss_kind kind)
{
	return miss_rows[kind].key;
}

uint64_t missed_events(const struct run_info *run)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < LOST_COUNT; i++)
		sum += i == LOST_LATE ? 0 : run->lost[i];
	return sum;
}

bool missed_nothing(const struct run_info *run)
{
	return !missed_events(run) && run->estimate_scale <= 1;
}

void missed_json(struct json *json, const struct run_info *run)
{
	json_bool(json, "complete", missed_nothing(run));
	json_open(json, "lost", '{');
	for (size_t i = 0; i < LOST_COUNT; i++)
		json_u64(json, lost_rows[i].key, run->lost[i]);
	json_close(json, '}');
	json_open(json, "hooks", '[');
	for (size_t i = 0; i < run->n_misses; i++) {
		const struct miss *miss = &run->misses[i];

		json_open(json, NULL, '{');
		json_string(json, "kind", miss_rows[miss->kind].key);
		if (miss->name)
			json_string(json, "name", miss->name);
		if (miss->lib)
			json_string(json, "lib", miss->lib);
		if (miss->pid)
			json_u64(json, "pid", miss->pid);
		json_string(json, "why", miss->why ? miss->why : "");
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* ---- text ---------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_story(const struct miss *a, const struct miss *b)
{
	return a->kind == b->kind && a->pid == b->pid && same_text(a->lib, b->lib) &&
	       same_text(a->why, b->why);
}

static bool told_before(const struct run_info *run, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (same_story(&run->misses[i], &run->misses[at]))
			return true;
	}
	return false;
}

/* "cuA, cuB and 12 more": the names of all that tell the story of misses[at]. */
static size_t add_names(struct buf *out, const struct run_info *run, size_t at)
{
	size_t n = 0;

	for (size_t i = at; i < run->n_misses; i++) {
		if (!run->misses[i].name || !same_story(&run->misses[at], &run->misses[i]))
			continue;
		if (n < NAMES_SHOWN) {
			buf_puts(out, n ? ", " : "");
			text_add_safe(out, run->misses[i].name);
		}
		n++;
	}
	if (n > NAMES_SHOWN)
		buf_printf(out, " and %zu more", n - NAMES_SHOWN);
	return n;
}

/* "not hooked: cuA, cuB (libcuda.so.1): the entry cannot be decoded" */
static void add_story(struct buf *out, const struct run_info *run, size_t at)
{
	const struct miss *miss = &run->misses[at];
	struct buf names = { 0 };
	size_t n = add_names(&names, run, at);

	buf_printf(out, "  %s:", miss_rows[miss->kind].text);
	if (n > 1)
		buf_printf(out, " %zu functions:", n);
	if (n)
		buf_printf(out, " %s", names.data);
	if (miss->lib) {
		buf_puts(out, n ? " (" : " ");
		text_add_safe(out, miss->lib);
		buf_puts(out, n ? ")" : "");
	}
	if (miss->pid)
		buf_printf(out, "%s pid %u", n || miss->lib ? " in" : "", miss->pid);
	if (miss->why && *miss->why) {
		buf_puts(out, n || miss->lib || miss->pid ? ": " : " ");
		text_add_safe(out, miss->why);
	}
	buf_putc(out, '\n');
	buf_free(&names);
}

void missed_text(struct buf *out, const struct run_info *run)
{
	if (!missed_events(run))
		buf_puts(out, "  nothing was lost\n");
	for (size_t i = 0; i < LOST_COUNT; i++) {
		if (run->lost[i])
			buf_printf(out, "  %s %llu: %s\n", lost_rows[i].word,
			           (unsigned long long)run->lost[i], lost_reason_text(i));
	}
	if (run->estimate_scale > 1)
		buf_printf(out, "  estimated: about %.2f times as much happened as was seen\n",
		           run->estimate_scale);
	for (size_t i = 0; i < run->n_misses; i++) {
		if (!told_before(run, i))
			add_story(out, run, i);
	}
}
