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
	AT_END(buf_free) struct buf name = { 0 };

	frame_add_words(frame, &name);
	return database_text(sqlite->db, name.data);
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
	ROW(db, TABLE_FRAME, CELL(frame->id + 1ll), CELL_TEXT(frame_kind_name(frame->kind)),
	    CELL(ids.symbol), CELL(ids.module), CELL_KNOWN(file), CELL_KNOWN(frame->line),
	    CELL_KNOWN(frame->first_line), CELL(frame->inlined), CELL_KNOWN(build_id));
	return ids;
}

static const struct sqlite_frame *frame_of(struct sqlite *sqlite, const struct stack_frame *frame)
{
	struct sqlite_frame *found;

	found = BY_ID(sqlite->frames, sqlite->n_frames, frame->id);
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

	ROW(db, TABLE_CALLCHAIN, CELL(id), CELL(text), CELL(text), CELL(0), CELL_NONE, CELL_NONE,
	    CELL(1), CELL(0), CELL_NONE, CELL((int64_t)depth));
}

static void add_chain(struct sqlite *sqlite, int64_t id, const struct stack *stack)
{

	for (size_t i = 0; i < stack->n_frames; i++) {
		const struct stack_frame *frame = stack->frames[i];
		const struct sqlite_frame *ids = frame_of(sqlite, frame);

		ROW(sqlite->db, TABLE_CALLCHAIN, CELL(id), CELL(ids->symbol), CELL(ids->module),
		    CELL(is_kernel_mode(frame)), CELL_NONE,
		    CELL_IF(1, !frame->function || !*frame->function), CELL_NONE,
		    CELL(address_of(frame, ids)), CELL_NONE, CELL((int64_t)i),
		    CELL(frame->id + 1ll));
	}
	if (stack->end != STACK_WHOLE)
		add_special(sqlite, id, stack->n_frames, stack->end);
}

int64_t sqlite_callchain(struct sqlite *sqlite, const struct stack *stack)
{

	if (!stack)
		return 0;
	sqlite->stacks = by_id_room(sqlite->stacks, &sqlite->n_stacks, 1, stack->id);
	if (sqlite->stacks[stack->id])
		return stack->id + 1ll;
	sqlite->stacks[stack->id] = 1;
	add_chain(sqlite, stack->id + 1ll, stack);
	ROW(sqlite->db, TABLE_STACK, CELL(stack->id + 1ll),
	    CELL_TEXT(stack->end == STACK_WHOLE ? NULL : stack_end_text(stack->end)),
	    CELL(stack->python_cut));
	return stack->id + 1ll;
}

/*
 * Samples on CPUs only: what is blocked is on none. Nsight Systems tells samples from other stacks
 * by cycles of 1, and its readers weigh them by that.
 */
static void add_composite(struct sqlite *sqlite, int64_t id, const struct event *event)
{

	ROW(sqlite->db, TABLE_COMPOSITE, CELL(id), CELL(since_begin(sqlite, event->time_ns)),
	    CELL_NONE, CELL(NSYS_THREAD_RUNNING), CELL(global_tid(event)), CELL(1));
	sqlite->db->sample_frames += event->sample->stack ? event->sample->stack->n_frames + 1 : 1;
	if (!event->sample->stack && !sqlite->chain_of_none) {
		add_special(sqlite, NSYS_CHAIN_OF_NONE, 0, STACK_BAD);
		sqlite->chain_of_none = true;
	}
}

static int out_state(const struct sample *sample)
{
	return sample->blocked == BLOCKED_PREEMPTED ? NSYS_THREAD_UNSCHEDULED : NSYS_THREAD_WAITING;
}

static void add_switch(struct sqlite *sqlite, const struct event *event, uint64_t time_ns, bool in)
{

	ROW(sqlite->db, TABLE_SCHED, CELL(since_begin(sqlite, time_ns)), CELL_NONE, CELL(in),
	    CELL(global_tid(event)), CELL(in ? NSYS_THREAD_RUNNING : out_state(event->sample)));
}

/*
 * Sums are no stretch of time. A thread that is still blocked, or blocked until the end, does not
 * come back.
 */
static void add_blocked(struct sqlite *sqlite, const struct event *event)
{
	const struct sample *sample = event->sample;
	uint64_t end_ns = event->time_ns;

	if (!sample_is_stretch(sample) && sample->blocked != BLOCKED_BEFORE)
		return;
	add_switch(sqlite, event, sample->weight_ns < end_ns ? end_ns - sample->weight_ns : 0,
	           false);
	if (sample->blocked != BLOCKED_STILL && end_ns < sqlite->end_ns)
		add_switch(sqlite, event, end_ns, true);
}

void sqlite_add_sample(struct sqlite *sqlite, const struct event *event)
{
	const struct sample *sample = event->sample;
	int64_t chain = sqlite_callchain(sqlite, sample->stack), id;
	bool blocked = sample->kind == SAMPLE_OFF_CPU;
	int64_t waker = string_or_0(sqlite, sample->waker);
	int64_t rival = string_or_0(sqlite, sample->rival);

	ROW(sqlite->db, TABLE_SAMPLE, CELL(id = ++sqlite->n_samples),
	    CELL_TEXT(blocked ? "off_cpu" : "cpu"), CELL(since_begin(sqlite, event->time_ns)),
	    CELL((int64_t)sample->weight_ns), CELL(global_tid(event)), CELL_KNOWN(chain),
	    CELL_TEXT(blocked ? blocked_name(sample->blocked) : NULL), CELL_KNOWN(waker),
	    CELL_KNOWN(sample->waker_tid),
	    CELL_IF(sample->count, blocked && !sample_is_stretch(sample)),
	    CELL_TEXT(wait_kind_name(sample->wait)), CELL_KNOWN(sample->runnable_ns),
	    CELL_KNOWN(rival), CELL_KNOWN(sample->rival_pid));
	if (blocked)
		add_blocked(sqlite, event);
	else
		add_composite(sqlite, id, event);
}

/*
 * NVTX ranges with their texts in the rows, since there may be any number of them, and with numbers
 * for their domains; and what measuring took.
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
 * Of readers some take the text, some its number: they get both. rangeId has no value, nor the
 * thread that ended it, if that was another one.
 */
static void add_range(struct sqlite *sqlite, const struct event *event, struct cell end, int type,
                      const struct range *range, const char *text, int64_t domain)
{
	int64_t number = database_text(sqlite->db, text);

	ROW(sqlite->db, TABLE_NVTX, CELL(since_begin(sqlite, event->range->begin_ns)), end,
	    CELL(type), CELL_NONE, CELL_KNOWN(range->category), CELL_KNOWN(range->color),
	    CELL_SAFE(text), CELL(global_tid(event)), CELL_NONE, CELL(number), CELL(domain));
}

/* A domain stands in the table, too, before its first range. */
static int64_t domain_id(struct sqlite *sqlite, const struct event *event)
{
	const char *name = event->range->domain;
	struct sqlite_domain *found;
	struct buf key = { 0 };

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
	add_range(sqlite, event, CELL_NONE, NSYS_NVTX_DOMAIN, &(struct range){ 0 }, name,
	          found->id);
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

	add_range(sqlite, event,
	          range->kind == RANGE_MARK ? CELL_NONE : CELL(since_begin(sqlite, range->end_ns)),
	          types[range->kind], range, range->name, domain);
}

/* ---- overhead ------------------------------------------------------------------------------- */

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

	ROW(db, TABLE_OVERHEAD, CELL(since_begin(sqlite, range->begin_ns)),
	    CELL(since_begin(sqlite, range->end_ns)), CELL_NONE, CELL(global_tid(event)), CELL_NONE,
	    CELL_NONE, CELL(type));
	ROW(db, TABLE_PROFILER_OVERHEAD, CELL(since_begin(sqlite, range->begin_ns)),
	    CELL(since_begin(sqlite, range->end_ns)), CELL(global_tid(event)), CELL(name), CELL(0),
	    CELL(type));
}

static void add_not_measured(struct sqlite *sqlite, const struct event *event)
{
	ROW(sqlite->db, TABLE_NOT_MEASURED, CELL(since_begin(sqlite, event->range->begin_ns)),
	    CELL(since_begin(sqlite, event->range->end_ns)), CELL(global_pid(event->process)));
}

void sqlite_add_range(struct sqlite *sqlite, const struct event *event)
{
	if (event->range->kind == RANGE_SYNC)
		sqlite_wait_of_gpu(sqlite, event);
	else if (event->range->kind == RANGE_NOT_MEASURED)
		add_not_measured(sqlite, event);
	else if (event->range->kind == RANGE_OVERHEAD)
		add_overhead(sqlite, event);
	else
		add_nvtx(sqlite, event);
}
