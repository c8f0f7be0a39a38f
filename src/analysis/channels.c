// SPDX-License-Identifier: MIT
#include "analysis/channels.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/array.h"
#include "base/map.h"
#include "base/vec.h"

#define NONE UINT32_MAX

/* ---- what a call means ----------------------------------------------------------------------- */

enum meaning {
	MEANS_NOT_SEEN, /* the function is new */
	MEANS_OTHER,
	MEANS_GROUP,
	MEANS_CONTEXT,
	MEANS_CHANNEL,
	MEANS_FREE,
	MEANS_TOKEN,
	MEANS_TIMESLICE,
	MEANS_LEVEL,
	MEANS_ENGINE,
	MEANS_ID,
	MEANS_PREEMPTION,
};

/* Arguments that are looked for by their names: a file says where each stands. */
enum argument {
	CLIENT,
	OBJECT,
	PARENT,
	ENGINE,
	CHANNEL_ID,
	CHANNEL,
	VALUE,
	COMPUTE,
	GRAPHICS,
	FLAGS,
	ARGUMENTS
};

static const char *const argument_names[ARGUMENTS] = {
	[CLIENT] = "client",   [OBJECT] = "object",   [PARENT] = "parent",
	[ENGINE] = "engine",   [CHANNEL] = "channel", [CHANNEL_ID] = "channel_id",
	[COMPUTE] = "compute", [FLAGS] = "flags",     [GRAPHICS] = "graphics",
};

static const struct {
	const char *name, *value; /* value: the argument that is VALUE */
	enum meaning meaning;
} controls[] = {
	{ "GPFIFO_GET_WORK_SUBMIT_TOKEN (channel)", "token", MEANS_TOKEN },
	{ "SET_TIMESLICE (TSG)", "timeslice_us", MEANS_TIMESLICE },
	{ "GET_TIMESLICE (TSG)", "timeslice_us", MEANS_TIMESLICE },
	{ "SET_INTERLEAVE_LEVEL (TSG)", "level", MEANS_LEVEL },
	{ "GET_INTERLEAVE_LEVEL (TSG)", "level", MEANS_LEVEL },
	{ "SET_INTERLEAVE_LEVEL (channel)", "level", MEANS_LEVEL },
	{ "GET_INTERLEAVE_LEVEL (channel)", "level", MEANS_LEVEL },
	{ "BIND (TSG)", "engine", MEANS_ENGINE },
	{ "BIND (channel)", "engine", MEANS_ENGINE },
	{ "GET_INFO (TSG)", "tsg", MEANS_ID },
	{ "GR_SET_CTXSW_PREEMPTION_MODE", "flags", MEANS_PREEMPTION },
};

#define PREEMPT_COMPUTE  1u /* the bits of its flags */
#define PREEMPT_GRAPHICS 2u

struct known {
	enum meaning meaning;
	uint8_t at[ARGUMENTS]; /* 1 more than the index; 0: there is none */
};

struct key {
	uint32_t process, client, handle;
};

/* One of the driver's objects that is there: a row, or what rows were made in. */
struct object {
	struct key key;
	uint32_t row;      /* NONE: it is no row */
	uint32_t first[2]; /* of the rows made in it, and of those of the client that it is */
	UT_hash_handle hh;
};

struct channels {
	struct consumer consumer; /* first: what callers hold */
	struct known *functions;  /* by id */
	size_t n_functions;
	struct object *objects;
	struct channel_row *rows;
	uint32_t n;
	struct channels_of {
		uint32_t n;    /* rows */
		uint32_t seen; /* of all rows those that were looked at when it ended */
	} * of_process;        /* by its id */
	size_t n_processes;
	struct channels_left_out left_out;
};

static enum meaning meaning_of_class(const char *class)
{
	if (!strcmp(class, "KEPLER_CHANNEL_GROUP_A"))
		return MEANS_GROUP;
	if (!strcmp(class, "FERMI_CONTEXT_SHARE_A"))
		return MEANS_CONTEXT;
	return strstr(class, "_CHANNEL_GPFIFO") ? MEANS_CHANNEL : MEANS_OTHER;
}

static const char *after(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) ? NULL : text + strlen(begin);
}

static void find_arguments(const struct function *function, const char *value, struct known *known)
{
	const struct api_arg *args = NULL;
	size_t n = function->api ? api_args(function->api, &args) : 0;

	for (size_t i = 0; i < n && i < API_ARGS_MAX; i++) {
		for (size_t k = 0; k < ARGUMENTS; k++) {
			const char *name = k == VALUE ? value : argument_names[k];

			if (name && !strcmp(args[i].name, name) && !known->at[k])
				known->at[k] = (uint8_t)(i + 1);
		}
	}
}

static struct known know(const struct function *function)
{
	struct known known = { .meaning = MEANS_OTHER };
	const char *value = NULL, *class, *control;

	class = after(function->name, "RM_ALLOC ");
	control = after(function->name, "RM_CONTROL ");
	if (class)
		known.meaning = meaning_of_class(class);
	else if (!strcmp(function->name, "RM_FREE"))
		known.meaning = MEANS_FREE;
	for (size_t i = 0; control && i < ARRAY_SIZE(controls); i++) {
		if (strcmp(control, controls[i].name))
			continue;
		known.meaning = controls[i].meaning;
		value = controls[i].value;
	}
	if (known.meaning != MEANS_OTHER)
		find_arguments(function, value, &known);
	return known;
}

static uint64_t argument(const struct known *known, const struct call *call, enum argument which)
{
	uint8_t at = known->at[which];

	return at && at <= call->args.n_args ? call->args.arg[at - 1] : 0;
}

/* ---- objects --------------------------------------------------------------------------------- */

static struct object *find(const struct channels *channels, struct key key)
{
	return MAP_FIND(channels->objects, &key);
}

static struct object *make(struct channels *channels, struct key key)
{
	struct object *object = find(channels, key);

	if (object)
		return object;
	object = MAP_ADD(channels->objects, key, &key);
	object->row = object->first[0] = object->first[1] = NONE;
	return object;
}

static void forget(struct channels *channels, struct object *object)
{
	MAP_DROP(channels->objects, object);
}

static void end_row(struct channel_row *row, enum channel_end end, uint64_t time_ns)
{
	row->end = end;
	row->end_ns = time_ns;
}

/* Those that were made in it end, and are put before those that wait to be looked into. */
static uint32_t take_rows(struct channels *channels, const struct object *object, uint32_t pending,
                          uint64_t time_ns)
{
	for (size_t list = 0; list < 2; list++) {
		for (uint32_t at = object->first[list]; at != NONE;
		     at = channels->rows[at].next[list]) {
			struct channel_row *row = &channels->rows[at];

			if (row->end)
				continue;
			end_row(row, CHANNEL_FREED, time_ns);
			row->pending = pending;
			pending = at;
		}
	}
	return pending;
}

/* The driver frees what was made in an object with it. Each row is looked into once. */
static void free_object(struct channels *channels, struct key key, uint64_t time_ns)
{
	struct object *object = find(channels, key);
	uint32_t pending = NONE;

	if (!object)
		return; /* memory and all else */
	if (object->row != NONE && !channels->rows[object->row].end)
		end_row(&channels->rows[object->row], CHANNEL_FREED, time_ns);
	pending = take_rows(channels, object, pending, time_ns);
	forget(channels, object);
	while (pending != NONE) {
		const struct channel_row *row = &channels->rows[pending];
		struct object *inner =
			find(channels, (struct key){ key.process, row->client, row->handle });
		uint32_t at = pending;

		pending = row->pending;
		if (!inner || inner->row != at)
			continue;
		pending = take_rows(channels, inner, pending, time_ns);
		forget(channels, inner);
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

static uint32_t add_row(struct channels *channels, const struct process *process)
{
	struct channels_of *of = BY_ID(channels->of_process, channels->n_processes, process->id);

	if (channels->n == CHANNELS_KEPT || of->n == CHANNELS_OF_PROCESS) {
		channels->left_out.no_room++;
		return NONE;
	}
	of->n++;
	channels->rows = vec_room(channels->rows, channels->n, sizeof(*channels->rows));
	return channels->n++;
}

static void link_row(struct channels *channels, uint32_t at, struct key in, size_t list)
{
	struct object *object = make(channels, in);

	channels->rows[at].next[list] = object->first[list];
	object->first[list] = at;
}

static void made(struct channels *channels, const struct event *event, const struct known *known)
{
	const struct call *call = event->call;
	const struct key key = { event->process->id, (uint32_t)argument(known, call, CLIENT),
		                 (uint32_t)argument(known, call, OBJECT) };
	struct channel_row row = {
		.process = event->process,
		.kind = (enum channel_kind)(known->meaning - MEANS_GROUP),
		.class_name = after(call->function->name, "RM_ALLOC "),
		.client = key.client,
		.handle = key.handle,
		.parent = (uint32_t)argument(known, call, PARENT),
		.engine = (uint32_t)argument(known, call, ENGINE),
		.id = (uint32_t)argument(known, call, CHANNEL_ID),
		.begin_ns = call->begin_ns,
		.next = { NONE, NONE },
		.pending = NONE,
	};
	struct object *object = find(channels, key);
	uint32_t at;

	if (object && object->row != NONE) /* its end was not seen */
		free_object(channels, key, call->begin_ns);
	at = add_row(channels, event->process);
	if (at == NONE)
		return;
	/* where the engine was read, so was the number behind it */
	row.knows_id = row.kind == CHANNEL_CHANNEL && (row.engine || row.id);
	channels->rows[at] = row;
	make(channels, key)->row = at;
	link_row(channels, at, (struct key){ key.process, key.client, row.parent }, 0);
	link_row(channels, at, (struct key){ key.process, key.client, key.client }, 1);
}

static void set_preemption(struct channel_row *row, const struct known *known,
                           const struct call *call)
{
	uint32_t flags = (uint32_t)argument(known, call, FLAGS);

	if (flags & PREEMPT_COMPUTE) {
		row->compute = (uint32_t)argument(known, call, COMPUTE);
		row->knows_compute = true;
	}
	if (flags & PREEMPT_GRAPHICS) {
		row->graphics = (uint32_t)argument(known, call, GRAPHICS);
		row->knows_graphics = true;
	}
}

static void set(struct channel_row *row, const struct known *known, const struct call *call)
{
	uint64_t value = argument(known, call, VALUE);

	switch (known->meaning) {
	case MEANS_TOKEN:
		row->token = (uint32_t)value;
		row->knows_token = true;
		break;
	case MEANS_TIMESLICE:
		row->timeslice_us = value;
		row->knows_timeslice = true;
		break;
	case MEANS_LEVEL:
		row->level = (uint32_t)value;
		row->knows_level = true;
		break;
	case MEANS_ENGINE:
		row->engine = (uint32_t)value;
		break;
	case MEANS_ID:
		row->id = (uint32_t)value;
		row->knows_id = true;
		break;
	default:
		set_preemption(row, known, call);
	}
}

static void controlled(struct channels *channels, const struct event *event,
                       const struct known *known)
{
	enum argument which = known->meaning == MEANS_PREEMPTION ? CHANNEL : OBJECT;
	const struct key key = { event->process->id, (uint32_t)argument(known, event->call, CLIENT),
		                 (uint32_t)argument(known, event->call, which) };
	const struct object *object = find(channels, key);

	if (object && object->row != NONE)
		set(&channels->rows[object->row], known, event->call);
	else
		channels->left_out.unknown++;
}

/* All of a process at once: as seldom as processes end, which a file can say of one for ever. */
static void process_ended(struct channels *channels, const struct event *event)
{
	struct channels_of *of = event->process->id < channels->n_processes
	                                 ? &channels->of_process[event->process->id]
	                                 : NULL;

	if (!of || !of->n)
		return;
	for (; of->seen < channels->n; of->seen++) {
		struct channel_row *row = &channels->rows[of->seen];

		if (row->process == event->process && !row->end)
			end_row(row, CHANNEL_EXITED, event->time_ns);
	}
}

static void take_call(struct channels *channels, const struct event *event)
{
	const struct call *call = event->call;
	struct known *known = BY_ID(channels->functions, channels->n_functions, call->function->id);

	if (known->meaning == MEANS_NOT_SEEN)
		*known = know(call->function);
	if (known->meaning == MEANS_OTHER || call->flags & (CALL_FAILED | CALL_UNFINISHED))
		return;
	if (known->meaning == MEANS_FREE)
		free_object(channels,
		            (struct key){ event->process->id,
		                          (uint32_t)argument(known, call, CLIENT),
		                          (uint32_t)argument(known, call, OBJECT) },
		            event->time_ns);
	else if (known->meaning <= MEANS_CHANNEL)
		made(channels, event, known);
	else
		controlled(channels, event, known);
}

static int channels_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct channels *channels = (struct channels *)self;

	if (event->type == EVENT_EXIT)
		process_ended(channels, event);
	else if (event->type == EVENT_OTHER_CALL && event->call->function->layer == LAYER_KERNEL)
		take_call(channels, event);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void channels_free(struct consumer *self)
{
	struct channels *channels = (struct channels *)self;
	struct object *object, *next;

	HASH_ITER (hh, channels->objects, object, next)
		forget(channels, object);
	FREE_ALL(channels->rows, channels->functions, channels->of_process, channels);
}

struct consumer *channels_new(void)
{
	static const struct consumer_ops ops = { .event = channels_event, .free = channels_free };
	struct channels *channels = xcalloc(1, sizeof(*channels));

	channels->consumer.ops = &ops;
	return &channels->consumer;
}

const struct channel_row *channels_rows(const struct consumer *self, size_t *n,
                                        struct channels_left_out *left_out)
{
	const struct channels *channels = (const struct channels *)self;

	*n = channels->n;
	*left_out = channels->left_out;
	return channels->rows;
}
