// SPDX-License-Identifier: MIT
/*
 * Stacks in a Perfetto trace, as those of its own profilers: callstacks of frames, which packets
 * refer to by number. Samples on CPUs are perf samples; the time that a thread was blocked is a
 * slice with a callstack, since a perf sample has no length.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "output/describe.h"
#include "output/perfetto/perfetto.h"

/* Of InternedData. */
enum interned_field {
	INTERNED_FUNCTION_NAMES = 5,
	INTERNED_FRAMES = 6,
	INTERNED_CALLSTACKS = 7,
	INTERNED_BUILD_IDS = 16,
	INTERNED_PATHS = 17,
	INTERNED_SOURCES = 18,
	INTERNED_MAPPINGS = 19,
};

enum mapping_field { MAPPING_BUILD_ID = 2, MAPPING_PATH = 7 };
enum frame_field {
	FRAME_FUNCTION = 2,
	FRAME_MAPPING = 3,
	FRAME_PC = 4,
	FRAME_SOURCE = 5,
	FRAME_LINE = 6,
	FRAME_KIND_TEXT = 8,
};
enum callstack_field { CALLSTACK_FRAMES = 2 };
enum sample_field {
	SAMPLE_PID = 2,
	SAMPLE_TID = 3,
	SAMPLE_CALLSTACK = 4,
	SAMPLE_CPU_MODE = 5,
	SAMPLE_UNWIND_ERROR = 16,
};
enum { CPU_MODE_KERNEL = 1, CPU_MODE_USER = 2 };

/*
 * Texts and files are remembered in a table of fixed size, by what they are: one that was pushed
 * out takes a new number. Their texts live as long as the source.
 */
#define REMEMBERED      4096
#define BUILD_ID_MOST   64 /* bytes */
#define IID_OF(number_) ((uint64_t)(number_) + 1)

struct remembered {
	const char *text, *more; /* more: of a file, its build id */
	uint32_t field, iid;     /* field: of InternedData; 0: a free place */
};

struct perfetto_stacks {
	struct buf *out;
	struct buf text;             /* scratch */
	uint8_t *told_frames, *told; /* by id: 1 where it is defined */
	size_t n_frames, n_stacks;
	uint32_t last_iid; /* of texts and files */
	struct remembered remembered[REMEMBERED];
};

struct perfetto_stacks *perfetto_stacks_new(struct buf *out)
{
	struct perfetto_stacks *stacks = xcalloc(1, sizeof(*stacks));

	stacks->out = out;
	return stacks;
}

void perfetto_stacks_free(struct perfetto_stacks *stacks)
{
	free(stacks->told_frames);
	free(stacks->told);
	buf_free(&stacks->text);
	free(stacks);
}

/* ---- texts and files ------------------------------------------------------------------------- */

struct definition {
	size_t packet, data, entry;
};

static struct definition define(struct perfetto_stacks *stacks, enum interned_field field,
                                uint64_t iid)
{
	struct definition open;

	open.packet = packet_begin(stacks->out, SEQUENCE_NEEDS);
	open.data = pb_begin(stacks->out, PACKET_INTERNED_DATA);
	open.entry = pb_begin(stacks->out, field);
	pb_varint(stacks->out, 1, iid);
	return open;
}

static void defined(struct perfetto_stacks *stacks, const struct definition *open)
{
	pb_end(stacks->out, open->entry);
	pb_end(stacks->out, open->data);
	pb_end(stacks->out, open->packet);
}

static uint64_t hash_of(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (uint8_t)*text) * 1099511628211ull;
	return (hash ^ 0xff) * 1099511628211ull;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Its place; one that is new has the iid 0. */
static struct remembered *remember(struct perfetto_stacks *stacks, enum interned_field field,
                                   const char *text, const char *more)
{
	uint64_t hash = hash_of(hash_of(14695981039346656037ull ^ field, text), more);
	struct remembered *found = &stacks->remembered[hash % REMEMBERED];

	if (found->field != field || !same_text(found->text, text) || !same_text(found->more, more))
		*found = (struct remembered){ text, more, field, 0 };
	return found;
}

/* The number of a text as it is. */
static uint32_t bytes_iid(struct perfetto_stacks *stacks, enum interned_field field,
                          const void *data, size_t len)
{
	struct definition open = define(stacks, field, ++stacks->last_iid);

	pb_bytes(stacks->out, 2, data, len);
	defined(stacks, &open);
	return stacks->last_iid;
}

/* Made valid UTF-8. NULL, "": 0. */
static uint32_t text_iid(struct perfetto_stacks *stacks, enum interned_field field,
                         const char *text)
{
	struct remembered *found;

	if (!text || !*text)
		return 0;
	found = remember(stacks, field, text, NULL);
	if (found->iid)
		return found->iid;
	buf_reset(&stacks->text);
	text_add_safe(&stacks->text, text);
	return found->iid = bytes_iid(stacks, field, stacks->text.data, stacks->text.len);
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Its bytes; what is no build id is left out. */
static uint32_t build_id_iid(struct perfetto_stacks *stacks, const char *text)
{
	uint8_t bytes[BUILD_ID_MOST];
	size_t n = 0;

	for (; text && *text && n < sizeof(bytes); text += 2) {
		int high = digit(text[0]), low = digit(text[1]);

		if (high < 0 || low < 0)
			return 0;
		bytes[n++] = (uint8_t)(high << 4 | low);
	}
	return n && !*text ? bytes_iid(stacks, INTERNED_BUILD_IDS, bytes, n) : 0;
}

/*
 * The file that a frame is of; of Python its source. Older readers know no frame without one: what
 * is in none is in one that is called after its kind.
 */
static const char *file_of(const struct stack_frame *frame)
{
	if (frame->module && *frame->module)
		return frame->module;
	return frame->file && *frame->file ? frame->file : frame_kind_name(frame->kind);
}

static uint32_t mapping_iid(struct perfetto_stacks *stacks, const struct stack_frame *frame)
{
	const char *name = file_of(frame);
	struct remembered *found = remember(stacks, INTERNED_MAPPINGS, name, frame->build_id);
	uint32_t path, build_id;
	struct definition open;

	if (found->iid)
		return found->iid;
	path = text_iid(stacks, INTERNED_PATHS, name);
	build_id = build_id_iid(stacks, frame->build_id);
	/* what was defined since may have taken the place */
	found = remember(stacks, INTERNED_MAPPINGS, name, frame->build_id);
	found->iid = ++stacks->last_iid;
	open = define(stacks, INTERNED_MAPPINGS, found->iid);
	if (build_id)
		pb_varint(stacks->out, MAPPING_BUILD_ID, build_id);
	pb_varint(stacks->out, MAPPING_PATH, path);
	defined(stacks, &open);
	return found->iid;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static uint32_t name_iid(struct perfetto_stacks *stacks, const struct stack_frame *frame)
{
	AT_END(buf_free) struct buf name = { 0 };

	if (frame->function && *frame->function)
		return text_iid(stacks, INTERNED_FUNCTION_NAMES, frame->function);
	frame_add_words(frame, &name);
	buf_reset(&stacks->text);
	text_add_safe(&stacks->text, name.data);
	return bytes_iid(stacks, INTERNED_FUNCTION_NAMES, stacks->text.data, stacks->text.len);
}

static void tell_frame(struct perfetto_stacks *stacks, const struct stack_frame *frame)
{
	struct definition open;
	uint32_t name, mapping, source;

	stacks->told_frames = by_id_room(stacks->told_frames, &stacks->n_frames, 1, frame->id);
	if (stacks->told_frames[frame->id])
		return;
	stacks->told_frames[frame->id] = 1;
	name = name_iid(stacks, frame);
	mapping = mapping_iid(stacks, frame);
	source = text_iid(stacks, INTERNED_SOURCES, frame->file);
	open = define(stacks, INTERNED_FRAMES, IID_OF(frame->id));
	pb_varint(stacks->out, FRAME_FUNCTION, name);
	pb_varint(stacks->out, FRAME_MAPPING, mapping);
	/* by this and the name frames of a file are told apart: those of Python by their line */
	pb_varint(stacks->out, FRAME_PC, frame->offset ? frame->offset : frame->line);
	if (source)
		pb_varint(stacks->out, FRAME_SOURCE, source);
	if (frame->line)
		pb_varint(stacks->out, FRAME_LINE, frame->line);
	pb_string(stacks->out, FRAME_KIND_TEXT, frame_kind_name(frame->kind));
	defined(stacks, &open);
}

uint64_t perfetto_callstack(struct perfetto_stacks *stacks, const struct stack *stack)
{
	struct definition open;

	if (!stack)
		return 0;
	stacks->told = by_id_room(stacks->told, &stacks->n_stacks, 1, stack->id);
	if (stacks->told[stack->id])
		return IID_OF(stack->id);
	stacks->told[stack->id] = 1;
	for (size_t i = 0; i < stack->n_frames; i++)
		tell_frame(stacks, stack->frames[i]);
	open = define(stacks, INTERNED_CALLSTACKS, IID_OF(stack->id));
	for (size_t i = stack->n_frames; i--;)
		pb_varint(stacks->out, CALLSTACK_FRAMES, IID_OF(stack->frames[i]->id));
	defined(stacks, &open);
	return IID_OF(stack->id);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Perfetto's word for why a stack ends early. */
static unsigned unwind_error(enum stack_end end)
{
	static const uint8_t errors[STACK_END_COUNT] = {
		[STACK_TOO_DEEP] = 6,   /* UNWIND_ERROR_MAX_FRAMES_EXCEEDED */
		[STACK_NO_MAPPING] = 5, /* UNWIND_ERROR_INVALID_MAP */
		[STACK_NO_TABLE] = 3,   /* UNWIND_ERROR_UNWIND_INFO */
		[STACK_NO_RULE] = 4,    /* UNWIND_ERROR_UNSUPPORTED */
		[STACK_UNREADABLE] = 2, /* UNWIND_ERROR_MEMORY_INVALID */
		[STACK_BAD] = 7,        /* UNWIND_ERROR_REPEATED_FRAME */
	};

	return errors[end];
}

static bool in_kernel(const struct stack *stack)
{
	return stack->frames[0]->kind == FRAME_KERNEL_MODE ||
	       stack->frames[0]->kind == FRAME_DRIVER;
}

static void add_cpu_sample(struct perfetto *p, const struct event *event)
{
	const struct stack *stack = event->sample->stack;
	struct buf *out = &p->sink.lines.pending;
	uint64_t callstack = perfetto_callstack(p->stacks, stack);
	size_t packet, sample;

	packet = packet_begin(out, SEQUENCE_NEEDS);
	pb_varint(out, PACKET_TIMESTAMP, event->time_ns);
	sample = pb_begin(out, PACKET_PERF_SAMPLE);
	pb_varint(out, SAMPLE_PID, event->process->pid);
	pb_varint(out, SAMPLE_TID, event->tid);
	if (stack) {
		pb_varint(out, SAMPLE_CALLSTACK, callstack);
		pb_varint(out, SAMPLE_CPU_MODE, in_kernel(stack) ? CPU_MODE_KERNEL : CPU_MODE_USER);
		if (unwind_error(stack->end))
			pb_varint(out, SAMPLE_UNWIND_ERROR, unwind_error(stack->end));
	}
	pb_end(out, sample);
	pb_end(out, packet);
}

/* Who ended it, or of what it is the sum. */
static void annotate_blocked(struct perfetto *p, const struct sample *sample)
{
	annotate(p, annotation(p, "how"), ANNOTATION_STRING_IID,
	         perfetto_constant(p->names, NAME_VALUE, blocked_name(sample->blocked)));
	if (sample->waker)
		annotate_text(p, annotation(p, "woken by"), sample->waker);
	if (sample->waker_tid)
		annotate_u64(p, "woken by thread", sample->waker_tid);
	if (sample->wait)
		annotate(p, annotation(p, "waited for"), ANNOTATION_STRING_IID,
		         perfetto_constant(p->names, NAME_VALUE, wait_kind_name(sample->wait)));
	if (sample_is_stretch(sample))
		return;
	annotate_u64(p, "time", sample->weight_ns);
	annotate_u64(p, "stretches", sample->count);
}

static void annotate_runnable(struct perfetto *p, const struct sample *sample)
{
	if (sample->rival)
		annotate_text(p, annotation(p, "rival"), sample->rival);
	if (sample->rival_pid)
		annotate_u64(p, "rival's process", sample->rival_pid);
}

/*
 * A stretch is a slice; what is none, such as the sum of many, an instant. A slice must not begin
 * before the one before it ended: the file may be anybody's. The part of a stretch in which the
 * thread could run, and had no CPU, is a slice behind it.
 */
static void add_stretch(struct perfetto *p, const struct event *event, uint64_t begin_ns,
                        uint64_t end_ns, bool runnable)
{
	bool slice = sample_is_stretch(event->sample);
	struct perfetto_thread *thread =
		perfetto_thread(p->tracks, event->process, event->tid, NULL);
	uint32_t name = perfetto_constant(p->names, NAME_EVENT, runnable ? "runnable" : "blocked");
	uint32_t category = perfetto_constant(p->names, NAME_CATEGORY, "off-CPU");
	uint64_t callstack = perfetto_callstack(p->stacks, event->sample->stack);
	uint64_t weight_ns = end_ns - begin_ns;
	struct open_event open;

	if (!thread->blocked_uuid)
		thread->blocked_uuid = perfetto_named_track(p->tracks, thread->uuid, "blocked");
	if (begin_ns < thread->blocked_until_ns)
		begin_ns = thread->blocked_until_ns;
	if (begin_ns > end_ns || !slice)
		begin_ns = end_ns;
	buf_reset(&p->packet);
	open = event_begin(&p->packet, begin_ns, slice ? TYPE_BEGIN : TYPE_INSTANT,
	                   thread->blocked_uuid);
	event_add_name(&p->packet, category, name);
	if (runnable)
		annotate_runnable(p, event->sample);
	else
		annotate_blocked(p, event->sample);
	if (callstack) {
		pb_varint(&p->packet, EVENT_CALLSTACK_IID, callstack);
		pb_double(&p->packet, EVENT_CALLSTACK_WEIGHT, (double)weight_ns);
	}
	event_end(&p->packet, open);
	if (slice) {
		event_end(&p->packet,
		          event_begin(&p->packet, end_ns, TYPE_END, thread->blocked_uuid));
		thread->blocked_until_ns = end_ns;
	}
	buf_add(&p->sink.lines.pending, p->packet.data, p->packet.len);
}

static void add_blocked(struct perfetto *p, const struct event *event)
{
	const struct sample *sample = event->sample;
	uint64_t weight_ns = sample->weight_ns, end_ns = event->time_ns;
	uint64_t begin_ns = weight_ns < end_ns ? end_ns - weight_ns : 0, run_ns = end_ns;

	if (sample_is_stretch(sample) && sample->runnable_ns <= end_ns - begin_ns)
		run_ns = end_ns - sample->runnable_ns;
	if (run_ns > begin_ns || run_ns == end_ns)
		add_stretch(p, event, begin_ns, run_ns, false);
	if (run_ns < end_ns)
		add_stretch(p, event, run_ns, end_ns, true);
}

void perfetto_add_sample(struct perfetto *p, const struct event *event)
{
	if (event->sample->kind == SAMPLE_OFF_CPU)
		add_blocked(p, event);
	else
		add_cpu_sample(p, event);
}
