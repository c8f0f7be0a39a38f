// SPDX-License-Identifier: MIT
#include "analysis/missed.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/number.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "probe/person.h"

#define NAMES_SHOWN 8 /* of functions that share a reason; the JSON summary has them all */

/* Calls whose arguments could not be read and calls that came late are there all the same. */
static const struct lost_row {
	const char *key, *word;
	unsigned of; /* enum missed_of */
} lost_rows[LOST_COUNT] = {
	[LOST_RING_FULL] = { "ring_full", "lost", MISSED_FOR_RINGS },
	[LOST_THREADS_FULL] = { "threads_full", "lost" },
	[LOST_NO_ENTRY] = { "no_entry", "lost" },
	[LOST_TOO_DEEP] = { "too_deep", "lost" },
	[LOST_UNREADABLE] = { "unreadable", "incomplete" },
	[LOST_LATE] = { "late", "late" },
	[LOST_GPU_RING] = { "gpu_ring_full", "lost", MISSED_FOR_RINGS | MISSED_GPU_WORK },
	[LOST_GPU_BUFFERS] = { "gpu_buffers", "lost", MISSED_GPU_WORK },
	[LOST_GPU_TIMES] = { "gpu_bad_times", "left out", MISSED_GPU_WORK },
	[LOST_RECORDS] = { "records", "lost", MISSED_FOR_RINGS },
	[LOST_TARGETS_FULL] = { "processes_full", "left out" },
	[LOST_TEXTS] = { "texts", "incomplete" },
	[LOST_NOT_RUN] = { "not_run", "lost" },
	[LOST_GPU_CALLS] = { "gpu_no_call", "incomplete" },
	[LOST_GPU_RECORDS] = { "gpu_bad_records", "left out", MISSED_GPU_WORK },
	[LOST_SUMS] = { "no_room", "lost" },
	[LOST_NO_ANSWER] = { "no_answer", "without an answer" },
	[LOST_OVER_BUDGET] = { "over_budget", "left out" },
	[LOST_GPU_UNRECORDED] = { "gpu_not_recorded", "not recorded", MISSED_GPU_WORK },
	[LOST_MOMENTS] = { "moments", "left out" },
	[LOST_QUEUE] = { "calls_over_budget", "lost" },
};

static const struct miss_row {
	const char *key, *text;
} miss_rows[] = {
	[MISS_NOT_HOOKED] = { "not_hooked", "not hooked" },
	[MISS_HOOKED_LATE] = { "hooked_late", "hooked late" },
	[MISS_UNHOOKED] = { "unhooked", "unhooked by the governor" },
	[MISS_ENTRY_ONLY] = { "entry_only", "entries only, without results and durations" },
	[MISS_ESTIMATED] = { "estimated", "estimated" },
	[MISS_GPU_TIMES] = { "no_gpu_times", "without GPU times" },
	[MISS_NO_ANSWER] = { "no_answer", "given up" },
	[MISS_OVER_BUDGET] = { "over_budget", "not all kept" },
	[MISS_UNSEEN] = { "unseen", "not looked into" },
	[MISS_COUNTED] = { "counted", "counted" },
	[MISS_FAILED] = { "failed", "not whole" },
	[MISS_GPU_WINDOWS] = { "gpu_windows", "in windows" },
	[MISS_STALLS] = { "no_stalls", "without stall reasons" },
	[MISS_NOT_LOOKED] = { "not_looked_at", "not looked at" },
};

static const char *const stacks_keys[STACKS_MISSED_COUNT] = {
	[STACKS_NO_WALK] = "not_walked",
	[STACKS_LOST] = "lost",
	[STACKS_PROCESSES] = "processes_without_room",
	[STACKS_FILES] = "files_without_room",
	[STACKS_PYTHON] = "unknown_python",
	[STACKS_PYTHON_LOST] = "python_frames_without_name",
	[STACKS_NO_ROOM] = "no_room",
	[STACKS_TOO_FAST] = "allocations_too_fast",
	[STACKS_LINES_LATE] = "lines_late",
	[STACKS_LINES_LOST] = "lines_lost",
	[STACKS_MAPPINGS] = "mappings_without_room",
	[STACKS_WAKERS] = "wakers_without_room",
	[STACKS_NAMES_LATE] = "names_late",
};

const char *missed_lost_key(enum lost_reason reason)
{
	return lost_rows[reason].key;
}

const char *missed_lost_word(enum lost_reason reason)
{
	return lost_rows[reason].word;
}

const char *missed_kind_key(enum miss_kind kind)
{
	return miss_rows[kind].key;
}

const char *missed_stacks_key(enum stacks_missed missed)
{
	return stacks_keys[missed];
}

uint64_t missed_events(const uint64_t lost[LOST_COUNT])
{
	uint64_t sum = 0;

	for (size_t i = 0; i < LOST_COUNT; i++)
		number_add(&sum, i == LOST_LATE ? 0 : lost[i]);
	return sum;
}

uint64_t missed_of(const uint64_t lost[LOST_COUNT], enum missed_of of)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < LOST_COUNT; i++)
		number_add(&sum, lost_rows[i].of & of ? lost[i] : 0);
	return sum;
}

static bool has_all_stacks(const struct run_info *run)
{
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++) {
		if (run->stacks.missed[i])
			return false;
	}
	return true;
}

bool missed_by_choice(enum miss_kind kind)
{
	return kind == MISS_GPU_WINDOWS || kind == MISS_NOT_LOOKED;
}

static bool has_missed(const struct run_info *run)
{
	for (size_t i = 0; i < run->n_misses; i++)
		if (!missed_by_choice(run->misses[i].kind))
			return true;
	return false;
}

bool missed_nothing(const struct run_info *run)
{
	return !missed_events(run->lost) && has_all_stacks(run) && !run->lost[LOST_LATE] &&
	       !has_missed(run) && !run->cut_short && !run->damaged_chunks && !run->output_full &&
	       run->estimate_scale <= 1;
}

/* Of all reasons that share a word, at the first of them that something was lost for. */
static uint64_t take_word(uint64_t lost[LOST_COUNT], enum lost_reason first)
{
	uint64_t sum = 0;

	for (size_t i = first; i < LOST_COUNT; i++) {
		if (strcmp(lost_rows[i].word, lost_rows[first].word) != 0)
			continue;
		number_add(&sum, lost[i]);
		lost[i] = 0;
	}
	return sum;
}

bool missed_brief(struct buf *out, const struct run_info *run)
{
	struct run_info recorded = *run;
	uint64_t *rest = recorded.lost;
	size_t begin = out->len;

	recorded.cut_short = false;
	recorded.damaged_chunks = 0;
	if (missed_nothing(&recorded))
		return false;
	for (size_t i = 0; i < LOST_COUNT; i++) {
		if (rest[i])
			buf_printf(out, "%s%lu %s", out->len > begin ? ", " : "",
			           take_word(rest, i), lost_rows[i].word);
	}
	if (out->len == begin)
		buf_puts(out, "not all was seen");
	return true;
}

bool missed_of_file(const struct run_info *run, struct buf *out)
{
	if (run->cut_short)
		buf_puts(out, "the trace file was cut short: nobody knows what came after its last "
		              "whole part, and how much was lost");
	if (run->damaged_chunks)
		buf_printf(out,
		           "%s%lu part%s of the trace file %s damaged and left out, with at least "
		           "%lu event%s",
		           run->cut_short ? "; " : "", run->damaged_chunks,
		           run->damaged_chunks == 1 ? "" : "s",
		           run->damaged_chunks == 1 ? "is" : "are", run->damaged_events,
		           run->damaged_events == 1 ? "" : "s");
	if (run->over_budget)
		buf_printf(out,
		           "; at least %lu of its definitions and rows are more than is kept of "
		           "one file",
		           run->over_budget);
	if (run->too_dense)
		buf_puts(out, "; it unpacks to more than is read of a file of its size");
	if (run->end_damaged)
		buf_puts(out, "; its end is damaged, too: how much was lost while it was recorded "
		              "is not known");
	if (run->output_full)
		buf_printf(out,
		           "%sthis output has reached the size that it may have (--max-size): of "
		           "the rest of the trace nothing is here",
		           run->cut_short || run->damaged_chunks ? "; " : "");
	return run->cut_short || run->damaged_chunks || run->output_full;
}

bool missed_gpu_times(const struct run_info *run)
{
	for (size_t i = 0; i < run->n_misses; i++) {
		if (run->misses[i].kind == MISS_GPU_TIMES ||
		    run->misses[i].kind == MISS_GPU_WINDOWS)
			return true;
	}
	return false;
}

/* ---- of functions -------------------------------------------------------------------------- */

struct named_function {
	struct missed_function missed;
	struct buf key;
	UT_hash_handle hh;
};

struct missed_functions {
	struct named_function *named;
	struct buf key; /* that was looked for last */
};

static struct named_function *find_function(struct missed_functions *missed, const char *name,
                                            const char *lib)
{
	buf_reset(&missed->key);
	buf_puts(&missed->key, lib);
	buf_putc(&missed->key, '\0');
	buf_puts(&missed->key, name);
	return MAP_FIND_BYTES(missed->named, missed->key.data, missed->key.len);
}

static struct named_function *add_function(struct missed_functions *missed)
{
	struct named_function *made = xcalloc(1, sizeof(*made));

	made->key = missed->key;
	missed->key = (struct buf){ 0 };
	HASH_ADD_KEYPTR(hh, missed->named, made->key.data, made->key.len, made);
	return made;
}

struct missed_functions *missed_functions_new(const struct run_info *run)
{
	struct missed_functions *missed = xcalloc(1, sizeof(*missed));

	for (size_t i = 0; i < run->n_misses; i++) {
		const struct miss *miss = &run->misses[i];
		struct named_function *of;

		if ((miss->kind != MISS_UNHOOKED && miss->kind != MISS_COUNTED) || !miss->name ||
		    !miss->lib)
			continue;
		of = find_function(missed, miss->name, miss->lib);
		of = of ? of : add_function(missed);
		of->missed.partly = true;
		number_add(&of->missed.counted, miss->kind == MISS_COUNTED ? miss->calls : 0);
	}
	return missed;
}

static void free_function(struct named_function *function)
{
	buf_free(&function->key);
	free(function);
}

void missed_functions_free(struct missed_functions *missed)
{
	MAP_FREE(missed->named, free_function);
	buf_free(&missed->key);
	free(missed);
}

struct missed_function missed_of_function(struct missed_functions *missed,
                                          const struct function *function)
{
	const struct named_function *found =
		missed->named ? find_function(missed, function->name, function->lib) : NULL;

	return found ? found->missed : (struct missed_function){ 0 };
}

static void add_stacks_json(struct json *json, const struct run_info *run,
                            const struct stack_counts *counts)
{
	bool any = counts && stack_counts_all(counts);

	if (has_all_stacks(run) && !any)
		return;
	json_open(json, "stacks", '{');
	if (any)
		stack_counts_json(counts, json);
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++) {
		json_u64_if(json, stacks_keys[i], run->stacks.missed[i]);
	}
	json_close(json, '}');
}

void missed_json(struct json *json, const struct run_info *run)
{
	missed_json_and_stacks(json, run, NULL);
}

void missed_json_and_stacks(struct json *json, const struct run_info *run,
                            const struct stack_counts *counts)
{
	json_bool(json, "complete", missed_nothing(run));
	if (run->cut_short)
		json_bool(json, "cut_short", true);
	if (run->output_full)
		json_bool(json, "output_full", true);
	if (run->end_damaged)
		json_bool(json, "end_damaged", true);
	if (run->damaged_chunks) {
		json_u64(json, "damaged_chunks", run->damaged_chunks);
		json_u64(json, "damaged_events", run->damaged_events);
	}
	json_u64_if(json, "file_over_budget", run->over_budget);
	json_open(json, "lost", '{');
	for (size_t i = 0; i < LOST_COUNT; i++)
		json_u64(json, lost_rows[i].key, run->lost[i]);
	json_close(json, '}');
	add_stacks_json(json, run, counts);
	json_open(json, "hooks", '[');
	for (size_t i = 0; i < run->n_misses; i++) {
		const struct miss *miss = &run->misses[i];

		json_open(json, NULL, '{');
		json_string(json, "kind", miss_rows[miss->kind].key);
		json_string_if(json, "name", miss->name);
		json_string_if(json, "lib", miss->lib);
		json_u64_if(json, "pid", miss->pid);
		json_u64_if(json, "processes", miss->processes);
		json_u64_if(json, "calls", miss->calls);
		json_string(json, "why", miss->why ? miss->why : "");
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* ---- text ---------------------------------------------------------------------------------- */

/* By hand: sentences, each of which says in its own words what was lost and where. */

/* Misses that differ in the function's name only. */
struct story {
	const struct miss *miss; /* the first of them */
	struct buf names;
	size_t n_names;
	struct buf key;
	UT_hash_handle hh;
};

static void make_key(struct buf *key, const struct miss *miss)
{
	buf_printf(key, "%d %u %s\n%s", (int)miss->kind, miss->pid, miss->lib ? miss->lib : "",
	           miss->why ? miss->why : "");
	if (miss->kind ==
	    MISS_COUNTED) /* two that were called as often are two numbers all the same */
		buf_printf(key, "\n%s", miss->name ? miss->name : "");
}

static struct story *story_of(struct story **stories, const struct miss *miss)
{
	struct buf key = { 0 };
	struct story *story;

	make_key(&key, miss);
	story = MAP_FIND_BYTES(*stories, key.data, key.len);
	if (story) {
		buf_free(&key);
		return story;
	}
	story = xcalloc(1, sizeof(*story));
	story->miss = miss;
	story->key = key;
	HASH_ADD_KEYPTR(hh, *stories, story->key.data, story->key.len, story);
	return story;
}

static void add_name(struct story *story, const char *name)
{
	if (story->n_names++ >= NAMES_SHOWN)
		return;
	if (story->names.len)
		buf_puts(&story->names, ", ");
	text_add_safe(&story->names, name);
}

/* A process of which no agent tells any more is nothing that the governor decided. */
static const char *kind_text(const struct miss *miss)
{
	return miss->kind == MISS_UNHOOKED && miss->pid ? "not recorded for a while"
	                                                : miss_rows[miss->kind].text;
}

/* "not hooked: cuA, cuB (libcuda.so.1): the entry cannot be decoded" */
static void add_story(struct buf *out, const struct story *story)
{
	const struct miss *miss = story->miss;
	size_t n = story->n_names;

	buf_printf(out, "  %s:", kind_text(miss));
	if (n > 1)
		buf_printf(out, " %zu functions:", n);
	if (n)
		buf_printf(out, " %s", story->names.data ? story->names.data : "");
	if (n > NAMES_SHOWN)
		buf_printf(out, " and %zu more", n - NAMES_SHOWN);
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
}

/* In the order of the first of each. */
static void add_stories(struct buf *out, const struct run_info *run)
{
	struct story *stories = NULL, *story, *next;

	for (size_t i = 0; i < run->n_misses; i++) {
		story = story_of(&stories, &run->misses[i]);
		if (run->misses[i].name)
			add_name(story, run->misses[i].name);
	}
	HASH_ITER (hh, stories, story, next) {
		add_story(out, story);
		HASH_DELETE(hh, stories, story);
		buf_free(&story->names);
		buf_free(&story->key);
		free(story);
	}
}

void missed_text(struct buf *out, const struct run_info *run)
{
	struct buf file = { 0 };

	if (missed_nothing(run))
		buf_puts(out, "  nothing was lost\n");
	if (missed_of_file(run, &file))
		buf_printf(out, "  %s\n", file.data);
	buf_free(&file);
	for (size_t i = 0; i < LOST_COUNT; i++) {
		if (run->lost[i])
			buf_printf(out, "  %s %lu: %s\n", lost_rows[i].word, run->lost[i],
			           lost_reason_text(i));
	}
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++) {
		uint64_t n = run->stacks.missed[i];

		if (n)
			buf_printf(out, "  %lu %s\n", n,
			           stacks_missed_text((enum stacks_missed)i, n));
	}
	if (run->estimate_scale > 1)
		buf_printf(out, "  estimated: about %.2f times as much happened as was seen\n",
		           run->estimate_scale);
	add_stories(out, run);
}

/* ---- a window that users share ------------------------------------------------------------- */

static void say(struct missed_left_out *told, struct buf *why)
{
	told->misses[told->n] = (struct miss){ .kind = MISS_OVER_BUDGET, .why = why->data };
	told->words[told->n++] = why->data;
	*why = (struct buf){ 0 };
}

static void say_user(struct missed_left_out *told, const struct writer_left_out *left,
                     const struct run_info *run)
{
	uint64_t held_ns = run->end_ns > left->until_ns ? run->end_ns - left->until_ns : 0;
	struct buf why = { 0 };

	person_add(left->person, &why);
	buf_printf(&why,
	           ": only the last %.3f s are there, since the recorder's memory was full and "
	           "most of it was this one's; %lu events before were left out",
	           (double)held_ns / 1e9, left->events);
	say(told, &why);
}

void missed_left_out_add(struct missed_left_out *told, const struct consumer *writer,
                         struct run_info *run)
{
	struct writer_left_out left[MISSED_LEFT_OUT];
	size_t n = writer_left_out(writer, left, MISSED_LEFT_OUT);
	size_t shown = n < MISSED_LEFT_OUT ? n : MISSED_LEFT_OUT;
	struct writer_stats stats;
	struct buf why = { 0 };

	writer_stats(writer, &stats);
	told->misses = xcalloc(run->n_misses + shown + 2, sizeof(*told->misses));
	for (size_t i = 0; i < shown; i++) {
		say_user(told, &left[i], run);
		run->lost[LOST_OVER_BUDGET] += left[i].events;
	}
	if (n > shown) {
		buf_printf(&why, "the same of %zu more users", n - shown);
		say(told, &why);
	}
	if (stats.unnamed) {
		buf_printf(&why, "%lu threads have no names, since there were more than are kept",
		           stats.unnamed);
		say(told, &why);
	}
	if (run->n_misses)
		memcpy(told->misses + told->n, run->misses, run->n_misses * sizeof(*run->misses));
	run->n_misses += told->n;
	run->misses = told->misses;
}

void missed_left_out_free(struct missed_left_out *told)
{
	for (size_t i = 0; i < told->n; i++)
		free(told->words[i]);
	free(told->misses);
	*told = (struct missed_left_out){ 0 };
}
