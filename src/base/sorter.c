// SPDX-License-Identifier: MIT
#include "base/sorter.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/secure_file.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define READ_BYTES  (32u << 10) /* of a stretch at a time, when they are merged */
#define WRITE_BYTES (256u << 10)

struct sorter_slot {
	uint64_t key;
	size_t at; /* in `records`: later ones are further behind */
	uint32_t bytes;
};

/* As they stand in the file, one directly after the other. */
struct head {
	uint64_t key;
	uint64_t bytes;
};

struct stretch {
	off_t at, end;    /* in the file: what is still to be read */
	struct buf ahead; /* read, from `taken` on not yet passed on */
	size_t taken;
	struct head head; /* of the record that is next */
};

struct sorter {
	size_t memory, keep;
	int (*tie)(const void *a, const void *b); /* may be NULL */
	struct buf records;
	struct sorter_slot *slots;
	size_t n;
	int file; /* -1: none yet */
	off_t file_end;
	struct stretch *stretches;
	size_t n_stretches;
};

struct sorter *sorter_new(size_t memory, size_t keep)
{
	struct sorter *sorter = xcalloc(1, sizeof(*sorter));

	sorter->memory = memory;
	sorter->keep = keep;
	sorter->file = -1;
	return sorter;
}

void sorter_ties(struct sorter *sorter, int (*tie)(const void *a, const void *b))
{
	sorter->tie = tie;
}

void sorter_free(struct sorter *sorter)
{
	if (!sorter)
		return;
	for (size_t i = 0; i < sorter->n_stretches; i++)
		buf_free(&sorter->stretches[i].ahead);
	free(sorter->stretches);
	free(sorter->slots);
	buf_free(&sorter->records);
	if (sorter->file >= 0)
		close(sorter->file);
	free(sorter);
}

/* ---- in memory ------------------------------------------------------------------------------ */

static int compare(const void *left, const void *right, void *data)
{
	const struct sorter_slot *a = left, *b = right;
	const struct sorter *sorter = data;
	int tie = 0;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (sorter->tie)
		tie = sorter->tie(sorter->records.data + a->at, sorter->records.data + b->at);
	if (tie)
		return tie;
	return a->at < b->at ? -1 : a->at > b->at;
}

/* Drops what is not wanted at all, and with it the room that it took. */
static void sort(struct sorter *sorter)
{
	struct buf kept = { 0 };

	if (sorter->n) /* else there is no memory at all */
		qsort_r(sorter->slots, sorter->n, sizeof(*sorter->slots), compare, sorter);
	if (!sorter->keep || sorter->n <= sorter->keep)
		return;
	sorter->n = sorter->keep;
	for (size_t i = 0; i < sorter->n; i++) {
		struct sorter_slot *slot = &sorter->slots[i];
		size_t at = kept.len;

		buf_add(&kept, sorter->records.data + slot->at, slot->bytes);
		slot->at = at;
	}
	buf_free(&sorter->records);
	sorter->records = kept;
}

static size_t used(const struct sorter *sorter)
{
	return sorter->records.len + sorter->n * sizeof(*sorter->slots);
}

/* ---- the file ------------------------------------------------------------------------------- */

static int write_out(struct sorter *sorter, struct buf *out, struct err *err)
{
	size_t done = 0;

	while (done < out->len) {
		ssize_t n =
			pwrite(sorter->file, out->data + done, out->len - done, sorter->file_end);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, n ? errno : EIO, "cannot write a temporary file: %s",
			               strerror(n ? errno : EIO));
		done += (size_t)n;
		sorter->file_end += n;
	}
	buf_reset(out);
	return 0;
}

static int spill(struct sorter *sorter, struct err *err)
{
	AT_END(buf_free) struct buf out = { 0 };
	struct stretch *stretch;
	int rc = 0;

	if (sorter->file < 0)
		sorter->file = temporary_open(err);
	if (sorter->file < 0)
		return sorter->file;
	sorter->stretches =
		vec_room(sorter->stretches, sorter->n_stretches, sizeof(*sorter->stretches));
	stretch = &sorter->stretches[sorter->n_stretches++];
	*stretch = (struct stretch){ .at = sorter->file_end };
	for (size_t i = 0; i < sorter->n && !rc; i++) {
		const struct sorter_slot *slot = &sorter->slots[i];
		const struct head head = { slot->key, slot->bytes };

		buf_add(&out, (const char *)&head, sizeof(head));
		buf_add(&out, sorter->records.data + slot->at, slot->bytes);
		if (out.len >= WRITE_BYTES || i + 1 == sorter->n)
			rc = write_out(sorter, &out, err);
	}
	stretch->end = sorter->file_end;
	sorter->n = 0;
	buf_reset(&sorter->records);
	return rc;
}

int sorter_add(struct sorter *sorter, uint64_t key, const void *record, size_t bytes,
               struct err *err)
{
	int rc = 0;

	if (used(sorter) >= sorter->memory) {
		sort(sorter);
		if (used(sorter) >= sorter->memory / 2)
			rc = spill(sorter, err);
	}
	if (rc)
		return rc;
	sorter->slots = vec_room(sorter->slots, sorter->n, sizeof(*sorter->slots));
	sorter->slots[sorter->n++] = (struct sorter_slot){ .key = key,
		                                           .at = sorter->records.len,
		                                           .bytes = (uint32_t)bytes };
	buf_add(&sorter->records, record, bytes);
	return 0;
}

/* ---- merging -------------------------------------------------------------------------------- */

/* Has `bytes` ahead, as far as there are so many. */
static int read_ahead(struct sorter *sorter, struct stretch *stretch, size_t bytes, struct err *err)
{
	struct buf *ahead = &stretch->ahead;
	char piece[READ_BYTES];

	if (ahead->len - stretch->taken >= bytes)
		return 0;
	if (stretch->taken) {
		ahead->len -= stretch->taken;
		memmove(ahead->data, ahead->data + stretch->taken, ahead->len);
		stretch->taken = 0;
	}
	while (ahead->len < bytes && stretch->at < stretch->end) {
		size_t left = (size_t)(stretch->end - stretch->at);
		ssize_t n = pread(sorter->file, piece, left < sizeof(piece) ? left : sizeof(piece),
		                  stretch->at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, n ? errno : EIO,
			               "cannot read a temporary file back: %s",
			               strerror(n ? errno : EIO));
		buf_add(ahead, piece, (size_t)n);
		stretch->at += n;
	}
	return 0;
}

static bool is_over(const struct stretch *stretch)
{
	return stretch->ahead.len == stretch->taken && stretch->at == stretch->end;
}

static int cut_short(struct err *err)
{
	return err_set(err, EIO, "cannot read a temporary file back: it is not what was written");
}

/* The head of the next record, and all of it ahead. */
static int look(struct sorter *sorter, struct stretch *stretch, struct err *err)
{
	int rc = read_ahead(sorter, stretch, sizeof(stretch->head), err);

	if (rc || is_over(stretch))
		return rc;
	if (stretch->ahead.len - stretch->taken < sizeof(stretch->head))
		return cut_short(err);
	memcpy(&stretch->head, stretch->ahead.data + stretch->taken, sizeof(stretch->head));
	if (stretch->head.bytes > UINT32_MAX)
		return cut_short(err);
	rc = read_ahead(sorter, stretch, sizeof(stretch->head) + stretch->head.bytes, err);
	if (!rc &&
	    stretch->ahead.len - stretch->taken < sizeof(stretch->head) + stretch->head.bytes)
		return cut_short(err);
	return rc;
}

static bool is_before(const struct sorter *sorter, const struct stretch *a, const struct stretch *b)
{
	if (a->head.key != b->head.key || !sorter->tie)
		return a->head.key < b->head.key;
	return sorter->tie(a->ahead.data + a->taken + sizeof(a->head),
	                   b->ahead.data + b->taken + sizeof(b->head)) < 0;
}

/* Stretches are few: a look at each of them costs less than a heap would be to read. */
static struct stretch *next_stretch(struct sorter *sorter)
{
	struct stretch *next = NULL;

	for (size_t i = 0; i < sorter->n_stretches; i++) {
		struct stretch *stretch = &sorter->stretches[i];

		if (!is_over(stretch) && (!next || is_before(sorter, stretch, next)))
			next = stretch;
	}
	return next;
}

static int merge(struct sorter *sorter, int (*each)(void *data, const void *record, size_t bytes),
                 void *data, struct err *err)
{
	struct stretch *next;
	int rc = 0;

	for (size_t i = 0; i < sorter->n_stretches && !rc; i++)
		rc = look(sorter, &sorter->stretches[i], err);
	while (!rc && (next = next_stretch(sorter))) {
		next->taken += sizeof(next->head);
		rc = each(data, next->ahead.data + next->taken, next->head.bytes);
		next->taken += next->head.bytes;
		if (!rc)
			rc = look(sorter, next, err);
	}
	return rc;
}

int sorter_each(struct sorter *sorter, int (*each)(void *data, const void *record, size_t bytes),
                void *data, struct err *err)
{
	int rc = 0;

	sort(sorter);
	if (sorter->n_stretches) {
		rc = spill(sorter, err);
		return rc ? rc : merge(sorter, each, data, err);
	}
	for (size_t i = 0; i < sorter->n && !rc; i++)
		rc = each(data, sorter->records.data + sorter->slots[i].at, sorter->slots[i].bytes);
	sorter->n = 0;
	buf_reset(&sorter->records);
	return rc;
}
