/* SPDX-License-Identifier: MIT */
/* How the blocks of a page are written: numbers, texts, sums, and all of it as text of html. */
#ifndef CUSCOPE_PAGE_PACK_H
#define CUSCOPE_PAGE_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

/* Seven bits a byte, the lowest first; with a sign it is in the lowest bit. */
void page_varint(struct buf *out, uint64_t value);
void page_zigzag(struct buf *out, int64_t value);

/*
 * Numbers of which all but the highest bits are by chance, as times to a nanosecond are: of each
 * how many bits it has, as a byte of `lengths`; and all that are behind its highest one as they
 * are, one number's behind the other's, the lowest first.
 */
struct page_bits {
	struct buf bytes;
	uint64_t begun; /* of a byte, */
	unsigned n;     /* and how many bits it has */
};

void page_bits_begin(struct page_bits *bits);
void page_bits_add(struct page_bits *bits, uint64_t value, struct buf *lengths);
void page_bits_end(struct page_bits *bits);
void page_bits_free(struct page_bits *bits);

/* Bytes that are by chance. */
struct page_chance {
	size_t at, bytes;
};

/* As text, after they were compressed as browsers undo it: RFC 1950, "deflate". What is by chance,
 * in the order of its places, is not tried. */
void page_pack(struct buf *out, const struct buf *bytes, const struct page_chance *chance,
               size_t n);

/* ---- texts ----------------------------------------------------------------------------------- */

/* Texts of a block, each once, found by a key of 64 bits that is by chance no other's. */
struct page_texts {
	struct buf bytes; /* each with its length before it */
	uint64_t n;
	struct page_text_slot *slots;
	size_t n_slots; /* a power of two; 0: none yet */
};

uint64_t page_texts_find(const struct page_texts *texts,
                         uint64_t key); /* its number from 1 on; 0 */
uint64_t page_texts_add(struct page_texts *texts, uint64_t key, const char *text);
size_t page_texts_bytes(const struct page_texts *texts); /* of memory */
void page_texts_pack(const struct page_texts *texts, struct buf *out);
void page_texts_clear(struct page_texts *texts, bool keep); /* keep: its memory */
void page_texts_free(struct page_texts *texts);

/* ---- sums ------------------------------------------------------------------------------------ */

#define PAGE_BINS 64

/* Of a block: what is in each of 64 parts of its time, and what each name has in all. */
struct page_sums {
	uint64_t begin_ns, end_ns;
	struct page_bin {
		uint64_t ns;      /* of rows that are in no other */
		uint64_t name_ns; /* what the name has more than all others, at least */
		uint32_t name;
	} bins[PAGE_BINS];
	struct page_sum {
		uint64_t block, n, ns, most_ns;
	} * of; /* by name */
	size_t n_of;
	uint32_t *met; /* the names of this block */
	size_t n_met;
	uint64_t block;
};

struct page_span {
	uint64_t begin_ns, ns;
	uint32_t name;
	bool inner;  /* it is within another row, whose time it is: in no part of the block */
	bool nested; /* nor does its name have it */
};

void page_sums_begin(struct page_sums *sums, uint64_t begin_ns, uint64_t end_ns, size_t n_names);
void page_sums_add(struct page_sums *sums, struct page_span span);
void page_sums_json(const struct page_sums *sums, struct json *json); /* "bins" and "sums" */
void page_sums_free(struct page_sums *sums);

#endif
