// SPDX-License-Identifier: MIT
/* Live allocations by place, read from the maps of the eBPF programs. */
#include "capture/watch/watch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/map.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/fold.h"

/* Map "fold_processes", word by word. */
enum { CONTEXT_NS, LIVE_BYTES, HANDLE_BYTES, PEAK_BYTES, UNKNOWN_FREES, FAILED };

#define STACK_BYTES  128  /* of a number that is known; stacks themselves are the sampler's */
#define FAILURES_MAX 4096 /* rows; then those of merged processes are one for each function */

struct stack_key {
	uint64_t id; /* the programs' */
	uint32_t process, unused;
};

struct known_stack {
	struct stack_key key;
	uint32_t tgid;
	const struct stack *stack;
	unsigned pages; /* that it is still wanted for, once its process has ended; else 0 */
	UT_hash_handle hh;
};

/* What became of a process's live allocations when it ended; data of a row of totals. */
struct leftover {
	struct watch_count exit, context;
};

struct watch_memory_part {
	struct watcher *watcher;
	struct programs *programs;
	struct ledger *totals, *processes, *failures;
	struct known_stack *stacks;
	uint64_t no_room;              /* stacks that were not kept */
	struct fold_table live;        /* as it was last read */
	struct watch_allocation *left; /* by processes that ended since the page before */
	size_t n_left;
	struct watch_memory page;
};

static struct ledger *new_ledger(const struct watch_memory_part *part, const char *map,
                                 size_t key_bytes, size_t value_bytes, size_t max_at)
{
	/* all three keys begin alike */
	const struct ledger_layout layout = { .map = map,
		                              .key_bytes = key_bytes,
		                              .words = value_bytes / 8,
		                              .tgid_at = 8,
		                              .born_at = 0,
		                              .max_at = max_at };

	return ledger_new(part->programs, &layout);
}

struct watch_memory_part *watch_memory_new(struct watcher *watcher)
{
	struct watch_memory_part *part = xcalloc(1, sizeof(*part));

	part->watcher = watcher;
	part->programs = watcher_options_of(watcher)->programs;
	part->totals = new_ledger(part, "fold_totals", sizeof(struct fold_process_key),
	                          sizeof(struct fold_totals), 0);
	part->processes = new_ledger(part, "fold_processes", sizeof(struct fold_process_key),
	                             sizeof(struct fold_process), PEAK_BYTES);
	part->failures = new_ledger(part, "fold_failures", sizeof(struct fold_failure_key),
	                            sizeof(struct fold_count), 0);
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
	free((void *)part->page.totals);
	free((void *)part->page.processes);
	free((void *)part->page.failures);
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
	ledger_free(part->totals);
	ledger_free(part->processes);
	ledger_free(part->failures);
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

	if (stack) /* the programs had forgotten that they sent it */
		return;
	if (!told ||
	    !budget_take(watcher_options_of(part->watcher)->budget, process->pid, STACK_BYTES)) {
		part->no_room++;
		return;
	}
	stack = xcalloc(1, sizeof(*stack));
	stack->key = (struct stack_key){ .id = id, .process = process->id };
	stack->tgid = process->pid;
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

static int read_live(struct watch_memory_part *part)
{
	fold_table_free(&part->live);
	return fold_read(part->programs, "fold_live", sizeof(struct fold_memory_key),
	                 sizeof(struct fold_allocation), &part->live);
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

	return live.key->space == FOLD_SPACE_ADDRESS &&
	       live.value->time_ns < ledger_row(part->processes, &key)->now[CONTEXT_NS];
}

static struct leftover *leftover_of(struct watch_memory_part *part, struct fold_process_key key)
{
	struct ledger_row *row = ledger_row(part->totals, &key);

	if (!row->data)
		row->data = xcalloc(1, sizeof(struct leftover));
	return row->data;
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
	struct leftover *left = leftover_of(part, process_key(live.key, live.value->memory));

	add(with_context(part, live) ? &left->context : &left->exit, live.value->bytes);
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
		fold_delete(part->programs, "fold_live", live.key);
	}
}

int watch_memory_settle(struct watch_memory_part *part)
{
	int r = ledger_settle(part->processes, watcher_is_settling, part->watcher);

	if (!r)
		r = ledger_settle(part->totals, watcher_is_settling, part->watcher);
	if (!r)
		r = ledger_settle(part->failures, watcher_is_settling, part->watcher);
	if (r || !had_memory(part))
		return r;
	last_pages(part);
	r = read_live(part);
	settle_live(part);
	return r;
}

/* ---- processes that are not told apart any more --------------------------------------------- */

/* The key that a row of a merged process goes by from now on; false: it stays. */
static bool merged_key(const struct watch_memory_part *part, const struct ledger *ledger,
                       const struct ledger_row *row, void *key, size_t bytes)
{
	const struct ledger_process process = ledger_process_of(ledger, row->key);
	struct fold_process_key *begin = key; /* all three keys begin alike */

	if (!watcher_process(part->watcher, process)->merged)
		return false;
	memcpy(key, row->key, bytes);
	begin->born_ns = watched_ended().born_ns;
	begin->tgid = (uint32_t)watched_ended().tgid;
	return true;
}

static void add_leftover(struct leftover *into, const struct leftover *from)
{
	into->exit.count += from->exit.count;
	into->exit.bytes += from->exit.bytes;
	into->context.count += from->context.count;
	into->context.bytes += from->context.bytes;
}

static void merge_totals(struct watch_memory_part *part)
{
	struct ledger_row *row, *next;
	struct fold_process_key key;

	for (row = ledger_first(part->totals); row; row = next) {
		struct leftover left = { 0 };

		next = row->hh.next;
		if (!merged_key(part, part->totals, row, &key, sizeof(key)))
			continue;
		if (row->data)
			left = *(const struct leftover *)row->data;
		ledger_merge(part->totals, row, &key);
		add_leftover(leftover_of(part, key), &left);
	}
}

static void merge_processes(struct watch_memory_part *part)
{
	struct ledger_row *row, *next;
	struct fold_process_key key;

	for (row = ledger_first(part->processes); row; row = next) {
		next = row->hh.next;
		if (merged_key(part, part->processes, row, &key, sizeof(key)))
			ledger_merge(part->processes, row, &key);
	}
}

static void merge_failures(struct watch_memory_part *part)
{
	struct ledger_row *row, *next;
	struct fold_failure_key key;

	for (row = ledger_first(part->failures); row; row = next) {
		next = row->hh.next;
		if (!merged_key(part, part->failures, row, &key, sizeof(key)))
			continue;
		if (ledger_count(part->failures) > FAILURES_MAX)
			key.result = INT32_MAX; /* no library has so many errors */
		ledger_merge(part->failures, row, &key);
	}
}

void watch_memory_merge(struct watch_memory_part *part)
{
	drop_page(part);
	merge_totals(part);
	merge_processes(part);
	merge_failures(part);
}

/* ---- pages --------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_age(const void *left, const void *right)
{
	const struct watch_allocation *a = left, *b = right;
	int order = compare(a->process->id, b->process->id);

	if (!order)
		order = compare(a->time_ns, b->time_ns);
	return order ? order : compare(a->address, b->address);
}

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

static int by_process_and_kind(const void *left, const void *right)
{
	const struct watch_memory_totals *a = left, *b = right;
	int order = compare(a->process->id, b->process->id);

	return order ? order : compare(a->kind, b->kind);
}

static struct watch_count fold_to_watch(struct fold_count count)
{
	return (struct watch_count){ count.count, count.bytes };
}

static void fill_totals(struct watch_memory_part *part, struct ledger_row *row,
                        struct watch_memory_totals *totals)
{
	const struct fold_process_key *key = row->key;
	const struct fold_totals *now = (const struct fold_totals *)row->now;
	const struct leftover *left = row->data;
	const struct watched *process =
		watcher_process(part->watcher, ledger_process_of(part->totals, row->key));

	totals->process = process->process;
	totals->ended = process->ended;
	totals->kind = key->memory;
	totals->allocated = fold_to_watch(now->allocated);
	totals->freed = fold_to_watch(now->freed);
	totals->replaced = fold_to_watch(now->replaced);
	totals->context = fold_to_watch(now->context);
	totals->untracked = fold_to_watch(now->untracked);
	if (left) {
		totals->exit = left->exit;
		totals->context.count += left->context.count;
		totals->context.bytes += left->context.bytes;
	}
}

static struct watch_memory_totals *find_totals(struct watch_memory_totals *list, size_t count,
                                               const struct process *process, enum api_memory kind)
{
	const struct watch_memory_totals key = { .process = process, .kind = kind };

	return bsearch(&key, list, count, sizeof(*list), by_process_and_kind);
}

static void page_totals(struct watch_memory_part *part)
{
	struct watch_memory_totals *list = xcalloc(ledger_count(part->totals) + 1, sizeof(*list));
	size_t count = 0;

	for (struct ledger_row *row = ledger_first(part->totals); row; row = row->hh.next)
		fill_totals(part, row, &list[count++]);
	qsort(list, count, sizeof(*list), by_process_and_kind);
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

/* ---- processes and failures ---------------------------------------------------------------- */

static int by_id(const void *left, const void *right)
{
	const struct watch_process_memory *a = left, *b = right;

	return compare(a->process->id, b->process->id);
}

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
	struct watch_process_memory *list =
		xcalloc(ledger_count(part->processes) + 1, sizeof(*list));
	size_t count = 0;

	for (struct ledger_row *row = ledger_first(part->processes); row; row = row->hh.next) {
		const struct watched *process = watcher_process(
			part->watcher, ledger_process_of(part->processes, row->key));
		struct watch_process_memory *memory = &list[count++];

		memory->process = process->process;
		memory->ended = process->ended;
		memory->peak_bytes = row->now[PEAK_BYTES];
		memory->unknown_frees = row->now[UNKNOWN_FREES];
		memory->failed = row->now[FAILED];
		memory->live = live_of(&part->page, process->process);
	}
	qsort(list, count, sizeof(*list), by_id);
	part->page.processes = list;
	part->page.n_processes = count;
}

static int most_failed(const void *left, const void *right)
{
	const struct watch_failure *a = left, *b = right;
	int order = compare(b->count, a->count);

	return order ? order : compare(a->process->id, b->process->id);
}

static void page_failures(struct watch_memory_part *part)
{
	struct pipeline *pipeline = watcher_options_of(part->watcher)->pipeline;
	struct watch_failure *list = xcalloc(ledger_count(part->failures) + 1, sizeof(*list));
	size_t count = 0;

	for (struct ledger_row *row = ledger_first(part->failures); row; row = row->hh.next) {
		const struct fold_failure_key *key = row->key;

		list[count++] = (struct watch_failure){
			.process = watcher_process(part->watcher,
			                           ledger_process_of(part->failures, key))
			                   ->process,
			.function = pipeline_function(pipeline, key->hook),
			.result = key->result,
			.count = row->now[0],
			.bytes = row->now[1],
		};
	}
	qsort(list, count, sizeof(*list), most_failed);
	part->page.failures = list;
	part->page.n_failures = count;
}

int watch_memory_page(struct watch_memory_part *part, uint64_t now_ns,
                      const struct watch_memory **page)
{
	int r;

	drop_page(part);
	drop_stacks(part);
	r = ledger_read(part->processes);
	if (!r)
		r = ledger_read(part->totals);
	if (!r)
		r = ledger_read(part->failures);
	if (!r)
		r = read_live(part);
	part->page.older_ns = watcher_options_of(part->watcher)->watch->older_ns;
	part->page.no_stack = programs_state(part->programs)->lost_stacks + part->no_room;
	part->page.too_fast = programs_state(part->programs)->stacks_left_out;
	page_allocations(part);
	page_places(part, now_ns);
	page_totals(part);
	page_processes(part);
	page_failures(part);
	*page = &part->page;
	return r;
}
