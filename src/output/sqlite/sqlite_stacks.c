// SPDX-License-Identifier: MIT
/*
 * Stacks and samples. A stack's frames are rows of CUDA_CALLCHAINS, once however many calls and
 * samples have it. SAMPLING_CALLCHAINS has those of each sample again, as Nsight Systems does: it
 * is made of the two at the end. Time that a thread was blocked is a pair of rows of SCHED_EVENTS.
 */
#include <stdlib.h>

#include "analysis/by_id.h"
#include "output/frames.h"
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
