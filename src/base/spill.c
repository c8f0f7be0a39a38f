// SPDX-License-Identifier: MIT
#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/secure_file.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define SPILL_PIECE ((size_t)512 << 10)
#define SPILL_LEAST ((size_t)1 << 20)   /* smaller arrays are memory of the program */
#define SPILL_PLACE ((size_t)8 << 30)   /* of addresses, that an array can grow to */
#define SPILL_GROWS 4096                /* elements, where there are as many */
#define SPILL_KEPT  ((size_t)640 << 20) /* in memory, as a rule: files take half as long again */
#define SPILL_RESIDENT                                                                             \
	((size_t)20 << 20) /* of all files that are mapped, the program's own too                  \
	                    */

/* Its addresses are taken from the begin on; those up to `spilled` are of the file, those up to
 * `held` are memory, and what is behind cannot be used yet. */
struct spilled {
	char *at;
	size_t place, spilled, held;
};

struct spill {
	struct spilled *all;
	size_t n;
	int file; /* -1: there is none, or no room in it */
	bool opened;
	uint64_t file_bytes;
	size_t kept; /* bytes of arrays that are in memory */
	int statm;
};

static size_t kept_most = SPILL_KEPT;

void spill_keep(size_t bytes)
{
	kept_most = bytes;
}

struct spill *spill_new(void)
{
	struct spill *spill = xcalloc(1, sizeof(*spill));

	spill->file = spill->statm = -1;
	return spill;
}

bool spill_is_memory(const struct spill *spill)
{
	return spill->opened && spill->file < 0;
}

void spill_free(struct spill *spill)
{
	if (!spill)
		return;
	if (spill->file >= 0)
		close(spill->file);
	if (spill->statm >= 0)
		close(spill->statm);
	free(spill->all);
	free(spill);
}

/* ---- what is in memory ----------------------------------------------------------------------- */

/* Of files, from /proc/self/statm. */
static size_t resident_bytes(int statm)
{
	char text[128];
	unsigned long long total, all, files = 0;
	ssize_t n = pread(statm, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (sscanf(text, "%llu %llu %llu", &total, &all, &files) != 3)
		return 0;
	return files * (size_t)sysconf(_SC_PAGESIZE);
}

void spill_look(struct spill *spill)
{
	if (!spill->n || !spill->file_bytes || resident_bytes(spill->statm) <= SPILL_RESIDENT)
		return;
	/* what was written stays in the file, whose pages these are */
	for (size_t i = 0; i < spill->n; i++)
		if (spill->all[i].spilled)
			madvise(spill->all[i].at, spill->all[i].spilled, MADV_DONTNEED);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static struct spilled *find(const struct spill *spill, const void *array)
{
	for (size_t i = 0; array && i < spill->n; i++)
		if (spill->all[i].at == array)
			return &spill->all[i];
	return NULL;
}

static bool has_file(struct spill *spill)
{
	struct err ignored;

	if (!spill->opened) {
		spill->file = temporary_open(&ignored);
		spill->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	}
	spill->opened = true;
	return spill->file >= 0;
}

/* Its addresses alone; NULL: there is no file, or they are not to be had. */
static struct spilled *place_new(struct spill *spill, size_t bytes)
{
	void *at = MAP_FAILED;

	if (has_file(spill))
		at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		          0);
	if (at == MAP_FAILED)
		return NULL;
	spill->all = vec_room(spill->all, spill->n, sizeof(*spill->all));
	spill->all[spill->n++] = (struct spilled){ .at = at, .place = bytes };
	return &spill->all[spill->n - 1];
}

static bool write_all(int file, const char *from, size_t bytes, uint64_t to)
{
	while (bytes) {
		ssize_t n = pwrite(file, from, bytes, (off_t)to);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		from += n;
		to += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return true;
}

/* Bytes of the file from its end on come in the place of those of the array. */
static bool map_file(struct spill *spill, struct spilled *array, size_t bytes)
{
	bool mapped;

	mapped = mmap(array->at + array->spilled, bytes, PROT_READ | PROT_WRITE,
	              MAP_SHARED | MAP_FIXED, spill->file, (off_t)spill->file_bytes) != MAP_FAILED;
	if (mapped) {
		array->spilled += bytes;
		spill->file_bytes += bytes;
	}
	return mapped;
}

static bool hold(struct spill *spill, struct spilled *array, size_t bytes)
{
	if (mmap(array->at + array->held, bytes, PROT_READ | PROT_WRITE,
	         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;
	array->held += bytes;
	spill->kept += bytes;
	return true;
}

/* Its addresses end here, as the next of them may be of another thread by now. */
static void end_place(struct spilled *array)
{
	char *next = array->at + array->held + SPILL_PIECE, *end = array->at + array->place;

	if (next < end)
		munmap(next, (size_t)(end - next));
	array->place = array->held;
}

/*
 * The last piece that went to the file is memory of the next one: else the kernel had to find and
 * clear as much again, as it does before Linux 5.7. Where it was something stays mapped, so that no
 * other thread can get these addresses.
 */
static bool hold_again(struct spill *spill, struct spilled *array)
{
	char *to = array->at + array->held;

	if (mremap(to - SPILL_PIECE, SPILL_PIECE, SPILL_PIECE,
	           MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) == MAP_FAILED) {
		if (errno != EINVAL) /* there is no memory, which is seen after `to` is free */
			end_place(array);
		return false;
	}
	array->held += SPILL_PIECE;
	spill->kept += SPILL_PIECE;
	return true;
}

/* There is no mapping to be had, so it is copied: it is memory where it was, as before. */
static void hold_no_more(struct spill *spill, struct spilled *array)
{
	char *from;

	array->held -= SPILL_PIECE;
	spill->kept -= SPILL_PIECE;
	from = array->at + array->held;
	memcpy(from - SPILL_PIECE, from, SPILL_PIECE);
	madvise(from, SPILL_PIECE, MADV_DONTNEED);
}

/* What is in memory goes to the file, if there is room in it; *held: a further piece is there. */
static void write_out(struct spill *spill, struct spilled *array, bool *held)
{
	size_t bytes = array->held - array->spilled;

	if (!bytes || spill->file < 0)
		return;
	if (write_all(spill->file, array->at + array->spilled, bytes, spill->file_bytes)) {
		*held = hold_again(spill, array);
		if (map_file(spill, array, bytes)) {
			spill->kept -= bytes;
			return;
		}
		if (*held)
			hold_no_more(spill, array);
		*held = false;
	}
	close(spill->file);
	spill->file = -1;
}

/* A further piece of memory, after those before went to the file, where there is much of it. */
static bool grow(struct spill *spill, struct spilled *array)
{
	bool held = false;

	if (array->held == array->place)
		return false;
	if (spill->kept + SPILL_PIECE > kept_most)
		write_out(spill, array, &held);
	return held || (array->held < array->place && hold(spill, array, SPILL_PIECE));
}

/* The array goes on as one of the spill, if it can. */
static void *move(struct spill *spill, void *array, size_t before, size_t bytes)
{
	struct spilled *spilled = place_new(spill, SPILL_PLACE);

	for (size_t done = 0; spilled && done < before; done = spilled->held) {
		size_t held = spilled->held;

		if (!grow(spill, spilled))
			break;
		memcpy(spilled->at + held, (char *)array + held,
		       before - held < SPILL_PIECE ? before - held : SPILL_PIECE);
	}
	if (!spilled || spilled->held < before) {
		if (spilled)
			spill_drop(spill, spilled->at);
		return xrealloc(array, bytes);
	}
	free(array);
	return spilled->at;
}

void *spill_room(struct spill *spill, void *array, size_t n, size_t bytes)
{
	size_t room = n < SPILL_GROWS ? 2 * n : n + SPILL_GROWS;
	struct spilled *spilled;

	if (n ? n < VEC_LEAST || (n < SPILL_GROWS ? n & (n - 1) : n % SPILL_GROWS) : array != NULL)
		return array;
	spill_look(spill);
	if (n * bytes >= SPILL_LEAST && !find(spill, array))
		array = move(spill, array, n * bytes, room * bytes);
	spilled = find(spill, array);
	if (!spilled)
		return xrealloc(array, (n ? room : VEC_LEAST) * bytes);
	while (spilled->held < room * bytes && grow(spill, spilled))
		;
	if (spilled->held >= room * bytes)
		return array;

	/* larger than the place, or no memory, of which this ends then */
	char *moved = xmalloc(room * bytes);

	memcpy(moved, array, n * bytes);
	spill_drop(spill, array);
	return moved;
}

void *spill_make(struct spill *spill, size_t bytes)
{
	size_t place = (bytes + SPILL_PIECE - 1) / SPILL_PIECE * SPILL_PIECE;
	struct spilled *spilled = bytes >= SPILL_LEAST ? place_new(spill, place) : NULL;

	if (!spilled)
		return xmalloc(bytes);
	if (spill->kept + place <= kept_most && hold(spill, spilled, place))
		return spilled->at;
	/* the room is taken now: a page for which there is none would end the program */
	if (!fallocate(spill->file, 0, (off_t)spill->file_bytes, (off_t)place) &&
	    map_file(spill, spilled, place)) {
		spilled->held = place;
		return spilled->at;
	}
	spill_drop(spill, spilled->at);
	return xmalloc(bytes);
}

/* What it had of the file is no more. */
void spill_drop(struct spill *spill, void *array)
{
	struct spilled *spilled = find(spill, array);

	if (!spilled) {
		free(array);
		return;
	}
	if (spilled->spilled) {
		/* first not mapped: else it all is for a moment, as Linux 6.18 splits its folios */
		madvise(spilled->at, spilled->spilled, MADV_DONTNEED);
		madvise(spilled->at, spilled->spilled, MADV_REMOVE);
	}
	munmap(spilled->at, spilled->place);
	spill->kept -= spilled->held - spilled->spilled;
	*spilled = spill->all[--spill->n];
}
