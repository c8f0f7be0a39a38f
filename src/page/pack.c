// SPDX-License-Identifier: MIT
#include "page/pack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/vec.h"
#include "base/xalloc.h"

void page_varint(struct buf *out, uint64_t value)
{
	char bytes[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[n++] = (char)(value | 0x80);
	bytes[n++] = (char)value;
	buf_add(out, bytes, n);
}

void page_zigzag(struct buf *out, int64_t value)
{
	page_varint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

void page_bits_begin(struct page_bits *bits)
{
	buf_reset(&bits->bytes);
	bits->begun = bits->n = 0;
}

void page_bits_add(struct page_bits *bits, uint64_t value, struct buf *lengths)
{
	unsigned length = value ? 64 - (unsigned)__builtin_clzll(value) : 0;

	buf_putc(lengths, (char)length);
	if (length < 2)
		return;
	/* numbers have 53 bits at most: of seven and 52 none is lost */
	bits->begun |= (value ^ 1ull << (length - 1)) << bits->n;
	for (bits->n += length - 1; bits->n >= 8; bits->n -= 8) {
		buf_putc(&bits->bytes, (char)bits->begun);
		bits->begun >>= 8;
	}
}

void page_bits_end(struct page_bits *bits)
{
	if (bits->n)
		buf_putc(&bits->bytes, (char)bits->begun);
}

void page_bits_free(struct page_bits *bits)
{
	buf_free(&bits->bytes);
}

static void pack_base64(struct buf *out, const void *bytes, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = bytes;
	char *to;

	buf_reserve(out, (n + 2) / 3 * 4 + 1);
	to = out->data + out->len;
	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t bits = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
		                (left > 2 ? in[i + 2] : 0);

		*to++ = digits[bits >> 18];
		*to++ = digits[bits >> 12 & 63];
		*to++ = left > 1 ? digits[bits >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[bits & 63] : '=';
	}
	*to = '\0';
	out->len = (size_t)(to - out->data);
}

#define PACK_LEVEL 4 /* of deflate: a higher one takes twice the time for a twentieth */

/* Fails for want of memory alone, and of room, which there is. */
static void pack_some(z_stream *stream, const char *bytes, size_t n, int level, int flush)
{
	if (!n && flush == Z_NO_FLUSH)
		return;
	if (deflateParams(stream, level, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	stream->next_in = (unsigned char *)bytes;
	stream->avail_in = (uInt)n;
	if (deflate(stream, flush) < Z_OK || stream->avail_in)
		abort();
}

void page_pack(struct buf *out, const struct buf *bytes, const struct page_chance *chance, size_t n)
{
	z_stream stream = { 0 };
	unsigned char *to;
	size_t room, at = 0;

	if (deflateInit(&stream, PACK_LEVEL) != Z_OK)
		abort();
	room = deflateBound(&stream, bytes->len) + 64 * (2 * n + 1); /* further blocks' heads */
	stream.next_out = to = xmalloc(room);
	stream.avail_out = (uInt)room;
	for (size_t i = 0; i < n; i++) {
		pack_some(&stream, bytes->data + at, chance[i].at - at, PACK_LEVEL, Z_NO_FLUSH);
		pack_some(&stream, bytes->data + chance[i].at, chance[i].bytes, 0, Z_NO_FLUSH);
		at = chance[i].at + chance[i].bytes;
	}
	pack_some(&stream, bytes->data + at, bytes->len - at, PACK_LEVEL, Z_FINISH);
	pack_base64(out, to, room - stream.avail_out);
	deflateEnd(&stream);
	free(to);
}

/* ---- texts ----------------------------------------------------------------------------------- */

struct page_text_slot {
	uint64_t key, number; /* 0: empty */
};

static struct page_text_slot *texts_slot(const struct page_texts *texts, uint64_t key)
{
	size_t at = key & (texts->n_slots - 1);

	while (texts->slots[at].number && texts->slots[at].key != key)
		at = (at + 1) & (texts->n_slots - 1);
	return &texts->slots[at];
}

uint64_t page_texts_find(const struct page_texts *texts, uint64_t key)
{
	return texts->n_slots ? texts_slot(texts, key)->number : 0;
}

static void texts_grow(struct page_texts *texts)
{
	struct page_texts before = *texts;

	texts->n_slots = before.n_slots ? 2 * before.n_slots : 64;
	texts->slots = xcalloc(texts->n_slots, sizeof(*texts->slots));
	for (size_t i = 0; i < before.n_slots; i++) {
		if (before.slots[i].number)
			*texts_slot(texts, before.slots[i].key) = before.slots[i];
	}
	free(before.slots);
}

uint64_t page_texts_add(struct page_texts *texts, uint64_t key, const char *text)
{
	size_t len = strlen(text);

	if (4 * (texts->n + 1) > 3 * texts->n_slots)
		texts_grow(texts);
	page_varint(&texts->bytes, len);
	buf_add(&texts->bytes, text, len);
	*texts_slot(texts, key) = (struct page_text_slot){ key, ++texts->n };
	return texts->n;
}

size_t page_texts_bytes(const struct page_texts *texts)
{
	return texts->bytes.cap + texts->n_slots * sizeof(*texts->slots);
}

void page_texts_pack(const struct page_texts *texts, struct buf *out)
{
	page_varint(out, texts->n);
	if (texts->bytes.len)
		buf_add(out, texts->bytes.data, texts->bytes.len);
}

void page_texts_clear(struct page_texts *texts, bool keep)
{
	if (!keep) {
		page_texts_free(texts);
		return;
	}
	buf_reset(&texts->bytes);
	texts->n = 0;
	if (texts->n_slots)
		memset(texts->slots, 0, texts->n_slots * sizeof(*texts->slots));
}

void page_texts_free(struct page_texts *texts)
{
	buf_free(&texts->bytes);
	free(texts->slots);
	memset(texts, 0, sizeof(*texts));
}

/* ---- sums ------------------------------------------------------------------------------------ */

void page_sums_begin(struct page_sums *sums, uint64_t begin_ns, uint64_t end_ns, size_t n_names)
{
	sums->begin_ns = begin_ns;
	sums->end_ns = end_ns;
	memset(sums->bins, 0, sizeof(sums->bins));
	if (n_names > sums->n_of) {
		sums->of = xrealloc(sums->of, 2 * n_names * sizeof(*sums->of));
		memset(sums->of + sums->n_of, 0, (2 * n_names - sums->n_of) * sizeof(*sums->of));
		sums->n_of = 2 * n_names;
	}
	sums->block++;
	sums->n_met = 0;
}

/* Where a part of the block's time begins. */
static uint64_t sums_bin_begin(const struct page_sums *sums, unsigned bin)
{
	uint64_t ns = sums->end_ns - sums->begin_ns;

	return sums->begin_ns + ns / PAGE_BINS * bin + ns % PAGE_BINS * bin / PAGE_BINS;
}

static unsigned sums_bin_of(const struct page_sums *sums, uint64_t time_ns)
{
	double ns = (double)(sums->end_ns - sums->begin_ns);
	unsigned bin = ns > 0 ? (unsigned)((double)(time_ns - sums->begin_ns) / ns * PAGE_BINS) : 0;

	return bin < PAGE_BINS ? bin : PAGE_BINS - 1;
}

/* Of the names of a part the one that has more than all others together, where one has. */
static void bin_add(struct page_bin *bin, uint32_t name, uint64_t ns)
{
	bin->ns += ns;
	if (bin->name == name) {
		bin->name_ns += ns;
	} else if (bin->name_ns >= ns) {
		bin->name_ns -= ns;
	} else {
		bin->name = name;
		bin->name_ns = ns - bin->name_ns;
	}
}

static void sums_add_bins(struct page_sums *sums, const struct page_span *span)
{
	uint64_t end_ns = span->begin_ns + span->ns;
	unsigned last = sums_bin_of(sums, end_ns);

	for (unsigned bin = sums_bin_of(sums, span->begin_ns); bin <= last; bin++) {
		uint64_t begin = sums_bin_begin(sums, bin);
		uint64_t end = bin + 1 < PAGE_BINS ? sums_bin_begin(sums, bin + 1) : sums->end_ns;

		begin = begin > span->begin_ns ? begin : span->begin_ns;
		end = end < end_ns ? end : end_ns;
		if (end >= begin)
			bin_add(&sums->bins[bin], span->name, end - begin);
	}
}

void page_sums_add(struct page_sums *sums, struct page_span span)
{
	struct page_sum *sum;

	if (span.name >= sums->n_of)
		return;
	sum = &sums->of[span.name];
	if (sum->block != sums->block) {
		*sum = (struct page_sum){ .block = sums->block };
		*VEC_ADD(sums->met, sums->n_met) = span.name;
	}
	if (!span.nested) {
		sum->n++;
		sum->ns += span.ns;
		sum->most_ns = span.ns > sum->most_ns ? span.ns : sum->most_ns;
	}
	if (!span.inner)
		sums_add_bins(sums, &span);
}

static void sums_json_bins(const struct page_sums *sums, struct json *json)
{
	unsigned char bytes[3 * PAGE_BINS];
	AT_END(buf_free) struct buf text = { 0 };

	for (unsigned i = 0; i < PAGE_BINS; i++) {
		uint64_t begin = sums_bin_begin(sums, i);
		uint64_t end = i + 1 < PAGE_BINS ? sums_bin_begin(sums, i + 1) : sums->end_ns;
		double share = end > begin ? (double)sums->bins[i].ns / (double)(end - begin) : 1;
		double of_255 = sums->bins[i].ns ? 1 + 254 * (share < 1 ? share : 1) : 0;

		bytes[i] = (unsigned char)of_255;
		bytes[PAGE_BINS + 2 * i] = (unsigned char)sums->bins[i].name;
		bytes[PAGE_BINS + 2 * i + 1] = (unsigned char)(sums->bins[i].name >> 8);
	}
	pack_base64(&text, bytes, sizeof(bytes));
	json_string(json, "bins", text.data);
}

void page_sums_json(const struct page_sums *sums, struct json *json)
{
	sums_json_bins(sums, json);
	json_open(json, "sums", '[');
	for (size_t i = 0; i < sums->n_met; i++) {
		const struct page_sum *sum = &sums->of[sums->met[i]];

		json_open(json, NULL, '[');
		json_u64(json, NULL, sums->met[i]);
		json_u64(json, NULL, sum->n);
		json_u64(json, NULL, sum->ns);
		json_u64(json, NULL, sum->most_ns);
		json_close(json, ']');
	}
	json_close(json, ']');
}

void page_sums_free(struct page_sums *sums)
{
	free(sums->of);
	free(sums->met);
}
