// SPDX-License-Identifier: MIT
#include "page/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/map.h"
#include "base/secure_file.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "page/pack.h"

#define BLOCK_ROWS     16384
#define GATHERED_MAX   ((size_t)24 << 20) /* bytes of rows and texts that wait, of all tracks */
#define TEXTS_MAX      ((size_t)4 << 20)  /* bytes of texts of a block */
#define PACKED_TIMES   8                  /* so much smaller rows are in a block, about */
#define TRACKS_MAX     4096
#define NAMES_MAX      60000 /* two bytes have room for more */
#define NAME_BYTES_MAX ((size_t)16 << 20)
#define NAME_REST      "(other names)"

/* Of CUDA's calls, and of those that are none. */
#define PAGE_CALLS(name_)                                                                          \
	{                                                                                          \
		name_, { { "begin", PAGE_BEGIN },  { "dur", PAGE_LENGTH },                         \
			 { "name", PAGE_NAME },    { "depth", PAGE_NUMBER },                       \
			 { "flags", PAGE_NUMBER }, { "correlation", PAGE_DELTA },                  \
			 { "detail", PAGE_TEXT },  { "stack", PAGE_STACK } },                      \
			8, CALL_CORRELATION, CALL_DEPTH                                            \
	}

const struct page_shape_info page_shapes[PAGE_SHAPES] = {
	[PAGE_CALL] = PAGE_CALLS("call"),
	[PAGE_WORK] = { "work",
	                { { "begin", PAGE_GAP },
	                  { "dur", PAGE_LENGTH },
	                  { "name", PAGE_NAME },
	                  { "what", PAGE_NUMBER },
	                  { "correlation", PAGE_DELTA },
	                  { "bytes", PAGE_NUMBER },
	                  { "detail", PAGE_TEXT },
	                  { "asked", PAGE_NUMBER },
	                  { "stack", PAGE_STACK } },
	                9,
	                WORK_CORRELATION,
	                0 },
	[PAGE_STATE] = { "state",
	                 { { "begin", PAGE_GAP },
	                   { "dur", PAGE_LENGTH },
	                   { "name", PAGE_NAME },
	                   { "thread", PAGE_NUMBER },
	                   { "detail", PAGE_TEXT },
	                   { "stack", PAGE_STACK } },
	                 6,
	                 0,
	                 0 },
	[PAGE_RANGE] = { "range",
	                 { { "begin", PAGE_GAP },
	                   { "dur", PAGE_LENGTH },
	                   { "name", PAGE_NAME },
	                   { "depth", PAGE_NUMBER },
	                   { "color", PAGE_NUMBER },
	                   { "detail", PAGE_TEXT } },
	                 6,
	                 0,
	                 RANGE_DEPTH },
	[PAGE_COUNTER] = { "counter",
	                   { { "begin", PAGE_BEGIN }, { "milli", PAGE_DELTA } },
	                   2,
	                   0,
	                   0 },
	[PAGE_OTHER] = PAGE_CALLS("other"),
	[PAGE_ACCOUNT] = { "account",
	                   { { "begin", PAGE_GAP },
	                     { "dur", PAGE_LENGTH },
	                     { "name", PAGE_NAME },
	                     { "detail", PAGE_TEXT } },
	                   4,
	                   0,
	                   0 },
};

struct page_row {
	uint64_t at[PAGE_COLUMNS];
};

struct page_track {
	struct page_track_options options;
	uint32_t number;
	struct page_row *rows;
	size_t n_rows, room;
	struct page_texts texts;
	uint32_t *blocks;
	size_t n_blocks;
	uint64_t n_all;
	uint64_t depth, peak; /* the greatest, of its rows and of a counter's values */
};

struct page_word {
	uint32_t number;
	UT_hash_handle hh;
	char text[];
};

struct page_blocks {
	const char *id;
	FILE *data, *meta;
	struct err failure;
	uint64_t bytes;
	uint32_t n_blocks, n_told; /* told: of tracks, in `meta` */
	uint64_t left_out;
	size_t gathered;
	struct page_track **tracks;
	size_t n_tracks;
	struct page_word *words;
	struct page_word **names; /* by number */
	size_t n_names, name_bytes;
	struct page_sums sums;
	struct page_row nowhere;
	struct buf text, json, bytes_of_block;
};

FILE *page_temporary(struct err *err)
{
	int fd = temporary_open(err);
	FILE *file;

	if (fd < 0)
		return NULL;
	file = fdopen(fd, "w+");
	setvbuf(file, NULL, _IOFBF, 1 << 18);
	return file;
}

struct page_blocks *page_blocks_new(const char *id, struct err *err)
{
	struct page_blocks *blocks = xcalloc(1, sizeof(*blocks));

	blocks->id = id;
	blocks->data = page_temporary(err);
	if (blocks->data)
		blocks->meta = page_temporary(err);
	if (blocks->meta)
		return blocks;
	page_blocks_free(blocks);
	return NULL;
}

static void track_free(struct page_track *track)
{
	page_texts_free(&track->texts);
	free(track->rows);
	free(track->blocks);
	free((char *)track->options.title);
	free((char *)track->options.group);
	free(track);
}

void page_blocks_free(struct page_blocks *blocks)
{
	if (!blocks)
		return;
	for (size_t i = 0; i < blocks->n_tracks; i++)
		track_free(blocks->tracks[i]);
	free(blocks->tracks);
	MAP_FREE(blocks->words, free);
	free(blocks->names);
	page_sums_free(&blocks->sums);
	buf_free(&blocks->text);
	buf_free(&blocks->json);
	buf_free(&blocks->bytes_of_block);
	if (blocks->data)
		fclose(blocks->data);
	if (blocks->meta)
		fclose(blocks->meta);
	free(blocks);
}

/* ---- names ----------------------------------------------------------------------------------- */

uint32_t page_name(struct page_blocks *blocks, const char *text)
{
	size_t len = strlen(text);
	struct page_word *word = MAP_FIND_BYTES(blocks->words, text, len);

	if (word)
		return word->number;
	if ((blocks->n_names >= NAMES_MAX || blocks->name_bytes + len > NAME_BYTES_MAX) &&
	    strcmp(text, NAME_REST))
		return page_name(blocks, NAME_REST);
	word = xcalloc(1, sizeof(*word) + len + 1);
	memcpy(word->text, text, len);
	blocks->name_bytes += len;
	word->number = (uint32_t)blocks->n_names;
	HASH_ADD_KEYPTR(hh, blocks->words, word->text, len, word);
	*VEC_ADD(blocks->names, blocks->n_names) = word;
	return word->number;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void blocks_failed(struct page_blocks *blocks, int code)
{
	if (!blocks->failure.code)
		err_set(&blocks->failure, code, "cannot write a temporary file: %s",
		        strerror(code));
}

static void blocks_write(struct page_blocks *blocks, FILE *file, const struct buf *text)
{
	blocks->bytes += text->len;
	if (!blocks->failure.code && text->len && fwrite(text->data, text->len, 1, file) != 1)
		blocks_failed(blocks, errno);
}

static uint32_t block_add(struct page_blocks *blocks, const struct buf *bytes,
                          const struct page_chance *chance, size_t n)
{
	struct buf *text = &blocks->text;

	buf_reset(text);
	buf_printf(text, "<script type=\"text/plain\" id=\"%s%u\">", blocks->id, blocks->n_blocks);
	page_pack(text, bytes, chance, n);
	buf_puts(text, "</script>\n");
	blocks_write(blocks, blocks->data, text);
	return blocks->n_blocks++;
}

uint32_t page_block_add(struct page_blocks *blocks, const struct buf *bytes)
{
	return block_add(blocks, bytes, NULL, 0);
}

static int row_compare(const void *a, const void *b)
{
	const struct page_row *one = a, *other = b;

	if (one->at[PAGE_AT_BEGIN] != other->at[PAGE_AT_BEGIN])
		return one->at[PAGE_AT_BEGIN] < other->at[PAGE_AT_BEGIN] ? -1 : 1;
	/* who is around others comes first */
	return (one->at[PAGE_AT_DURATION] < other->at[PAGE_AT_DURATION]) -
	       (one->at[PAGE_AT_DURATION] > other->at[PAGE_AT_DURATION]);
}

/* They come in the order of their ends, which is that of their begins but for what is nested. */
static void track_sort(struct page_track *track)
{
	size_t i = 1;

	while (i < track->n_rows && row_compare(&track->rows[i - 1], &track->rows[i]) <= 0)
		i++;
	if (i < track->n_rows)
		qsort(track->rows, track->n_rows, sizeof(*track->rows), row_compare);
}

/* Differences where the column is of such, and bits where it is of those. */
static void track_add_column(const struct page_track *track, size_t i, struct page_bits *bits,
                             struct buf *out)
{
	enum page_column_type type = page_shapes[track->options.shape].columns[i].type;
	uint64_t before = type == PAGE_BEGIN || type == PAGE_GAP ? track->rows[0].at[i] : 0;

	for (size_t k = 0; k < track->n_rows; k++) {
		uint64_t value = track->rows[k].at[i];

		if (type == PAGE_BEGIN || type == PAGE_LENGTH)
			page_bits_add(bits, type == PAGE_BEGIN ? value - before : value, out);
		else if (type == PAGE_DELTA || type == PAGE_GAP)
			page_zigzag(out, (int64_t)value - (int64_t)before);
		else
			page_varint(out, value);
		before = value;
		if (type == PAGE_GAP) /* from its end on */
			before += track->rows[k].at[PAGE_AT_DURATION];
	}
}

/* Returns how many columns have bits by chance, and where those are. */
static size_t track_add_columns(struct page_track *track, struct buf *out,
                                struct page_chance chance[PAGE_COLUMNS])
{
	const struct page_shape_info *shape = &page_shapes[track->options.shape];
	AT_END(buf_free) struct buf column = { 0 };
	AT_END(page_bits_free) struct page_bits bits = { 0 };
	size_t n = 0;

	page_varint(out, track->n_rows);
	for (size_t i = 0; i < shape->n_columns; i++) {
		buf_reset(&column);
		page_bits_begin(&bits);
		track_add_column(track, i, &bits, &column);
		page_bits_end(&bits);
		page_varint(out, column.len + bits.bytes.len);
		buf_add(out, column.data, column.len);
		if (!bits.bytes.len)
			continue;
		chance[n++] = (struct page_chance){ out->len, bits.bytes.len };
		buf_add(out, bits.bytes.data, bits.bytes.len);
	}
	page_texts_pack(&track->texts, out);
	return n;
}

/* Calls within others are counted in no table; ranges are. */
static struct page_span row_span(const struct page_track *track, const struct page_row *row)
{
	const struct page_shape_info *shape = &page_shapes[track->options.shape];

	return (struct page_span){ .begin_ns = row->at[PAGE_AT_BEGIN],
		                   .ns = row->at[PAGE_AT_DURATION],
		                   .name = (uint32_t)row->at[PAGE_AT_NAME],
		                   .inner = shape->depth && row->at[shape->depth],
		                   .nested = track->options.shape == PAGE_CALL &&
		                             row->at[CALL_DEPTH] };
}

static void track_bounds(const struct page_track *track, uint64_t *end_ns, uint64_t *least,
                         uint64_t *most)
{
	unsigned correlation = page_shapes[track->options.shape].correlation;
	bool spans = track->options.shape != PAGE_COUNTER;

	*end_ns = *least = *most = 0;
	for (size_t i = 0; i < track->n_rows; i++) {
		const uint64_t *at = track->rows[i].at;
		uint64_t end = at[PAGE_AT_BEGIN] + (spans ? at[PAGE_AT_DURATION] : 0);

		*end_ns = end > *end_ns ? end : *end_ns;
		if (!correlation || !at[correlation])
			continue;
		*least = !*least || at[correlation] < *least ? at[correlation] : *least;
		*most = at[correlation] > *most ? at[correlation] : *most;
	}
}

static void track_note_most(struct page_track *track)
{
	unsigned depth = page_shapes[track->options.shape].depth;

	for (size_t i = 0; i < track->n_rows; i++) {
		const uint64_t *at = track->rows[i].at;

		if (depth && at[depth] > track->depth)
			track->depth = at[depth];
		if (track->options.shape == PAGE_COUNTER && at[COUNTER_VALUE] > track->peak)
			track->peak = at[COUNTER_VALUE];
	}
}

static void track_describe(struct page_blocks *blocks, struct page_track *track, uint32_t number)
{
	uint64_t begin_ns = track->rows[0].at[PAGE_AT_BEGIN], end_ns, least, most;
	struct json json = { .out = &blocks->json };

	track_bounds(track, &end_ns, &least, &most);
	buf_reset(&blocks->json);
	buf_puts(&blocks->json, blocks->n_told++ ? ",\n" : "");
	json_open(&json, NULL, '{');
	json_u64(&json, "id", number);
	json_u64(&json, "track", track->number);
	json_u64(&json, "begin", begin_ns);
	json_u64(&json, "end", end_ns);
	json_u64(&json, "rows", track->n_rows);
	json_u64(&json, "c0", least);
	json_u64(&json, "c1", most);
	page_sums_begin(&blocks->sums, begin_ns, end_ns, blocks->n_names);
	for (size_t i = 0; track->options.shape != PAGE_COUNTER && i < track->n_rows; i++)
		page_sums_add(&blocks->sums, row_span(track, &track->rows[i]));
	track_note_most(track);
	page_sums_json(&blocks->sums, &json);
	json_close(&json, '}');
	blocks_write(blocks, blocks->meta, &blocks->json);
}

static size_t track_bytes(const struct page_track *track)
{
	return track->room * sizeof(*track->rows) + page_texts_bytes(&track->texts);
}

static void track_flush(struct page_blocks *blocks, struct page_track *track, bool keep)
{
	size_t before = track_bytes(track);

	if (track->n_rows) {
		struct page_chance chance[PAGE_COLUMNS];
		struct buf *bytes = &blocks->bytes_of_block;
		uint32_t number;
		size_t n;

		track_sort(track);
		buf_reset(bytes);
		n = track_add_columns(track, bytes, chance);
		number = blocks->n_blocks;
		track_describe(blocks, track, number);
		block_add(blocks, bytes, chance, n);
		*VEC_ADD(track->blocks, track->n_blocks) = number;
		track->n_all += track->n_rows;
		track->n_rows = 0;
	}
	page_texts_clear(&track->texts, keep);
	if (!keep) {
		free(track->rows);
		track->rows = NULL;
		track->room = 0;
	}
	blocks->gathered -= before - track_bytes(track);
}

static void blocks_make_room(struct page_blocks *blocks)
{
	struct page_track *largest = NULL;

	for (size_t i = 0; i < blocks->n_tracks; i++) {
		if (!largest || track_bytes(blocks->tracks[i]) > track_bytes(largest))
			largest = blocks->tracks[i];
	}
	if (largest)
		track_flush(blocks, largest, false);
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct page_track *page_track_new(struct page_blocks *blocks,
                                  const struct page_track_options *options)
{
	struct page_track *track;

	if (blocks->n_tracks == TRACKS_MAX)
		return NULL;
	track = xcalloc(1, sizeof(*track));
	track->options = *options;
	track->options.title = xstrdup(options->title);
	track->options.group = options->group ? xstrdup(options->group) : NULL;
	track->number = (uint32_t)blocks->n_tracks;
	*VEC_ADD(blocks->tracks, blocks->n_tracks) = track;
	return track;
}

static void track_grow(struct page_blocks *blocks, struct page_track *track)
{
	size_t room = track->room ? 2 * track->room : 16;

	blocks->gathered += (room - track->room) * sizeof(*track->rows);
	track->rows = xrealloc(track->rows, room * sizeof(*track->rows));
	track->room = room;
}

uint64_t *page_row(struct page_blocks *blocks, struct page_track *track)
{
	struct page_row *row = &blocks->nowhere;

	if (!track) {
		blocks->left_out++;
		memset(row, 0, sizeof(*row));
		return row->at;
	}
	/* kept, the memory of so many texts would make a block of each further row */
	if (page_texts_bytes(&track->texts) > TEXTS_MAX)
		track_flush(blocks, track, false);
	else if (track->n_rows == BLOCK_ROWS)
		track_flush(blocks, track, true);
	if (track->n_rows == track->room)
		track_grow(blocks, track);
	while (blocks->gathered > GATHERED_MAX)
		blocks_make_room(blocks);
	if (!track->room)
		track_grow(blocks, track);
	row = &track->rows[track->n_rows++];
	memset(row, 0, sizeof(*row));
	return row->at;
}

uint64_t page_text_find(const struct page_track *track, uint64_t key)
{
	return track ? page_texts_find(&track->texts, key) : 1;
}

uint64_t page_text_add(struct page_blocks *blocks, struct page_track *track, uint64_t key,
                       const char *text)
{
	size_t before = page_texts_bytes(&track->texts);
	uint64_t number = page_texts_add(&track->texts, key, text);

	blocks->gathered += page_texts_bytes(&track->texts) - before;
	return number;
}

/* ---- the end --------------------------------------------------------------------------------- */

int page_blocks_end(struct page_blocks *blocks, struct err *err)
{
	for (size_t i = 0; i < blocks->n_tracks; i++)
		track_flush(blocks, blocks->tracks[i], false);
	if (fflush(blocks->data) || fflush(blocks->meta))
		blocks_failed(blocks, errno);
	if (blocks->failure.code)
		*err = blocks->failure;
	return blocks->failure.code ? -abs(blocks->failure.code) : 0;
}

uint64_t page_blocks_left_out(const struct page_blocks *blocks)
{
	return blocks->left_out;
}

uint64_t page_blocks_bytes(const struct page_blocks *blocks)
{
	return blocks->bytes + blocks->gathered / PACKED_TIMES;
}

FILE *page_blocks_meta(struct page_blocks *blocks)
{
	rewind(blocks->meta);
	return blocks->meta;
}

FILE *page_blocks_data(struct page_blocks *blocks)
{
	rewind(blocks->data);
	return blocks->data;
}

static void shape_json(const struct page_shape_info *shape, struct json *json)
{
	static const char *const types[] = {
		[PAGE_NUMBER] = "u",  [PAGE_LENGTH] = "bits",  [PAGE_BEGIN] = "bits delta",
		[PAGE_GAP] = "gap",   [PAGE_DELTA] = "sdelta", [PAGE_NAME] = "name",
		[PAGE_TEXT] = "text", [PAGE_STACK] = "stack",
	};

	json_open(json, shape->name, '[');
	for (size_t i = 0; i < shape->n_columns; i++) {
		json_open(json, NULL, '[');
		json_string(json, NULL, shape->columns[i].name);
		json_string(json, NULL, types[shape->columns[i].type]);
		json_close(json, ']');
	}
	json_close(json, ']');
}

static void track_json(const struct page_track *track, struct json *json)
{
	json_open(json, NULL, '{');
	json_string(json, "kind", page_shapes[track->options.shape].name);
	json_string(json, "title", track->options.title);
	json_string_if(json, "group", track->options.group);
	json_u64(json, "process", track->options.process);
	json_u64(json, "tid", track->options.tid);
	json_string(json, "unit", track->options.unit ? track->options.unit : "");
	json_u64(json, "rows", track->n_all);
	json_u64(json, "depth", track->depth);
	json_u64(json, "peak", track->peak);
	json_open(json, "blocks", '[');
	for (size_t i = 0; i < track->n_blocks; i++)
		json_u64(json, NULL, track->blocks[i]);
	json_close(json, ']');
	json_close(json, '}');
}

void page_blocks_json(const struct page_blocks *blocks, struct json *json)
{
	json_open(json, "names", '[');
	for (size_t i = 0; i < blocks->n_names; i++)
		json_string(json, NULL, blocks->names[i]->text);
	json_close(json, ']');
	json_open(json, "columns", '{');
	for (size_t i = 0; i < PAGE_SHAPES; i++)
		shape_json(&page_shapes[i], json);
	json_close(json, '}');
	json_open(json, "tracks", '[');
	for (size_t i = 0; i < blocks->n_tracks; i++)
		track_json(blocks->tracks[i], json);
	json_close(json, ']');
}
