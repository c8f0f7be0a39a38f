// SPDX-License-Identifier: MIT
#include "trace/define.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "cuda/api.h"
#include "trace/chunk.h"

/* From the numbers of a source, which may have gaps, to those of the file and one; 0: not met. */
struct numbers {
	uint32_t *of;
	size_t count;
	uint32_t next;
};

/* As it was last defined. */
struct defined_kernel {
	const char *name, *mangled;
	bool resolved;
};

/* A frame that the file has. */
struct defined_frame {
	const struct stack_frame *frame;
	bool parts; /* and those of it */
};

struct definer {
	struct numbers processes, functions, kernels, frames, stacks;
	struct defined_kernel *defined; /* by number */
	struct defined_frame *known;    /* the same */
	struct buf records, body;
	uint32_t n_records;
};

struct definer *definer_new(void)
{
	return xcalloc(1, sizeof(struct definer));
}

void definer_free(struct definer *definer)
{
	if (!definer)
		return;
	free(definer->processes.of);
	free(definer->functions.of);
	free(definer->kernels.of);
	free(definer->frames.of);
	free(definer->stacks.of);
	free(definer->defined);
	free(definer->known);
	buf_free(&definer->records);
	buf_free(&definer->body);
	free(definer);
}

size_t definer_bytes(const struct definer *definer)
{
	return definer->records.len;
}

uint32_t definer_take(struct definer *definer, struct buf *raw)
{
	uint32_t count = definer->n_records;

	buf_reset(raw);
	buf_add(raw, definer->records.data, definer->records.len);
	buf_reset(&definer->records);
	definer->n_records = 0;
	return count;
}

/* ---- records ------------------------------------------------------------------------------- */

void record_varint(struct buf *body, uint64_t value)
{
	buf_reserve(body, VARINT_MAX);
	body->len = (size_t)(put_varint((uint8_t *)body->data + body->len, value) -
	                     (uint8_t *)body->data);
}

void record_text(struct buf *body, const char *text)
{
	size_t len = text ? strnlen(text, FORMAT_TEXT_MAX) : 0;

	record_varint(body, len);
	if (len)
		buf_add(body, text, len);
}

void record_add(struct buf *out, uint32_t tag, const struct buf *body)
{
	record_varint(out, tag);
	record_varint(out, body->len);
	buf_add(out, body->data, body->len);
}

static void end_record(struct definer *definer, enum definition tag)
{
	record_add(&definer->records, tag, &definer->body);
	buf_reset(&definer->body);
	definer->n_records++;
}

/* ---- objects ------------------------------------------------------------------------------- */

static uint32_t number_anew(struct numbers *numbers, uint32_t id)
{
	if (id >= numbers->count) {
		size_t count = id < 32 ? 64 : 2 * ((size_t)id + 1);

		numbers->of = xrealloc(numbers->of, count * sizeof(*numbers->of));
		memset(numbers->of + numbers->count, 0,
		       (count - numbers->count) * sizeof(*numbers->of));
		numbers->count = count;
	}
	numbers->of[id] = ++numbers->next;
	return numbers->next - 1;
}

/* The number of the file. True where it was given out just now. */
static inline bool number(struct numbers *numbers, uint32_t id, uint32_t *number)
{
	bool is_known = id < numbers->count && numbers->of[id];

	*number = is_known ? numbers->of[id] - 1 : number_anew(numbers, id);
	return !is_known;
}

static void define_process(struct definer *definer, const struct process *process, uint32_t id)
{
	struct buf *body = &definer->body;

	record_varint(body, id);
	record_varint(body, process->pid);
	record_text(body, process->comm);
	record_varint(body, process->person + 1);
	end_record(definer, DEFINE_PROCESS);
}

/* With its row, so that the file says all by itself what the arguments are. */
static void define_function(struct definer *definer, const struct function *function, uint32_t id)
{
	struct buf *body = &definer->body;
	struct api_text row;

	record_varint(body, id);
	record_text(body, function->name);
	record_text(body, function->lib);
	record_varint(body, function->layer);
	record_varint(body, function->cls);
	record_varint(body, function->api != NULL);
	if (function->api) {
		api_to_text(function->api, &row);
		record_text(body, row.name);
		record_varint(body, row.cls);
		record_varint(body, row.op);
		record_varint(body, row.memory);
		record_varint(body, row.direction);
		record_varint(body, row.flags);
		record_text(body, row.spec);
	}
	end_record(definer, DEFINE_FUNCTION);
}

/* Again when a kernel got its name after it was first met: the last definition counts. */
static void define_kernel(struct definer *definer, const struct kernel *kernel, uint32_t id,
                          bool is_new)
{
	struct buf *body = &definer->body;
	struct defined_kernel *defined;

	if (is_new && (id & (id + 1)) == 0) /* 0, 1, 3, 7: the room doubles */
		definer->defined =
			xrealloc(definer->defined, 2 * (id + 1) * sizeof(*definer->defined));
	defined = &definer->defined[id];
	if (!is_new && defined->name == kernel->name && defined->mangled == kernel->mangled &&
	    defined->resolved == kernel->resolved)
		return;
	*defined = (struct defined_kernel){ kernel->name, kernel->mangled, kernel->resolved };
	record_varint(body, id);
	record_varint(body, kernel->resolved);
	record_text(body, kernel->name);
	record_varint(body, kernel->mangled != NULL);
	record_text(body, kernel->mangled);
	end_record(definer, DEFINE_KERNEL);
}

/* ---- stacks -------------------------------------------------------------------------------- */

static void add_frame_text(struct buf *body, const char *text)
{
	size_t len = text ? strnlen(text, FORMAT_FRAME_TEXT_MAX) : 0;

	if (!text)
		return;
	record_varint(body, len);
	buf_add(body, text, len);
}

static uint32_t define_frame(struct definer *definer, const struct stack_frame *frame)
{
	struct buf *body = &definer->body;
	uint32_t id;

	if (!number(&definer->frames, frame->id, &id))
		return id;
	if ((id & (id + 1)) == 0) /* 0, 1, 3, 7: the room doubles */
		definer->known =
			xrealloc(definer->known, 2 * ((size_t)id + 1) * sizeof(*definer->known));
	definer->known[id] = (struct defined_frame){ frame, false };
	record_varint(body, id);
	record_varint(body, frame->kind);
	record_varint(body, frame->inlined ? FRAME_INLINED : 0);
	record_varint(body, frame->line);
	record_varint(body, frame->first_line);
	record_varint(body, frame->offset);
	record_varint(body, (frame->function ? FRAME_HAS_FUNCTION : 0u) |
	                            (frame->module ? FRAME_HAS_MODULE : 0u) |
	                            (frame->file ? FRAME_HAS_FILE : 0u) |
	                            (frame->build_id ? FRAME_HAS_BUILD_ID : 0u));
	add_frame_text(body, frame->function);
	add_frame_text(body, frame->module);
	add_frame_text(body, frame->file);
	add_frame_text(body, frame->build_id);
	end_record(definer, DEFINE_FRAME);
	return id;
}

static void define_parts_of(struct definer *definer, uint32_t id)
{
	const struct stack_frame *frame = definer->known[id].frame;
	size_t n = frame->n_parts < FORMAT_PARTS_MAX ? frame->n_parts : FORMAT_PARTS_MAX;
	struct buf *body = &definer->body;
	uint32_t parts[FORMAT_PARTS_MAX];

	for (size_t i = 0; i < n; i++) /* records of their own, before this one */
		parts[i] = define_frame(definer, frame->parts[i]);
	record_varint(body, id);
	record_varint(body, n);
	for (size_t i = 0; i < n; i++)
		record_varint(body, parts[i]);
	end_record(definer, DEFINE_PARTS);
	definer->known[id].parts = true;
}

bool define_parts(struct definer *definer, size_t bytes)
{
	for (uint32_t id = 0; id < definer->frames.next; id++) {
		if (!definer->known[id].frame->n_parts || definer->known[id].parts)
			continue;
		if (definer_bytes(definer) >= bytes)
			return true;
		define_parts_of(definer, id);
	}
	return false;
}

static uint32_t define_stack(struct definer *definer, const struct stack *stack)
{
	size_t n = stack->n_frames < FORMAT_FRAMES_MAX ? stack->n_frames : FORMAT_FRAMES_MAX;
	uint64_t last = 0, frame;
	struct buf *body = &definer->body;
	uint32_t id;

	if (!number(&definer->stacks, stack->id, &id))
		return id;
	for (size_t i = 0; i < n; i++) /* a record of its own each, before that of the stack */
		define_frame(definer, stack->frames[i]);
	record_varint(body, id);
	record_varint(body, n < stack->n_frames ? STACK_TOO_DEEP : stack->end);
	record_varint(body, stack->python_cut ? STACK_PYTHON_CUT : 0);
	record_varint(body, n);
	for (size_t i = 0; i < n; i++, last = frame) {
		frame = define_frame(definer, stack->frames[i]);
		record_varint(body, fold(frame - last));
	}
	end_record(definer, DEFINE_STACK);
	return id;
}

static const struct stack *stack_of(const struct event *event)
{
	return event->call       ? event->call->stack
	       : event->sample   ? event->sample->stack
	       : event->activity ? event->activity->stack
	                         : NULL;
}

/* ---- events -------------------------------------------------------------------------------- */

void define_objects(struct definer *definer, const struct event *event, struct event_ids *ids)
{
	const struct function *function = event->call ? event->call->function : NULL;
	const struct kernel *kernel = event->call       ? event->call->kernel
	                              : event->activity ? event->activity->kernel
	                              : event->stall    ? event->stall->kernel
	                                                : NULL;
	const struct stack *stack = stack_of(event);

	ids->function = ids->kernel = ids->stack = 0;
	if (number(&definer->processes, event->process->id, &ids->process))
		define_process(definer, event->process, ids->process);
	if (function && number(&definer->functions, function->id, &ids->function))
		define_function(definer, function, ids->function);
	if (kernel) {
		bool is_new = number(&definer->kernels, kernel->id, &ids->kernel);

		define_kernel(definer, kernel, ids->kernel, is_new);
		ids->kernel++;
	}
	if (stack)
		ids->stack = define_stack(definer, stack) + 1;
}

void define_event(struct definer *definer, const struct event *event, const struct event_ids *ids)
{
	struct buf *body = &definer->body;

	record_varint(body, ids->process);
	record_varint(body, event->tid);
	record_varint(body, event->time_ns);
	if (event->type == EVENT_THREAD) {
		record_text(body, event->thread->comm);
		record_varint(body, fold((uint64_t)(int64_t)event->thread->priority));
	}
	end_record(definer,
	           event->type == EVENT_THREAD ? DEFINE_EVENT_THREAD : DEFINE_EVENT_PROCESS);
}
