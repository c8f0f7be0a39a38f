// SPDX-License-Identifier: MIT
#include "capture/gpu/gpu_records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"

/* ---- unrecorded ---------------------------------------------------------------------------- */

#define OPEN_LEAST 64
#define OPEN_MOST  ((size_t)1 << 18) /* both powers of two */

static uint64_t *unrecorded_at(const struct unrecorded *u, size_t i)
{
	return &u->open[(u->first + i) & (u->capacity - 1)];
}

static void drop_first(struct unrecorded *u)
{
	u->first = (u->first + 1) & (u->capacity - 1);
	u->count--;
}

static void unrecorded_grow(struct unrecorded *u)
{
	size_t capacity = u->capacity ? 2 * u->capacity : OPEN_LEAST;
	uint64_t *more = xcalloc(capacity, sizeof(*more));

	for (size_t i = 0; i < u->count; i++)
		more[i] = *unrecorded_at(u, i);
	free(u->open);
	u->open = more;
	u->first = 0;
	u->capacity = capacity;
}

static bool was_told_early(struct unrecorded *u, uint64_t number)
{
	for (size_t i = 0; i < UNRECORDED_EARLY; i++) {
		if (u->early[i] == number)
			return true;
	}
	return false;
}

void unrecorded_launched(struct unrecorded *u, uint64_t number)
{
	size_t slot, later = 0;

	if (!number || was_told_early(u, number))
		return;
	/* nearly always none: a number that was reserved comes a little later */
	while (later < u->count && *unrecorded_at(u, u->count - 1 - later) >> 1 > number) {
		if (++later > UNRECORDED_EARLY)
			return;
	}
	if (u->count == OPEN_MOST)
		drop_first(u);
	if (u->count == u->capacity)
		unrecorded_grow(u);
	for (slot = u->count++; later; slot--, later--)
		*unrecorded_at(u, slot) = *unrecorded_at(u, slot - 1);
	*unrecorded_at(u, slot) = number << 1;
}

void unrecorded_told(struct unrecorded *u, uint64_t number)
{
	size_t low;

	if (!number) {
		u->unmatched++;
		return;
	}
	low = ARRAY_BEFORE(u->count, i, *unrecorded_at(u, i) >> 1 < number);
	if (low == u->count)
		u->early[u->earlies++ % UNRECORDED_EARLY] = number;
	else if (*unrecorded_at(u, low) >> 1 == number)
		*unrecorded_at(u, low) |= 1;
	while (u->count && *unrecorded_at(u, 0) & 1)
		drop_first(u);
}

uint64_t unrecorded_end(struct unrecorded *u)
{
	uint64_t left = 0;

	for (size_t i = 0; i < u->count; i++)
		left += !(*unrecorded_at(u, i) & 1);
	left = left > u->unmatched ? left - u->unmatched : 0;
	free(u->open);
	memset(u, 0, sizeof(*u));
	return left;
}

/* ---- gpu records --------------------------------------------------------------------------- */

/* Numbers beyond are no agent's. PyTorch has 22,000 kernels, and launches a hundredth of them. */
#define NAMES_MAX    (1u << 18)
#define NAME_MAX_LEN 4095u      /* as of the names that the programs send */
#define SHAPES_MAX   (1u << 15) /* the agent has 16,384 */
#define PLACES_MAX   (1u << 16)

struct told_name {
	char *text;
	const struct kernel *kernel; /* once it was one's */
};

struct told_lane {
	uint32_t device, context, stream;
};

struct gpu_records {
	struct gpu_records_options options;
	size_t taken; /* from the budget */
	struct told_name *names;
	size_t n_names;
	struct gpu_shape **shapes;
	size_t n_shapes;
	struct told_lane *lanes;
	size_t n_lanes;
};

struct gpu_records *gpu_records_new(const struct gpu_records_options *options)
{
	struct gpu_records *records = xcalloc(1, sizeof(*records));

	records->options = *options;
	return records;
}

static bool take_room(struct gpu_records *records, size_t bytes)
{
	if (!budget_take(records->options.budget, records->options.owner, bytes))
		return false;
	records->taken += bytes;
	return true;
}

static void shape_release(struct gpu_shape *shape)
{
	if (shape && --shape->users == 0)
		free(shape);
}

void gpu_records_free(struct gpu_records *records)
{
	if (!records)
		return;
	for (size_t i = 0; i < records->n_names; i++)
		free(records->names[i].text);
	for (size_t i = 0; i < records->n_shapes; i++)
		shape_release(records->shapes[i]);
	free(records->names);
	free(records->shapes);
	free(records->lanes);
	budget_give(records->options.budget, records->options.owner, records->taken);
	free(records);
}

void gpu_item_free(struct gpu_item *item)
{
	if (!item->is_range && item->kind == ACTIVITY_KERNEL)
		shape_release(item->shape);
	if (!item->is_range || item->kind == RANGE_SYNC || item->kind == RANGE_OVERHEAD)
		return;
	free((char *)item->range.name);
	free((char *)item->range.domain);
}

/* Makes room for `number` in a table; the new part is zeroes. False where the budget has none. */
static bool grow(struct gpu_records *records, void *table, size_t *count, uint32_t number,
                 size_t size)
{
	size_t more = *count ? *count : 64;
	void **at = table, *grown;

	if (number < *count)
		return true;
	while (more <= number)
		more *= 2;
	if (!take_room(records, (more - *count) * size))
		return false;
	grown = xrealloc(*at, more * size);
	memset((char *)grown + *count * size, 0, (more - *count) * size);
	*count = more;
	*at = grown;
	return true;
}

/* ---- definitions --------------------------------------------------------------------------- */

static void take_name(struct gpu_records *records, const struct agent_name *record)
{
	size_t bytes = record->head.bytes - offsetof(struct agent_name, text);
	struct told_name *name;

	bytes = strnlen(record->text, bytes < NAME_MAX_LEN ? bytes : NAME_MAX_LEN);
	if (!record->number || record->number >= NAMES_MAX ||
	    !grow(records, &records->names, &records->n_names, record->number,
	          sizeof(*records->names)))
		return;
	name = &records->names[record->number];
	/* each is given once: others may point to it */
	if (name->text || !take_room(records, bytes + 1))
		return;
	name->text = xmalloc(bytes + 1);
	memcpy(name->text, record->text, bytes);
	name->text[bytes] = '\0';
}

const char *gpu_records_name(const struct gpu_records *records, uint32_t number)
{
	return number < records->n_names ? records->names[number].text : NULL;
}

const struct kernel *gpu_records_kernel(struct gpu_records *records, uint32_t number)
{
	struct told_name *name = number < records->n_names ? &records->names[number] : NULL;

	if (!name || !name->text)
		return NULL;
	if (!name->kernel)
		name->kernel = records->options.kernel(records->options.data, name->text);
	return name->kernel;
}

static const struct kernel *kernel_of(struct gpu_records *records, uint32_t number)
{
	const struct kernel *kernel = gpu_records_kernel(records, number);

	return kernel ? kernel : records->options.kernel(records->options.data, "unknown_kernel");
}

static void take_shape(struct gpu_records *records, const struct agent_shape *record)
{
	struct gpu_shape *shape;

	if (record->number >= SHAPES_MAX ||
	    !grow(records, &records->shapes, &records->n_shapes, record->number, sizeof(void *)))
		return;
	if (!records->shapes[record->number] && !take_room(records, sizeof(*shape)))
		return;
	shape_release(records->shapes[record->number]);
	shape = records->shapes[record->number] = xcalloc(1, sizeof(*shape));
	shape->users = 1;
	shape->kernel = kernel_of(records, record->name);
	memcpy(shape->grid, record->grid, sizeof(shape->grid));
	memcpy(shape->block, record->block, sizeof(shape->block));
	shape->registers = record->registers;
	shape->shmem_static = record->shmem_static;
	shape->shmem_dynamic = record->shmem_dynamic;
}

static void take_lane(struct gpu_records *records, const struct agent_lane *record)
{
	uint32_t number = record->head.lane;

	if (!grow(records, &records->lanes, &records->n_lanes, number, sizeof(*records->lanes)))
		return;
	records->lanes[number] =
		(struct told_lane){ record->device, record->context, record->stream };
}

/* ---- activities ---------------------------------------------------------------------------- */

static void put_lane(const struct gpu_records *records, const struct agent_head *head,
                     struct gpu_item *item)
{
	const struct told_lane *lane;

	if (head->lane >= records->n_lanes)
		return;
	lane = &records->lanes[head->lane];
	item->device = lane->device;
	item->context = lane->context;
	item->stream = lane->stream;
}

static bool take_kernel(const struct gpu_records *records, const struct agent_kernel *record,
                        struct gpu_item *item)
{
	const struct agent_kernel_long *longer = (const struct agent_kernel_long *)record;

	if (record->shape >= records->n_shapes || !records->shapes[record->shape])
		return false;
	item->kind = ACTIVITY_KERNEL;
	item->begin_ns = record->begin_ns;
	item->end_ns = record->begin_ns + record->duration_ns;
	item->correlation = record->correlation;
	if (record->head.flags & AGENT_KERNEL_LONG) {
		item->end_ns = longer->end_ns;
		item->graph = longer->graph;
		item->graph_node = longer->graph_node;
	}
	item->shape = records->shapes[record->shape];
	item->shape->users++;
	return true;
}

static bool take_copy(const struct agent_copy *record, struct gpu_item *item)
{
	item->kind = record->head.type == AGENT_COPY ? ACTIVITY_COPY : ACTIVITY_SET;
	item->begin_ns = record->begin_ns;
	item->end_ns = record->end_ns;
	item->correlation = record->correlation;
	item->graph = record->graph;
	item->graph_node = record->graph_node;
	item->bytes = record->bytes;
	item->copy_kind = record->kind;
	item->source = record->source;
	item->destination = record->destination;
	item->peer_device = record->peer_device;
	return true;
}

static bool take_graph(const struct agent_graph *record, struct gpu_item *item)
{
	item->kind = ACTIVITY_GRAPH_RUN;
	item->begin_ns = record->begin_ns;
	item->end_ns = record->end_ns;
	item->correlation = record->correlation;
	item->graph = record->graph;
	return true;
}

/* ---- ranges -------------------------------------------------------------------------------- */

/* CUpti_ActivitySynchronizationType and CUpti_ActivityOverheadKind, by the words of Kineto. */
static const char *wait_name(const struct agent_wait *record)
{
	static const char *const waits[] = { "Synchronization", "Event Sync", "Stream Wait Event",
		                             "Stream Sync", "Context Sync" };
	static const char *const overheads[] = { "Overhead",
		                                 "Buffer Flush",
		                                 "Instrumentation",
		                                 "Resource",
		                                 "Runtime Triggered Module Loading",
		                                 "Lazy Function Loading",
		                                 "Command Buffer Full",
		                                 "Activity Buffer Request",
		                                 "UVM Activity Init" };
	uint32_t kind = record->kind;

	if (record->head.type == AGENT_SYNC)
		return waits[kind < ARRAY_SIZE(waits) ? kind : 0];
	if (kind == AGENT_OWN_LOADING)
		return "CUPTI Loading";
	if (kind == AGENT_OWN_LEAVING)
		return "CUPTI Leaving";
	if (kind == AGENT_OWN_WAITING)
		return "Waiting for cuscope";
	if (kind == 1)
		return "Driver Compiler";
	kind >>= 16;
	return overheads[kind < ARRAY_SIZE(overheads) ? kind : 0];
}

static bool take_wait(const struct agent_wait *record, struct gpu_item *item)
{
	item->is_range = true;
	item->kind = record->head.type == AGENT_SYNC ? RANGE_SYNC : RANGE_OVERHEAD;
	item->begin_ns = record->begin_ns;
	item->end_ns = record->end_ns;
	item->correlation = record->head.type == AGENT_SYNC ? record->correlation : 0;
	item->context = record->context;
	item->stream = record->stream;
	item->tid = record->tid;
	item->range.name = wait_name(record);
	item->own = record->head.type == AGENT_OVERHEAD &&
	            (record->kind == AGENT_OWN_LOADING || record->kind == AGENT_OWN_LEAVING ||
	             record->kind == AGENT_OWN_WAITING);
	return true;
}

static bool take_nvtx(const struct gpu_records *records, const struct agent_nvtx *record,
                      struct gpu_item *item)
{
	static const enum range_kind kinds[] = { RANGE_PUSHPOP, RANGE_STARTEND, RANGE_MARK };
	const char *domain = record->domain ? gpu_records_name(records, record->domain) : NULL;
	size_t length = record->head.bytes - offsetof(struct agent_nvtx, text);

	if (record->head.flags >= ARRAY_SIZE(kinds))
		return false;
	item->is_range = true;
	item->kind = kinds[record->head.flags];
	item->begin_ns = record->begin_ns;
	item->end_ns = record->end_ns;
	item->tid = record->tid;
	if (length > AGENT_NVTX_TEXT - 1) /* as the agent cuts them */
		length = AGENT_NVTX_TEXT - 1;
	item->range.name = xstrndup(record->text, length);
	item->range.domain = domain ? xstrndup(domain, AGENT_NVTX_TEXT - 1) : NULL;
	item->range.text_bytes = (uint32_t)(strlen(item->range.name) + 1 +
	                                    (domain ? strlen(item->range.domain) + 1 : 0));
	item->range.depth = record->depth;
	item->range.category = record->category;
	item->range.color = record->color;
	return true;
}

/* ---- a record ------------------------------------------------------------------------------ */

static size_t least_bytes(const struct agent_head *record)
{
	static const size_t least[] = {
		[AGENT_NAME] = offsetof(struct agent_name, text),
		[AGENT_SHAPE] = sizeof(struct agent_shape),
		[AGENT_LANE] = sizeof(struct agent_lane),
		[AGENT_CALL] = sizeof(struct agent_call),
		[AGENT_KERNEL] = sizeof(struct agent_kernel),
		[AGENT_COPY] = sizeof(struct agent_copy),
		[AGENT_SET] = sizeof(struct agent_copy),
		[AGENT_GRAPH] = sizeof(struct agent_graph),
		[AGENT_SYNC] = sizeof(struct agent_wait),
		[AGENT_OVERHEAD] = sizeof(struct agent_wait),
		[AGENT_NVTX] = offsetof(struct agent_nvtx, text),
		[AGENT_NODE] = sizeof(struct agent_node),
		[AGENT_STALL] = sizeof(struct agent_stall),
		[AGENT_STALL_WINDOW] = sizeof(struct agent_stall_window),
		[AGENT_STALLS_TOLD] = sizeof(struct agent_stalls_told),
	};

	if (record->type >= ARRAY_SIZE(least) || !least[record->type])
		return SIZE_MAX;
	if (record->type == AGENT_KERNEL && record->flags & AGENT_KERNEL_LONG)
		return sizeof(struct agent_kernel_long);
	return least[record->type];
}

static bool call_is_whole(const struct agent_call *call)
{
	size_t words = (call->head.bytes - sizeof(*call)) / sizeof(uint64_t);

	return call->arguments <= words && call->blob <= words - call->arguments &&
	       call->begin_ns <= call->end_ns;
}

static bool take_item(struct gpu_records *records, const struct agent_head *record,
                      struct gpu_item *item)
{
	put_lane(records, record, item);
	switch (record->type) {
	case AGENT_KERNEL:
		return take_kernel(records, (const struct agent_kernel *)record, item);
	case AGENT_COPY:
	case AGENT_SET:
		return take_copy((const struct agent_copy *)record, item);
	case AGENT_GRAPH:
		return take_graph((const struct agent_graph *)record, item);
	case AGENT_SYNC:
	case AGENT_OVERHEAD:
		return take_wait((const struct agent_wait *)record, item);
	default:
		return take_nvtx(records, (const struct agent_nvtx *)record, item);
	}
}

enum gpu_record_is gpu_records_take(struct gpu_records *records, const struct agent_head *record,
                                    struct gpu_item *item)
{
	if (record->bytes < least_bytes(record))
		return GPU_RECORD_BAD;
	switch (record->type) {
	case AGENT_NAME:
		take_name(records, (const struct agent_name *)record);
		return GPU_RECORD_NOTHING;
	case AGENT_SHAPE:
		take_shape(records, (const struct agent_shape *)record);
		return GPU_RECORD_NOTHING;
	case AGENT_LANE:
		take_lane(records, (const struct agent_lane *)record);
		return GPU_RECORD_NOTHING;
	case AGENT_CALL:
		return call_is_whole((const struct agent_call *)record) ? GPU_RECORD_CALL
		                                                        : GPU_RECORD_BAD;
	case AGENT_NODE:
		return GPU_RECORD_NODE;
	case AGENT_STALL:
	case AGENT_STALL_WINDOW:
	case AGENT_STALLS_TOLD:
		return GPU_RECORD_STALLS;
	}
	memset(item, 0, sizeof(*item));
	if (!take_item(records, record, item))
		return GPU_RECORD_BAD;
	if (item->begin_ns && item->end_ns >= item->begin_ns)
		return GPU_RECORD_ITEM;
	gpu_item_free(item);
	return GPU_RECORD_BAD_TIMES;
}

/* ---- in the words of the model ------------------------------------------------------------- */

/* CUpti_ActivityMemcpyKind; arrays lie on the device. */
static enum api_direction direction_of(uint8_t kind)
{
	static const enum api_direction directions[] = {
		DIRECTION_NONE, DIRECTION_H2D, DIRECTION_D2H, DIRECTION_H2D,
		DIRECTION_D2H,  DIRECTION_D2D, DIRECTION_D2D, DIRECTION_D2D,
		DIRECTION_D2D,  DIRECTION_H2H, DIRECTION_P2P,
	};

	return directions[kind < ARRAY_SIZE(directions) ? kind : 0];
}

static enum activity_memory memory_of(uint8_t kind)
{
	return kind <= ACTIVITY_MEMORY_MANAGED_STATIC ? (enum activity_memory)kind
	                                              : ACTIVITY_MEMORY_UNKNOWN;
}

static void put_shape(const struct gpu_shape *shape, struct activity *activity)
{
	activity->kernel = shape->kernel;
	memcpy(activity->grid, shape->grid, sizeof(activity->grid));
	memcpy(activity->block, shape->block, sizeof(activity->block));
	activity->registers = shape->registers;
	activity->shmem_static = shape->shmem_static;
	activity->shmem_dynamic = shape->shmem_dynamic;
}

void gpu_item_activity(const struct gpu_item *item, struct activity *activity)
{
	*activity = (struct activity){
		.kind = (enum activity_kind)item->kind,
		.begin_ns = item->begin_ns,
		.end_ns = item->end_ns,
		.device = item->device,
		.context = item->context,
		.stream = item->stream,
		.graph = item->graph,
		.graph_node = item->graph_node,
	};
	if (item->kind == ACTIVITY_KERNEL) {
		put_shape(item->shape, activity);
	} else if (item->kind == ACTIVITY_COPY) {
		activity->bytes = item->bytes;
		activity->direction = direction_of(item->copy_kind);
		activity->source = memory_of(item->source);
		activity->destination = memory_of(item->destination);
		activity->peer_device = item->peer_device;
	} else if (item->kind == ACTIVITY_SET) {
		activity->bytes = item->bytes;
		activity->destination = memory_of(item->destination);
	}
}

void gpu_item_range(const struct gpu_item *item, struct range *range)
{
	*range = (struct range){
		.kind = (enum range_kind)item->kind,
		.begin_ns = item->begin_ns,
		.end_ns = item->end_ns,
		.name = item->range.name,
		.domain = item->range.domain,
		.depth = item->range.depth,
		.context = item->context,
		.stream = item->stream,
		.category = item->range.category,
		.color = item->range.color,
	};
}
