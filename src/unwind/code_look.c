// SPDX-License-Identifier: MIT
#include "unwind/code_look.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/order.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/account.h"

#define FILES_NS         1000000000ull /* for new files in one look: others wait, too */
#define LIST_NS          500000000ull /* of a processor, for a list of mappings of a user but root, */
#define LIST_DEAR_NS     50000000ull /* who has had his time; 3,000 of them take 15 ms */
#define FIRST_KEPT       64          /* mappings of files, where there are too many */
#define SEEN_MAX         262144      /* executable mappings: a kernel lets a process have 65,530 */
#define FREE_THREADED_AT 16 /* in _Py_DebugOffsets, from 3.13 on, after its cookie and version */

/* "python3.10", "libpython3.10.so.1.0": for those that do not say themselves. */
static uint32_t version_of_name(const char *path)
{
	const char *name = strrchr(path, '/'), *at = strstr(name ? name : path, "python3.");
	unsigned minor;

	return at && sscanf(at, "python3.%u", &minor) == 1 && minor < 256
	               ? 0x03000000u | minor << 16
	               : 0;
}

static void note_facts(struct code_look *look, const struct code_table *table,
                       const struct mapping *mapping)
{
	const struct code_facts *facts = code_table_facts(table);

	if (facts->python_runtime &&
	    !look->runtime) { /* a program's own comes before a library's */
		look->runtime =
			code_table_bias(table, mapping) + facts->python_runtime - facts->base;
		look->version = facts->python_version ? facts->python_version
		                                      : version_of_name(mapping->path);
	}
	if (facts->specific_offset)
		look->specific = facts->specific_offset;
}

ORDER_BY(by_begin, struct looked_at, UP(start));

/* Small files first: libc is in every stack, and a library of 500 MB takes most of the time. */
ORDER_BY(by_size, struct looked_at, ORDER_OF(a->end - a->start, b->end - b->start));

/* Whether stacks can be walked through it by a table. */
static bool may_have_table(const struct mapping *mapping)
{
	return mapping->inode || !strcmp(mapping->path, "[vdso]");
}

/* The highest that has no table; NULL: there is none. */
static struct looked_at *without_table(struct code_look *look)
{
	for (size_t i = look->n; look->n_without && i > 0; i--)
		if (!may_have_table(&look->at[i - 1].mapping))
			return &look->at[i - 1];
	return NULL;
}

/*
 * Where another mapping goes, for which there is no room: files come before memory of no file. Of
 * files the first, which are the program's own, and the last are kept: libraries are mapped from
 * above, and libc and what else each stack goes through is the first of them. NULL: nowhere.
 */
static struct looked_at *make_room(struct code_look *look, const struct mapping *mapping)
{
	struct looked_at *at = NULL;

	look->cut = true;
	if (may_have_table(mapping))
		at = without_table(look);
	if (at)
		look->n_without--;
	else if (may_have_table(mapping))
		at = &look->at[FIRST_KEPT + look->turn++ % (UNWIND_MAPPINGS_MAX - FIRST_KEPT)];
	if (at)
		free(at->path);
	return at;
}

static int take_mapping(const struct mapping *mapping, void *data)
{
	struct code_look *look = data;
	struct looked_at *at;

	if (!strcmp(mapping->path, "[uprobes]") || !strcmp(mapping->path, "[vsyscall]"))
		return 0;
	if (look->seen++ == SEEN_MAX)
		return 1;
	at = look->n < UNWIND_MAPPINGS_MAX ? &look->at[look->n++] : make_room(look, mapping);
	if (!at)
		return 0;
	look->n_without += !may_have_table(mapping);
	*at = (struct looked_at){ .start = mapping->start,
		                  .end = mapping->end,
		                  .mapping = *mapping,
		                  .path = xstrdup(mapping->path) };
	at->mapping.path = at->path;
	return 0;
}

static void read_file(struct code_look *look, struct looked_at *at)
{
	bool late = look->dear || clock_now_ns() > look->until_ns ||
	            __atomic_load_n(look->ends, __ATOMIC_RELAXED);

	at->table = code_tables_hold(look->all, look->pid, look->person, &at->mapping, !late);
	look->late |= late && !at->table && at->mapping.inode;
	if (at->table)
		look->tables[look->n_tables++] = at->table;
}

static void place(struct code_look *look, const struct looked_at *at)
{
	struct wire_code *code = &look->code;
	struct wire_mapping *mapping = &code->mapping[code->count];

	code->begin[code->count++] = at->start;
	mapping->end = at->end;
	mapping->file = at->mapping.inode ? UNWIND_FILE_NONE : UNWIND_FILE_BARE;
	if (!at->table)
		return;
	mapping->file = code_table_number(at->table);
	mapping->bias = code_table_bias(at->table, &at->mapping);
	note_facts(look, at->table, &at->mapping);
}

static void read_files(struct code_look *look)
{
	qsort(look->at, look->n, sizeof(*look->at), by_size);
	look->tables = xmalloc((look->n + 1) * sizeof(*look->tables));
	for (size_t i = 0; i < look->n; i++)
		read_file(look, &look->at[i]);
	qsort(look->at, look->n, sizeof(*look->at), by_begin);
	for (size_t i = 0; i < look->n; i++)
		place(look, &look->at[i]);
}

/* A number of what is mapped: a new generation has all stacks sent again, so it is for news only.
 */
static uint64_t sum_up(const struct wire_code *code)
{
	uint64_t sum = code->count;

	for (uint32_t i = 0; i < code->count; i++) {
		const struct wire_mapping *m = &code->mapping[i];

		sum = (sum ^ code->begin[i] ^ m->end << 8) * 0xff51afd7ed558ccdull;
		sum = (sum ^ sum >> 32 ^ m->bias ^ (uint64_t)m->file << 40) * 0xc4ceb9fe1a85ec53ull;
	}
	return sum | 1; /* 0: nothing was told */
}

/* False: there is none. One that takes too long, or is too long, is cut. */
static bool list_mappings(struct code_look *look)
{
	uint64_t most_ns = look->dear ? LIST_DEAR_NS : LIST_NS;
	int rc = maps_each_code_within(look->pid, look->person == QUOTA_ROOT ? 0 : most_ns,
	                               take_mapping, look, NULL);

	look->cut |= rc == -ETIME || rc == -E2BIG;
	return (rc >= 0 || rc == -ETIME || rc == -E2BIG) && look->n;
}

struct code_look *code_look_at(struct code_tables *tables, pid_t pid, uint64_t person,
                               const bool *ends)
{
	struct code_look *look = xcalloc(1, sizeof(*look));
	uint64_t busy_ns = helper_busy_ns();
	bool failed;

	look->all = tables;
	look->pid = pid;
	look->person = person;
	look->ends = ends;
	look->dear = look_time_is_over(LOOK_AT_TABLES, person);
	look->until_ns = clock_now_ns() + FILES_NS;
	failed = !list_mappings(look);
	if (!failed) {
		read_files(look);
		code_tables_tell(tables);
	}
	look_time_charge(LOOK_AT_TABLES, person, helper_busy_ns() - busy_ns);
	for (size_t i = 0; i < look->n; i++)
		free(look->at[i].path);
	if (failed) {
		free(look);
		return NULL;
	}
	look->sum = sum_up(&look->code);
	return look;
}

enum python_found code_look_python(const struct code_look *look, const struct python_layout *layout,
                                   struct wire_python *python)
{
	uint64_t free_threaded = 0;
	uint32_t key[2];

	if (!look->specific ||
	    !helper_memory(look->pid, look->runtime + layout->key - 4, key, sizeof(key)) ||
	    (key[0] && key[0] != PYTHON_KEY_MADE))
		return PYTHON_NONE;
	if (layout->minor >= 13 && (!helper_memory(look->pid, look->runtime + FREE_THREADED_AT,
	                                           &free_threaded, sizeof(free_threaded)) ||
	                            free_threaded))
		return PYTHON_NONE;
	*python = layout->frame;
	python->key_address = look->runtime + layout->key;
	python->specific = look->specific;
	return key[0] ? PYTHON_BEGUN : PYTHON_NOT_BEGUN;
}
