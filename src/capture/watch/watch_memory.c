// SPDX-License-Identifier: MIT
/* Live allocations by place, read from the maps of the eBPF programs. */
#include "base/order.h"
#include "capture/watch/watch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "capture/stacks/sampler.h"
#include "probe/fold.h"

#define STACK_BYTES   128 /* of a number that is known; stacks themselves are the sampler's */
#define RENEW_NS      2000000000ull /* for calls that go on when stacks are asked for anew */
#define RENEW_REST_OF 20            /* so many times as long as a renewal took there is none: 5 % */
#define RENEW_KNOWN   32768         /* more stacks, or fewer: half of what a process may have */

struct stack_key {
	uint64_t id; /* the programs' */
	uint32_t process, unused;
};

struct known_stack {
	struct stack_key key;
	uint32_t tgid;
	uint64_t person;  /* whose process it is */
	uint64_t renewal; /* since which one it was told, or seen to be of live memory */
	const struct stack *stack;
	unsigned pages; /* that it is still wanted for, once its process has ended; else 0 */
	UT_hash_handle hh;
};

/* How stacks that nothing is of are given back. */
struct renewal {
	struct sampler *sampler; /* NULL: they stay */
	uint64_t begun, over;    /* renewals */
	uint64_t next_ns;        /* when one is to begin, or to be over, at the earliest */
	uint64_t no_room;        /* as it was after the last one, and how many were known: */
	unsigned known, most;    /* then, and the most since */
};

struct watch_memory_part {
	struct watcher *watcher;
	struct programs *programs;
	struct watch_sums *sums;
	struct ledger *totals, *processes; /* of these */
	struct known_stack *stacks;
	uint64_t no_room; /* stacks that were not kept */
	struct renewal renewal;
	struct fold_table live;        /* as it was last read */
	struct watch_allocation *left; /* by processes that ended since the page before */
	size_t n_left;
	struct watch_memory page;
};

struct watch_memory_part *watch_memory_new(struct watcher *watcher, struct watch_sums *sums)
{
	struct watch_memory_part *part = xcalloc(1, sizeof(*part));

	part->watcher = watcher;
	part->programs = watcher_options_of(watcher)->programs;
	part->sums = sums;
	part->totals = watch_sums_ledger(sums, WATCH_SUM_TOTALS);
	part->processes = watch_sums_ledger(sums, WATCH_SUM_MEMORY);
	return part;
}

static void stack_free(struct watch_memory_part *part, struct known_stack *stack)
{
	HASH_DEL(part->stacks, stack);
	budget_give(watcher_options_of(part->watcher)->budget, stack->tgid, STACK_BYTES);
	free(stack);
}

/* The page that tells what a process left behind is the last one that its stacks are in. */
static void drop_stacks(struct watch_memory_part *part)
{
	struct known_stack *stack, *next;

	HASH_ITER (hh, part->stacks, stack, next) {
		if (stack->pages && !--stack->pages)
			stack_free(part, stack);
	}
}

static void drop_page(struct watch_memory_part *part)
{
	free((void *)part->page.allocations);
	free((void *)part->page.places);
	free((void *)part->page.left);
	memset(&part->page, 0, sizeof(part->page));
	fold_table_free(&part->live);
}

void watch_memory_free(struct watch_memory_part *part)
{
	struct known_stack *stack, *next;

	if (!part)
		return;
	HASH_ITER (hh, part->stacks, stack, next) {
		stack_free(part, stack);
	}
	free(part->left);
	drop_page(part);
	free(part);
}

/* ---- stacks -------------------------------------------------------------------------------- */

static struct known_stack *find_stack(const struct watch_memory_part *part,
                                      const struct process *process, uint64_t id)
{
	const struct stack_key key = { .id = id, .process = process->id };

	return MAP_FIND(part->stacks, &key);
}

void watch_memory_stack(struct watch_memory_part *part, const struct process *process, uint64_t id,
                        const struct stack *told)
{
	struct known_stack *stack = find_stack(part, process, id);

	if (stack) { /* the programs had forgotten that they sent it, or were asked for it */
		stack->renewal = part->renewal.begun;
		return;
	}
	if (!told ||
	    !budget_take(watcher_options_of(part->watcher)->budget, process->pid, STACK_BYTES)) {
		part->no_room++;
		return;
	}
	stack = xcalloc(1, sizeof(*stack));
	stack->key = (struct stack_key){ .id = id, .process = process->id };
	stack->tgid = process->pid;
	stack->person = process->person;
	stack->renewal = part->renewal.begun;
	stack->stack = told;
	HASH_ADD(hh, part->stacks, key, sizeof(stack->key), stack);
}

/* ---- live allocations ---------------------------------------------------------------------- */

struct watch_memory_live {
	const struct fold_memory_key *key;
	const struct fold_allocation *value;
};

static struct watch_memory_live live_at(const struct watch_memory_part *part, size_t i)
{
	return (struct watch_memory_live){ (const struct fold_memory_key *)part->live.keys + i,
		                           (const struct fold_allocation *)part->live.values + i };
}

/*
 * The programs keep count of the rows that users have. Where the kernel left one of them out, that
 * would stay wrong. So what there was before the map was read is put right, and what was added
 * meanwhile stays.
 */
static void count_rows(struct watch_memory_part *part, const int64_t before[WIRE_USERS + 1])
{
	struct wire_state *state = programs_state(part->programs);
	AT_END(at_end_free) int64_t *rows = xcalloc(WIRE_USERS, sizeof(*rows));

	for (size_t i = 0; i < part->live.count; i++)
		rows[live_at(part, i).value->user % WIRE_USERS]++;
	for (uint32_t i = 0; i < WIRE_USERS; i++) {
		if (rows[i] != before[i])
			__atomic_fetch_add(&state->user_rows[i], rows[i] - before[i],
			                   __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&state->live_rows, (int64_t)part->live.count - before[WIRE_USERS],
	                   __ATOMIC_RELAXED);
}

static int read_live(struct watch_memory_part *part)
{
	const struct wire_state *state = programs_state(part->programs);
	AT_END(at_end_free) int64_t *before = xcalloc(WIRE_USERS + 1, sizeof(*before));
	int r;

	fold_table_free(&part->live);
	memcpy(before, (const void *)state->user_rows, WIRE_USERS * sizeof(*before));
	before[WIRE_USERS] = state->live_rows;
	r = fold_read(part->programs, "fold_live", sizeof(struct fold_memory_key),
	              sizeof(struct fold_allocation), &part->live);
	if (!r)
		count_rows(part, before);
	return r;
}

static struct fold_process_key process_key(const struct fold_memory_key *key, uint32_t memory)
{
	return (struct fold_process_key){ .born_ns = key->born_ns,
		                          .tgid = key->tgid,
		                          .memory = memory };
}

/* Neither addresses that are mapped or of graphs, nor memory of other processes, without bytes. */
static bool is_counted(struct watch_memory_live live)
{
	return live.key->space != FOLD_SPACE_MAPPED && live.key->space != FOLD_SPACE_GRAPH &&
	       (live.key->space != FOLD_SPACE_HANDLE || live.value->bytes);
}

static bool is_memory(struct watch_memory_live live)
{
	return is_counted(live) && live.value->memory != MEMORY_VMM_VA;
}

/* See with_context() of the programs. */
static bool with_context(const struct watch_memory_part *part, struct watch_memory_live live)
{
	const struct fold_process_key key = process_key(live.key, 0);
	const struct fold_process *process =
		(const struct fold_process *)ledger_row(part->processes, &key)->now;

	return live.key->space == FOLD_SPACE_ADDRESS && live.value->time_ns < process->context_ns;
}

static void add(struct watch_count *count, uint64_t bytes)
{
	count->count++;
	count->bytes += bytes;
}

static void fill_allocation(struct watch_memory_part *part, struct watch_memory_live live,
                            struct watch_allocation *a)
{
	struct ledger_process process = { live.key->born_ns, live.key->tgid };
	struct pipeline *pipeline = watcher_options_of(part->watcher)->pipeline;
	const struct known_stack *stack;

	a->process = watcher_process(part->watcher, process)->process;
	stack = live.value->stack ? find_stack(part, a->process, live.value->stack) : NULL;
	a->kind = live.value->memory;
	a->function = pipeline_function(pipeline, live.value->hook);
	a->stack = stack ? stack->stack : NULL;
	a->address = live.key->address;
	a->bytes = live.value->bytes;
	a->time_ns = live.value->time_ns;
}

/* ---- stacks that nothing is of --------------------------------------------------------------- */

/*
 * Calls send their stacks again that began after sampler_send_anew(), so what is known of others is
 * of live memory, or wanted for a page, or nobody's. A call that took longer than RENEW_NS, on a
 * stack of which there was no live memory, has none then: its place is not known.
 */

void watch_memory_renews(struct watch_memory_part *part, struct sampler *sampler)
{
	part->renewal.sampler = sampler;
}

static void mark_live(struct watch_memory_part *part)
{
	for (size_t i = 0; i < part->live.count; i++) {
		struct watch_memory_live live = live_at(part, i);
		struct ledger_process process = { live.key->born_ns, live.key->tgid };
		struct known_stack *stack;

		if (!live.value->stack)
			continue;
		stack = find_stack(part, watcher_process(part->watcher, process)->process,
		                   live.value->stack);
		if (stack)
			stack->renewal = part->renewal.begun;
	}
}

static const struct stack *move(struct watch_memory_part *part, uint32_t process, uint64_t person,
                                const struct stack *stack)
{
	const struct stack *moved = sampler_move(part->renewal.sampler, process, person, stack);

	part->no_room += stack && !moved;
	return moved;
}

static void move_held(void *data)
{
	struct watch_memory_part *part = data;
	struct known_stack *stack, *next;

	HASH_ITER (hh, part->stacks, stack, next) {
		bool wanted = stack->renewal == part->renewal.begun || stack->pages;

		stack->stack =
			wanted ? move(part, stack->key.process, stack->person, stack->stack) : NULL;
		if (!stack->stack)
			stack_free(part, stack);
	}
	for (size_t i = 0; i < part->n_left; i++) {
		struct watch_allocation *left = &part->left[i];

		left->stack = move(part, left->process->id, left->process->person, left->stack);
	}
}

static void renew(struct watch_memory_part *part, uint64_t now_ns)
{
	uint64_t begin_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID);
	struct renewal *renewal = &part->renewal;

	if (read_live(part))
		return;
	mark_live(part);
	sampler_renew(renewal->sampler, move_held, part);
	renewal->over = renewal->begun;
	renewal->no_room = part->no_room;
	renewal->known = renewal->most = HASH_COUNT(part->stacks);
	renewal->next_ns =
		now_ns + RENEW_REST_OF * (clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
}

/* Many more are known than were, or many fewer: of processes that have ended. */
static bool is_worn(struct watch_memory_part *part)
{
	struct renewal *renewal = &part->renewal;
	unsigned known = HASH_COUNT(part->stacks);

	if (known > renewal->most)
		renewal->most = known;
	return sampler_is_worn(renewal->sampler) || part->no_room > renewal->no_room ||
	       renewal->most > renewal->known + RENEW_KNOWN || renewal->most > known + RENEW_KNOWN;
}

void watch_memory_turn(struct watch_memory_part *part, uint64_t now_ns)
{
	struct renewal *renewal = &part->renewal;

	if (!renewal->sampler || now_ns < renewal->next_ns)
		return;
	if (renewal->over < renewal->begun) {
		renew(part, now_ns);
	} else if (is_worn(part)) {
		renewal->begun++;
		renewal->next_ns = now_ns + RENEW_NS;
		sampler_send_anew(renewal->sampler);
	}
}

static void keep_left(struct watch_memory_part *part, struct watch_memory_live live)
{
	part->left = vec_room(part->left, part->n_left, sizeof(*part->left));
	fill_allocation(part, live, &part->left[part->n_left++]);
}

/* Most processes that end never had any memory: for them the map need not be read. */
static bool had_memory(struct watch_memory_part *part)
{
	for (struct ledger_row *row = ledger_first(part->totals); row; row = row->hh.next) {
		if (watcher_is_settling(part->watcher, ledger_process_of(part->totals, row->key)))
			return true;
	}
	return false;
}

/* A row of totals is a process that had memory. */
static void last_pages(struct watch_memory_part *part)
{
	struct known_stack *stack, *next;

	HASH_ITER (hh, part->stacks, stack, next) {
		if (watcher_settles_number(part->watcher, stack->key.process))
			stack->pages = 2; /* one is dropped before the next is made */
	}
}

static void settle_one(struct watch_memory_part *part, struct watch_memory_live live)
{
	const struct fold_process_key key = process_key(live.key, live.value->memory);
	struct watch_totals *totals = (struct watch_totals *)ledger_row(part->totals, &key)->now;
	struct fold_count *count = with_context(part, live) ? &totals->map.context : &totals->exit;

	count->count++;
	count->bytes += live.value->bytes;
	if (is_memory(live) && !with_context(part, live))
		keep_left(part, live);
}

static void settle_live(struct watch_memory_part *part)
{
	for (size_t i = 0; i < part->live.count; i++) {
		struct watch_memory_live live = live_at(part, i);
		if (!watcher_is_settling(part->watcher, (struct ledger_process){ live.key->born_ns,
		                                                                 live.key->tgid }))
			continue;
		if (is_counted(live))
			settle_one(part, live);
		fold_delete_live(part->programs, live.key, live.value->user);
	}
}

void watch_memory_settle(struct watch_memory_part *part)
{
	if (!had_memory(part))
		return;
	last_pages(part);
	read_live(part);
	settle_live(part);
}

/* ---- pages --------------------------------------------------------------------------------- */

ORDER_BY(by_age, struct watch_allocation, UP(process->id), UP(time_ns), UP(address));

/* Those that went with their context are live in the map, so that a late free finds them. */
static void page_allocations(struct watch_memory_part *part)
{
	struct watch_allocation *list = xcalloc(part->live.count + 1, sizeof(*list));
	size_t count = 0;

	for (size_t i = 0; i < part->live.count; i++) {
		struct watch_memory_live live = live_at(part, i);

		if (is_memory(live) && !with_context(part, live))
			fill_allocation(part, live, &list[count++]);
	}
	qsort(list, count, sizeof(*list), by_age);
	part->page.allocations = list;
	part->page.n_allocations = count;
}

static void page_places(struct watch_memory_part *part, uint64_t now_ns)
{
	struct watch_memory *page = &part->page;

	page->places = watch_places_of(page->allocations, page->n_allocations, page->older_ns,
	                               now_ns, &page->n_places);
	page->left =
		watch_places_of(part->left, part->n_left, page->older_ns, now_ns, &page->n_left);
	part->n_left = 0;
}

/* ---- totals -------------------------------------------------------------------------------- */

static struct watch_memory_totals *find_totals(struct watch_memory_totals *list, size_t count,
                                               const struct process *process, enum api_memory kind)
{
	const struct watch_memory_totals key = { .process = process, .kind = kind };

	return bsearch(&key, list, count, sizeof(*list), watch_order_of_totals);
}

static void page_totals(struct watch_memory_part *part)
{
	size_t count;
	struct watch_memory_totals *list = watch_sums_rows(part->sums, WATCH_SUM_TOTALS, &count);

	for (size_t i = 0; i < part->live.count; i++) {
		struct watch_memory_live live = live_at(part, i);
		struct ledger_process process = { live.key->born_ns, live.key->tgid };
		struct watch_memory_totals *totals =
			find_totals(list, count, watcher_process(part->watcher, process)->process,
		                    live.value->memory);

		if (totals && is_counted(live))
			add(with_context(part, live) ? &totals->context : &totals->live,
			    live.value->bytes);
	}
	part->page.totals = list;
	part->page.n_totals = count;
}

/* ---- processes ---------------------------------------------------------------- */

/* Its live memory of all kinds but address space: its totals are next to each other. */
static struct watch_count live_of(const struct watch_memory *page, const struct process *process)
{
	struct watch_count live = { 0 };

	for (size_t i = watch_totals_find(page, process);
	     i < page->n_totals && page->totals[i].process == process; i++) {
		if (page->totals[i].kind == MEMORY_VMM_VA)
			continue;
		live.count += page->totals[i].live.count;
		live.bytes += page->totals[i].live.bytes;
	}
	return live;
}

static void page_processes(struct watch_memory_part *part)
{
	size_t count;
	struct watch_process_memory *list = watch_sums_rows(part->sums, WATCH_SUM_MEMORY, &count);

	for (size_t i = 0; i < count; i++)
		list[i].live = live_of(&part->page, list[i].process);
	part->page.processes = list;
	part->page.n_processes = count;
}

int watch_memory_page(struct watch_memory_part *part, uint64_t now_ns,
                      const struct watch_memory **page)
{
	int r;

	drop_page(part);
	drop_stacks(part);
	r = read_live(part);
	part->page.older_ns = watcher_options_of(part->watcher)->watch->older_ns;
	part->page.no_stack = programs_state(part->programs)->lost_stacks + part->no_room;
	part->page.too_fast = programs_state(part->programs)->stacks_left_out;
	part->page.stacks_turn = part->renewal.over;
	page_allocations(part);
	page_places(part, now_ns);
	page_totals(part);
	page_processes(part);
	part->page.failures =
		watch_sums_rows(part->sums, WATCH_SUM_FAILURES, &part->page.n_failures);
	*page = &part->page;
	return r;
}
