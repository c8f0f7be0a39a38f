// SPDX-License-Identifier: MIT
#include "watch/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "gpus/gpus.h"

struct place_key {
	uint32_t what; /* number of the stack and 1, or of its place; 0: no stack is known */
	uint32_t process, kind, function;
};

/* What is known of a place from the pages before. */
struct history {
	struct place_key key;
	uint64_t older_bytes, before_bytes; /* on this page and on the one before */
	int8_t steps[PLACES_TREND];         /* the last intervals: 1 grew, 0 same, -1 shrank */
	unsigned known;                     /* intervals, at most PLACES_TREND */
	unsigned grew;
	uint64_t first_page, page; /* the last one it was on */
	size_t row;                /* on that one */
	UT_hash_handle hh;
};

/* What is known of a process from the pages before. */
struct past {
	uint32_t id;
	uint64_t live_bytes, failed;
	bool told; /* its end */
	struct memory_beyond beyond;
	UT_hash_handle hh;
};

struct places {
	struct stack_places *stacks;
	bool by_stack;
	uint64_t stacks_turn; /* of the pages that the numbers of `stacks` are of */
	uint64_t page;
	struct history *histories;
	struct held_place *list;
	uint64_t *most; /* bytes of the stack that each row of the list shows */
	size_t count, room;
	struct held_place *left; /* of processes that ended on pages before */
	size_t n_left;
	struct past *pasts;
	struct held_process *processes;
	size_t n_processes;
	bool begun;               /* places_begin() */
	struct gpus_sample older; /* than the watch */
};

const char *trend_text(enum trend trend)
{
	static const char *const texts[TREND_COUNT] = {
		[TREND_NEW] = "new",         [TREND_STEADY] = "steady",
		[TREND_VARYING] = "varying", [TREND_GROWING] = "growing",
		[TREND_SUSPECT] = "suspect",
	};

	return texts[trend];
}

struct places *places_new(bool by_stack)
{
	struct places *places = xcalloc(1, sizeof(*places));

	places->stacks = stack_places_new();
	places->by_stack = by_stack;
	return places;
}

void places_free(struct places *places)
{
	if (!places)
		return;
	MAP_FREE(places->histories, free);
	MAP_FREE(places->pasts, free);
	stack_places_free(places->stacks);
	free(places->left);
	free(places->processes);
	free(places->list);
	free(places->most);
	free(places);
}

/* ---- processes ------------------------------------------------------------------------------- */

static struct past *past_of(struct places *places, const struct process *process)
{
	return MAP_MAKE(places->pasts, id, &process->id);
}

void places_forget_ended(struct places *places)
{
	struct past *past, *next;

	places->n_left = 0;
	HASH_ITER (hh, places->pasts, past, next) {
		if (!past->told)
			continue;
		MAP_DROP(places->pasts, past);
	}
}

static void find_totals(const struct watch_memory *memory, struct held_process *process)
{
	const struct process *of = process->memory->process;

	for (size_t i = watch_totals_find(memory, of);
	     i < memory->n_totals && memory->totals[i].process == of; i++) {
		const struct watch_memory_totals *totals = &memory->totals[i];

		if (!process->n_totals++)
			process->totals = totals;
		if (totals->kind == MEMORY_VMM_VA)
			continue;
		process->unfreed.count += totals->exit.count;
		process->unfreed.bytes += totals->exit.bytes;
	}
}

/* Those that had ended before this page are left out, but for the last one. */
static void take_processes(struct places *places, const struct watch_memory *memory, bool last)
{
	places->n_processes = 0;
	places->processes =
		xrealloc(places->processes, (memory->n_processes + 1) * sizeof(*places->processes));
	for (size_t i = 0; i < memory->n_processes; i++) {
		const struct watch_process_memory *row = &memory->processes[i];
		struct past *past = past_of(places, row->process);
		struct held_process *process = &places->processes[places->n_processes];

		if (past->told && !last)
			continue;
		memset(process, 0, sizeof(*process));
		process->memory = row;
		process->grown_bytes = (int64_t)(row->live.bytes - past->live_bytes);
		process->failed_since = row->failed - past->failed;
		find_totals(memory, process);
		past->live_bytes = row->live.bytes;
		past->failed = row->failed;
		past->told = row->ended;
		places->n_processes++;
	}
}

/* ---- what no call holds ---------------------------------------------------------------------- */

void places_begin(struct places *places, const struct gpus_sample *gpus)
{
	places->begun = true;
	places->older = *gpus;
}

static uint64_t device_bytes(const struct held_process *process)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < process->n_totals; i++) {
		if (memory_is_in_nvml(process->totals[i].kind))
			bytes += process->totals[i].live.bytes;
	}
	return bytes;
}

static struct held_process *find_process(struct places *places, const struct process *process)
{
	size_t i = ARRAY_BEFORE(places->n_processes, at,
	                        places->processes[at].memory->process->id < process->id);

	return i < places->n_processes && places->processes[i].memory->process == process
	               ? &places->processes[i]
	               : NULL;
}

static void take_beyond(struct places *places, struct held_process *process,
                        const struct gpus_sample *gpus)
{
	const struct process *of = process->memory->process;
	int64_t bytes = gpus_process_bytes(gpus, of->pid);
	struct memory_beyond *beyond = &past_of(places, of)->beyond;

	if (bytes == GPU_UNKNOWN || process->memory->ended)
		return;
	beyond->whole = places->begun && gpus_process_bytes(&places->older, of->pid) == GPU_UNKNOWN;
	memory_beyond_take(beyond, (uint64_t)bytes, device_bytes(process), 0);
	process->beyond = *beyond;
}

static void take_all_beyond(struct places *places, const struct watch_memory *memory,
                            const struct gpus_sample *gpus)
{
	for (size_t i = 0; i < places->n_processes; i++)
		take_beyond(places, &places->processes[i], gpus);
	for (size_t i = 0; i < memory->n_places; i++) {
		const struct watch_place *row = &memory->places[i];
		struct held_process *process = find_process(places, row->process);

		if (process && process->beyond.told && memory_is_of_nccl(row->stack))
			process->beyond.nccl_bytes += row->bytes;
	}
}

size_t places_processes(const struct places *places, const struct held_process **list)
{
	*list = places->processes;
	return places->n_processes;
}

/* ---- one page -------------------------------------------------------------------------------- */

static struct place_key key_of(const struct places *places, const struct watch_place *row)
{
	struct place_key key = { .process = row->process->id,
		                 .kind = row->kind,
		                 .function = row->function ? row->function->id + 1 : 0 };

	if (row->stack && places->by_stack)
		key.what = row->stack->id + 1;
	else
		key.what = stack_places_number(places->stacks, row->stack);
	return key;
}

static struct history *history_of(struct places *places, const struct place_key *key)
{
	struct history *history = MAP_FIND(places->histories, key);

	if (history)
		return history;
	history = MAP_ADD(places->histories, key, key);
	history->first_page = places->page;
	return history;
}

static size_t add_row(struct places *places)
{
	if (places->count == places->room) {
		places->room = places->room ? 2 * places->room : 64;
		places->list = xrealloc(places->list, places->room * sizeof(*places->list));
		places->most = xrealloc(places->most, places->room * sizeof(*places->most));
	}
	memset(&places->list[places->count], 0, sizeof(*places->list));
	places->most[places->count] = 0;
	return places->count++;
}

static void show_stack(struct places *places, size_t index, const struct stack *stack,
                       uint64_t bytes)
{
	struct held_place *place = &places->list[index];

	if (!stack)
		return;
	place->stacks++;
	if (place->stack && bytes <= places->most[index])
		return;
	places->most[index] = bytes;
	place->stack = stack;
	place->frame = place_of(stack);
}

static void take_row(struct places *places, const struct watch_place *row, bool ended)
{
	const struct place_key key = key_of(places, row);
	struct history *history = history_of(places, &key);
	struct held_place *place;

	if (history->page != places->page) {
		history->page = places->page;
		history->row = add_row(places);
		history->before_bytes = history->older_bytes;
		history->older_bytes = 0;
		place = &places->list[history->row];
		place->process = row->process;
		place->kind = row->kind;
		place->function = row->function;
		place->oldest_ns = row->oldest_ns;
		place->ended = ended;
	}
	place = &places->list[history->row];
	place->count += row->count;
	place->bytes += row->bytes;
	place->older_count += row->older_count;
	place->older_bytes += row->older_bytes;
	if (row->oldest_ns < place->oldest_ns)
		place->oldest_ns = row->oldest_ns;
	history->older_bytes = place->older_bytes;
	show_stack(places, history->row, row->stack, row->bytes);
}

/* ---- trends ---------------------------------------------------------------------------------- */

static void step(struct history *history)
{
	int8_t now = history->older_bytes > history->before_bytes ? 1 : 0;

	if (history->older_bytes < history->before_bytes)
		now = -1;
	memmove(history->steps + 1, history->steps, sizeof(history->steps) - 1);
	history->steps[0] = now;
	history->grew = now > 0 ? history->grew + 1 : 0;
	if (history->known < PLACES_TREND)
		history->known++;
}

static enum trend trend_of(const struct history *history)
{
	bool shrank = false, grew = false;

	if (history->known < PLACES_TREND)
		return TREND_NEW;
	for (size_t i = 0; i < PLACES_TREND; i++) {
		shrank |= history->steps[i] < 0;
		grew |= history->steps[i] > 0;
	}
	if (history->grew >= PLACES_TREND)
		return TREND_SUSPECT;
	return shrank ? TREND_VARYING : grew ? TREND_GROWING : TREND_STEADY;
}

/*
 * Stacks have other numbers now: so have their places, of which those stay that hold something. Of
 * whole stacks nothing is known any more.
 */
static void renew_stacks(struct places *places)
{
	struct stack_places *before = places->stacks;
	struct history *history, *next, *renewed = NULL;

	if (places->by_stack) {
		MAP_FREE(places->histories, free);
		return;
	}
	places->stacks = stack_places_new();
	HASH_ITER (hh, places->histories, history, next) {
		HASH_DEL(places->histories, history);
		history->key.what = stack_places_number_of(
			places->stacks, stack_places_label(before, history->key.what));
		HASH_ADD(hh, renewed, key, sizeof(history->key), history);
	}
	places->histories = renewed;
	stack_places_free(before);
}

/* Moves every place on by an interval; those that hold nothing any more are forgotten. */
static void step_all(struct places *places)
{
	struct history *history, *next;

	HASH_ITER (hh, places->histories, history, next) {
		struct held_place *place;

		if (history->page != places->page) {
			MAP_DROP(places->histories, history);
			continue;
		}
		place = &places->list[history->row];
		if (history->first_page != places->page) {
			step(history);
			place->grown_bytes =
				(int64_t)(history->older_bytes - history->before_bytes);
		}
		place->trend = trend_of(history);
		place->grew = history->grew;
	}
}

/* ---- the list -------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_places(const void *left, const void *right)
{
	const struct held_place *a = left, *b = right;
	int order = a->ended - b->ended;

	if (!order && !a->ended)
		order = compare(b->older_bytes, a->older_bytes);
	if (!order)
		order = compare(b->bytes, a->bytes);
	if (!order)
		order = compare(a->process->id, b->process->id);
	return order ? order : compare(a->oldest_ns, b->oldest_ns);
}

/* How many rows of processes that ended are kept for the last page. */
#define LEFT_MAX 1024

static void keep_left(struct places *places)
{
	for (size_t i = 0; i < places->count && places->n_left < LEFT_MAX; i++) {
		if (!places->list[i].ended)
			continue;
		if (!places->left)
			places->left = xcalloc(LEFT_MAX, sizeof(*places->left));
		places->left[places->n_left++] = places->list[i];
	}
}

static void recall_left(struct places *places)
{
	for (size_t i = 0; i < places->n_left; i++) {
		size_t row = add_row(places);

		places->list[row] = places->left[i];
	}
}

void places_take(struct places *places, const struct watch_page *page,
                 const struct gpus_sample *gpus)
{
	const struct watch_memory *memory = page->memory;

	places->page++;
	places->count = 0;
	if (memory && memory->stacks_turn != places->stacks_turn) {
		places->stacks_turn = memory->stacks_turn;
		renew_stacks(places);
	}
	if (memory)
		take_processes(places, memory, page->last);
	if (memory && gpus)
		take_all_beyond(places, memory, gpus);
	for (size_t i = 0; memory && i < memory->n_places; i++)
		take_row(places, &memory->places[i], false);
	for (size_t i = 0; memory && i < memory->n_left; i++)
		take_row(places, &memory->left[i], true);
	step_all(places);
	if (page->last)
		recall_left(places);
	else
		keep_left(places);
	if (places->count)
		qsort(places->list, places->count, sizeof(*places->list), compare_places);
}

size_t places_list(const struct places *places, const struct held_place **list)
{
	*list = places->list;
	return places->count;
}
