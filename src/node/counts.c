// SPDX-License-Identifier: MIT
#include "node/counts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "probe/person.h"

#define LINGER_NS    60000000000ull /* that a process which has ended keeps its series */
#define MENDED_MOST  (1ull << 32)   /* that a sum may be too high for a moment */
#define CALLS_OF_MIB 1              /* of live memory: what a process holds matters as well */

struct counted {
	uint32_t id; /* of the process */
	struct counted_process shown;
	bool has_series;
	uint64_t now[COUNTS];  /* all that it did */
	uint64_t told[COUNTS]; /* what of it is in a series, its own or that of the others */
	struct counted_memory memory;
	struct process process; /* a copy: the watch forgets those that ended long ago */
	bool ended;
	uint64_t first_ns, ended_ns;
	uint64_t calls, score; /* on this page; and of late */
	bool chosen;
	bool asked; /* whose it is */
	uint64_t person;
	uint64_t page; /* that it was on last */
	UT_hash_handle hh;
};

struct counts {
	uint64_t begin_ns, page;
	struct counted *processes;
	uint64_t totals[COUNTS], rest[COUNTS]; /* rest: of those that are not told apart any more */
	struct counted_memory memory;
	uint64_t peaks[MEMORY_COUNT];
	uint64_t seen;
	struct counted_process other;
	const struct counted_process **shown;
	size_t n_shown, over_share;
	uint64_t (*person)(pid_t pid);
};

static uint64_t realtime_of(uint64_t monotonic_ns)
{
	return clock_of_ns(CLOCK_REALTIME) - (clock_now_ns() - monotonic_ns);
}

struct counts *counts_new(uint64_t begin_ns)
{
	struct counts *counts = xcalloc(1, sizeof(*counts));

	counts->begin_ns = counts->other.since_ns = begin_ns;
	counts->other.created_ns = realtime_of(begin_ns);
	return counts;
}

static void drop(struct counts *counts, struct counted *counted)
{
	MAP_DROP(counts->processes, counted);
}

void counts_free(struct counts *counts)
{
	struct counted *counted, *next;

	if (!counts)
		return;
	HASH_ITER (hh, counts->processes, counted, next) {
		drop(counts, counted);
	}
	free(counts->shown);
	free(counts);
}

/* ---- a page -------------------------------------------------------------------------------- */

static struct counted *find(struct counts *counts, const struct watch_page *page,
                            const struct process *process, bool ended)
{
	struct counted *counted = MAP_FIND(counts->processes, &process->id);

	if (!counted) {
		counted = MAP_ADD(counts->processes, id, &process->id);
		counted->first_ns = page->before_ns;
		counts->seen++;
	}
	if (counted->page != counts->page) {
		counted->page = counts->page;
		memset(counted->now, 0, sizeof(counted->now));
		memset(&counted->memory, 0, sizeof(counted->memory));
	}
	counted->process = *process;
	if (ended && !counted->ended)
		counted->ended_ns = page->time_ns;
	counted->ended |= ended;
	return counted;
}

/* Where to count what a row says. All that is no longer told apart has no number of a process. */
static uint64_t *row_of(struct counts *counts, const struct watch_page *page,
                        const struct process *process, bool ended)
{
	return process->pid ? find(counts, page, process, ended)->now : counts->rest;
}

static void take_launches(struct counts *counts, const struct watch_page *page)
{
	for (size_t i = 0; page->launches && i < page->launches->n_kernels; i++) {
		const struct watch_kernel *kernel = &page->launches->kernels[i];
		uint64_t *now = row_of(counts, page, kernel->process, kernel->ended);

		now[kernel->kernel ? COUNT_LAUNCHES : COUNT_GRAPH_LAUNCHES] += kernel->count;
		now[COUNT_LAUNCH_NS] += kernel->ns;
	}
}

static void take_copies(struct counts *counts, const struct watch_page *page)
{
	for (size_t i = 0; page->copies && i < page->copies->n_rows; i++) {
		const struct watch_copies_row *row = &page->copies->rows[i];
		uint64_t *now = row_of(counts, page, row->process, row->ended);

		if (row->set) {
			now[COUNT_SETS] += row->calls;
			now[COUNT_SET_BYTES] += row->bytes;
			continue;
		}
		now[COUNT_COPIES + row->direction] += row->calls;
		now[COUNT_COPY_BYTES + row->direction] += row->bytes;
		now[COUNT_COPY_NS + row->direction] += row->ns;
	}
}

static void take_memory(struct counts *counts, const struct watch_page *page)
{
	const struct watch_memory *memory = page->memory;

	for (size_t i = 0; memory && i < memory->n_totals; i++) {
		const struct watch_memory_totals *row = &memory->totals[i];
		uint64_t *now = row_of(counts, page, row->process, row->ended);

		now[COUNT_ALLOCATIONS + row->kind] += row->allocated.count;
		now[COUNT_ALLOCATED_BYTES + row->kind] += row->allocated.bytes;
		now[COUNT_FREES + row->kind] += row->freed.count;
		if (row->process->pid)
			find(counts, page, row->process, row->ended)->memory.live[row->kind] +=
				row->live.bytes;
	}
	for (size_t i = 0; memory && i < memory->n_processes; i++) {
		const struct watch_process_memory *row = &memory->processes[i];

		if (row->process->pid)
			find(counts, page, row->process, row->ended)->memory.peak = row->peak_bytes;
	}
}

/* Calls that came when CUDA had been shut down are what libraries do at the end of a process. */
bool counts_is_error(const struct watch_result *row)
{
	enum api_layer layer = row->function ? row->function->layer : LAYER_DRIVER;

	return row->result && !cuda_error_is_status(layer, row->result) &&
	       !cuda_error_is_shutdown(layer, row->result);
}

static void take_results(struct counts *counts, const struct watch_page *page)
{
	for (size_t i = 0; page->results && i < page->results->n_rows; i++) {
		const struct watch_result *row = &page->results->rows[i];
		uint64_t *now = row_of(counts, page, row->process, row->ended);

		if (counts_is_error(row))
			now[COUNT_ERRORS] += row->count;
		if (row->function && row->function->api && api_op(row->function->api) == OP_SYNC) {
			now[COUNT_SYNCS] += row->count;
			now[COUNT_SYNC_NS] += row->ns;
		}
	}
}

static void add_counts(uint64_t *into, const uint64_t *from)
{
	for (size_t i = 0; i < COUNTS; i++)
		into[i] += from[i];
}

/*
 * A sum may be mended downwards by a call or two, which is not told. Sizes are the word of
 * processes, and a few made-up ones make a sum run over: it goes on from there, as a counter does
 * that begins anew. To keep the highest would hide all that comes later.
 */
static uint64_t grown(uint64_t before, uint64_t now)
{
	return now < before && before - now < MENDED_MOST ? before : now;
}

static void take_totals(struct counts *counts)
{
	uint64_t sums[COUNTS];

	memcpy(sums, counts->rest, sizeof(sums));
	memset(&counts->memory, 0, sizeof(counts->memory));
	for (struct counted *c = counts->processes; c; c = c->hh.next) {
		add_counts(sums, c->now);
		for (size_t kind = 0; kind < MEMORY_COUNT; kind++)
			counts->memory.live[kind] += c->memory.live[kind];
	}
	for (size_t i = 0; i < COUNTS; i++)
		counts->totals[i] = grown(counts->totals[i], sums[i]);
	for (size_t kind = 0; kind < MEMORY_COUNT; kind++) {
		uint64_t live = counts->memory.live[kind];

		counts->peaks[kind] = live > counts->peaks[kind] ? live : counts->peaks[kind];
	}
}

/* ---- who has a series ---------------------------------------------------------------------- */

static uint64_t mib_of(const struct counted_memory *memory)
{
	uint64_t bytes = 0;

	for (size_t kind = 0; kind < MEMORY_VMM_VA; kind++)
		bytes += memory->live[kind];
	return bytes >> 20;
}

static uint64_t calls_of(const uint64_t *counts)
{
	uint64_t calls = counts[COUNT_LAUNCHES] + counts[COUNT_GRAPH_LAUNCHES] +
	                 counts[COUNT_SETS] + counts[COUNT_SYNCS];

	for (size_t i = 0; i < DIRECTION_COUNT; i++)
		calls += counts[COUNT_COPIES + i];
	for (size_t i = 0; i < MEMORY_COUNT; i++)
		calls += counts[COUNT_ALLOCATIONS + i] + counts[COUNT_FREES + i];
	return calls;
}

/* A half of what it was before, and what came since. Who has a series counts twice. */
static void take_score(struct counted *c)
{
	uint64_t calls = calls_of(c->now);

	c->score = c->score / 2 + (calls > c->calls ? calls - c->calls : 0);
	c->calls = calls;
	c->chosen = false;
}

static uint64_t rank(const struct counted *c)
{
	uint64_t rank = 1 + c->score + CALLS_OF_MIB * mib_of(&c->memory);

	if (c->ended)
		return 0;
	return c->has_series ? 2 * rank : rank;
}

static int by_rank(const void *left, const void *right)
{
	const struct counted *a = *(const struct counted *const *)left,
			     *b = *(const struct counted *const *)right;
	uint64_t of_a = rank(a), of_b = rank(b);

	if (of_a != of_b)
		return of_a > of_b ? -1 : 1;
	if (a->has_series != b->has_series)
		return a->has_series ? -1 : 1;
	if (a->ended && a->ended_ns != b->ended_ns)
		return a->ended_ns > b->ended_ns ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static bool is_candidate(const struct counted *c, const struct counts_options *options,
                         uint64_t now_ns)
{
	if (c->ended)
		return c->has_series && now_ns - c->ended_ns < LINGER_NS;
	return c->has_series || now_ns - c->first_ns >= options->age_ns;
}

/* The program that a process was before its exec has the same number, and may have its name. */
static bool is_replaced(struct counted *const *list, size_t n, const struct counted *c)
{
	for (size_t i = 0; c->ended && i < n; i++) {
		if (list[i] != c && list[i]->process.pid == c->process.pid)
			return true;
	}
	return false;
}

static void begin_series(struct counted *c, uint64_t now_ns)
{
	bool all = true;

	for (size_t i = 0; i < COUNTS; i++)
		all &= !c->told[i];
	c->has_series = true;
	c->shown = (struct counted_process){ .since_ns = all ? c->first_ns : now_ns };
	c->shown.created_ns = realtime_of(c->shown.since_ns);
}

/* What was not in a series yet. */
static void tell(struct counted *c, uint64_t *series)
{
	for (size_t i = 0; i < COUNTS; i++) {
		if (c->now[i] <= c->told[i])
			continue;
		series[i] += c->now[i] - c->told[i];
		c->told[i] = c->now[i];
	}
}

static void show(struct counts *counts, struct counted *c, uint64_t now_ns)
{
	if (!c->has_series)
		begin_series(c, now_ns);
	tell(c, c->shown.counts);
	c->shown.process = &c->process;
	c->shown.ended = c->ended;
	c->shown.memory = c->memory;
	counts->shown[counts->n_shown++] = &c->shown;
}

static void hide(struct counts *counts, struct counted *c, const struct counts_options *options,
                 uint64_t now_ns)
{
	struct counted_memory *other = &counts->other.memory;

	c->has_series = false;
	for (size_t kind = 0; kind < MEMORY_COUNT; kind++)
		other->live[kind] += c->memory.live[kind];
	if (c->ended || now_ns - c->first_ns >= options->age_ns)
		tell(c, counts->other.counts);
}

static uint64_t person_of(const struct counts *counts, struct counted *c)
{
	if (!counts->person)
		return PERSON_ROOT;
	if (!c->asked && !c->ended) {
		c->asked = true;
		c->person = counts->person((pid_t)c->process.pid);
	}
	return c->asked ? c->person : PERSON_UNKNOWN;
}

/* A list in the order of ranks, of those that could have a series. */
struct ranking {
	struct counted **list;
	size_t n;
	struct quota shares;
};

/* Once with shares, and once without them. */
static void choose_some(struct counts *counts, struct ranking *ranking, size_t top,
                        bool with_shares, uint64_t now_ns)
{
	for (size_t i = 0; i < ranking->n && counts->n_shown < top; i++) {
		struct counted *c = ranking->list[i];

		if (c->chosen || is_replaced(ranking->list, ranking->n, c) ||
		    (with_shares && quota_take(&ranking->shares, person_of(counts, c), 0, 1)))
			continue;
		c->chosen = true;
		show(counts, c, now_ns);
	}
}

/* Those who would have been among the first. */
static size_t over_share(const struct ranking *ranking, size_t top)
{
	size_t first = 0, n = 0;

	for (size_t i = 0; i < ranking->n && first < top; i++) {
		if (is_replaced(ranking->list, ranking->n, ranking->list[i]))
			continue;
		first++;
		n += !ranking->list[i]->chosen;
	}
	return n;
}

static void choose(struct counts *counts, const struct counts_options *options, uint64_t now_ns)
{
	size_t n = HASH_COUNT(counts->processes);
	struct ranking ranking = { .list = xcalloc(n + 1, sizeof(struct counted *)),
		                   .shares = quota_of_places(options->top) };

	for (struct counted *c = counts->processes; c; c = c->hh.next) {
		take_score(c);
		if (is_candidate(c, options, now_ns))
			ranking.list[ranking.n++] = c;
	}
	qsort(ranking.list, ranking.n, sizeof(struct counted *), by_rank);
	counts->shown = xrealloc(counts->shown, (options->top + 1) * sizeof(*counts->shown));
	counts->n_shown = 0;
	memset(&counts->other.memory, 0, sizeof(counts->other.memory));
	choose_some(counts, &ranking, options->top, true, now_ns);
	choose_some(counts, &ranking, options->top, false, now_ns);
	counts->over_share = over_share(&ranking, options->top);
	for (struct counted *c = counts->processes; c; c = c->hh.next) {
		if (!c->chosen)
			hide(counts, c, options, now_ns);
	}
	quota_free(&ranking.shares);
	free(ranking.list);
}

/*
 * Those that the watch does not tell apart any more: all that they did had been told before, and
 * is in `rest` now. Their series stay for as long as those of others that ended, however many end
 * after them: there are no more of them than series.
 */
static void forget(struct counts *counts, uint64_t now_ns)
{
	struct counted *c, *next;

	HASH_ITER (hh, counts->processes, c, next) {
		if (c->page == counts->page)
			continue;
		if (c->ended && c->has_series && now_ns - c->ended_ns < LINGER_NS)
			memset(c->now, 0, sizeof(c->now));
		else
			drop(counts, c);
	}
}

void counts_take(struct counts *counts, const struct counts_options *options,
                 const struct watch_page *page)
{
	counts->page++;
	counts->person = options->person;
	memset(counts->rest, 0, sizeof(counts->rest));
	take_launches(counts, page);
	take_copies(counts, page);
	take_memory(counts, page);
	take_results(counts, page);
	forget(counts, page->time_ns);
	take_totals(counts);
	choose(counts, options, page->time_ns);
}

/* ---- asking -------------------------------------------------------------------------------- */

const uint64_t *counts_totals(const struct counts *counts)
{
	return counts->totals;
}

const struct counted_memory *counts_memory(const struct counts *counts)
{
	return &counts->memory;
}

const uint64_t *counts_peaks(const struct counts *counts)
{
	return counts->peaks;
}

size_t counts_running(const struct counts *counts)
{
	size_t running = 0;

	for (const struct counted *c = counts->processes; c; c = c->hh.next)
		running += !c->ended;
	return running;
}

uint64_t counts_seen(const struct counts *counts)
{
	return counts->seen;
}

size_t counts_shown(const struct counts *counts, const struct counted_process *const **shown)
{
	*shown = counts->shown;
	return counts->n_shown;
}

const struct counted_process *counts_other(const struct counts *counts)
{
	return &counts->other;
}

size_t counts_over_share(const struct counts *counts)
{
	return counts->over_share;
}

uint64_t counts_person(const struct counts *counts, const struct process *process)
{
	struct counted *counted = MAP_FIND(counts->processes, &process->id);

	return counted ? person_of(counts, counted) : PERSON_UNKNOWN;
}
