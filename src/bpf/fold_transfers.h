/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Sums of launches and of copies, and which host memory is pinned. */
#pragma once

#include "bpf/fold_captures.h"

static __always_inline __u64 call_ns(const struct folded *f)
{
	__u64 begin = f->call->begin_ns, end = f->call->head.time_ns;

	return end > begin ? end - begin : 0;
}

/* ---- launches ------------------------------------------------------------------------------ */

/* The first call of a row: who includes this has its kernel named while it can be, and learns that
 * CUDA works in its process. */
static __always_inline void fold_first(const struct folded *f);

static __always_inline struct fold_launch *launch_row(const struct folded *f)
{
	struct fold_launch_key key = { .born_ns = f->born_ns,
		                       .tgid = f->tgid,
		                       .graph = f->plan->op == FOLD_GRAPH_LAUNCH };
	__u64 flat = f->plan->flags / FOLD_FLAT & 1;
	struct fold_launch *row;
	int made;

	if (settings.fold & FOLD_TOOL_NO_KERNELS) {
		row = FOLD_SHARED_ROW(f, &fold_launches, &key, FOLD_SHARE_LAUNCHES,
		                      FOLD_SHARE_LAUNCHES, &made);
		if (made)
			fold_first(f);
		return row;
	}
	key.handle = FOLD_VALUE(f, FOLD_AT_HANDLE);
	key.generation = (__u16)*kernels_generation(f->tgid);
	for (int i = 0; i < 3; i++) {
		__u64 grid = f->plan->at[FOLD_AT_GRID + i];

		key.grid[i] = fold_word(f->call, grid) + (flat & ~(grid >> 15));
		key.block[i] = FOLD_VALUE(f, FOLD_AT_BLOCK + i);
	}
	row = FOLD_SHARED_ROW(f, &fold_launches, &key, FOLD_SHARE_LAUNCHES, FOLD_SHARE_SHAPES,
	                      &made);
	if (!row) {
		for (int i = 0; i < 3; i++)
			key.grid[i] = key.block[i] = 0;
		row = FOLD_SHARED_ROW(f, &fold_launches, &key, FOLD_SHARE_LAUNCHES,
		                      FOLD_SHARE_LAUNCHES, &made);
	}
	if (made)
		fold_first(f);
	return row;
}

/* One cooperative launch is one of a kernel on each of its devices. */
static __always_inline __u64 launches_of(const struct folded *f)
{
	__u64 launches = FOLD_VALUE(f, FOLD_AT_LAUNCHES);

	launches += fold_is(launches) ^ 1;
	return launches < FOLD_LAUNCHES_MOST ? launches : FOLD_LAUNCHES_MOST;
}

static __always_inline void launched(const struct folded *f)
{
	struct fold_launch *row = launch_row(f);
	__u64 ns;

	if (!row) {
		fold_lost_row();
		return;
	}
	if (fold_failed(f)) {
		FOLD_ADD(row->failed, 1);
		return;
	}
	if (is_captured(f)) {
		FOLD_ADD(row->captured, launches_of(f));
		return;
	}
	FOLD_ADD(row->count, launches_of(f));
	if (!fold_has_return(f))
		return;
	ns = call_ns(f);
	FOLD_ADD(row->timed, 1);
	FOLD_ADD(row->ns, ns);
	fold_histogram(row->duration, ns);
	fold_max(&row->max_ns, ns);
}

/* ---- pinned memory ------------------------------------------------------------------------- */

/* The least k such that 2^k >= bytes, for bytes > 0. */
static __always_inline __u64 size_class(__u64 bytes)
{
	__u64 left = bytes - 1;

	return fold_log(left) + fold_is(left);
}

static __always_inline void pinned_key(const struct folded *f, const struct fold_process *process,
                                       __u64 address, __u64 size, struct fold_pinned_key *key)
{
	key->block = address >> (size & 63);
	key->born_ns = f->born_ns;
	key->tgid = f->tgid;
	key->size = size;
	key->epoch = process->pinned_epoch;
}

static __always_inline void pin_in_block(const struct folded *f, const struct fold_pinned_key *key,
                                         const struct fold_range *range)
{
	struct fold_pinned *block;
	int made;

	block = FOLD_SHARED_ROW(f, &fold_pinned, key, FOLD_SHARE_PINNED, FOLD_SHARE_PINNED, &made);
	if (!block) {
		fold_lost_row();
		return;
	}
	for (int i = 0; i < FOLD_PINNED_RANGES; i++) {
		/* a free whose end was not seen leaves one that overlaps: it is gone */
		if (block->range[i].begin < range->end && range->begin < block->range[i].end)
			block->range[i].begin = block->range[i].end = 0;
	}
	for (int i = 0; i < FOLD_PINNED_RANGES; i++) {
		if (!block->range[i].end) {
			block->range[i] = *range;
			return;
		}
	}
}

static __always_inline void host_pinned(const struct folded *f)
{
	struct fold_range range = { .begin = FOLD_VALUE(f, FOLD_AT_ADDRESS),
		                    .host = f->plan->pinned };
	struct fold_process *process = fold_process(f);
	__u64 bytes = fold_bytes(f), size, first;
	struct fold_pinned_key key;

	if (!process || !range.begin || !bytes)
		return;
	size = size_class(bytes);
	range.end = range.begin + bytes;
	range.size = size;
	process->pinned_sizes |= 1ull << (size & 63);
	pinned_key(f, process, range.begin, size, &key);
	pin_in_block(f, &key, &range);
	first = key.block;
	key.block = (range.end - 1) >> (size & 63);
	if (key.block != first)
		pin_in_block(f, &key, &range);
}

/* The range that an address lies in, NULL for none. */
static __always_inline struct fold_range *range_in(struct fold_pinned *block, __u64 address)
{
	for (int i = 0; i < FOLD_PINNED_RANGES; i++) {
		if (address >= block->range[i].begin && address < block->range[i].end)
			return &block->range[i];
	}
	return 0;
}

#define PINNED_SIZES 20 /* that are looked through, the smallest first */

static __always_inline struct fold_range *
pinned_range(const struct folded *f, const struct fold_process *process, __u64 address)
{
	__u64 sizes = process->pinned_sizes;

	for (int i = 0; i < PINNED_SIZES; i++) {
		struct fold_pinned_key key;
		struct fold_pinned *block;
		struct fold_range *range;

		if (!sizes)
			return 0;
		pinned_key(f, process, address, fold_log(sizes & -sizes), &key);
		sizes &= sizes - 1;
		block = bpf_map_lookup_elem(&fold_pinned, &key);
		if (!block)
			continue;
		range = range_in(block, address);
		if (range)
			return range;
	}
	return 0;
}

/* Takes a range out of the block that `address`, its first or its last, lies in. */
static __always_inline void unpin_in_block(const struct folded *f,
                                           const struct fold_process *process, __u64 begin,
                                           __u64 address, __u64 size)
{
	struct fold_pinned_key key;
	struct fold_pinned *block;
	__u64 left = 0;

	pinned_key(f, process, address, size, &key);
	block = bpf_map_lookup_elem(&fold_pinned, &key);
	if (!block)
		return;
	for (int i = 0; i < FOLD_PINNED_RANGES; i++) {
		if (block->range[i].begin == begin)
			block->range[i].begin = block->range[i].end = 0;
		left |= block->range[i].end;
	}
	if (!left && !bpf_map_delete_elem(&fold_pinned, &key))
		share_add(fold_share(f), FOLD_SHARE_PINNED, -1ull);
}

static __always_inline void host_unpinned(const struct folded *f)
{
	struct fold_process *process = fold_process(f);
	__u64 begin = FOLD_VALUE(f, FOLD_AT_ADDRESS), last, size;
	struct fold_range *range;

	if (!process || !begin)
		return;
	range = pinned_range(f, process, begin);
	if (!range || range->begin != begin)
		return;
	last = range->end - 1;
	size = range->size;
	unpin_in_block(f, process, begin, begin, size);
	unpin_in_block(f, process, begin, last, size);
}

static __always_inline void pinned_context_ended(const struct folded *f)
{
	struct fold_process *process = fold_process(f);
	struct fold_share *share = fold_share(f);

	if (share) /* nobody asks for those any more: others push them out */
		share->rows[FOLD_SHARE_PINNED] = 0;
	if (!process)
		return;
	process->pinned_epoch++;
	process->pinned_sizes = 0;
}

/* What is known of a host address. */
static __always_inline __u64 host_of(const struct folded *f, __u64 address)
{
	struct fold_process *process = fold_process(f);
	struct fold_range *range;

	range = process ? pinned_range(f, process, address) : 0;
	return range ? range->host : FOLD_HOST_UNKNOWN;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* The address of one end of a copy by struct: the host field's, or the device field's. */
static __always_inline __u64 end_address(const struct folded *f, __u32 at, __u64 type)
{
	enum { TYPE, HOST, DEVICE };
	__u64 is_host = fold_is(type ^ FOLD_TYPE_HOST) ^ 1;

	return (FOLD_VALUE(f, at + HOST) & -is_host) | (FOLD_VALUE(f, at + DEVICE) & (is_host - 1));
}

/* By cudaMemcpyKind or by the types of both ends, from a table. */
static __always_inline __u64 table_direction(__u64 index)
{
	__u32 key = index, *direction = bpf_map_lookup_elem(&fold_directions, &key);

	return direction ? *direction : 0;
}

static __always_inline __u64 copy_direction(const struct folded *f, __u64 *from, __u64 *to)
{
	*from = FOLD_VALUE(f, FOLD_AT_SOURCE);
	*to = FOLD_VALUE(f, FOLD_AT_ADDRESS);
	if (f->plan->flags & FOLD_COPY_TYPES) {
		__u64 from_type = FOLD_VALUE(f, FOLD_AT_FROM), to_type = FOLD_VALUE(f, FOLD_AT_TO);

		*from = end_address(f, FOLD_AT_FROM, from_type);
		*to = end_address(f, FOLD_AT_TO, to_type);
		if (!f->plan->direction)
			return table_direction(FOLD_BY_TYPES(from_type, to_type));
	} else if (f->plan->at[FOLD_AT_KIND]) {
		return table_direction(FOLD_BY_KIND(FOLD_VALUE(f, FOLD_AT_KIND)));
	}
	return f->plan->direction;
}

/* cudaMemcpy3D of an array counts its elements, whose size is not to be seen: see decode.c. */
static __always_inline int copy_is_sized(const struct folded *f)
{
	enum { ARRAY = 3 };

	if (f->plan->flags & FOLD_COPY_ARRAYS &&
	    (FOLD_VALUE(f, FOLD_AT_FROM + ARRAY) | FOLD_VALUE(f, FOLD_AT_TO + ARRAY)))
		return 0;
	return f->plan->flags & FOLD_SIZED;
}

static __always_inline void copied(const struct folded *f)
{
	struct fold_copies_key key = { .born_ns = f->born_ns,
		                       .tgid = f->tgid,
		                       .set = f->plan->op == FOLD_SET,
		                       .async = f->plan->flags & FOLD_ASYNC };
	__u64 direction, from, to, bytes, ns;
	struct fold_copies *row;
	int made;

	if (!key.set) {
		direction = copy_direction(f, &from, &to);
		key.direction = direction;
		if (direction == FOLD_H2D || direction == FOLD_D2H)
			key.host = host_of(f, direction == FOLD_H2D ? from : to);
	}
	row = FOLD_ROW(&fold_copies, &key, &made);
	if (made)
		fold_first(f);
	if (!row) {
		fold_lost_row();
		return;
	}
	if (fold_failed(f)) {
		FOLD_ADD(row->failed, 1);
		return;
	}
	if (is_captured(f)) {
		FOLD_ADD(row->captured, 1);
		return;
	}
	FOLD_ADD(row->calls, 1);
	if (copy_is_sized(f)) {
		bytes = fold_bytes(f);
		FOLD_ADD(row->bytes, bytes);
		fold_histogram(row->sizes, bytes);
	} else {
		FOLD_ADD(row->unsized, 1);
	}
	if (!fold_has_return(f))
		return;
	ns = call_ns(f);
	FOLD_ADD(row->timed, 1);
	FOLD_ADD(row->ns, ns);
	fold_max(&row->max_ns, ns);
}
