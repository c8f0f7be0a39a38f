// SPDX-License-Identifier: MIT
/* The sums of launches by kernel and shape, read from the maps of the eBPF programs. */
#include "base/order.h"
#include "capture/watch/watch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "probe/fold.h"

/* fold_launch_key.graph of rows that only user space has: see retire(). */
#define MERGED_KERNEL 2
#define MERGED_GRAPH  3

/* Names that kernels had when they were first launched. */
struct name_key {
	uint64_t handle;
	uint32_t process;    /* struct process's id */
	uint32_t generation; /* see fold_launch_key */
};

struct launch_name {
	struct name_key key;
	const struct kernel *kernel;
	UT_hash_handle hh;
};

/* A row on its way to a page. */
struct launch {
	const struct fold_launch_key *key;
	const struct fold_launch *now, *before;
	struct watched *process;
	const struct kernel *kernel; /* NULL: a graph */
	const struct kernel *merged; /* the same of a row of MERGED_KERNEL */
};

struct watch_launches_part {
	struct watcher *watcher;
	struct ledger *ledger;
	struct launch_name *names;
	uint16_t generation[WIRE_KERNELS_SLOTS]; /* before the page was read */
	struct watch_launches page;
	struct launch *rows;
	struct watch_kernel *kernels;
	struct watch_shape *shapes;
};

/* What rows that are not of a graph stand for where kernels are not told apart. */
static const struct kernel any_kernel = { .name = "[any kernel]", .mangled = "" };

static const struct wire_state *state_of(const struct watch_launches_part *part)
{
	return programs_state(watcher_options_of(part->watcher)->programs);
}

static bool tells_kernels(const struct watch_launches_part *part)
{
	return !(watcher_options_of(part->watcher)->watch->tools & WATCH_NO_KERNELS);
}

struct watch_launches_part *watch_launches_new(struct watcher *watcher, struct watch_sums *sums)
{
	struct watch_launches_part *part = xcalloc(1, sizeof(*part));

	part->watcher = watcher;
	part->ledger = watch_sums_ledger(sums, WATCH_SUM_LAUNCHES);
	return part;
}

static void drop_page(struct watch_launches_part *part)
{
	free(part->rows);
	free(part->kernels);
	free(part->shapes);
	part->rows = NULL;
	part->kernels = NULL;
	part->shapes = NULL;
}

void watch_launches_free(struct watch_launches_part *part)
{
	if (!part)
		return;
	MAP_FREE(part->names, free);
	drop_page(part);
	free(part);
}

/* ---- names --------------------------------------------------------------------------------- */

static struct launch_name *find_name(struct watch_launches_part *part, struct name_key key)
{
	return MAP_FIND(part->names, &key);
}

static const struct kernel *set_name(struct watch_launches_part *part, struct name_key key,
                                     uint32_t pid)
{
	struct pipeline *pipeline = watcher_options_of(part->watcher)->pipeline;
	struct launch_name *name = find_name(part, key);

	if (!name)
		name = MAP_ADD(part->names, key, &key);
	name->kernel = pipeline_kernel(pipeline, pid, key.handle);
	return name->kernel;
}

void watch_launches_first(struct watch_launches_part *part, const struct wire_call *record)
{
	const struct watcher_options *options = watcher_options_of(part->watcher);
	const struct hook *hook = modules_hook(options->modules, record->head.hook, NULL);
	const struct process *process;
	struct name_key key = { .generation = record->generation };
	struct fold_plan plan;

	if (!hook || !hook->api || !tells_kernels(part))
		return;
	fold_plan(hook->api, ABI_NATIVE, &plan);
	if (plan.op != FOLD_LAUNCH || !plan.at[FOLD_AT_HANDLE])
		return;
	memcpy(&key.handle, (const char *)record->word + FOLD_WHERE_BYTE(plan.at[FOLD_AT_HANDLE]),
	       sizeof(key.handle));
	process = pipeline_process(options->pipeline, record->head.tgid);
	key.process = process->id;
	set_name(part, key, record->head.tgid);
}

static struct name_key name_key_of(const struct launch *row)
{
	return (struct name_key){ .handle = row->key->handle,
		                  .process = row->process->process->id,
		                  .generation = row->key->generation };
}

/*
 * As long as the process runs, a name that was not readable may have become so. Before the first
 * call of a row has arrived, what its handle stands for is a guess: it may still be the kernel of
 * a module that was unloaded since.
 */
static const struct kernel *kernel_of(struct watch_launches_part *part, const struct launch *row)
{
	struct pipeline *pipeline = watcher_options_of(part->watcher)->pipeline;
	const struct launch_name *name;

	if (!tells_kernels(part))
		return row->key->graph % 2 ? NULL : &any_kernel;
	if (row->key->graph)
		return row->merged;
	name = find_name(part, name_key_of(row));
	if (!name && row->process->ended) /* its first call was lost: the pid may be another's */
		return pipeline_kernel_unknown(pipeline, row->key->handle);
	if (!name)
		return pipeline_kernel(pipeline, row->key->tgid, row->key->handle);
	if (name->kernel->resolved || row->process->ended)
		return name->kernel;
	return set_name(part, name_key_of(row), row->key->tgid);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static size_t gather(struct watch_launches_part *part)
{
	size_t count = 0;

	part->rows = xcalloc(ledger_count(part->ledger) + 1, sizeof(*part->rows));
	for (struct ledger_row *r = ledger_first(part->ledger); r; r = r->hh.next) {
		struct launch *row = &part->rows[count++];

		row->key = r->key;
		row->now = (const struct fold_launch *)r->now;
		row->before = (const struct fold_launch *)r->before;
		row->process =
			watcher_process(part->watcher, ledger_process_of(part->ledger, r->key));
		row->merged = r->of;
		row->kernel = kernel_of(part, row);
	}
	return count;
}

/* Rows of one kernel next to each other. */
ORDER_BY(by_kernel, struct launch, UP(process->process->id), ORDER_OF(!!a->kernel, !!b->kernel),
         a->kernel ? UP(kernel->id) : UP(key->handle));

ORDER_BY(by_shape, struct launch, OR_ELSE(by_kernel), BY_BYTES(key->grid), BY_BYTES(key->block));

ORDER_BY(most_used, struct watch_shape, DOWN(count));

ORDER_BY(most_launched, struct watch_kernel, DOWN(count), DOWN(captured), UP(process->id));

static unsigned log_of(uint64_t value)
{
	unsigned log = value ? 63 - __builtin_clzll(value) : 0;

	return log < WATCH_LOGS ? log : WATCH_LOGS - 1;
}

/* Threads of a launch; 0 where its shape is not known. */
static uint64_t threads_of(const struct fold_launch_key *key)
{
	uint64_t threads = 1;

	for (int i = 0; i < 3; i++)
		threads *= (uint64_t)key->grid[i] * key->block[i];
	return threads;
}

static void add_shape(struct watch_kernel *kernel, const struct launch *row)
{
	struct watch_shape *shape = (struct watch_shape *)kernel->shapes + kernel->n_shapes;
	uint64_t threads = threads_of(row->key);

	if (kernel->n_shapes && !memcmp(shape[-1].grid, row->key->grid, sizeof(shape->grid)) &&
	    !memcmp(shape[-1].block, row->key->block, sizeof(shape->block))) {
		shape--;
	} else {
		memcpy(shape->grid, row->key->grid, sizeof(shape->grid));
		memcpy(shape->block, row->key->block, sizeof(shape->block));
		kernel->n_shapes++;
	}
	shape->count += row->now->count;
	if (threads)
		kernel->threads[log_of(threads)] += row->now->count;
}

static void add_row(struct watch_kernel *kernel, const struct launch *row)
{
	if (row->key->graph != MERGED_KERNEL)
		kernel->handle = row->key->handle;
	kernel->count += row->now->count;
	kernel->before += row->before->count;
	kernel->captured += row->now->captured;
	kernel->failed += row->now->failed;
	kernel->ns += row->now->ns;
	kernel->timed += row->now->timed;
	if (row->now->max_ns > kernel->max_ns)
		kernel->max_ns = row->now->max_ns;
	for (int i = 0; i < WATCH_LOGS; i++)
		kernel->duration[i] += row->now->duration[i];
	add_shape(kernel, row);
}

static void drop_name(struct watch_launches_part *part, const struct launch *row)
{
	struct launch_name *name =
		find_name(part, (struct name_key){ .handle = row->key->handle,
	                                           .process = row->process->process->id,
	                                           .generation = row->key->generation });

	if (!name)
		return;
	MAP_DROP(part->names, name);
}

/*
 * A row of handles that were unloaded since counts nothing any more. It is merged into one that
 * goes by the kernel, so that a program that loads and unloads for days fills neither the map nor
 * this process.
 */
static void retire(struct watch_launches_part *part, const struct launch *row)
{
	struct ledger_row *from = ledger_row(part->ledger, row->key);
	struct fold_launch_key key = *row->key;

	row->process->retired += from->map != NULL;
	row->process->retired_here += from->here;
	drop_name(part, row);
	key.generation = 0;
	key.graph = row->kernel ? MERGED_KERNEL : MERGED_GRAPH;
	key.handle = row->kernel ? row->kernel->id : row->key->handle;
	ledger_merge(part->ledger, from, &key)->of = row->kernel;
}

/*
 * Of kernels of processes that are not told apart any more, shapes are not either: what is left of
 * them is a row for each kernel, and one for all graphs.
 */
static void merge_row(struct watch_launches_part *part, const struct launch *row)
{
	const struct ledger_process ended = watched_ended();
	struct ledger_row *from = ledger_row(part->ledger, row->key);
	struct fold_launch_key key = { .born_ns = ended.born_ns, .tgid = (uint32_t)ended.tgid };

	drop_name(part, row);
	key.graph = row->kernel ? MERGED_KERNEL : MERGED_GRAPH;
	key.handle = row->kernel ? row->kernel->id : 0;
	ledger_merge(part->ledger, from, &key)->of = row->kernel;
}

void watch_launches_merge(struct watch_launches_part *part)
{
	size_t count;

	drop_page(part);
	count = gather(part);
	for (size_t i = 0; i < count; i++)
		if (part->rows[i].process->merged)
			merge_row(part, &part->rows[i]);
	drop_page(part);
}

/*
 * A generation whose first call has arrived, and that was over before this page was read: one that
 * ends meanwhile may have been read when it was half over. Calls of the last one that was over may
 * still be under way.
 */
static bool is_over(struct watch_launches_part *part, const struct launch *row)
{
	uint32_t slot = wire_kernels_slot(state_of(part), row->key->tgid);

	return tells_kernels(part) && row->key->graph < MERGED_KERNEL && !row->process->ended &&
	       (int16_t)(row->key->generation - part->generation[slot]) < -1 &&
	       (row->key->graph || find_name(part, name_key_of(row)));
}

void watch_launches_turn(struct watch_launches_part *part)
{
	size_t count;

	drop_page(part);
	count = gather(part);
	for (size_t i = 0; i < count; i++) {
		const struct launch *row = &part->rows[i];

		if (is_over(part, row))
			retire(part, row);
	}
	for (size_t i = 0; i < count; i++)
		watcher_give_back(part->watcher, part->rows[i].process);
	drop_page(part);
}

_Static_assert(WATCH_LOGS == FOLD_LOGS, "the programs' histograms are shown as they are");

void watch_launches_generation(struct watch_launches_part *part)
{
	const struct wire_state *state = state_of(part);

	for (size_t i = 0; i < WIRE_KERNELS_SLOTS; i++)
		part->generation[i] =
			(uint16_t)__atomic_load_n(&state->kernels_generation[i], __ATOMIC_RELAXED);
}

const struct watch_launches *watch_launches_page(struct watch_launches_part *part)
{
	struct watch_kernel *kernel = NULL;
	size_t count, n_kernels = 0;

	drop_page(part);
	count = gather(part);
	qsort(part->rows, count, sizeof(*part->rows), by_shape);
	part->kernels = xcalloc(count + 1, sizeof(*part->kernels));
	part->shapes = xcalloc(count + 1, sizeof(*part->shapes));
	for (size_t i = 0; i < count; i++) {
		const struct launch *row = &part->rows[i];

		if (!i || by_kernel(row, &row[-1])) {
			kernel = &part->kernels[n_kernels++];
			kernel->process = row->process->process;
			kernel->ended = row->process->ended;
			kernel->kernel = row->kernel;
			kernel->shapes = part->shapes + i; /* no more shapes than rows */
		}
		add_row(kernel, row);
	}
	for (size_t i = 0; i < n_kernels; i++)
		qsort((void *)part->kernels[i].shapes, part->kernels[i].n_shapes,
		      sizeof(*part->shapes), most_used);
	qsort(part->kernels, n_kernels, sizeof(*part->kernels), most_launched);
	part->page = (struct watch_launches){ part->kernels, n_kernels };
	return &part->page;
}
