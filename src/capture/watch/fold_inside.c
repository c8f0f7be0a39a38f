// SPDX-License-Identifier: MIT
#include "capture/watch/fold_inside.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>

#include "base/array.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "capture/watch/ledger.h"
#include "cuda/api.h"
#include "probe/fold.h"

/* ---- fold map ------------------------------------------------------------------------------ */

/*
 * Maps in this process that look like those of the eBPF programs, so that the programs' code of
 * sums (bpf/fold*.h) runs here as well: see fold_inside.c. A map has room for so many entries.
 * Where that is used up, one that is a cache forgets what was asked for the longest ago, and any
 * other refuses.
 */

struct fold_map {
	size_t key_bytes, value_bytes, room;
	bool cache;
	struct ledger *ledger; /* its rows are the entries; else NULL */
	const char *array;     /* values by a key of 32 bits, which stay as they are; else NULL */
	struct fold_map_entry *entries;
};

/* The key lies behind the value. */
struct fold_map_entry {
	UT_hash_handle hh;
	uint64_t value[];
};

static void map_drop(struct fold_map *map, struct fold_map_entry *entry)
{
	MAP_DROP(map->entries, entry);
}

/* the entries */
static void fold_map_free(struct fold_map *map)
{
	struct fold_map_entry *entry, *next;

	HASH_ITER (hh, map->entries, entry, next) {
		map_drop(map, entry);
	}
}

static char *map_key_of(struct fold_map *map, struct fold_map_entry *entry)
{
	return (char *)entry->value + map->value_bytes;
}

static void *of_array(struct fold_map *map, const void *key)
{
	uint32_t index;

	memcpy(&index, key, sizeof(index));
	return index < map->room ? (void *)(map->array + index * map->value_bytes) : NULL;
}

/* Behind all others: the first is the one that was not asked for in the longest time. */
static void map_use(struct fold_map *map, struct fold_map_entry *entry)
{
	if (!entry->hh.next)
		return;
	HASH_DEL(map->entries, entry);
	HASH_ADD_KEYPTR(hh, map->entries, map_key_of(map, entry), map->key_bytes, entry);
}

/* The helpers of eBPF programs that the sums use. */
static void *fold_map_lookup(struct fold_map *map, const void *key)
{
	struct fold_map_entry *entry;

	if (map->array)
		return of_array(map, key);
	if (map->ledger)
		return ledger_here(map->ledger, key);
	entry = MAP_FIND_BYTES(map->entries, key, map->key_bytes);
	if (entry && map->cache)
		map_use(map, entry);
	return entry ? entry->value : NULL;
}

static struct fold_map_entry *map_add(struct fold_map *map, const void *key)
{
	struct fold_map_entry *entry;

	if (HASH_COUNT(map->entries) >= map->room) {
		if (!map->cache)
			return NULL;
		map_drop(map, map->entries);
	}
	entry = xcalloc(1, sizeof(*entry) + map->value_bytes + map->key_bytes);
	memcpy(map_key_of(map, entry), key, map->key_bytes);
	HASH_ADD_KEYPTR(hh, map->entries, map_key_of(map, entry), map->key_bytes, entry);
	return entry;
}

/* Rows of a ledger begin with zeroes. */
static long fold_map_update(struct fold_map *map, const void *key, const void *value,
                            uint64_t flags)
{
	struct fold_map_entry *entry;

	if (map->ledger)
		return ledger_make_here(map->ledger, key) ? 0 : -E2BIG;
	entry = MAP_FIND_BYTES(map->entries, key, map->key_bytes);
	if (entry && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!entry)
		entry = map_add(map, key);
	if (!entry)
		return -E2BIG;
	memcpy(entry->value, value, map->value_bytes);
	return 0;
}

static long fold_map_delete(struct fold_map *map, const void *key)
{
	struct fold_map_entry *entry = MAP_FIND_BYTES(map->entries, key, map->key_bytes);

	if (!entry)
		return -ENOENT;
	map_drop(map, entry);
	return 0;
}

/* Hands out each entry, which may be deleted meanwhile. */
static void fold_map_each(struct fold_map *map,
                          void (*each)(void *data, const void *key, const void *value), void *data)
{
	struct fold_map_entry *entry, *next;

	for (entry = map->entries; entry; entry = next) {
		next = entry->hh.next;
		each(data, map_key_of(map, entry), entry->value);
	}
}

/* ---- fold inside --------------------------------------------------------------------------- */

enum map_of { PROCESSES, SHARES, LAUNCHES, COPIES, PINNED, CAPTURES, OPEN, FORMATS, WAYS, BLANK };
#define MAPS (BLANK + 1)

struct fold_inside {
	struct fold_inside_options options;
	struct fold_map maps[MAPS];
	struct wire_settings settings_here; /* only what the sums look at, as with the next */
	struct wire_state state_here;
	uint32_t formats[256], ways[FOLD_DIRECTIONS];
};

/* ---- what the programs' code finds -------------------------------------------------------- */

static _Thread_local struct fold_inside *here; /* during a call */

#define settings (here->settings_here)
#define state    (here->state_here)

/* Its maps, by their names there. */
static const enum map_of fold_processes = PROCESSES, fold_shares = SHARES, fold_launches = LAUNCHES,
			 fold_copies = COPIES, fold_pinned = PINNED, fold_captures = CAPTURES,
			 fold_open_captures = OPEN, fold_formats = FORMATS, fold_directions = WAYS,
			 blank_thread = BLANK;

#define bpf_map_lookup_elem(map, key) fold_map_lookup(&here->maps[*(map)], key)
#define bpf_map_update_elem(map, key, value, flags)                                                \
	fold_map_update(&here->maps[*(map)], key, value, flags)
#define bpf_map_delete_elem(map, key) fold_map_delete(&here->maps[*(map)], key)

static __always_inline const __u32 *kernels_generation(__u32 tgid)
{
	return &state.kernels_generation[wire_kernels_slot(&state, tgid)];
}

#include "bpf/fold_transfers.h"

static __always_inline void fold_first(const struct folded *f)
{
	f->call->generation = (__u16)*kernels_generation(f->tgid);
	if (f->plan->op == FOLD_LAUNCH)
		here->options.first(here->options.data, f->call);
}

#undef settings
#undef state

/* ---- maps ---------------------------------------------------------------------------------- */

/* What is as large as any value of a map, and zero: see FOLD_ROW. */
static const char blank[sizeof(struct wire_thread)];

static void fill_tables(struct fold_inside *inside)
{
	for (uint32_t format = 0; format < ARRAY_SIZE(inside->formats); format++)
		inside->formats[format] = api_format_bits(format);
	for (uint32_t kind = 0; kind < 8; kind++)
		inside->ways[FOLD_BY_KIND(kind)] = api_kind_direction(kind);
	for (uint32_t types = 0; types < 64; types++)
		inside->ways[FOLD_BY_TYPES(types >> 3, types)] =
			api_types_direction(types >> 3, types & 7);
}

/* As large as those of the kernel. */
static void make_maps(struct fold_inside *inside)
{
	const struct fold_map maps[MAPS] = {
		[PROCESSES] = { .key_bytes = sizeof(struct fold_process_key),
		                .value_bytes = sizeof(struct fold_process),
		                .room = fold_room("fold_processes") },
		[SHARES] = { .key_bytes = sizeof(struct fold_process_key),
		             .value_bytes = sizeof(struct fold_share),
		             .room = fold_room("fold_shares"),
		             .cache = true },
		[LAUNCHES] = { .ledger = inside->options.launches },
		[COPIES] = { .ledger = inside->options.copies },
		[PINNED] = { .key_bytes = sizeof(struct fold_pinned_key),
		             .value_bytes = sizeof(struct fold_pinned),
		             .room = fold_room("fold_pinned"),
		             .cache = true },
		[CAPTURES] = { .key_bytes = sizeof(struct fold_capture_key),
		               .value_bytes = sizeof(uint64_t),
		               .room = fold_room("fold_captures"),
		               .cache = true },
		[OPEN] = { .key_bytes = sizeof(uint64_t),
		           .value_bytes = sizeof(struct fold_open_capture),
		           .room = fold_room("fold_open_captures") },
		[FORMATS] = { .value_bytes = sizeof(uint32_t),
		              .room = ARRAY_SIZE(inside->formats),
		              .array = (const char *)inside->formats },
		[WAYS] = { .value_bytes = sizeof(uint32_t),
		           .room = ARRAY_SIZE(inside->ways),
		           .array = (const char *)inside->ways },
		[BLANK] = { .value_bytes = sizeof(blank), .room = 1, .array = blank },
	};

	memcpy(inside->maps, maps, sizeof(maps));
}

struct fold_inside *fold_inside_new(const struct fold_inside_options *options)
{
	struct fold_inside *inside = xcalloc(1, sizeof(*inside));

	inside->options = *options;
	inside->state_here.kernels_mix = options->kernels_mix;
	fold_set_shares(&inside->settings_here);
	fill_tables(inside);
	make_maps(inside);
	return inside;
}

void fold_inside_free(struct fold_inside *inside)
{
	if (!inside)
		return;
	for (size_t i = 0; i < MAPS; i++)
		fold_map_free(&inside->maps[i]);
	free(inside);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* Of memory only what is pinned. */
static void fold_memory(const struct folded *f)
{
	if (fold_failed(f) || !(here->options.tools & FOLD_TOOL_COPIES))
		return;
	if (f->plan->op == FOLD_ALLOC && f->plan->pinned)
		host_pinned(f);
	else if (f->plan->op == FOLD_FREE)
		host_unpinned(f);
	else if (f->plan->op == FOLD_CONTEXT_DESTROY)
		pinned_context_ended(f);
}

static void fold(const struct folded *f)
{
	switch (f->plan->op) {
	case FOLD_ALLOC:
	case FOLD_FREE:
	case FOLD_CONTEXT_DESTROY:
		fold_memory(f);
		break;
	case FOLD_LAUNCH:
	case FOLD_GRAPH_LAUNCH:
		if (here->options.tools & FOLD_TOOL_LAUNCHES)
			launched(f);
		break;
	case FOLD_COPY:
	case FOLD_SET:
		if (here->options.tools & FOLD_TOOL_COPIES)
			copied(f);
		break;
	default:
		fold_capture(f);
	}
}

void fold_inside_call(struct fold_inside *inside, struct ledger_process process,
                      const struct fold_plan *plan, const struct wire_call *call)
{
	uint32_t words = call->head.words > WIRE_WORDS ? WIRE_WORDS : call->head.words;
	struct wire_call copy = { 0 }; /* the sums look at words that a record may not have */
	const struct folded f = { .call = &copy,
		                  .plan = plan,
		                  .born_ns = process.born_ns,
		                  .tgid = (uint32_t)process.tgid };

	if (call->head.depth || call->head.flags & (WIRE_NESTED | WIRE_UNFINISHED))
		return;
	memcpy(&copy, call, WIRE_CALL_BYTES(words));
	here = inside;
	fold(&f);
}

void fold_inside_generation(struct fold_inside *inside, uint32_t tgid, uint16_t generation)
{
	struct wire_state *state = &inside->state_here;

	state->kernels_generation[wire_kernels_slot(state, tgid)] = generation;
}

uint64_t fold_inside_lost_rows(const struct fold_inside *inside)
{
	return inside->state_here.lost_rows;
}

static struct fold_process_key key_of(struct ledger_process process)
{
	return (struct fold_process_key){ .born_ns = process.born_ns,
		                          .tgid = (uint32_t)process.tgid };
}

void fold_inside_give_back(struct fold_inside *inside, struct ledger_process process, uint64_t rows)
{
	const struct fold_process_key key = key_of(process);
	struct fold_share *share = fold_map_lookup(&inside->maps[SHARES], &key);

	if (share)
		share->rows[FOLD_SHARE_LAUNCHES] -= (int64_t)rows;
}

/* ---- processes that come ------------------------------------------------------------------- */

static void take_captures(struct fold_inside *inside, struct programs *programs,
                          struct ledger_process process)
{
	struct fold_table table;

	if (!programs_state(programs)->open_captures)
		return;
	fold_read(programs, "fold_open_captures", sizeof(uint64_t),
	          sizeof(struct fold_open_capture), &table);
	for (size_t i = 0; i < table.count; i++) {
		const struct fold_open_capture *open = (const void *)table.values;
		const uint64_t *number = (const void *)table.keys;

		if (open[i].born_ns != process.born_ns || open[i].tgid != process.tgid ||
		    fold_map_update(&inside->maps[OPEN], &number[i], &open[i], BPF_ANY))
			continue;
		inside->state_here.open_captures++;
		fold_close_capture(programs, number[i]);
	}
	fold_table_free(&table);
	fold_read(programs, "fold_captures", sizeof(struct fold_capture_key), sizeof(uint64_t),
	          &table);
	for (size_t i = 0; i < table.count; i++) {
		const struct fold_capture_key *key =
			(const struct fold_capture_key *)table.keys + i;

		if (key->born_ns == process.born_ns && key->tgid == process.tgid)
			fold_map_update(&inside->maps[CAPTURES], key,
			                (const uint64_t *)table.values + i, BPF_ANY);
	}
	fold_table_free(&table);
}

static void take_pinned(struct fold_inside *inside, struct programs *programs,
                        struct ledger_process process)
{
	const struct fold_process_key key = key_of(process);
	struct fold_process known;
	struct fold_share share = { 0 };
	struct fold_table table;

	if (!fold_find(programs, "fold_processes", &key, &known))
		return;
	fold_map_update(&inside->maps[PROCESSES], &key, &known, BPF_ANY);
	if (!known.pinned_sizes)
		return;
	fold_read(programs, "fold_pinned", sizeof(struct fold_pinned_key),
	          sizeof(struct fold_pinned), &table);
	for (size_t i = 0; i < table.count; i++) {
		const struct fold_pinned_key *block =
			(const struct fold_pinned_key *)table.keys + i;

		if (block->born_ns != process.born_ns || block->tgid != process.tgid)
			continue;
		fold_map_update(&inside->maps[PINNED], block,
		                (const struct fold_pinned *)table.values + i, BPF_ANY);
		share.rows[FOLD_SHARE_PINNED]++;
	}
	fold_table_free(&table);
	fold_map_update(&inside->maps[SHARES], &key, &share, BPF_ANY);
}

void fold_inside_take(struct fold_inside *inside, struct programs *programs,
                      struct ledger_process process)
{
	if (inside->options.tools & (FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES))
		take_captures(inside, programs, process);
	if (inside->options.tools & FOLD_TOOL_COPIES)
		take_pinned(inside, programs, process);
}

/* ---- processes that go --------------------------------------------------------------------- */

struct ending {
	struct fold_inside *inside;
	ledger_is_fn is;
	void *data;
};

static bool is_of(const struct ending *ending, uint64_t born_ns, uint64_t tgid)
{
	return ending->is(ending->data, (struct ledger_process){ born_ns, tgid });
}

static void forget_process(const struct ending *ending, enum map_of map,
                           const struct fold_process_key *process)
{
	if (is_of(ending, process->born_ns, process->tgid))
		fold_map_delete(&ending->inside->maps[map], process);
}

static void forget_known(void *data, const void *key, const void *value)
{
	forget_process(data, PROCESSES, key);
}

static void forget_share(void *data, const void *key, const void *value)
{
	forget_process(data, SHARES, key);
}

static void forget_pinned(void *data, const void *key, const void *value)
{
	const struct fold_pinned_key *block = key;
	const struct ending *ending = data;

	if (is_of(ending, block->born_ns, block->tgid))
		fold_map_delete(&ending->inside->maps[PINNED], key);
}

static void forget_stream(void *data, const void *key, const void *value)
{
	const struct fold_capture_key *stream = key;
	const struct ending *ending = data;

	if (is_of(ending, stream->born_ns, stream->tgid))
		fold_map_delete(&ending->inside->maps[CAPTURES], key);
}

static void forget_open(void *data, const void *key, const void *value)
{
	const struct fold_open_capture *open = value;
	const struct ending *ending = data;

	if (is_of(ending, open->born_ns, open->tgid) &&
	    !fold_map_delete(&ending->inside->maps[OPEN], key))
		ending->inside->state_here.open_captures--;
}

void fold_inside_ended(struct fold_inside *inside, ledger_is_fn is, void *data)
{
	struct ending ending = { inside, is, data };

	fold_map_each(&inside->maps[PINNED], forget_pinned, &ending);
	fold_map_each(&inside->maps[CAPTURES], forget_stream, &ending);
	fold_map_each(&inside->maps[OPEN], forget_open, &ending);
	fold_map_each(&inside->maps[PROCESSES], forget_known, &ending);
	fold_map_each(&inside->maps[SHARES], forget_share, &ending);
}
