// SPDX-License-Identifier: MIT
#include "probe/fold.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "bpf/wire_hooks.h"
#include "probe/person.h"

#define EVERY_TOOL (FOLD_TOOL_MEMORY | FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES | FOLD_TOOL_RESULTS)

/* ---- maps ---------------------------------------------------------------------------------- */

#define LIVE_ROOM         131072
#define FAILURES_ROOM     4096
#define PINNED_ROOM       32768
#define PINNED_ROOM_SMALL 8192
#define RESULTS_ROOM      8192

/* One process may fill three quarters of what is for all; with shapes of its kernels, half. */
void fold_set_shares(struct wire_settings *settings)
{
	settings->share[FOLD_SHARE_LIVE] = LIVE_ROOM / 4 * 3;
	settings->share[FOLD_SHARE_FAILURES] = FAILURES_ROOM / 4 * 3;
	settings->share[FOLD_SHARE_LAUNCHES] = FOLD_LAUNCHES_ROOM / 4 * 3;
	settings->share[FOLD_SHARE_PINNED] =
		(settings->cuda_only ? PINNED_ROOM_SMALL : PINNED_ROOM) / 4 * 3;
	settings->share[FOLD_SHARE_RESULTS] = RESULTS_ROOM / 8;
	settings->share[FOLD_SHARE_HOOKS] = FOLD_HOOKS_ROOM / 4 * 3;
	settings->share[FOLD_SHARE_SHAPES] = FOLD_LAUNCHES_ROOM / 2;
	settings->share[FOLD_SHARE_ROOM] = LIVE_ROOM;
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
	{ "fold_born", EVERY_TOOL, FOLD_BORN_ROOM },
	{ "fold_processes", FOLD_TOOL_MEMORY | FOLD_TOOL_COPIES, 16384 },
	{ "fold_totals", FOLD_TOOL_MEMORY, 16384 },
	{ "fold_live", FOLD_TOOL_MEMORY, LIVE_ROOM },
	{ "fold_failures", FOLD_TOOL_MEMORY, FAILURES_ROOM },
	{ "fold_shares", EVERY_TOOL, 16384 },
	{ "fold_results", FOLD_TOOL_RESULTS, RESULTS_ROOM },
	{ "fold_launches", FOLD_TOOL_LAUNCHES, FOLD_LAUNCHES_ROOM },
	{ "fold_copies", FOLD_TOOL_COPIES, FOLD_COPIES_ROOM },
	{ "fold_hooks", FOLD_TOOL_HOOKS, FOLD_HOOKS_ROOM },
	{ "fold_hook_tables", FOLD_TOOL_HOOKS, WIRE_HOOK_PLANS },
	{ "fold_pinned", FOLD_TOOL_COPIES, PINNED_ROOM },
	{ "fold_captures", FOLD_TOOL_MEMORY | FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES, 32768 },
	{ "fold_open_captures", FOLD_TOOL_MEMORY | FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES, 1024 },
};

/*
 * For a watch of all of a machine, which goes on for months: LRU maps that it makes little use of,
 * or that are larger than what a machine has of it.
 */
static const struct room small_rooms[] = {
	{ "stacks_sent", EVERY_TOOL, 16384 },
	{ "named_kernels", EVERY_TOOL, 16384 },
	{ "fold_pinned", EVERY_TOOL, PINNED_ROOM_SMALL },
	{ "fold_captures", EVERY_TOOL, 8192 },
	{ "fold_shares", EVERY_TOOL, 8192 },
	{ "held_for", EVERY_TOOL, 128 },
	{ "process_credit", EVERY_TOOL, 128 },
};

/* Its entries are made when they are needed. Those of LRU maps are not: the kernel allows no such
 * map. */
static const char *const grown_maps[] = {
	"threads",        "targets",       "inside",        "held_threads",
	"seen_by_one",    "unwind_code",   "unwind_python", "fold_born",
	"fold_processes", "fold_totals",   "fold_live",     "fold_failures",
	"fold_results",   "fold_launches", "fold_copies",   "fold_open_captures",
};

/*
 * Since 6.1 programs of tracing may have entries of maps made. Before, the kernel warns in its log
 * of each such program. Asked for by what came with the same version.
 */
static bool may_grow(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_USER_RINGBUF, NULL, 0, 0, (uint32_t)getpagesize(),
	                        NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* LRU maps keep up to 128 free entries for each CPU. */
static uint32_t room_for_cpus(uint32_t entries)
{
	uint32_t least = 512 * (uint32_t)libbpf_num_possible_cpus();

	return entries > least ? entries : least;
}

static void set_small(struct bpf_object *object, const struct room *room)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, room->map);
	uint32_t entries = room_for_cpus(room->entries);

	if (map && entries < bpf_map__max_entries(map))
		bpf_map__set_max_entries(map, entries);
}

void fold_shrink_maps(struct bpf_object *object)
{
	for (size_t i = 0; i < ARRAY_SIZE(small_rooms); i++)
		set_small(object, &small_rooms[i]);
	if (!may_grow())
		return;
	for (size_t i = 0; i < ARRAY_SIZE(grown_maps); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, grown_maps[i]);

		if (map)
			bpf_map__set_map_flags(map, bpf_map__map_flags(map) | BPF_F_NO_PREALLOC);
	}
}

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

/* As blocks of a power of two, each of which begins at a multiple of its size. What there is no
 * room for are users of their own. */
static void add_uids(void *data, uint64_t first, uint64_t count, uint64_t person)
{
	uint64_t end = first + count < 1ull << 32 ? first + count : 1ull << 32;
	uint32_t whose = person >> 32 ? ~(uint32_t)first : (uint32_t)person;

	while (first < end) {
		int size = first ? __builtin_ctzll(first) : 32;
		struct wire_uids uids = { .first = htobe32((uint32_t)first) };

		while (first + (1ull << size) > end)
			size--;
		uids.bits = (uint32_t)(32 - size);
		bpf_map_update_elem(*(const int *)data, &uids, &whose, BPF_ANY);
		first += 1ull << size;
	}
}

void fold_fill_users(struct programs *programs)
{
	int ranges = programs_map(programs, "uid_ranges");

	person_ranges(add_uids, &ranges);
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

void fold_delete_live(struct programs *programs, const void *key, uint32_t user)
{
	struct wire_state *state = programs_state(programs);

	if (bpf_map_delete_elem(programs_map(programs, "fold_live"), key))
		return;
	__atomic_fetch_sub(&state->live_rows, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&state->user_rows[user % WIRE_USERS], 1, __ATOMIC_RELAXED);
}

/* The programs look for captures only while the number of open ones is not 0. */
void fold_close_capture(struct programs *programs, uint64_t number)
{
	if (!bpf_map_delete_elem(programs_map(programs, "fold_open_captures"), &number))
		__atomic_fetch_sub(&programs_state(programs)->open_captures, 1, __ATOMIC_RELAXED);
}

uint64_t fold_process_born(struct programs *programs, uint32_t tgid, uint64_t now_ns)
{
	struct wire_rows *rows = &programs_state(programs)->born;
	int map = programs_map(programs, "fold_born");
	struct fold_born born;

	if (!bpf_map_lookup_elem(map, &tgid, &born))
		return born.born_ns;
	born = (struct fold_born){ .born_ns = now_ns,
		                   .user = programs_user(programs, (pid_t)tgid) };
	if (programs_may_have_more(rows, born.user, FOLD_BORN_ROOM) &&
	    !bpf_map_update_elem(map, &tgid, &born, BPF_NOEXIST))
		programs_rows_change(rows, born.user, 1);
	return bpf_map_lookup_elem(map, &tgid, &born) ? now_ns : born.born_ns;
}

void fold_process_over(struct programs *programs, uint32_t tgid)
{
	int map = programs_map(programs, "fold_born");
	struct fold_born born;

	if (!bpf_map_lookup_elem(map, &tgid, &born) && !bpf_map_delete_elem(map, &tgid))
		programs_rows_change(&programs_state(programs)->born, born.user, -1);
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
