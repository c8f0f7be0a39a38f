// SPDX-License-Identifier: MIT
/*
 * Stacks and samples. A stack's frames are rows of CUDA_CALLCHAINS, once however many calls and
 * samples have it. SAMPLING_CALLCHAINS has those of each sample again, as Nsight Systems does: it
 * is made of the two at the end. Time that a thread was blocked is a pair of rows of SCHED_EVENTS.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "output/describe.h"
#include "output/sqlite/sqlite.h"

/* Of a frame, once it is a row of cuscope_frame: ids of strings; 0: none. */
struct sqlite_frame {
	int64_t symbol, module;
};

static bool is_kernel_mode(const struct stack_frame *frame)
{
	return frame->kind == FRAME_KERNEL_MODE || frame->kind == FRAME_DRIVER;
}

static int64_t string_or_0(struct sqlite *sqlite, const char *text)
{
	return text && *text ? database_text(sqlite->db, text) : 0;
}

static int64_t symbol_of(struct sqlite *sqlite, const struct stack_frame *frame)
{
	struct buf name = { 0 };
	int64_t id;

	frame_add_words(frame, &name);
	id = database_text(sqlite->db, name.data);
	buf_free(&name);
	return id;
}

/* The file of Python's source stands for the module that Python has none of. */
static struct sqlite_frame add_frame(struct sqlite *sqlite, const struct stack_frame *frame)
{
	struct database *db = sqlite->db;
	struct sqlite_frame ids = { .symbol = symbol_of(sqlite, frame) };
	int64_t file = string_or_0(sqlite, frame->file);
	int64_t build_id = string_or_0(sqlite, frame->build_id);

	ids.module = frame->module && *frame->module ? string_or_0(sqlite, frame->module) : file;
	if (!ids.module)
		ids.module = database_text(db, NSYS_MODULE_UNKNOWN);
	row_begin(db, TABLE_FRAME);
	row_int(db, frame->id + 1ll);
	row_static(db, frame_kind_name(frame->kind));
	row_int(db, ids.symbol);
	row_int(db, ids.module);
	add_or_null(db, (uint64_t)file, file);
	add_or_null(db, frame->line, frame->line);
	add_or_null(db, frame->first_line, frame->first_line);
	row_int(db, frame->inlined);
	add_or_null(db, (uint64_t)build_id, build_id);
	row_end(db);
	return ids;
}

static const struct sqlite_frame *frame_of(struct sqlite *sqlite, const struct stack_frame *frame)
{
	struct sqlite_frame *found;

	sqlite->frames =
		by_id_room(sqlite->frames, &sqlite->n_frames, sizeof(*sqlite->frames), frame->id);
	found = &sqlite->frames[frame->id];
	if (!found->symbol)
		*found = add_frame(sqlite, frame);
	return found;
}

/*
 * Readers take the tuple of these addresses for the place, so that two places need two: the
 * module's number stands above the offset in it. A frame without an offset of its own (Python's,
 * the kernel's, what is inlined) has its number there, above all offsets.
 */
#define OFFSET_BITS 40
#define NO_OFFSET   (1ull << (OFFSET_BITS - 1))

static int64_t address_of(const struct stack_frame *frame, const struct sqlite_frame *ids)
{
	bool own = frame->offset && !frame->inlined;
	uint64_t offset = own ? frame->offset & (NO_OFFSET - 1) : NO_OFFSET | frame->id;

	return (int64_t)((uint64_t)ids->module << OFFSET_BITS | offset);
}

/* Where a stack ends early, or there is none: a frame that stands for what is missing. */
static void add_special(struct sqlite *sqlite, int64_t id, size_t depth, enum stack_end end)
{
	const char *name = end == STACK_TOO_DEEP ? NSYS_FRAME_TOO_DEEP : NSYS_FRAME_BROKEN;
	int64_t text = database_text(sqlite->db, name);
	struct database *db = sqlite->db;

	row_begin(db, TABLE_CALLCHAIN);
	row_int(db, id);
	row_int(db, text);
	row_int(db, text);
	row_int(db, 0);
	row_null(db);
	row_null(db);
	row_int(db, 1);
	row_int(db, 0);
	row_null(db);
	row_int(db, (int64_t)depth);
	row_end(db);
}

static void add_chain(struct sqlite *sqlite, int64_t id, const struct stack *stack)
{
	struct database *db = sqlite->db;

	for (size_t i = 0; i < stack->n_frames; i++) {
		const struct stack_frame *frame = stack->frames[i];
		const struct sqlite_frame *ids = frame_of(sqlite, frame);

		row_begin(db, TABLE_CALLCHAIN);
		row_int(db, id);
		row_int(db, ids->symbol);
		row_int(db, ids->module);
		row_int(db, is_kernel_mode(frame));
		row_null(db);
		add_or_null(db, 1, !frame->function || !*frame->function);
		row_null(db);
		row_int(db, address_of(frame, ids));
		row_null(db);
		row_int(db, (int64_t)i);
		row_int(db, frame->id + 1ll);
		row_end(db);
	}
	if (stack->end != STACK_WHOLE)
		add_special(sqlite, id, stack->n_frames, stack->end);
}

int64_t sqlite_callchain(struct sqlite *sqlite, const struct stack *stack)
{
	struct database *db = sqlite->db;

	if (!stack)
		return 0;
	sqlite->stacks = by_id_room(sqlite->stacks, &sqlite->n_stacks, 1, stack->id);
	if (sqlite->stacks[stack->id])
		return stack->id + 1ll;
	sqlite->stacks[stack->id] = 1;
	add_chain(sqlite, stack->id + 1ll, stack);
	row_begin(db, TABLE_STACK);
	row_int(db, stack->id + 1ll);
	row_static(db, stack->end == STACK_WHOLE ? NULL : stack_end_text(stack->end));
	row_int(db, stack->python_cut);
	row_end(db);
	return stack->id + 1ll;
}

/*
 * Samples on CPUs only: what is blocked is on none. Nsight Systems tells samples from other stacks
 * by cycles of 1, and its readers weigh them by that.
 */
static void add_composite(struct sqlite *sqlite, int64_t id, const struct event *event)
{
	struct database *db = sqlite->db;

	row_begin(db, TABLE_COMPOSITE);
	row_int(db, id);
	row_int(db, since_begin(sqlite, event->time_ns));
	row_null(db);
	row_int(db, NSYS_THREAD_RUNNING);
	row_int(db, global_tid(event));
	row_int(db, 1);
	row_end(db);
	sqlite->sample_frames += event->sample->stack ? event->sample->stack->n_frames + 1 : 1;
	if (!event->sample->stack && !sqlite->chain_of_none) {
		add_special(sqlite, NSYS_CHAIN_OF_NONE, 0, STACK_BAD);
		sqlite->chain_of_none = true;
	}
}

/* Beyond that it is no table, but a view that gives the same rows. */
#define SAMPLE_FRAMES_MOST 1000000

void sqlite_add_sampling(struct sqlite *sqlite)
{
	if (sqlite->sample_frames)
		database_closing(sqlite->db, sqlite->sample_frames > SAMPLE_FRAMES_MOST
		                                     ? nsys_sampling_view
		                                     : nsys_sampling_table);
}

static int out_state(const struct sample *sample)
{
	return sample->blocked == BLOCKED_PREEMPTED ? NSYS_THREAD_UNSCHEDULED : NSYS_THREAD_WAITING;
}

static void add_switch(struct sqlite *sqlite, const struct event *event, uint64_t time_ns, bool in)
{
	struct database *db = sqlite->db;

	row_begin(db, TABLE_SCHED);
	row_int(db, since_begin(sqlite, time_ns));
	row_null(db);
	row_int(db, in);
	row_int(db, global_tid(event));
	row_int(db, in ? NSYS_THREAD_RUNNING : out_state(event->sample));
	row_end(db);
}

/* Sums are no stretch of time, and a thread that is still blocked does not come back. */
static void add_blocked(struct sqlite *sqlite, const struct event *event)
{
	const struct sample *sample = event->sample;
	uint64_t end_ns = event->time_ns;

	if (!sample_is_stretch(sample) && sample->blocked != BLOCKED_BEFORE)
		return;
	add_switch(sqlite, event, sample->weight_ns < end_ns ? end_ns - sample->weight_ns : 0,
	           false);
	if (sample->blocked != BLOCKED_STILL)
		add_switch(sqlite, event, end_ns, true);
}

void sqlite_add_sample(struct sqlite *sqlite, const struct event *event)
{
	const struct sample *sample = event->sample;
	int64_t chain = sqlite_callchain(sqlite, sample->stack), id;
	struct database *db = sqlite->db;
	bool blocked = sample->kind == SAMPLE_OFF_CPU;
	int64_t waker = string_or_0(sqlite, sample->waker);
	int64_t rival = string_or_0(sqlite, sample->rival);

	row_begin(db, TABLE_SAMPLE);
	row_int(db, id = ++sqlite->n_samples);
	row_static(db, blocked ? "off_cpu" : "cpu");
	row_int(db, since_begin(sqlite, event->time_ns));
	row_int(db, (int64_t)sample->weight_ns);
	row_int(db, global_tid(event));
	add_or_null(db, (uint64_t)chain, chain);
	row_static(db, blocked ? blocked_name(sample->blocked) : NULL);
	add_or_null(db, (uint64_t)waker, waker);
	add_or_null(db, sample->waker_tid, sample->waker_tid);
	add_or_null(db, sample->count, blocked && !sample_is_stretch(sample));
	row_static(db, wait_kind_name(sample->wait));
	add_or_null(db, sample->runnable_ns, sample->runnable_ns);
	add_or_null(db, (uint64_t)rival, rival);
	add_or_null(db, sample->rival_pid, sample->rival_pid);
	row_end(db);
	if (blocked)
		add_blocked(sqlite, event);
	else
		add_composite(sqlite, id, event);
}

/*
 * NVTX ranges with their texts in the rows, since there may be any number of them, and with numbers
 * for their domains; waits; and what measuring took.
 */

#define DOMAINS_MOST 4096 /* others are as if they had none */

struct sqlite_domain {
	char *key; /* process, a blank, name */
	int64_t id;
	UT_hash_handle hh;
};

void sqlite_free_domains(struct sqlite *sqlite)
{
	struct sqlite_domain *domain, *next;

	HASH_ITER (hh, sqlite->domains, domain, next) {
		HASH_DEL(sqlite->domains, domain);
		free(domain->key);
		free(domain);
	}
}

/* ---- NVTX ----------------------------------------------------------------------------------- */

/*
 * What follows the text: the thread, the text's number, the domain, and values that no range has.
 * Of readers some take the text, some its number: they get both.
 */
static void end_nvtx(struct database *db, const struct event *event, int64_t text, int64_t domain)
{
	row_int(db, global_tid(event));
	row_null(db); /* another thread that ended it */
	row_int(db, text);
	row_int(db, domain);
	row_end(db);
}

static void begin_nvtx(struct sqlite *sqlite, uint64_t begin_ns)
{
	row_begin(sqlite->db, TABLE_NVTX);
	row_int(sqlite->db, since_begin(sqlite, begin_ns));
}

/* After the times; rangeId has no value. */
static void add_kind(struct database *db, int type, const struct range *range, const char *text)
{
	row_int(db, type);
	row_null(db);
	add_or_null(db, range->category, range->category);
	add_or_null(db, range->color, range->color);
	row_text(db, text);
}

/* A domain stands in the table, too, before its first range. */
static int64_t domain_id(struct sqlite *sqlite, const struct event *event)
{
	const char *name = event->range->domain;
	struct sqlite_domain *found;
	struct buf key = { 0 };
	int64_t text;

	if (!name || !*name)
		return 0;
	buf_printf(&key, "%u %s", event->process->id, name);
	found = MAP_FIND_TEXT(sqlite->domains, key.data);
	if (found || HASH_COUNT(sqlite->domains) >= DOMAINS_MOST) {
		buf_free(&key);
		return found ? found->id : 0;
	}
	found = xcalloc(1, sizeof(*found));
	found->key = key.data;
	found->id = HASH_COUNT(sqlite->domains) + 1;
	HASH_ADD_KEYPTR(hh, sqlite->domains, found->key, strlen(found->key), found);
	text = database_text(sqlite->db, name);
	begin_nvtx(sqlite, event->range->begin_ns);
	row_null(sqlite->db);
	add_kind(sqlite->db, NSYS_NVTX_DOMAIN, &(struct range){ 0 }, name);
	end_nvtx(sqlite->db, event, text, found->id);
	return found->id;
}

static void add_nvtx(struct sqlite *sqlite, const struct event *event)
{
	static const int types[RANGE_COUNT] = {
		[RANGE_PUSHPOP] = NSYS_NVTX_PUSHPOP,
		[RANGE_STARTEND] = NSYS_NVTX_STARTEND,
		[RANGE_MARK] = NSYS_NVTX_MARK,
	};
	const struct range *range = event->range;
	int64_t domain = domain_id(sqlite, event);
	struct database *db = sqlite->db;
	int64_t text = database_text(db, range->name);

	begin_nvtx(sqlite, range->begin_ns);
	if (range->kind == RANGE_MARK)
		row_null(db);
	else
		row_int(db, since_begin(sqlite, range->end_ns));
	add_kind(db, types[range->kind], range, range->name);
	end_nvtx(db, event, text, domain);
}

/* ---- waits and overhead --------------------------------------------------------------------- */

static void add_wait(struct sqlite *sqlite, const struct event *event)
{
	const struct range *range = event->range;
	struct database *db = sqlite->db;
	uint32_t device = 0;
	bool known = contexts_device(sqlite->contexts, event->process, range->context, &device);
	row_begin(db, TABLE_SYNCHRONIZATION);
	row_int(db, since_begin(sqlite, range->begin_ns));
	row_int(db, since_begin(sqlite, range->end_ns));
	add_or_null(db, device, known);
	row_int(db, range->context);
	row_null(db);
	row_int(db, range->stream);
	add_correlation(db, event->process, range->correlation);
	row_int(db, global_pid(event->process));
	row_int(db, nsys_enum_of_label("ENUM_CUPTI_SYNC_TYPE", range->name, 0));
	row_end(db); /* its event is told by its call, at the end */
}

/*
 * In both tables that Nsight Systems has for it: the second is its own, where older versions have
 * CUPTI's, too.
 */
static void add_overhead(struct sqlite *sqlite, const struct event *event)
{
	const struct range *range = event->range;
	struct database *db = sqlite->db;
	int type = nsys_enum_of_label("ENUM_CUPTI_OVERHEAD_TYPE", range->name, 1);
	int64_t name = database_text(db, range->name);

	row_begin(db, TABLE_OVERHEAD);
	row_int(db, since_begin(sqlite, range->begin_ns));
	row_int(db, since_begin(sqlite, range->end_ns));
	row_null(db);
	row_int(db, global_tid(event));
	row_null(db);
	row_null(db);
	row_int(db, type);
	row_end(db);
	row_begin(db, TABLE_PROFILER_OVERHEAD);
	row_int(db, since_begin(sqlite, range->begin_ns));
	row_int(db, since_begin(sqlite, range->end_ns));
	row_int(db, global_tid(event));
	row_int(db, name);
	row_int(db, 0);
	row_int(db, type);
	row_end(db);
}

static void add_not_measured(struct sqlite *sqlite, const struct event *event)
{
	row_begin(sqlite->db, TABLE_NOT_MEASURED);
	row_int(sqlite->db, since_begin(sqlite, event->range->begin_ns));
	row_int(sqlite->db, since_begin(sqlite, event->range->end_ns));
	row_int(sqlite->db, global_pid(event->process));
	row_end(sqlite->db);
}

void sqlite_add_range(struct sqlite *sqlite, const struct event *event)
{
	if (event->range->kind == RANGE_SYNC)
		add_wait(sqlite, event);
	else if (event->range->kind == RANGE_NOT_MEASURED)
		add_not_measured(sqlite, event);
	else if (event->range->kind == RANGE_OVERHEAD)
		add_overhead(sqlite, event);
	else
		add_nvtx(sqlite, event);
}
