// SPDX-License-Identifier: MIT
#include "probe/fold_plan.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"

_Static_assert(FOLD_H2D == (int)DIRECTION_H2D && FOLD_D2H == (int)DIRECTION_D2H,
               "the programs look for the host's end by the numbers of enum api_direction");
_Static_assert(FOLD_LAUNCHES_MOST == API_LAUNCHES_MAX, "one bound of the launches of a call");
_Static_assert(FOLD_VMM == (int)MEMORY_VMM, "the programs follow handles");
_Static_assert(FOLD_VMM_VA == (int)MEMORY_VMM_VA, "the programs leave address space out of totals");

/* ---- which functions ----------------------------------------------------------------------- */

/* Tools that tell what runs from what is recorded into a graph. */
#define OF_CAPTURES (FOLD_TOOL_MEMORY | FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES)

/* The operations that a tool must see, and what it does with their calls. */
static const struct wish {
	enum api_op op;
	enum fold_op fold;
	unsigned tools;
} wishes[] = {
	{ OP_ALLOC, FOLD_ALLOC, FOLD_TOOL_MEMORY | FOLD_TOOL_COPIES },
	{ OP_FREE, FOLD_FREE, FOLD_TOOL_MEMORY | FOLD_TOOL_COPIES },
	{ OP_CONTEXT_DESTROY, FOLD_CONTEXT_DESTROY, FOLD_TOOL_MEMORY | FOLD_TOOL_COPIES },
	{ OP_LAUNCH, FOLD_LAUNCH, FOLD_TOOL_LAUNCHES },
	{ OP_GRAPH_LAUNCH, FOLD_GRAPH_LAUNCH, FOLD_TOOL_LAUNCHES },
	{ OP_COPY, FOLD_COPY, FOLD_TOOL_COPIES },
	{ OP_SET, FOLD_SET, FOLD_TOOL_COPIES },
	{ OP_CAPTURE_BEGIN, FOLD_CAPTURE_BEGIN, OF_CAPTURES },
	{ OP_CAPTURE_END, FOLD_CAPTURE_END, OF_CAPTURES },
	{ OP_EVENT_RECORD, FOLD_EVENT_RECORD, OF_CAPTURES },
	{ OP_EVENT_WAIT, FOLD_EVENT_WAIT, OF_CAPTURES },
	{ OP_MAP, FOLD_MAPS, FOLD_TOOL_MEMORY },
	{ OP_UNMAP, FOLD_UNMAPS, FOLD_TOOL_MEMORY },
	{ OP_RETAIN, FOLD_RETAINS, FOLD_TOOL_MEMORY },
	{ OP_SYNC, FOLD_SYNC, FOLD_TOOL_RESULTS },
	{ OP_NAME_KERNEL, FOLD_SEND, FOLD_TOOL_LAUNCHES },
	{ OP_MODULE_UNLOAD, FOLD_SEND, FOLD_TOOL_LAUNCHES },
};
#define WISHES (ARRAY_SIZE(wishes))

unsigned fold_ops(unsigned tools)
{
	unsigned ops = 0;

	for (size_t i = 0; i < WISHES; i++)
		ops |= wishes[i].tools & tools ? 1u << wishes[i].op : 0;
	if (tools & FOLD_TOOL_NO_KERNELS)
		ops &= ~(1u << OP_NAME_KERNEL | 1u << OP_MODULE_UNLOAD);
	return ops;
}

/* Copies want to know what is pinned; managed memory is freed like device memory. */
unsigned fold_memories(unsigned tools, enum api_op op)
{
	if (tools & FOLD_TOOL_MEMORY)
		return ~0u;
	return 1u << MEMORY_HOST | 1u << MEMORY_MANAGED | (op == OP_FREE ? 1u << MEMORY_DEVICE : 0);
}

/* ---- plans --------------------------------------------------------------------------------- */

/* From an offset in struct api_raw to one in wire_call.word. */
static uint16_t wire_where(struct api_where at)
{
	static const struct {
		size_t raw, words;
	} areas[] = {
		{ offsetof(struct api_raw, blob), WIRE_AT_BLOB },
		{ offsetof(struct api_raw, stack), WIRE_AT_STACK },
		{ offsetof(struct api_raw, reg), WIRE_AT_REG },
		{ offsetof(struct api_raw, out), 0 },
	};
	unsigned shift = at.scale == 4 ? 2 : at.scale == 2 ? 1 : 0, area = 0;

	if (!at.known)
		return 0;
	while (at.offset < areas[area].raw)
		area++;
	return FOLD_WHERE(at.offset - areas[area].raw + 8 * areas[area].words, at.width == 8,
	                  shift);
}

static void set_where(struct fold_plan *plan, enum fold_value first, const struct api_where *at,
                      size_t count)
{
	for (size_t i = 0; i < count; i++)
		plan->at[first + i] = wire_where(at[i]);
}

static uint8_t plan_flags(const struct api *api, const struct api_parts *parts)
{
	bool types = parts->from[0].known || parts->to[0].known;
	bool arrays = !types && (parts->from[3].known || parts->to[3].known);

	return (api_is_async(api) ? FOLD_ASYNC : 0) | (parts->sized ? FOLD_SIZED : 0) |
	       (parts->spare.known ? FOLD_SPARE : 0) | (parts->array ? FOLD_ARRAY : 0) |
	       (parts->format ? FOLD_FORMAT : 0) | (types ? FOLD_COPY_TYPES : 0) |
	       (arrays ? FOLD_COPY_ARRAYS : 0) | (parts->flat ? FOLD_FLAT : 0);
}

static uint8_t space_of(enum api_memory memory)
{
	return memory == MEMORY_VMM      ? FOLD_SPACE_HANDLE
	       : memory == MEMORY_VMM_VA ? FOLD_SPACE_RANGE
	                                 : FOLD_SPACE_ADDRESS;
}

void fold_plan(const struct api *api, enum api_abi abi, struct fold_plan *plan)
{
	struct api_parts parts;

	memset(plan, 0, sizeof(*plan));
	for (size_t i = 0; i < WISHES; i++)
		plan->op = wishes[i].op == api_op(api) ? wishes[i].fold : plan->op;
	if (plan->op == FOLD_SEND)
		return;
	api_parts(api, abi, &parts);
	plan->memory = api_memory(api);
	plan->direction = parts.direction;
	plan->space = space_of(api_memory(api));
	plan->flags = plan_flags(api, &parts);
	plan->pinned = api_memory(api) == MEMORY_HOST      ? FOLD_HOST_PINNED
	               : api_memory(api) == MEMORY_MANAGED ? FOLD_HOST_MANAGED
	                                                   : 0;
	set_where(plan, FOLD_AT_ADDRESS, &parts.address, 1);
	set_where(plan, FOLD_AT_SOURCE, &parts.source, 1);
	set_where(plan, FOLD_AT_STREAM, &parts.stream, 1);
	set_where(plan, FOLD_AT_EVENT, &parts.event, 1);
	set_where(plan, FOLD_AT_HANDLE, &parts.handle, 1);
	set_where(plan, FOLD_AT_KIND, &parts.kind, 1);
	set_where(plan, FOLD_AT_FACTOR, parts.factor, 3);
	set_where(plan, FOLD_AT_SPARE, &parts.spare, 1);
	set_where(plan, FOLD_AT_DIM, parts.dim, 3);
	set_where(plan, FOLD_AT_BITS, parts.bits, 4);
	set_where(plan, FOLD_AT_LEVELS, &parts.levels, 1);
	set_where(plan, FOLD_AT_GRID, parts.grid, 3);
	set_where(plan, FOLD_AT_BLOCK, parts.block, 3);
	set_where(plan, FOLD_AT_FROM, parts.from, 4);
	set_where(plan, FOLD_AT_TO, parts.to, 4);
	set_where(plan, FOLD_AT_LAUNCHES, &parts.launches, 1);
}
