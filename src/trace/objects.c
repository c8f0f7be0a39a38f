// SPDX-License-Identifier: MIT
#include "trace/objects.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "cuda/api.h"
#include "trace/format.h"
#include "trace/objects_inside.h"

/* What each takes besides its texts, with what tables of all reports keep of it. */
#define PROCESS_BYTES  4096
#define FUNCTION_BYTES 2048
#define KERNEL_BYTES   512
#define RENAMED_BYTES  96

struct objects *objects_new(void)
{
	struct objects *objects = xcalloc(1, sizeof(*objects));

	objects->numbers.bytes = OBJECTS_BYTES_MAX;
	objects->budget = budget_new(OBJECTS_BYTES_MAX, OBJECTS_BYTES_MAX);
	return objects;
}

void objects_number(struct objects *objects, const struct objects_numbers *numbers)
{
	objects->numbers = *numbers;
	budget_free(objects->budget);
	objects->budget = budget_new(numbers->bytes, numbers->bytes);
}

void objects_numbers_pass(struct objects_numbers *numbers, const struct objects *objects)
{
	numbers->first[OBJECT_PROCESS] += objects->n_processes;
	numbers->first[OBJECT_FUNCTION] += objects->n_functions;
	numbers->first[OBJECT_KERNEL] += objects->n_kernels;
	numbers->first[OBJECT_FRAME] += objects->n_frames;
	numbers->first[OBJECT_STACK] += objects->n_stacks;
	numbers->file++;
}

static void kernel_free(struct kernel *kernel)
{
	if (!kernel)
		return;
	free((char *)kernel->name);
	free((char *)kernel->mangled);
	free(kernel);
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
	objects_free_stacks(objects);
	for (size_t i = 0; i < objects->n_old_names; i++)
		free(objects->old_names[i]);
	free(objects->processes);
	free(objects->functions);
	free(objects->kernels);
	free(objects->old_names);
	free(objects->waiting);
	budget_free(objects->budget);
	budget_free(objects->ahead);
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
	objects->lost += definitions < OBJECTS_HOLES_MAX ? definitions : OBJECTS_HOLES_MAX;
	if (objects->lost > OBJECTS_HOLES_MAX)
		objects->lost = OBJECTS_HOLES_MAX;
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
	uint64_t ahead = objects->ahead ? budget_refused(objects->ahead) : objects->refused_ahead;

	return budget_refused(objects->budget) + ahead;
}

/* One more element in a table whose size doubles. */
static void *table_grow(void *table, uint32_t count)
{
	if (count & (count - 1))
		return table;
	return xrealloc(table, (count ? 2 * (size_t)count : 1) * sizeof(void *));
}

bool objects_is_next(const struct objects *objects, enum object_kind kind, uint32_t count,
                     uint64_t id)
{
	return id >= count && id - count <= objects->lost - objects->holes[kind];
}

bool objects_afford(struct objects *objects, size_t bytes, const struct bytes *body)
{
	struct budget *budget = objects->ahead ? objects->ahead : objects->budget;

	if (budget_take(budget, 0, bytes + (size_t)(body->end - body->at)))
		return true;
	objects_lose(objects, 1);
	return false;
}

bool objects_afford_next(struct objects *objects, enum object_kind kind, uint32_t count,
                         uint64_t id, size_t bytes, const struct bytes *body)
{
	if (!objects_afford(objects, bytes, body))
		return false;
	objects->holes[kind] += id - count;
	return true;
}

void *objects_make_room(void *table, uint32_t *count, uint64_t id)
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

char *record_name(struct bytes *body)
{
	char *name = record_string(body);

	text_cut_bytes(name, TEXT_NAME_MAX);
	return name;
}

static void read_comm(struct bytes *body, char comm[16])
{
	AT_END(at_end_free) char *text = record_string(body);

	strncpy(comm, text, 15);
	comm[15] = '\0';
}

/* ---- objects ------------------------------------------------------------------------------- */

static bool read_process(struct objects *objects, struct bytes *body)
{
	uint64_t id = bytes_varint(body), pid = bytes_varint(body);
	struct process *process;

	if (!objects_is_next(objects, OBJECT_PROCESS, objects->n_processes, id))
		return false;
	if (!objects_afford_next(objects, OBJECT_PROCESS, objects->n_processes, id, PROCESS_BYTES,
	                         body))
		return true;
	objects->processes = objects_make_room(objects->processes, &objects->n_processes, id);
	process = xcalloc(1, sizeof(*process));
	process->id = objects_id(objects, OBJECT_PROCESS, id);
	process->file = objects->numbers.file;
	process->machine = objects->numbers.machine;
	process->pid = (uint32_t)pid;
	read_comm(body, process->comm);
	process->person = body->at < body->end ? bytes_varint(body) - 1 : PROCESS_UNTOLD;
	objects->processes[id] = process;
	return !body->bad;
}

/* In names of what is no CUDA call. All outputs can write these as they are. */
#define OTHER_NAME_MARKS " _.:/+-#@()[]"

static void make_plain(char *name, const char *marks)
{
	for (char *at = name; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr(marks, *at))
			*at = '?';
	}
}

/* A function's name is a word of C, as it is when it comes from a library. */
static char *read_name(struct bytes *body)
{
	char *name = record_name(body);

	make_plain(name, "_");
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
	char *name;

	if (!objects_is_next(objects, OBJECT_FUNCTION, objects->n_functions, id))
		return false;
	if (!objects_afford_next(objects, OBJECT_FUNCTION, objects->n_functions, id, FUNCTION_BYTES,
	                         body))
		return true;
	objects->functions = objects_make_room(objects->functions, &objects->n_functions, id);
	known = xcalloc(1, sizeof(*known));
	known->function.id = objects_id(objects, OBJECT_FUNCTION, id);
	known->function.name = name = record_name(body);
	known->function.lib = record_name(body);
	layer = bytes_varint(body);
	cls = bytes_varint(body);
	known->function.layer = layer < LAYER_COUNT ? (enum api_layer)layer : LAYER_DRIVER;
	make_plain(name, layer_is_cuda(known->function.layer) ? "_" : OTHER_NAME_MARKS);
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
	kernel->id = objects_id(objects, OBJECT_KERNEL, id);
	kernel->resolved = bytes_varint(body) != 0;
	kernel->name = record_name(body);
	kernel->mangled = bytes_varint(body) ? record_name(body) : NULL;
	return !body->bad;
}

/* A kernel, or a new name of one. */
static bool read_kernel(struct objects *objects, struct bytes *body)
{
	uint64_t id = bytes_varint(body);
	uint32_t count = objects->n_kernels;

	if (id < count) {
		size_t bytes = objects->kernels[id] ? RENAMED_BYTES : KERNEL_BYTES;

		return !objects_afford(objects, bytes, body) || name_kernel(objects, id, body);
	}
	if (!objects_is_next(objects, OBJECT_KERNEL, count, id))
		return false;
	if (!objects_afford_next(objects, OBJECT_KERNEL, count, id, KERNEL_BYTES, body))
		return true;
	objects->kernels = objects_make_room(objects->kernels, &objects->n_kernels, id);
	return name_kernel(objects, id, body);
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
		return objects_read_frame(objects, body);
	case DEFINE_STACK:
		return objects_read_stack(objects, body);
	case DEFINE_PARTS:
		return objects_read_parts(objects, body);
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

bool objects_look_ahead(struct objects *objects, struct bytes *in)
{
	struct bytes body;
	uint64_t tag;

	if (!objects->ahead)
		objects->ahead = budget_new(OBJECTS_BYTES_AHEAD, OBJECTS_BYTES_AHEAD);
	while (record_next(in, &tag, &body)) {
		if (tag == DEFINE_FRAME && !objects_read_frame(objects, &body))
			return false;
		if (tag == DEFINE_PARTS && !objects_read_parts(objects, &body))
			return false;
	}
	return !in->bad;
}

/* What is damaged is met again, and what had no room is not. */
void objects_know_frames(struct objects *objects)
{
	objects->frames_known = true;
	objects->lost = objects->holes[OBJECT_FRAME] = 0;
	if (!objects->ahead)
		return;
	objects->refused_ahead = budget_refused(objects->ahead);
	budget_take(objects->budget, 0, budget_used(objects->ahead));
	budget_free(objects->ahead);
	objects->ahead = NULL;
	objects_lose(objects, objects->refused_ahead);
}
