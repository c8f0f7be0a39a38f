// SPDX-License-Identifier: MIT
#include "trace/objects.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/xalloc.h"
#include "cuda/row_text.h"
#include "trace/format.h"

#define HOLES_MAX (1u << 20) /* that damage may leave among the numbers of each kind */

/* What each takes besides its texts, with what tables of all reports keep of it. */
#define PROCESS_BYTES  4096
#define FUNCTION_BYTES 2048
#define KERNEL_BYTES   512
#define RENAMED_BYTES  96
#define FRAME_BYTES    256
#define STACK_BYTES    256

struct objects_known_function {
	struct function function;
	struct api *made; /* a row that is not built in */
};

struct waiting_object {
	struct event event;
	struct thread thread;
};

struct objects {
	struct process **processes;
	struct objects_known_function **functions;
	struct kernel **kernels;
	struct stack_frame **frames;
	struct stack **stacks; /* each with its frames behind it */
	uint32_t n_processes, n_functions, n_kernels, n_frames, n_stacks;
	char **old_names; /* of kernels that were defined again: consumers may hold them */
	size_t n_old_names;
	struct waiting_object *waiting; /* from `taken` on */
	size_t n_waiting, taken, waiting_room;
	uint64_t lost;                /* definitions, at most HOLES_MAX */
	uint64_t holes[OBJECT_KINDS]; /* of each kind, among the numbers that there are */
	struct budget *budget;
};

struct objects *objects_new(void)
{
	struct objects *objects = xcalloc(1, sizeof(*objects));

	objects->budget = budget_new(OBJECTS_BYTES_MAX, OBJECTS_BYTES_MAX);
	return objects;
}

static void kernel_free(struct kernel *kernel)
{
	if (!kernel)
		return;
	free((char *)kernel->name);
	free((char *)kernel->mangled);
	free(kernel);
}

static void frame_free(struct stack_frame *frame)
{
	if (!frame)
		return;
	free((char *)frame->function);
	free((char *)frame->module);
	free((char *)frame->file);
	free((char *)frame->build_id);
	free((void *)frame->parts);
	free(frame);
}

static void function_free(struct objects_known_function *known)
{
	if (!known)
		return;
	free((char *)known->function.name);
	free((char *)known->function.lib);
	api_free(known->made);
	free(known);
}

void objects_free(struct objects *objects)
{
	if (!objects)
		return;
	for (uint32_t i = 0; i < objects->n_processes; i++)
		free(objects->processes[i]);
	for (uint32_t i = 0; i < objects->n_functions; i++)
		function_free(objects->functions[i]);
	for (uint32_t i = 0; i < objects->n_kernels; i++)
		kernel_free(objects->kernels[i]);
	for (uint32_t i = 0; i < objects->n_frames; i++)
		frame_free(objects->frames[i]);
	for (uint32_t i = 0; i < objects->n_stacks; i++)
		free(objects->stacks[i]);
	for (size_t i = 0; i < objects->n_old_names; i++)
		free(objects->old_names[i]);
	free(objects->processes);
	free(objects->functions);
	free(objects->kernels);
	free(objects->frames);
	free(objects->stacks);
	free(objects->old_names);
	free(objects->waiting);
	budget_free(objects->budget);
	free(objects);
}

const struct process *objects_process(const struct objects *objects, uint64_t id)
{
	return id < objects->n_processes ? objects->processes[id] : NULL;
}

const struct function *objects_function(const struct objects *objects, uint64_t id)
{
	return id < objects->n_functions && objects->functions[id]
	               ? &objects->functions[id]->function
	               : NULL;
}

const struct kernel *objects_kernel(const struct objects *objects, uint64_t id)
{
	return id < objects->n_kernels ? objects->kernels[id] : NULL;
}

const struct stack *objects_stack(const struct objects *objects, uint64_t id)
{
	return id < objects->n_stacks ? objects->stacks[id] : NULL;
}

/* ---- what was lost ------------------------------------------------------------------------- */

void objects_lose(struct objects *objects, uint64_t definitions)
{
	objects->lost += definitions < HOLES_MAX ? definitions : HOLES_MAX;
	if (objects->lost > HOLES_MAX)
		objects->lost = HOLES_MAX;
}

bool objects_lost_any(const struct objects *objects)
{
	return objects->lost != 0;
}

/* A number below the count that has nothing is a hole; one above may have been in the
 * last chunk. */
bool objects_lost(const struct objects *objects, enum object_kind kind, uint64_t id)
{
	const uint32_t counts[] = { [OBJECT_PROCESS] = objects->n_processes,
		                    [OBJECT_FUNCTION] = objects->n_functions,
		                    [OBJECT_KERNEL] = objects->n_kernels,
		                    [OBJECT_FRAME] = objects->n_frames,
		                    [OBJECT_STACK] = objects->n_stacks };

	return objects->lost && id < counts[kind] + objects->lost;
}

uint64_t objects_over_budget(const struct objects *objects)
{
	return budget_refused(objects->budget);
}

/* One more element in a table whose size doubles. */
static void *table_grow(void *table, uint32_t count)
{
	if (count & (count - 1))
		return table;
	return xrealloc(table, (count ? 2 * (size_t)count : 1) * sizeof(void *));
}

/*
 * Whether `id` is the next number, or one behind what was lost, which makes holes: no more of them
 * in all than were lost, whatever the file says.
 */
static bool is_next(const struct objects *objects, enum object_kind kind, uint32_t count,
                    uint64_t id)
{
	return id >= count && id - count <= objects->lost - objects->holes[kind];
}

/* What a definition takes. One that there is no room for is lost, as if it were damaged. */
static bool take(struct objects *objects, size_t bytes, const struct bytes *body)
{
	if (budget_take(objects->budget, 0, bytes + (size_t)(body->end - body->at)))
		return true;
	objects_lose(objects, 1);
	return false;
}

static bool take_next(struct objects *objects, enum object_kind kind, uint32_t count, uint64_t id,
                      size_t bytes, const struct bytes *body)
{
	if (!take(objects, bytes, body))
		return false;
	objects->holes[kind] += id - count;
	return true;
}

/* Room for the element `id`, with a hole before it where something was lost. */
static void *make_room(void *table, uint32_t *count, uint64_t id)
{
	for (; *count <= id; ++*count) {
		table = table_grow(table, *count);
		memset((void **)table + *count, 0, sizeof(void *));
	}
	return table;
}

/* ---- records ------------------------------------------------------------------------------- */

bool record_next(struct bytes *in, uint64_t *tag, struct bytes *body)
{
	if (in->at == in->end)
		return false;
	*tag = bytes_varint(in);
	*body = bytes_take(in, bytes_varint(in));
	return !in->bad;
}

char *record_string(struct bytes *body)
{
	uint64_t len = bytes_varint(body);
	struct bytes text = bytes_take(body, len);

	if (len > FORMAT_TEXT_MAX)
		body->bad = true;
	return xstrndup((const char *)text.at, (size_t)(text.end - text.at));
}

static void read_comm(struct bytes *body, char comm[16])
{
	char *text = record_string(body);

	strncpy(comm, text, 15);
	comm[15] = '\0';
	free(text);
}

/* ---- objects ------------------------------------------------------------------------------- */

static bool read_process(struct objects *objects, struct bytes *body)
{
	uint64_t id = bytes_varint(body), pid = bytes_varint(body);
	struct process *process;

	if (!is_next(objects, OBJECT_PROCESS, objects->n_processes, id))
		return false;
	if (!take_next(objects, OBJECT_PROCESS, objects->n_processes, id, PROCESS_BYTES, body))
		return true;
	objects->processes = make_room(objects->processes, &objects->n_processes, id);
	process = xcalloc(1, sizeof(*process));
	process->id = (uint32_t)id;
	process->pid = (uint32_t)pid;
	read_comm(body, process->comm);
	objects->processes[id] = process;
	return !body->bad;
}

/* A function's name is a word of C, as it is when it comes from a library. */
static char *read_name(struct bytes *body)
{
	char *name = record_string(body);

	for (char *at = name; *at; at++) {
		if (!isalnum((unsigned char)*at) && *at != '_')
			*at = '?';
	}
	return name;
}

static void read_row(struct objects_known_function *known, struct bytes *body)
{
	char *name = read_name(body), *spec;
	struct api_text row = { .name = name };

	row.cls = (uint32_t)bytes_varint(body);
	row.op = (uint32_t)bytes_varint(body);
	row.memory = (uint32_t)bytes_varint(body);
	row.direction = (uint32_t)bytes_varint(body);
	row.flags = (uint32_t)bytes_varint(body);
	row.spec = spec = record_string(body);
	if (!body->bad)
		known->function.api = api_from_text(&row, &known->made);
	free(name);
	free(spec);
}

static bool read_function(struct objects *objects, struct bytes *body)
{
	uint64_t id = bytes_varint(body), layer, cls;
	struct objects_known_function *known;

	if (!is_next(objects, OBJECT_FUNCTION, objects->n_functions, id))
		return false;
	if (!take_next(objects, OBJECT_FUNCTION, objects->n_functions, id, FUNCTION_BYTES, body))
		return true;
	objects->functions = make_room(objects->functions, &objects->n_functions, id);
	known = xcalloc(1, sizeof(*known));
	known->function.id = (uint32_t)id;
	known->function.name = read_name(body);
	known->function.lib = record_string(body);
	layer = bytes_varint(body);
	cls = bytes_varint(body);
	known->function.layer = layer == LAYER_RUNTIME ? LAYER_RUNTIME : LAYER_DRIVER;
	known->function.cls = cls < CLASS_COUNT ? (enum api_class)cls : CLASS_OTHER;
	if (bytes_varint(body))
		read_row(known, body);
	objects->functions[id] = known;
	return !body->bad;
}

static void keep_old(struct objects *objects, const char *name)
{
	if (!name)
		return;
	objects->old_names = xrealloc(objects->old_names,
	                              (objects->n_old_names + 1) * sizeof(*objects->old_names));
	objects->old_names[objects->n_old_names++] = (char *)name;
}

static bool name_kernel(struct objects *objects, uint64_t id, struct bytes *body)
{
	struct kernel *kernel;

	if (!objects->kernels[id])
		objects->kernels[id] = xcalloc(1, sizeof(*kernel));
	kernel = objects->kernels[id];
	keep_old(objects, kernel->name);
	keep_old(objects, kernel->mangled);
	kernel->id = (uint32_t)id;
	kernel->resolved = bytes_varint(body) != 0;
	kernel->name = record_string(body);
	kernel->mangled = bytes_varint(body) ? record_string(body) : NULL;
	return !body->bad;
}

/* A kernel, or a new name of one. */
static bool read_kernel(struct objects *objects, struct bytes *body)
{
	uint64_t id = bytes_varint(body);
	uint32_t count = objects->n_kernels;

	if (id < count) {
		size_t bytes = objects->kernels[id] ? RENAMED_BYTES : KERNEL_BYTES;

		return !take(objects, bytes, body) || name_kernel(objects, id, body);
	}
	if (!is_next(objects, OBJECT_KERNEL, count, id))
		return false;
	if (!take_next(objects, OBJECT_KERNEL, count, id, KERNEL_BYTES, body))
		return true;
	objects->kernels = make_room(objects->kernels, &objects->n_kernels, id);
	return name_kernel(objects, id, body);
}

/* ---- stacks -------------------------------------------------------------------------------- */

static bool read_frame(struct objects *objects, struct bytes *body)
{
	uint64_t id = bytes_varint(body), kind, texts;
	struct stack_frame *frame;

	if (!is_next(objects, OBJECT_FRAME, objects->n_frames, id))
		return false;
	if (!take_next(objects, OBJECT_FRAME, objects->n_frames, id, FRAME_BYTES, body))
		return true;
	objects->frames = make_room(objects->frames, &objects->n_frames, id);
	objects->frames[id] = frame = xcalloc(1, sizeof(*frame));
	frame->id = (uint32_t)id;
	kind = bytes_varint(body);
	frame->kind = kind < FRAME_COUNT ? (enum frame_kind)kind : FRAME_NATIVE;
	frame->inlined = bytes_varint(body) & FRAME_INLINED;
	frame->line = (uint32_t)bytes_varint(body);
	frame->first_line = (uint32_t)bytes_varint(body);
	frame->offset = bytes_varint(body);
	texts = bytes_varint(body);
	frame->function = texts & FRAME_HAS_FUNCTION ? record_string(body) : NULL;
	frame->module = texts & FRAME_HAS_MODULE ? record_string(body) : NULL;
	frame->file = texts & FRAME_HAS_FILE ? record_string(body) : NULL;
	frame->build_id = texts & FRAME_HAS_BUILD_ID ? record_string(body) : NULL;
	return !body->bad;
}

/* Of a frame that was defined before. Where it, or one of them, was lost, it stays as it is. */
static bool read_parts(struct objects *objects, struct bytes *body)
{
	const struct stack_frame *parts[FORMAT_PARTS_MAX], **copy;
	uint64_t id = bytes_varint(body), n = bytes_varint(body), part;
	struct stack_frame *frame = id < objects->n_frames ? objects->frames[id] : NULL;
	bool whole = frame != NULL;

	if (!n || n > FORMAT_PARTS_MAX || (!frame && !objects_lost(objects, OBJECT_FRAME, id)))
		return false;
	for (size_t i = 0; i < n; i++) {
		part = bytes_varint(body);
		parts[i] = part < objects->n_frames ? objects->frames[part] : NULL;
		if (!parts[i] && !objects_lost(objects, OBJECT_FRAME, part))
			return false;
		whole &= parts[i] != NULL;
	}
	if (body->bad)
		return false;
	if (!whole || frame->n_parts || !take(objects, n * sizeof(*copy), body))
		return true;
	copy = xmalloc(n * sizeof(*copy));
	memcpy(copy, parts, n * sizeof(*copy));
	frame->parts = copy;
	frame->n_parts = n;
	return true;
}

/* False where one is not there. One that was lost, and a stack with it, is told by *lost. */
static bool read_frames(const struct objects *objects, struct bytes *body, size_t n,
                        const struct stack_frame **frames, bool *lost)
{
	uint64_t id = 0;

	*lost = false;
	for (size_t i = 0; i < n; i++) {
		id += unfold(bytes_varint(body));
		frames[i] = id < objects->n_frames ? objects->frames[id] : NULL;
		if (!frames[i] && !objects_lost(objects, OBJECT_FRAME, id))
			return false;
		*lost |= !frames[i];
	}
	return !body->bad;
}

static bool read_stack(struct objects *objects, struct bytes *body)
{
	const struct stack_frame *frames[FORMAT_FRAMES_MAX];
	uint64_t id = bytes_varint(body), end = bytes_varint(body), flags = bytes_varint(body);
	uint64_t n = bytes_varint(body);
	struct stack *stack;
	bool lost;

	if (!is_next(objects, OBJECT_STACK, objects->n_stacks, id) || !n || n > FORMAT_FRAMES_MAX ||
	    !read_frames(objects, body, n, frames, &lost))
		return false;
	if (!take_next(objects, OBJECT_STACK, objects->n_stacks, id,
	               STACK_BYTES + n * sizeof(*frames), body))
		return true;
	objects->stacks = make_room(objects->stacks, &objects->n_stacks, id);
	if (lost)
		return true;
	objects->stacks[id] = stack = xcalloc(1, sizeof(*stack) + n * sizeof(*frames));
	memcpy(stack + 1, frames, n * sizeof(*frames));
	stack->id = (uint32_t)id;
	stack->end = end < STACK_END_COUNT ? (enum stack_end)end : STACK_BAD;
	stack->python_cut = flags & STACK_PYTHON_CUT;
	stack->n_frames = n;
	stack->frames = (const struct stack_frame *const *)(stack + 1);
	return true;
}

/* ---- events -------------------------------------------------------------------------------- */

static struct waiting_object *waiting_add(struct objects *objects)
{
	if (objects->taken &&
	    2 * objects->taken >= objects->n_waiting) { /* what was taken makes room */
		objects->n_waiting -= objects->taken;
		memmove(objects->waiting, objects->waiting + objects->taken,
		        objects->n_waiting * sizeof(*objects->waiting));
		objects->taken = 0;
	}
	if (objects->n_waiting == objects->waiting_room) {
		objects->waiting_room = objects->waiting_room ? 2 * objects->waiting_room : 16;
		objects->waiting = xrealloc(objects->waiting,
		                            objects->waiting_room * sizeof(*objects->waiting));
	}
	objects->waiting[objects->n_waiting] = (struct waiting_object){ 0 };
	return &objects->waiting[objects->n_waiting++];
}

static bool read_event(struct objects *objects, struct bytes *body, enum event_type type)
{
	struct event event = { .type = type };
	struct waiting_object *waiting;
	uint64_t id;

	id = bytes_varint(body);
	event.process = objects_process(objects, id);
	event.tid = (uint32_t)bytes_varint(body);
	event.time_ns = bytes_varint(body);
	if ((!event.process && !objects_lost(objects, OBJECT_PROCESS, id)) ||
	    event.time_ns >= FORMAT_TIME_MAX)
		return false;
	waiting = waiting_add(objects);
	waiting->event = event;
	if (type == EVENT_THREAD) {
		read_comm(body, waiting->thread.comm);
		waiting->thread.priority = (int32_t)unfold(bytes_varint(body));
	}
	return !body->bad;
}

size_t objects_waiting(const struct objects *objects)
{
	return objects->n_waiting - objects->taken;
}

bool objects_take(struct objects *objects, struct event *event, struct thread *thread)
{
	struct waiting_object *waiting;

	if (!objects_waiting(objects))
		return false;
	waiting = &objects->waiting[objects->taken++];
	*event = waiting->event;
	*thread = waiting->thread;
	if (event->type == EVENT_THREAD)
		event->thread = thread;
	return true;
}

/* ---- chunks -------------------------------------------------------------------------------- */

static bool read_record(struct objects *objects, uint64_t tag, struct bytes *body)
{
	switch (tag) {
	case DEFINE_PROCESS:
		return read_process(objects, body);
	case DEFINE_FUNCTION:
		return read_function(objects, body);
	case DEFINE_KERNEL:
		return read_kernel(objects, body);
	case DEFINE_EVENT_PROCESS:
		return read_event(objects, body, EVENT_PROCESS);
	case DEFINE_EVENT_THREAD:
		return read_event(objects, body, EVENT_THREAD);
	case DEFINE_FRAME:
		return read_frame(objects, body);
	case DEFINE_STACK:
		return read_stack(objects, body);
	case DEFINE_PARTS:
		return read_parts(objects, body);
	default:
		return true; /* of a later minor version */
	}
}

bool objects_read(struct objects *objects, struct bytes *in)
{
	struct bytes body;
	uint64_t tag;

	while (objects_waiting(objects) < OBJECTS_WAITING_MAX && record_next(in, &tag, &body)) {
		if (!read_record(objects, tag, &body))
			return false;
	}
	return !in->bad;
}
