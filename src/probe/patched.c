// SPDX-License-Identifier: MIT
#include "probe/patched.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/account.h"
#include "probe/maps.h"
#include "probe/person.h"

#define WINDOW        65536u /* what is read of a process at a time */
#define PAGES         4096u  /* of which it is asked at a time who has changed them */
#define MAPPINGS_MAX  900    /* of the file, in one process, that are looked at */
#define MAPPINGS_OWN  8      /* that each process may have, and */
#define MAPPINGS_MOST 1000   /* how many more all of one user's may: see PATCH_CROWD */
#define FREE_NS       500000 /* that looking for mappings takes: some thousands of them */

/*
 * How often in one search. Mappings may be of any size, and somebody may have any number of
 * processes. What they have in any case is for 256 MiB of code, of which 4 MiB are changed.
 */
static const struct patched_limit {
	unsigned own;  /* of each process, whatever others take */
	unsigned most; /* of one process */
	unsigned user; /* of all of one user's (person.h), beside what is each one's own */
} ask_limit = { 16, 512, 4096 }, read_limit = { 64, 4096, 4096 };

/* Of x86-64; elsewhere probes lie on the entry, with nothing before them. */
#define JUMP       0xe9
#define JUMP_BYTES 5 /* with 32 bits of distance */
#define NOP        0x90

const char *patch_why(enum patch_kind kind)
{
	static const char *const why[] = {
		[PATCH_CODE] = "has code of its own there, and a probe in this file would end it: "
			       "hooked in no process",
		[PATCH_GUARD] = "has a guard page there (MADV_GUARD_INSTALL), so the kernel puts "
				"this probe into no process",
		[PATCH_CROWD] = "and others of its user have the file mapped a thousand times, "
				"which the kernel takes too long for: hooked in no process",
	};

	return why[kind];
}

/* ---- is it the file's code ------------------------------------------------------------------ */

/* Whether a kernel's or a debugger's breakpoint stands there; *bytes is how long one is. */
static bool is_breakpoint(const uint8_t *code, size_t left, size_t *bytes)
{
#if defined(__aarch64__)
	*bytes = 4;
	return left >= 4 && code[3] == 0xd4 && (code[2] & 0xe0) == 0x20 && !(code[0] & 0x1f);
#else
	*bytes = 1;
	return left && code[0] == 0xcc;
#endif
}

/* The first byte that differs, from `at` on. */
static size_t first_other(const uint8_t *its, const uint8_t *files, size_t at, size_t bytes)
{
	size_t skip;

	while (at < bytes) {
		if (its[at] == files[at])
			at++;
		else if (is_breakpoint(its + at, bytes - at, &skip))
			at += skip;
		else
			break;
	}
	return at;
}

/*
 * A whole jump that ends before the probe, and nops up to the next instruction: whoever comes back
 * does so to an instruction. This is what recording inside puts there where the probe lies so far
 * behind the entry.
 */
static size_t behind_jump(const uint8_t *its, const uint8_t *files, size_t at, size_t probe)
{
	if (at + JUMP_BYTES > probe || its[at] != JUMP)
		return at;
	for (at += JUMP_BYTES; at < probe && its[at] != files[at] && its[at] == NOP; at++)
		;
	return at;
}

static bool is_patched(const struct patch_point *point, const uint8_t *its, const uint8_t *files)
{
	size_t bytes = point->bytes < PATCH_BYTES ? point->bytes : PATCH_BYTES;
	size_t other = first_other(its, files, 0, bytes);

	if (other < bytes)
		other = behind_jump(its, files, other, point->probe);
	return first_other(its, files, other, bytes) < bytes;
}

static bool has_jump(const struct patch_point *point, const uint8_t *its, const uint8_t *files)
{
	size_t bytes = point->bytes < PATCH_BYTES ? point->bytes : PATCH_BYTES;
	size_t other = first_other(its, files, 0, bytes);

	return other < bytes && behind_jump(its, files, other, point->probe) > other;
}

struct patched_counts {
	unsigned asked, read;
};

struct patched_user {
	uint64_t person;
	struct patched_counts counts; /* beside what is its processes' own */
	size_t mappings;              /* the same */
	UT_hash_handle hh;
};

struct patched_search {
	int fd;
	struct stat st;
	pid_t pid;                                               /* that is looked at */
	struct mapping mapping[MAPPINGS_MAX], all[MAPPINGS_MAX]; /* of the file; of its number */
	size_t n_mappings;
	struct patch_point *points;
	size_t n, *order; /* of the points in the file */
	bool (*wants)(void *data, pid_t pid);
	void *data;
	bool (*finds)(const struct patch_point *point, const uint8_t *its, const uint8_t *files);
	/* what is at hand of this process' code, and of the file's */
	uint64_t at, page; /* the second: how large one is */
	size_t have;
	uint8_t its[WINDOW], files[WINDOW];
	/* pages of the mapping, from one on: enum helper_page */
	uint8_t kinds[PAGES];
	uint64_t first_page, n_pages;
	struct patched_counts counts;      /* of this process */
	struct patched_user *users, *user; /* who has it; NULL: that has not mattered yet */
};

/* ---- how much of somebody ------------------------------------------------------------------- */

static struct patched_user *user_of(struct patched_search *search)
{
	uint64_t person;

	if (search->user)
		return search->user;
	person = helper_person_of(search->pid);
	search->user = MAP_FIND(search->users, &person);
	if (!search->user)
		search->user = MAP_ADD(search->users, person, &person);
	return search->user;
}

static bool take(const struct patched_limit *limit, unsigned *of_process, unsigned *of_user)
{
	if (*of_process >= limit->most || (of_user && *of_user >= limit->user))
		return false;
	++*of_process;
	if (of_user)
		++*of_user;
	return true;
}

static bool may_ask(struct patched_search *search)
{
	bool own = search->counts.asked < ask_limit.own;

	return take(&ask_limit, &search->counts.asked, own ? NULL : &user_of(search)->counts.asked);
}

static bool may_read(struct patched_search *search)
{
	bool own = search->counts.read < read_limit.own;

	return take(&read_limit, &search->counts.read, own ? NULL : &user_of(search)->counts.read);
}

/* ---- one process ---------------------------------------------------------------------------- */

/*
 * Devices differ in maps and stat for some file systems, and so do two overlays on one file, which
 * have its probes together.
 */
static bool is_of_file(const struct patched_search *search, const struct mapping *mapping)
{
	uint64_t differs = mapping->inode ^ (uint64_t)search->st.st_ino;
	struct stat st;
	bool same;
	int fd;

	if (mapping->dev == search->st.st_dev)
		return !differs;
	if (differs << 16) /* overlayfs puts the number of a layer above */
		return false;
	fd = mapping_open(search->pid, mapping, NULL);
	if (fd < 0)
		return true;
	same = !file_stat(fd, &st) && st.st_size == search->st.st_size &&
	       st.st_mtim.tv_sec == search->st.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == search->st.st_mtim.tv_nsec;
	helper_close(fd);
	return same;
}

static int note_mapping(const struct mapping *mapping, void *data)
{
	struct patched_search *search = data;

	if (!is_of_file(search, mapping))
		return 0;
	search->mapping[search->n_mappings++] = *mapping;
	return search->n_mappings == MAPPINGS_MAX;
}

static void note_mappings(struct patched_search *search, pid_t pid)
{
	int n = helper_code_of(pid, search->st.st_ino, search->all, MAPPINGS_MAX);

	search->pid = pid;
	search->n_mappings = 0;
	if (n == -ENOTTY)
		maps_each(pid, note_mapping, search, NULL);
	for (int i = 0; i < n; i++)
		note_mapping(&search->all[i], search);
}

/* Reads what is around a point; a window is never more than the mapping has. */
static bool read_window(struct patched_search *search, const struct mapping *mapping,
                        uint64_t offset, size_t bytes)
{
	uint64_t begin = offset & ~(search->page - 1), left;
	ssize_t n;

	if (search->have && offset >= search->at && offset + bytes <= search->at + search->have)
		return true;
	if (begin < mapping->offset)
		begin = mapping->offset;
	if (!may_read(search))
		return false;
	left = mapping->end - mapping->start - (begin - mapping->offset);
	search->at = begin;
	search->have = left < WINDOW ? left : WINDOW;
	n = helper_pread(search->fd, search->files, search->have, begin);
	search->have = n > 0 ? (size_t)n : 0;
	if (search->have && !helper_memory(search->pid, mapping->start + (begin - mapping->offset),
	                                   search->its, search->have))
		search->have = 0;
	return search->have >= offset - begin + bytes;
}

/* What the process has of these bytes of the mapping. */
static enum helper_page kind_of(struct patched_search *search, const struct mapping *mapping,
                                uint64_t from, uint64_t to)
{
	uint64_t n = (mapping->end - mapping->start) / search->page;
	enum helper_page kind = HELPER_PAGE_ALIKE;

	for (uint64_t page = from / search->page; page <= (to - 1) / search->page; page++) {
		if (page - search->first_page >= search->n_pages) {
			search->first_page = page;
			search->n_pages = n - page < PAGES ? n - page : PAGES;
			if (!may_ask(search) ||
			    !helper_private_pages(search->pid, mapping->start + page * search->page,
			                          search->kinds, search->n_pages))
				search->n_pages = 0;
		}
		if (!search->n_pages)
			break;
		if (search->kinds[page - search->first_page] > kind)
			kind = search->kinds[page - search->first_page];
	}
	return kind;
}

static bool is_found(struct patched_search *search, const struct mapping *mapping,
                     const struct patch_point *point, enum helper_page kind, size_t len)
{
	if (kind == HELPER_PAGE_GUARDED)
		return search->finds == is_patched;
	return kind == HELPER_PAGE_OWN && read_window(search, mapping, point->entry, len) &&
	       search->finds(point, search->its + (point->entry - search->at),
	                     search->files + (point->entry - search->at));
}

static void look_at_mapping(struct patched_search *search, const struct mapping *mapping)
{
	uint64_t bytes = mapping->end - mapping->start;

	search->have = 0;
	search->n_pages = 0;
	for (size_t i = 0; i < search->n; i++) {
		struct patch_point *point = &search->points[search->order[i]];
		size_t len = point->bytes < PATCH_BYTES ? point->bytes : PATCH_BYTES;
		uint64_t into = point->entry - mapping->offset;
		enum helper_page kind;

		if (point->pid || !len || point->entry < mapping->offset || into >= bytes ||
		    len > bytes - into)
			continue;
		kind = kind_of(search, mapping, into, into + len);
		if (!is_found(search, mapping, point, kind, len))
			continue;
		point->pid = search->pid;
		point->kind = kind == HELPER_PAGE_GUARDED ? PATCH_GUARD : PATCH_CODE;
	}
}

/*
 * One with so many mappings that only to go through them takes long is its user's, and after so
 * much of that no further one of his is looked at: what it has changed harms none but itself.
 */
static void note_its_mappings(struct patched_search *search, pid_t pid)
{
	uint64_t busy_ns = helper_busy_ns();

	if (look_time_was_over(LOOK_FOR_JUMPS) &&
	    look_time_is_over(LOOK_FOR_JUMPS, helper_person_of(pid))) {
		search->n_mappings = 0;
		return;
	}
	note_mappings(search, pid);
	busy_ns = helper_busy_ns() - busy_ns;
	if (busy_ns > FREE_NS)
		look_time_charge(LOOK_FOR_JUMPS, helper_person_of(pid), busy_ns);
}

/* Whether its user has so many mappings of the file by now that it is better not hooked. */
static bool is_crowd(struct patched_search *search)
{
	struct patched_user *user;

	if (search->n_mappings <= MAPPINGS_OWN || search->finds != is_patched)
		return false;
	user = user_of(search);
	user->mappings += search->n_mappings - MAPPINGS_OWN;
	return user->person != PERSON_ROOT &&
	       (search->n_mappings == MAPPINGS_MAX || user->mappings > MAPPINGS_MOST);
}

static void leave_all(struct patched_search *search)
{
	for (size_t i = 0; i < search->n; i++) {
		struct patch_point *point = &search->points[i];

		if (point->bytes && !point->pid) {
			point->pid = search->pid;
			point->kind = PATCH_CROWD;
		}
	}
}

static void look_at_process(struct patched_search *search, pid_t pid)
{
	search->counts = (struct patched_counts){ 0 };
	search->user = NULL;
	note_its_mappings(search, pid);
	if (search->n_mappings && search->wants && !search->wants(search->data, pid))
		return;
	if (is_crowd(search))
		leave_all(search);
	for (size_t i = 0; i < search->n_mappings; i++)
		look_at_mapping(search, &search->mapping[i]);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static int by_entry(const void *a, const void *b, void *data)
{
	const struct patch_point *points = data;
	uint64_t left = points[*(const size_t *)a].entry, right = points[*(const size_t *)b].entry;

	return left < right ? -1 : left > right;
}

/* One after the other, so that each part of a mapping is asked for once. */
static void sort_points(struct patched_search *search)
{
	search->order = xcalloc(search->n + 1, sizeof(*search->order));
	for (size_t i = 0; i < search->n; i++)
		search->order[i] = i;
	qsort_r(search->order, search->n, sizeof(*search->order), by_entry, search->points);
}

static void search_free(struct patched_search *search)
{
	MAP_FREE(search->users, free);
	free(search->order);
	free(search);
}

static struct patched_search *search_new(int fd, struct patch_point *points, size_t n)
{
	struct patched_search *search = xcalloc(1, sizeof(*search));

	search->fd = fd;
	search->page = (uint64_t)sysconf(_SC_PAGESIZE);
	search->points = points;
	search->n = n;
	search->finds = is_patched;
	for (size_t i = 0; i < n; i++) {
		points[i].pid = 0;
		points[i].kind = PATCH_CODE;
	}
	sort_points(search);
	return search;
}

void patched_jumps(int fd, struct patch_point *points, size_t n, pid_t pid)
{
	struct patched_search *search = search_new(fd, points, n);

	search->finds = has_jump;
	if (n && !file_stat(fd, &search->st))
		look_at_process(search, pid);
	search_free(search);
}

bool patched_find(int fd, struct patch_point *points, size_t n,
                  bool (*wants)(void *data, pid_t pid), void *data, uint64_t until_ns)
{
	struct patched_search *search = search_new(fd, points, n);
	AT_END(process_list_end) DIR *processes = process_list(0);
	bool late = false;
	pid_t pid;

	search->wants = wants;
	search->data = data;
	if (n && !file_stat(fd, &search->st)) {
		while (!late && (pid = process_next(processes))) {
			late = until_ns && clock_now_ns() >= until_ns;
			if (!late)
				look_at_process(search, pid);
		}
	}
	search_free(search);
	return !late;
}
