/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * What all sums have in common: values of a call by its plan, rows of maps, logarithms.
 *
 * The programs and user space sum up by the same code (capture/watch/fold_inside.c), each in maps
 * of their own. So whoever includes this has the maps of fold_maps.h, `settings`, `state` and the
 * helpers for maps.
 */
#pragma once

#include "bpf/wire_fold.h"

/* A call that is over, with what the sums need to know of it. */
struct folded {
	struct wire_call *call;
	const struct fold_plan *plan;
	__u64 born_ns;
	__u32 tgid;
	__u32 user; /* users.h */
};

/*
 * No branches here and below where arithmetic will do: each would double what the verifier has to
 * follow, and it counts to a million.
 */
static __always_inline __u64 fold_is(__u64 value) /* 1 or 0 */
{
	return (value | -value) >> 63;
}

static __always_inline __u64 fold_word(const struct wire_call *call, __u64 at)
{
	__u64 index = FOLD_WHERE_BYTE(at) >> 3, word;

	asm volatile("" : "+r"(index)); /* else clang proves the check needless, and drops it */
	if (index >= WIRE_WORDS)
		return 0;
	word = call->word[index] >> (at & 4) * 8;
	word &= -(__u64)FOLD_WHERE_WIDE(at) << 32 | 0xffffffff;
	word &= -(at >> 15); /* there is such a value */
	return word << FOLD_WHERE_SHIFT(at);
}

#define FOLD_VALUE(f, value) fold_word((f)->call, (f)->plan->at[value])

static __always_inline int fold_failed(const struct folded *f)
{
	return !(f->call->head.flags & WIRE_NO_RETURN) && f->call->result;
}

static __always_inline int fold_has_return(const struct folded *f)
{
	return !(f->call->head.flags & WIRE_NO_RETURN);
}

/* The row of a key, made with zeroes where there is none; *made tells. NULL when there is
 * no room. */
#define FOLD_ROW(map, key, made)                                                                   \
	({                                                                                         \
		void *row_ = bpf_map_lookup_elem(map, key);                                        \
		__u32 zero_ = 0;                                                                   \
		*(made) = 0;                                                                       \
		if (!row_) {                                                                       \
			void *blank_ = bpf_map_lookup_elem(&blank_thread, &zero_);                 \
			if (blank_)                                                                \
				*(made) = !bpf_map_update_elem(map, key, blank_, BPF_NOEXIST);     \
			row_ = bpf_map_lookup_elem(map, key);                                      \
		}                                                                                  \
		row_;                                                                              \
	})

/* The value is hidden from clang, which makes an atomic `or` of adding 0: not before 5.12. */
#define FOLD_ADD(counter, value)                                                                   \
	({                                                                                         \
		__u64 add_ = (value);                                                              \
		asm volatile("" : "+r"(add_));                                                     \
		__sync_fetch_and_add(&(counter), add_);                                            \
	})

static __always_inline void fold_count(struct fold_count *into, __u64 bytes)
{
	FOLD_ADD(into->count, 1);
	FOLD_ADD(into->bytes, bytes);
}

static __always_inline void fold_uncount(struct fold_count *from, __u64 bytes)
{
	FOLD_ADD(from->count, -1ull);
	FOLD_ADD(from->bytes, -bytes);
}

static __always_inline void fold_lost_row(void)
{
	__sync_fetch_and_add(&state.lost_rows, 1);
}

/* The integer part of the binary logarithm; of 0 it is 0. */
static __always_inline __u64 fold_log(__u64 value)
{
	__u64 log = 0;

	for (int step = 32; step; step >>= 1) {
		__u64 more = -fold_is(value >> step) & step;

		value >>= more;
		log += more;
	}
	return log;
}

static __always_inline void fold_histogram(__u64 *logs, __u64 value)
{
	__u64 log = fold_log(value);

	asm volatile("" : "+r"(log));
	FOLD_ADD(logs[log < FOLD_LOGS ? log : FOLD_LOGS - 1], 1);
}

/* Not atomic: of two that end at the same instant the lesser may win, which the next one mends. */
static __always_inline void fold_max(__u64 *max, __u64 value)
{
	if (value > *max)
		*max = value;
}

/* ---- processes ----------------------------------------------------------------------------- */

static __always_inline struct fold_process *fold_process(const struct folded *f)
{
	struct fold_process_key key = { .born_ns = f->born_ns, .tgid = f->tgid };
	int made;

	return FOLD_ROW(&fold_processes, &key, &made);
}

/* ---- shares -------------------------------------------------------------------------------- */

static __always_inline struct fold_share *fold_share(const struct folded *f)
{
	struct fold_process_key key = { .born_ns = f->born_ns, .tgid = f->tgid };
	int made;

	return FOLD_ROW(&fold_shares, &key, &made);
}

/* Whether the process may have another row. NULL is a share that is not known, and as large. */
static __always_inline int share_has_room(const struct fold_share *share, enum fold_share_of of,
                                          enum fold_share_of most)
{
	return !share || share->rows[of] < (__s64)settings.share[most];
}

static __always_inline void share_add(struct fold_share *share, enum fold_share_of of, __u64 rows)
{
	if (share)
		FOLD_ADD(share->rows[of], rows);
}

/* As FOLD_ROW, within the share of the process. */
#define FOLD_SHARED_ROW(f, map, key, of, most, made)                                               \
	({                                                                                         \
		void *shared_ = bpf_map_lookup_elem(map, key);                                     \
		struct fold_share *share_;                                                         \
		*(made) = 0;                                                                       \
		if (!shared_) {                                                                    \
			share_ = fold_share(f);                                                    \
			if (share_has_room(share_, of, most))                                      \
				shared_ = FOLD_ROW(map, key, made);                                \
			if (*(made))                                                               \
				share_add(share_, of, 1);                                          \
		}                                                                                  \
		shared_;                                                                           \
	})

/* ---- bytes --------------------------------------------------------------------------------- */

/* A factor that a function does not have is 1. */
static __always_inline __u64 fold_factor(const struct folded *f, __u32 value)
{
	__u64 at = f->plan->at[value];

	return fold_word(f->call, at) + (at >> 15 ^ 1);
}

/* Elements of an array with all levels of its mipmap; an extent of 0 means: not that many dims. */
static __always_inline __u64 fold_elements(const struct folded *f)
{
	__u64 levels = FOLD_VALUE(f, FOLD_AT_LEVELS), total = 0;
	__u64 x = FOLD_VALUE(f, FOLD_AT_DIM), y = FOLD_VALUE(f, FOLD_AT_DIM + 1),
	      z = FOLD_VALUE(f, FOLD_AT_DIM + 2);

	for (__u64 level = 0; level < 32; level++) {
		__u64 elements =
			(x + (fold_is(x) ^ 1)) * (y + (fold_is(y) ^ 1)) * (z + (fold_is(z) ^ 1));

		if (level && level >= levels)
			break;
		total += elements;
		x >>= 1;
		y >>= 1;
		z >>= 1;
	}
	return total;
}

static __always_inline __u64 fold_element_bits(const struct folded *f)
{
	__u32 format = FOLD_VALUE(f, FOLD_AT_BITS), *bits;

	if (f->plan->flags & FOLD_FORMAT) {
		bits = bpf_map_lookup_elem(&fold_formats, &format);
		return bits ? *bits : 0;
	}
	return FOLD_VALUE(f, FOLD_AT_BITS) + FOLD_VALUE(f, FOLD_AT_BITS + 1) +
	       FOLD_VALUE(f, FOLD_AT_BITS + 2) + FOLD_VALUE(f, FOLD_AT_BITS + 3);
}

/* But for arrays. 0 where they are not known: the same sums as in src/cuda/decode.c. */
static __always_inline __u64 fold_bytes(const struct folded *f)
{
	const struct fold_plan *plan = f->plan;
	__u64 bytes;

	if (!(plan->flags & FOLD_SIZED))
		return 0;
	if (plan->flags & FOLD_SPARE && (!fold_has_return(f) || f->call->result))
		bytes = FOLD_VALUE(f, FOLD_AT_SPARE);
	else
		bytes = fold_factor(f, FOLD_AT_FACTOR);
	return bytes * fold_factor(f, FOLD_AT_FACTOR + 1) * fold_factor(f, FOLD_AT_FACTOR + 2);
}

static __always_inline __u64 fold_alloc_bytes(const struct folded *f)
{
	__u64 bytes = fold_bytes(f);

	if (f->plan->flags & FOLD_ARRAY)
		bytes = bytes * fold_elements(f) * fold_element_bits(f) / 8;
	return bytes;
}
