// SPDX-License-Identifier: MIT
#include "report/nvtx/nvtx_stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/xalloc.h"

#define LEVELS       64    /* deeper ranges are taken for those of the last level */
#define LINES_MOST   16384 /* threads and domains that are followed; others start anew */
#define DOMAIN_BYTES 64    /* of a domain's name that tell it apart */

struct nvtx_line_key {
	uint32_t process, tid;
	char domain[DOMAIN_BYTES];
};

/* A thread in a domain. */
struct nvtx_line {
	struct nvtx_line_key key;
	struct level {
		uint64_t id;       /* of the range that is open there; 0: none is known */
		uint64_t child_ns; /* in those that ended inside of it */
		uint64_t children;
	} level[LEVELS];
	UT_hash_handle hh;
};

struct nvtx_stacks {
	struct nvtx_line *lines;
	struct buf stack;
	uint64_t last_id;
};

struct nvtx_stacks *nvtx_stacks_new(void)
{
	return xcalloc(1, sizeof(struct nvtx_stacks));
}

static void forget_lines(struct nvtx_stacks *stacks)
{
	MAP_FREE(stacks->lines, free);
}

static struct nvtx_line *line_of(struct nvtx_stacks *stacks, const struct event *event)
{
	struct nvtx_line_key key = { .process = event->process->id, .tid = event->tid };
	struct nvtx_line *line;

	if (event->range->domain)
		strncpy(key.domain, event->range->domain, sizeof(key.domain) - 1);
	line = MAP_FIND(stacks->lines, &key);
	if (line)
		return line;
	if (HASH_COUNT(stacks->lines) >= LINES_MOST)
		forget_lines(stacks);
	return MAP_ADD(stacks->lines, key, &key);
}

static uint64_t id_of(struct nvtx_stacks *stacks, struct level *level)
{
	if (!level->id)
		level->id = ++stacks->last_id;
	return level->id;
}

/* Those around a range have not ended. ":1:2:3" */
static void name_stack(struct nvtx_stacks *stacks, struct nvtx_line *line, uint32_t depth)
{
	buf_reset(&stacks->stack);
	for (uint32_t i = 0; i <= depth; i++)
		buf_printf(&stacks->stack, ":%llu",
		           (unsigned long long)id_of(stacks, &line->level[i]));
}

void nvtx_stacks_free(struct nvtx_stacks *stacks)
{
	if (!stacks)
		return;
	forget_lines(stacks);
	buf_free(&stacks->stack);
	free(stacks);
}

struct nvtx_nesting nvtx_stacks_nest(struct nvtx_stacks *stacks, const struct event *event)
{
	uint32_t depth = event->range->depth < LEVELS ? event->range->depth : LEVELS - 1;
	struct nvtx_line *line = line_of(stacks, event);
	struct level *level = &line->level[depth];
	struct nvtx_nesting nesting;

	name_stack(stacks, line, depth);
	nesting = (struct nvtx_nesting){
		.id = level->id,
		.parent = depth ? line->level[depth - 1].id : 0,
		.child_ns = level->child_ns,
		.children = level->children,
		.depth = depth,
		.stack = stacks->stack.data,
	};
	if (depth) {
		line->level[depth - 1].child_ns += range_duration_ns(event->range);
		line->level[depth - 1].children++;
	}
	memset(level, 0, (LEVELS - depth) * sizeof(*level));
	return nesting;
}

void nvtx_add_nesting(struct table *table, uint32_t level, const struct nvtx_nesting *nesting)
{
	table_u64(table, level);
	table_u64(table, nesting->children);
	table_u64(table, nesting->id);
	table_known(table, nesting->parent, nesting->parent);
	table_text(table, nesting->stack);
}
