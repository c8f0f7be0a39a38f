// SPDX-License-Identifier: MIT
#include "output/activity.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"

static const char *const directions[DIRECTION_COUNT] = {
	[DIRECTION_NONE] = "Unknown",    [DIRECTION_H2D] = "HtoD", [DIRECTION_D2H] = "DtoH",
	[DIRECTION_D2D] = "DtoD",        [DIRECTION_H2H] = "HtoH", [DIRECTION_P2P] = "PtoP",
	[DIRECTION_DEFAULT] = "Unknown",
};

static const char *const memories[] = {
	[ACTIVITY_MEMORY_UNKNOWN] = "Unknown",
	[ACTIVITY_MEMORY_PAGEABLE] = "Pageable",
	[ACTIVITY_MEMORY_PINNED] = "Pinned",
	[ACTIVITY_MEMORY_DEVICE] = "Device",
	[ACTIVITY_MEMORY_ARRAY] = "Array",
	[ACTIVITY_MEMORY_MANAGED] = "Managed",
	[ACTIVITY_MEMORY_DEVICE_STATIC] = "Device Static",
	[ACTIVITY_MEMORY_MANAGED_STATIC] = "Managed Static",
};

const char *activity_memory_name(enum activity_memory memory)
{
	return memory < ARRAY_SIZE(memories) ? memories[memory] : "Unknown";
}

const char *activity_direction_name(enum api_direction direction)
{
	return direction < DIRECTION_COUNT ? directions[direction] : "Unknown";
}

#define KERNEL_NAME_SHOWN 1024

bool kernel_is_cut(const struct kernel *kernel)
{
	return strlen(kernel->name) > KERNEL_NAME_SHOWN;
}

void kernel_add_shown(const struct kernel *kernel, struct buf *out)
{
	size_t len = KERNEL_NAME_SHOWN;

	if (!kernel_is_cut(kernel)) {
		buf_puts(out, kernel->name);
		return;
	}
	while (len && (kernel->name[len] & 0xc0) == 0x80) /* within a character */
		len--;
	buf_add(out, kernel->name, len);
	buf_printf(out, "... [kernel %u]", kernel->id);
}

void kernel_add_json(const struct kernel *kernel, struct buf *out)
{
	struct buf shown = { 0 };

	if (kernel_is_cut(kernel))
		kernel_add_shown(kernel, &shown);
	buf_json_string(out, shown.data ? shown.data : kernel->name);
	buf_free(&shown);
}

void activity_name(const struct activity *activity, struct buf *out)
{
	switch (activity->kind) {
	case ACTIVITY_KERNEL:
		if (activity->kernel)
			kernel_add_shown(activity->kernel, out);
		else
			buf_puts(out, "unknown kernel");
		break;
	case ACTIVITY_COPY:
		buf_printf(out, "Memcpy %s (%s -> %s)",
		           activity_direction_name(activity->direction),
		           activity_memory_name(activity->source),
		           activity_memory_name(activity->destination));
		break;
	case ACTIVITY_SET:
		buf_printf(out, "Memset (%s)", activity_memory_name(activity->destination));
		break;
	case ACTIVITY_GRAPH_RUN:
		buf_printf(out, "Graph %" PRIu64, activity->graph);
		break;
	case ACTIVITY_COUNT:
		break;
	}
}

unsigned rows_choose_span(struct rows *rows, uint64_t begin_ns, uint64_t end_ns)
{
	unsigned row = 0;

	while (row < ROWS_MAX - 1 && rows->end_ns[row] > begin_ns)
		row++;
	rows->end_ns[row] = end_ns;
	return row;
}

unsigned rows_choose(struct rows *rows, const struct activity *activity)
{
	return rows_choose_span(rows, activity->begin_ns, activity->end_ns);
}
