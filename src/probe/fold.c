// SPDX-License-Identifier: MIT
#include "probe/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/xalloc.h"

#define EVERY_TOOL (FOLD_TOOL_MEMORY | FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES)

/* ---- maps ---------------------------------------------------------------------------------- */

#define LIVE_ROOM     131072
#define FAILURES_ROOM 4096
#define PINNED_ROOM   32768

/* One process may fill three quarters of what is for all; with shapes of its kernels, half. */
void fold_set_shares(struct wire_settings *settings)
{
	settings->share[FOLD_SHARE_LIVE] = LIVE_ROOM / 4 * 3;
	settings->share[FOLD_SHARE_FAILURES] = FAILURES_ROOM / 4 * 3;
	settings->share[FOLD_SHARE_LAUNCHES] = FOLD_LAUNCHES_ROOM / 4 * 3;
	settings->share[FOLD_SHARE_PINNED] = PINNED_ROOM / 4 * 3;
	settings->share[FOLD_SHARE_SHAPES] = FOLD_LAUNCHES_ROOM / 2;
}

/*
 * What a map holds when one of its tools is on; about 60 bytes are added to each entry. Those that
 * forget what was not used for long (LRU) keep up to 128 free entries for each CPU, and must not be
 * small.
 */
static const struct room {
	const char *map;
	unsigned tools;
	uint32_t entries;
} rooms[] = {
	{ "fold_plans", EVERY_TOOL, WIRE_HOOKS_MAX },
	{ "fold_born", EVERY_TOOL, 16384 },
	{ "fold_processes", FOLD_TOOL_MEMORY | FOLD_TOOL_COPIES, 16384 },
	{ "fold_totals", FOLD_TOOL_MEMORY, 16384 },
	{ "fold_live", FOLD_TOOL_MEMORY, LIVE_ROOM },
	{ "fold_failures", FOLD_TOOL_MEMORY, FAILURES_ROOM },
	{ "fold_shares", EVERY_TOOL, 16384 },
	{ "fold_launches", FOLD_TOOL_LAUNCHES, FOLD_LAUNCHES_ROOM },
	{ "fold_copies", FOLD_TOOL_COPIES, FOLD_COPIES_ROOM },
	{ "fold_pinned", FOLD_TOOL_COPIES, PINNED_ROOM },
	{ "fold_captures", FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES, 32768 },
	{ "fold_open_captures", FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES, 1024 },
};

int fold_size_maps(struct bpf_object *object, unsigned tools)
{
	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, rooms[i].map);
		int r = rooms[i].tools & tools ? bpf_map__set_max_entries(map, rooms[i].entries)
		                               : 0;

		if (r)
			return r;
	}
	return 0;
}

size_t fold_room(const char *map)
{
	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		if (!strcmp(rooms[i].map, map))
			return rooms[i].entries;
	}
	return 0;
}

static int set_direction(int map, uint32_t key, uint32_t direction)
{
	return bpf_map_update_elem(map, &key, &direction, BPF_ANY) ? -errno : 0;
}

static int fill_directions(int map)
{
	int r = 0;

	for (uint32_t kind = 0; kind < 8 && !r; kind++)
		r = set_direction(map, FOLD_BY_KIND(kind), api_kind_direction(kind));
	for (uint32_t types = 0; types < 64 && !r; types++)
		r = set_direction(map, FOLD_BY_TYPES(types >> 3, types),
		                  api_types_direction(types >> 3, types & 7));
	return r;
}

int fold_fill_tables(struct programs *programs)
{
	int map = programs_map(programs, "fold_formats");

	for (uint32_t format = 0; format < 256; format++) {
		uint32_t bits = api_format_bits(format);

		if (bits && bpf_map_update_elem(map, &format, &bits, BPF_ANY))
			return -errno;
	}
	return fill_directions(programs_map(programs, "fold_directions"));
}

/*
 * In batches (5.6), bucket by bucket: walking key by key begins anew when the key at hand has been
 * deleted meanwhile, and might never end.
 */
int fold_read(struct programs *programs, const char *name, size_t key_bytes, size_t value_bytes,
              struct fold_table *table)
{
	int map = programs_map(programs, name), r = 0;
	uint32_t bucket, *from = NULL, batch = 256;
	size_t room = 0;

	*table = (struct fold_table){ .key_bytes = key_bytes, .value_bytes = value_bytes };
	while (!r) {
		uint32_t count = batch;

		if (table->count + batch > room) {
			room = 2 * room + batch;
			table->keys = xrealloc(table->keys, room * key_bytes);
			table->values = xrealloc(table->values, room * value_bytes);
		}
		r = bpf_map_lookup_batch(map, from, &bucket, table->keys + table->count * key_bytes,
		                         table->values + table->count * value_bytes, &count, NULL);
		if (r == -ENOSPC && batch < 1u << 20) { /* a bucket is larger than that */
			batch *= 2;
			r = 0;
			continue;
		}
		if (!r || r == -ENOENT)
			table->count += count;
		from = &bucket;
	}
	return r == -ENOENT ? 0 : r;
}

void fold_table_free(struct fold_table *table)
{
	free(table->keys);
	free(table->values);
	memset(table, 0, sizeof(*table));
}

void fold_delete(struct programs *programs, const char *map, const void *key)
{
	bpf_map_delete_elem(programs_map(programs, map), key);
}

bool fold_find(struct programs *programs, const char *map, const void *key, void *value)
{
	return !bpf_map_lookup_elem(programs_map(programs, map), key, value);
}

/* The programs look for captures only while the number of open ones is not 0. */
void fold_close_capture(struct programs *programs, uint64_t number)
{
	if (!bpf_map_delete_elem(programs_map(programs, "fold_open_captures"), &number))
		__atomic_fetch_sub(&programs_state(programs)->open_captures, 1, __ATOMIC_RELAXED);
}

uint64_t fold_process_born(struct programs *programs, uint32_t tgid, uint64_t now_ns)
{
	int map = programs_map(programs, "fold_born");
	uint64_t born_ns;

	bpf_map_update_elem(map, &tgid, &now_ns, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, &tgid, &born_ns) ? now_ns : born_ns;
}

bool fold_hook_plan(struct programs *programs, uint16_t hook, struct fold_plan *plan)
{
	uint32_t key = hook;

	return fold_find(programs, "fold_plans", &key, plan) && plan->op != FOLD_SEND;
}

/*
 * Not at once: a row that the process makes in these microseconds may not be counted. That is one
 * of thousands, and it is asked for once a page.
 */
void fold_give_back(struct programs *programs, uint64_t born_ns, uint32_t tgid,
                    enum fold_share_of of, uint64_t rows)
{
	const struct fold_process_key key = { .born_ns = born_ns, .tgid = tgid };
	int map = programs_map(programs, "fold_shares");
	struct fold_share share;

	if (bpf_map_lookup_elem(map, &key, &share))
		return;
	share.rows[of] -= (int64_t)rows;
	bpf_map_update_elem(map, &key, &share, BPF_EXIST);
}

int fold_hook(struct programs *programs, uint16_t hook, const struct api *api, bool per_thread)
{
	struct fold_plan plan;
	uint32_t key = hook;

	fold_plan(api, ABI_NATIVE, &plan);
	plan.per_thread = per_thread;
	return bpf_map_update_elem(programs_map(programs, "fold_plans"), &key, &plan, BPF_ANY)
	               ? -errno
	               : 0;
}
