/* SPDX-License-Identifier: MIT */
/*
 * The data of a page: rows of tracks, in blocks of columns, as src/page/page.h says. A track is a
 * row of the timeline: the calls of a thread, the work of a stream. Its rows are gathered, put in
 * order of their begins, packed and written to a temporary file, block by block: memory does not
 * grow with their number, and the blocks stand behind the index in the page, which is told first.
 */
#ifndef CUSCOPE_PAGE_BLOCKS_H
#define CUSCOPE_PAGE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/json.h"

/* What tracks are of. */
enum page_shape {
	PAGE_CALL,
	PAGE_WORK,
	PAGE_STATE,
	PAGE_RANGE,
	PAGE_COUNTER,
	PAGE_ACCOUNT,
	PAGE_OTHER, /* calls that are none of CUDA's, with the columns of those */
	PAGE_SHAPES,
};

/* How a column is written: a number; one of which most bits are by chance (page_bits); such a one
 * that is told by the difference to the row before; one that is told so, by the difference to the
 * end of the row before; the number of a name; one more than that of a text of the block, of a
 * stack. */
enum page_column_type {
	PAGE_NUMBER,
	PAGE_LENGTH,
	PAGE_BEGIN,
	PAGE_DELTA,
	PAGE_GAP,
	PAGE_NAME,
	PAGE_TEXT,
	PAGE_STACK,
};

struct page_column {
	const char *name;
	enum page_column_type type;
};

#define PAGE_COLUMNS 9

/* Where columns stand in a row: the first two are those of all, but of counters. */
enum { PAGE_AT_BEGIN, PAGE_AT_DURATION, PAGE_AT_NAME };
enum { CALL_DEPTH = 3, CALL_AT_FLAGS, CALL_CORRELATION, CALL_DETAIL, CALL_STACK };
enum { WORK_WHAT = 3, WORK_CORRELATION, WORK_BYTES, WORK_DETAIL, WORK_ASKED, WORK_STACK };
enum { STATE_THREAD = 3, STATE_DETAIL, STATE_STACK };
enum { RANGE_DEPTH = 3, RANGE_COLOR, RANGE_DETAIL };
enum { COUNTER_VALUE = 1 };
enum { ACCOUNT_DETAIL = 3 };

struct page_shape_info {
	const char *name; /* "call" */
	struct page_column columns[PAGE_COLUMNS];
	size_t n_columns;
	unsigned correlation, depth; /* columns; 0: it has none */
};

extern const struct page_shape_info page_shapes[PAGE_SHAPES];

/* Times are nanoseconds since the begin of the trace; numbers beyond this are told as it, since
 * JavaScript has no larger ones that are exact. */
#define PAGE_NUMBER_MOST ((1ull << 53) - 1)

struct page_blocks;
struct page_track;

/* NULL with a sentence where there is no temporary file. `id` is what elements of blocks are
 * called, before their numbers; kept. */
struct page_blocks *page_blocks_new(const char *id, struct err *err);
void page_blocks_free(struct page_blocks *blocks);

/* The number of a name that many rows have: "cudaMemcpyAsync". Of more than there is room for, of
 * one that stands for all of them. */
uint32_t page_name(struct page_blocks *blocks, const char *text);

struct page_track_options {
	enum page_shape shape;
	const char *title;     /* these two are copied */
	const char *group;     /* NULL: its process is */
	uint32_t process, tid; /* of the index's processes; 0: of no thread */
	const char *unit;      /* of a counter: "%", "B"; kept */
};

/* NULL: there are too many; what they would have is counted as left out. */
struct page_track *page_track_new(struct page_blocks *blocks,
                                  const struct page_track_options *options);

/*
 * The next row of a track, zeroed, to be filled before the next call of this; numbers in the order
 * of the columns. Of a track that is NULL, a row that goes nowhere.
 */
uint64_t *page_row(struct page_blocks *blocks, struct page_track *track);

/* For the row at hand: what stands in a column of texts. 0: the track's block has no such text yet,
 * then page_text_add() takes it. `key` tells texts apart. */
uint64_t page_text_find(const struct page_track *track, uint64_t key);
uint64_t page_text_add(struct page_blocks *blocks, struct page_track *track, uint64_t key,
                       const char *text);

/* A block of no track, of bytes as they are; its number. */
uint32_t page_block_add(struct page_blocks *blocks, const struct buf *bytes);

/* What is still gathered becomes blocks. A failure so far: a negative errno and its sentence. */
int page_blocks_end(struct page_blocks *blocks, struct err *err);

uint64_t page_blocks_left_out(const struct page_blocks *blocks); /* rows */
uint64_t page_blocks_bytes(const struct page_blocks *blocks);    /* so far, about */

/* After the end: members of the index, "names", "columns" and "tracks"; and two files to be copied:
 * the elements of "blocks", with commas between them, and the blocks. Both are at their begins. */
void page_blocks_json(const struct page_blocks *blocks, struct json *json);
FILE *page_blocks_meta(struct page_blocks *blocks);
FILE *page_blocks_data(struct page_blocks *blocks);

/* A file that can be written and read, and has no name; NULL with a sentence. */
FILE *page_temporary(struct err *err);

#endif
