// SPDX-License-Identifier: MIT
/* Names in a Perfetto trace: each is written once, and then meant by its number. */
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/map.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "output/describe.h"
#include "output/format.h"
#include "output/perfetto/perfetto.h"

/* Of the four messages that define a name, which are alike but for the text's number. */
static const struct {
	uint32_t field; /* of InternedData */
	uint32_t text;
} kinds[NAME_KINDS] = {
	[NAME_CATEGORY] = { 1, 2 },   /* event_categories: EventCategory */
	[NAME_EVENT] = { 2, 2 },      /* event_names: EventName */
	[NAME_ANNOTATION] = { 3, 2 }, /* debug_annotation_names: DebugAnnotationName */
	[NAME_VALUE] = { 29, 2 },     /* debug_annotation_string_values: InternedString */
};

/*
 * Values that come again and again but are without end (grids, handles of streams): as many as fit
 * a table of fixed size are remembered, another takes a new number each time it comes back.
 */
#define VALUES 4096

enum value_kind {
	VALUE_NONE,
	VALUE_DIMS,
	VALUE_STREAM,
	VALUE_RESULT,
	VALUE_DIRECTION,
	VALUE_GRAPH,
	VALUE_RANGE, /* by a hash of its name */
};

struct perfetto_names_value {
	uint64_t a, b; /* b: the kind in its upper half */
	uint32_t iid;
};

struct constant {
	const char *text;
	uint32_t iid;
	UT_hash_handle hh;
};

#define MEMORY_NAMES (ACTIVITY_MEMORY_MANAGED_STATIC + 1)

struct perfetto_names {
	struct buf *out;
	struct buf text; /* scratch */
	uint32_t last[NAME_KINDS];
	struct constant *constants[NAME_KINDS];
	struct function_names *functions; /* by id */
	size_t n_functions;
	struct kernel_names {
		uint32_t event, value;
		bool resolved; /* then these are final */
	} * kernels;           /* by id */
	size_t n_kernels;
	uint32_t copies[DIRECTION_COUNT][MEMORY_NAMES][MEMORY_NAMES], no_kernel;
	uint32_t others[ACTIVITY_COUNT][MEMORY_NAMES]; /* what moves memory and is no copy */
	struct perfetto_names_value values[VALUES];
};

struct perfetto_names *perfetto_names_new(struct buf *out)
{
	struct perfetto_names *names = xcalloc(1, sizeof(*names));

	names->out = out;
	return names;
}

void perfetto_names_free(struct perfetto_names *names)
{
	for (int kind = 0; kind < NAME_KINDS; kind++)
		MAP_FREE(names->constants[kind], free);
	free(names->functions);
	free(names->kernels);
	buf_free(&names->text);
	free(names);
}

/* Empty, and a string already. */
static struct buf *scratch(struct perfetto_names *names)
{
	buf_reset(&names->text);
	buf_puts(&names->text, "");
	return &names->text;
}

/* ---- defining ------------------------------------------------------------------------------- */

static uint32_t define(struct perfetto_names *names, enum name_kind kind, const char *text)
{
	uint32_t iid = ++names->last[kind];
	size_t packet = packet_begin(names->out, SEQUENCE_NEEDS);
	size_t data = pb_begin(names->out, PACKET_INTERNED_DATA);
	size_t entry = pb_begin(names->out, kinds[kind].field);

	pb_varint(names->out, 1, iid);
	pb_string(names->out, kinds[kind].text, text);
	pb_end(names->out, entry);
	pb_end(names->out, data);
	pb_end(names->out, packet);
	return iid;
}

uint32_t perfetto_name(struct perfetto_names *names, enum name_kind kind, const char *text)
{
	text_add_safe(scratch(names), text);
	return define(names, kind, names->text.data);
}

uint32_t perfetto_constant(struct perfetto_names *names, enum name_kind kind, const char *text)
{
	struct constant *constant = MAP_FIND_TEXT(names->constants[kind], text);

	if (!constant) {
		constant = xcalloc(1, sizeof(*constant));
		constant->text = text;
		constant->iid = perfetto_name(names, kind, text); /* a file's can be anything */
		HASH_ADD_KEYPTR(hh, names->constants[kind], text, strlen(text), constant);
	}
	return constant->iid;
}

/* ---- functions and kernels ------------------------------------------------------------------ */

/* The words that all functions share; an argument of another type keeps its own name. */
static const char *arg_name(const struct api_arg *arg, enum api_op op)
{
	switch (arg->type) {
	case T_GRID:
		return "grid";
	case T_BLOCK:
		return "block";
	case T_STREAM:
		return "stream";
	case T_SHMEM:
		return op == OP_LAUNCH ? "shared memory" : arg->name;
	case T_BYTES: /* written as the whole */
		return op == OP_COPY || op == OP_SET || op == OP_ALLOC ? NULL : arg->name;
	case T_COPYKIND: /* for all copies alike */
		return op == OP_COPY ? NULL : arg->name;
	case T_KERNEL: /* by its name */
		return op == OP_LAUNCH ? NULL : arg->name;
	case T_ADDR: /* where a launch's parameters were, which says nothing without them */
		return op == OP_LAUNCH ? NULL : arg->name;
	default:
		return arg->name;
	}
}

/* "kernel" is what ran on a GPU. */
static const char *category_of(const struct function *function)
{
	if (function->layer == LAYER_KERNEL)
		return "kernel_side";
	return function->layer == LAYER_HOOK ? "hook" : api_class_name(function->cls);
}

static void define_function(struct perfetto_names *names, struct function_names *into,
                            const struct function *function)
{
	enum api_op op = function->api ? api_op(function->api) : OP_NONE;
	const struct api_arg *args;
	size_t n = function->api ? api_args(function->api, &args) : 0;

	into->name = perfetto_name(names, NAME_EVENT, function->name);
	into->category = perfetto_constant(names, NAME_CATEGORY, category_of(function));
	into->has_status = !layer_is_cuda(function->layer) || api_returns_status(function->name);
	for (size_t i = 0; i < n; i++) {
		const char *name = arg_name(&args[i], op);

		if (name)
			into->args[i] = perfetto_constant(names, NAME_ANNOTATION, name);
	}
}

const struct function_names *perfetto_function(struct perfetto_names *names,
                                               const struct function *function)
{
	names->functions = by_id_room(names->functions, &names->n_functions,
	                              sizeof(*names->functions), function->id);
	if (!names->functions[function->id].name)
		define_function(names, &names->functions[function->id], function);
	return &names->functions[function->id];
}

/* A name that is found after the first launch is told from then on. */
static struct kernel_names *kernel_names(struct perfetto_names *names, const struct kernel *kernel)
{
	struct kernel_names *found;

	found = BY_ID(names->kernels, names->n_kernels, kernel->id);
	if (kernel->resolved && !found->resolved)
		*found = (struct kernel_names){ .resolved = true };
	return found;
}

uint32_t perfetto_kernel_value(struct perfetto_names *names, const struct kernel *kernel)
{
	uint32_t *iid = &kernel_names(names, kernel)->value;

	if (!*iid)
		*iid = perfetto_name(names, NAME_VALUE, kernel->name);
	return *iid;
}

static struct perfetto_names_value *value(struct perfetto_names *names, enum value_kind kind,
                                          uint64_t a, uint32_t b);

static uint32_t *activity_place(struct perfetto_names *names, const struct activity *activity)
{
	unsigned source = activity->source % MEMORY_NAMES;
	unsigned destination = activity->destination % MEMORY_NAMES;

	if (activity->kind == ACTIVITY_KERNEL)
		return activity->kernel ? &kernel_names(names, activity->kernel)->event
		                        : &names->no_kernel;
	if (activity->kind == ACTIVITY_COPY)
		return &names->copies[activity->direction % DIRECTION_COUNT][source][destination];
	if (activity_is_transfer(activity))
		return &names->others[activity->kind][destination];
	return &value(names, VALUE_GRAPH, activity->graph, 0)->iid;
}

uint32_t perfetto_activity_name(struct perfetto_names *names, const struct activity *activity)
{
	uint32_t *iid = activity_place(names, activity);
	AT_END(buf_free) struct buf name = { 0 };

	if (*iid)
		return *iid;
	buf_puts(&name, "");
	activity_name(activity, &name);
	*iid = perfetto_name(names, NAME_EVENT, name.data);
	return *iid;
}

/* ---- values --------------------------------------------------------------------------------- */

/* The place of a value; a place whose iid is 0 is new. */
static struct perfetto_names_value *value(struct perfetto_names *names, enum value_kind kind,
                                          uint64_t a, uint32_t b)
{
	uint64_t both = (uint64_t)kind << 32 | b;
	uint64_t hash = (a ^ both * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
	struct perfetto_names_value *found = &names->values[hash >> 52];

	if (found->a != a || found->b != both)
		*found = (struct perfetto_names_value){ .a = a, .b = both };
	return found;
}

_Static_assert(VALUES == 1 << (64 - 52), "the hash's upper bits are the place");

static uint32_t define_value(struct perfetto_names *names, struct perfetto_names_value *value)
{
	return value->iid = define(names, NAME_VALUE, names->text.data);
}

uint32_t perfetto_dims(struct perfetto_names *names, const uint32_t dims[3])
{
	struct perfetto_names_value *found =
		value(names, VALUE_DIMS, dims[0] | (uint64_t)dims[1] << 32, dims[2]);

	if (found->iid)
		return found->iid;
	add_dims(scratch(names), dims);
	return define_value(names, found);
}

uint32_t perfetto_stream(struct perfetto_names *names, const struct call *call, uint64_t stream)
{
	/* what the default stream is called depends on the function */
	struct perfetto_names_value *found =
		value(names, VALUE_STREAM, stream, stream ? 0 : 1 + call->function->id);

	if (found->iid)
		return found->iid;
	add_stream(scratch(names), call, stream);
	return define_value(names, found);
}

uint32_t perfetto_result(struct perfetto_names *names, const struct call *call)
{
	struct perfetto_names_value *found =
		value(names, VALUE_RESULT, (uint32_t)call->result, (uint32_t)call->function->layer);
	const char *name;

	if (found->iid)
		return found->iid;
	name = cuda_error_name(call->function->layer, call->result);
	if (name)
		buf_puts(scratch(names), name);
	else
		buf_printf(scratch(names), call_is_cuda(call) ? "error %d" : "%d", call->result);
	return define_value(names, found);
}

uint32_t perfetto_direction(struct perfetto_names *names, enum api_direction direction)
{
	struct perfetto_names_value *found = value(names, VALUE_DIRECTION, direction, 0);

	if (found->iid)
		return found->iid;
	buf_puts(scratch(names), direction == DIRECTION_NONE ? "?" : api_direction_name(direction));
	return define_value(names, found);
}

uint32_t perfetto_range_name(struct perfetto_names *names, const char *name)
{
	uint64_t hash = 14695981039346656037ull; /* FNV-1a */
	struct perfetto_names_value *found;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 1099511628211ull;
	found = value(names, VALUE_RANGE, hash, (uint32_t)strlen(name));
	if (!found->iid)
		found->iid = perfetto_name(names, NAME_EVENT, name);
	return found->iid;
}
