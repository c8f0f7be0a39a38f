// SPDX-License-Identifier: MIT
#include "unwind/code_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/later.h"
#include "base/map.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "probe/elf_image.h"
#include "probe/helper.h"
#include "unwind/code_marks.h"
#include "unwind/frame_rows.h"
#include "unwind/row_tree.h"

#define EACH_BYTES    ((size_t)96 << 20) /* of the files that one process was first to bring */
#define ALL_BYTES     ((size_t)256 << 20)
#define COMPILE_BYTES ((size_t)128 << 20) /* of memory while a file's rows are made */
#define VDSO_MAX      (64u << 10)
#define SEGMENTS_MAX  8 /* executable ones of a file */
#define FIRST_NUMBER  2 /* after UNWIND_FILE_NONE and UNWIND_FILE_BARE */
#define NO_RULE       0 /* number of the rule that says nothing */
#define NO_ROOM       UINT32_MAX
#define RULES_MOST    2048 /* of a file; large ones have up to 800 */
#define WAITING_MAX   128  /* tables that are made and not told yet; each is a descriptor */

struct table_key {
	uint64_t dev, inode; /* 0, 0: the vdso, which is the same in all processes */
	uint64_t bytes, changed_ns;
};

struct table_segment {
	uint64_t offset, address, bytes;
};

struct code_table {
	struct table_key key;
	size_t holders;
	uint32_t number;
	bool bare; /* it was read, and tells of no frame */
	struct code_facts facts;
	struct table_segment segment[SEGMENTS_MAX];
	size_t n_segments;
	uint64_t rows;
	size_t bytes;    /* in the kernel */
	uint64_t person; /* who brought it: that user's */
	uint32_t pid;    /* process */
	struct marked_place marked;
	UT_hash_handle hh;
};

struct known_rule {
	struct wire_rule rule;
	uint32_t number;
	UT_hash_handle hh;
};

/* Tables that the programs do not have yet. */
struct waiting_tables {
	uint32_t number[WAITING_MAX];
	int map[WAITING_MAX];
	uint32_t n;
};

struct code_tables {
	int files_map, rules_map;
	struct waiting_tables waiting;
	struct code_marks marks;
	struct code_table *files;
	struct known_rule *rules;
	bool number_taken[UNWIND_FILES_MAX];
	struct quota of_bytes, of_files, of_rules;
	struct code_figures figures;
};

/* Three quarters of what there is are one user's, but root's. */
static struct quota share_of(size_t all)
{
	return (struct quota){ .user = { .most = all / 4 * 3 }, .all = { .most = all } };
}

struct code_tables *code_tables_new(int files_map, int rules_map, code_tables_marked marked,
                                    void *data)
{
	struct code_tables *tables = xcalloc(1, sizeof(*tables));

	tables->files_map = files_map;
	tables->rules_map = rules_map;
	code_marks_init(&tables->marks, marked, data);
	tables->of_files = share_of(UNWIND_FILES_MAX - FIRST_NUMBER);
	code_tables_limit(tables, EACH_BYTES, ALL_BYTES, UNWIND_RULES_MAX - 1);
	return tables;
}

void code_tables_limit(struct code_tables *tables, size_t process_bytes, size_t bytes, size_t rules)
{
	if (bytes)
		tables->of_bytes = share_of(bytes);
	if (process_bytes)
		tables->of_bytes.process.most = process_bytes;
	if (rules)
		tables->of_rules = share_of(rules);
}

/* Where the kernel takes no batches (before 5.17), or one of them has no room. */
static void tell_each(struct code_tables *tables)
{
	const struct waiting_tables *waiting = &tables->waiting;

	for (uint32_t i = 0; i < waiting->n; i++) {
		if (bpf_map_update_elem(tables->files_map, &waiting->number[i], &waiting->map[i],
		                        BPF_ANY))
			tables->figures.without_room++;
	}
}

void code_tables_tell(struct code_tables *tables)
{
	struct waiting_tables *waiting = &tables->waiting;
	uint64_t begin_ns = clock_now_ns();
	uint32_t count = waiting->n;

	if (!count)
		return;
	if (count == 1 ||
	    bpf_map_update_batch(tables->files_map, waiting->number, waiting->map, &count, NULL))
		tell_each(tables);
	for (uint32_t i = 0; i < waiting->n; i++)
		close(waiting->map[i]); /* the map of maps keeps it */
	waiting->n = 0;
	tables->figures.ns += clock_now_ns() - begin_ns;
}

static bool take_room(struct code_tables *tables, const struct code_table *table, size_t bytes)
{
	if (quota_take(&tables->of_bytes, table->person, table->pid, bytes))
		return false;
	if (!quota_take(&tables->of_files, table->person, 0, 1))
		return true;
	quota_give(&tables->of_bytes, table->person, table->pid, bytes);
	return false;
}

static void give_room(struct code_tables *tables, const struct code_table *table, size_t bytes)
{
	quota_give(&tables->of_bytes, table->person, table->pid, bytes);
	quota_give(&tables->of_files, table->person, 0, 1);
}

void code_tables_unmark(struct code_tables *tables)
{
	int probes[CODE_MARKS_PROBES];
	size_t n = 0;

	for (struct code_table *table = tables->files; table && n < CODE_MARKS_PROBES;
	     table = table->hh.next) {
		if (table->marked.probe >= 0)
			probes[n++] = table->marked.probe;
		code_mark_closed(&tables->marks, &table->marked);
		table->marked.at = 0;
	}
	if (end_is_near())
		close_at_leisure(probes, n);
	else if (n)
		close_together(probes, n);
}

static void free_table(struct code_tables *tables, struct code_table *table)
{
	HASH_DEL(tables->files, table);
	if (table->marked.probe >= 0)
		close_later(table->marked.probe);
	code_mark_closed(&tables->marks, &table->marked);
	if (table->number) {
		tables->number_taken[table->number] = false;
		give_room(tables, table, table->bytes);
		tables->figures.files--;
		tables->figures.rows -= table->rows;
		tables->figures.bytes -= table->bytes;
	}
	free(table);
}

/* Out of the kernel: those that are in it. It waits as telling does, so it is one change. */
static void take_back(struct code_tables *tables, uint32_t *numbers, uint32_t n)
{
	uint32_t count = n;

	if (!n)
		return;
	code_tables_tell(tables); /* they may be among those that wait */
	if (n > 1 && !bpf_map_delete_batch(tables->files_map, numbers, &count, NULL))
		return;
	for (uint32_t i = 0; i < n; i++)
		bpf_map_delete_elem(tables->files_map, &numbers[i]);
}

static void take_back_all(struct code_tables *tables)
{
	uint32_t *numbers = xmalloc((HASH_COUNT(tables->files) + 1) * sizeof(*numbers)), n = 0;

	for (struct code_table *table = tables->files; table; table = table->hh.next) {
		if (table->number)
			numbers[n++] = table->number;
	}
	take_back(tables, numbers, n);
	free(numbers);
}

void code_tables_free(struct code_tables *tables)
{
	struct code_table *table, *next_table;

	if (!tables)
		return;
	code_tables_unmark(tables);
	take_back_all(tables);
	HASH_ITER (hh, tables->files, table, next_table)
		free_table(tables, table);
	MAP_FREE(tables->rules, free);
	quota_free(&tables->of_bytes);
	quota_free(&tables->of_files);
	quota_free(&tables->of_rules);
	quota_free(&tables->marks.shares);
	free(tables);
}

/* ---- rules, each once for all files ---------------------------------------------------------- */

/* NO_ROOM where the programs have no place for more. */
static uint32_t rule_number(struct code_tables *tables, uint64_t person,
                            const struct wire_rule *rule)
{
	struct known_rule *known;

	if (rule->cfa_kind == CFA_NONE)
		return NO_RULE;
	known = MAP_FIND(tables->rules, rule);
	if (known)
		return known->number;
	if (quota_take(&tables->of_rules, person, 0, 1))
		return NO_ROOM;
	known = xcalloc(1, sizeof(*known));
	known->rule = *rule;
	known->number = HASH_COUNT(tables->rules) + 1;
	HASH_ADD(hh, tables->rules, rule, sizeof(known->rule), known);
	bpf_map_update_elem(tables->rules_map, &known->number, rule, BPF_ANY);
	return known->number;
}

/*
 * The rows' own numbers of rules to those of all files; the caller frees it. NULL: there are too
 * many. A file with some of its rules only would lead walks astray, and one with rules without end
 * would take the room of all others, since rules are kept to the end.
 */
static uint32_t *rule_numbers(struct code_tables *tables, uint64_t person,
                              const struct frame_rows *rows)
{
	uint32_t *numbers;

	if (rows->n_rules > RULES_MOST)
		return NULL;
	numbers = xmalloc((rows->n_rules + 1) * sizeof(*numbers));
	for (uint32_t i = 0; i < rows->n_rules; i++) {
		numbers[i] = rule_number(tables, person, &rows->rules[i]);
		if (numbers[i] == NO_ROOM) {
			free(numbers);
			return NULL;
		}
	}
	return numbers;
}

/* ---- a file's table in the kernel ------------------------------------------------------------ */

static uint32_t free_number(const struct code_tables *tables)
{
	for (uint32_t i = FIRST_NUMBER; i < UNWIND_FILES_MAX; i++)
		if (!tables->number_taken[i])
			return i;
	return 0;
}

/* A map that holds the rows; a negative errno. */
static int make_map(const struct frame_rows *rows, uint32_t nodes, const uint32_t *numbers)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t bytes = (nodes * sizeof(struct wire_node) + page - 1) & ~(page - 1);
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_table", sizeof(uint32_t),
	                         sizeof(struct wire_node), nodes, &options);
	void *memory;

	if (map < 0)
		return -errno;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	if (memory == MAP_FAILED) {
		int r = -errno;

		close(map);
		return r;
	}
	row_tree_fill(memory, rows->rows, rows->n_rows, numbers);
	munmap(memory, bytes);
	return map;
}

static void store(struct code_tables *tables, struct code_table *table,
                  const struct frame_rows *rows)
{
	uint32_t nodes = row_tree_nodes(rows->rows, rows->n_rows), number = free_number(tables),
		 *numbers;
	size_t bytes = nodes * sizeof(struct wire_node);
	int map;

	if (!number || !nodes || !take_room(tables, table, bytes)) {
		tables->figures.without_room++;
		return;
	}
	numbers = rule_numbers(tables, table->person, rows);
	map = numbers ? make_map(rows, nodes, numbers) : -ENOSPC;
	free(numbers);
	if (map < 0) {
		give_room(tables, table, bytes);
		tables->figures.without_room++;
		return;
	}
	if (tables->waiting.n == WAITING_MAX)
		code_tables_tell(tables);
	tables->waiting.number[tables->waiting.n] = number;
	tables->waiting.map[tables->waiting.n++] = map;
	tables->number_taken[number] = true;
	table->number = number;
	table->rows = rows->n_rows;
	table->bytes = bytes;
	tables->figures.files++;
	tables->figures.rows += rows->n_rows;
	tables->figures.bytes += bytes;
	tables->figures.tables_ever++;
	if (tables->figures.bytes > tables->figures.bytes_most)
		tables->figures.bytes_most = tables->figures.bytes;
}

/* ---- reading a file -------------------------------------------------------------------------- */

static void note_segments(struct code_table *table, const struct elf_image *image)
{
	for (size_t i = 0; i < image->n_segments && table->n_segments < SEGMENTS_MAX; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
			table->segment[table->n_segments++] =
				(struct table_segment){ segment->p_offset, segment->p_vaddr,
				                        segment->p_filesz };
	}
}

static void read_file(struct code_tables *tables, struct code_table *table, int fd,
                      const char *path)
{
	struct frame_rows rows;
	struct elf_image image;

	if (elf_image_open(&image, fd, "the file", NULL))
		return;
	note_segments(table, &image);
	code_facts_find(&table->facts, &image);
	code_mark_find(&tables->marks, &table->marked, &image, path);
	elf_image_close(&image);
	if (frame_rows_read(fd, "the file", COMPILE_BYTES, &rows, NULL)) {
		tables->figures.unreadable++;
		return;
	}
	table->facts.base = rows.base;
	table->bare = rows.n_rows == 1 && !rows.counts.cut;
	if (rows.n_rows > 1)
		store(tables, table, &rows);
	frame_rows_free(&rows);
}

/* ---- holding --------------------------------------------------------------------------------- */

/*
 * The vdso is no file. It is read from our own memory, as it is the same in all processes: one that
 * has written over its own has done so for itself alone.
 */
static int open_vdso(const struct mapping *mapping)
{
	size_t bytes = mapping->end - mapping->start;
	int fd = -EINVAL;
	void *content;

	if (bytes > VDSO_MAX)
		return -EFBIG;
	content = xmalloc(bytes);
	if (helper_memory(getpid(), getauxval(AT_SYSINFO_EHDR), content, bytes)) {
		fd = memfd_create("vdso", MFD_CLOEXEC);
		if (fd >= 0 && write(fd, content, bytes) != (ssize_t)bytes) {
			close(fd);
			fd = -EIO;
		}
	}
	free(content);
	return fd;
}

/* A file that was written anew is another one, though its number is the same. */
static bool find_key(const struct mapping *mapping, int fd, struct table_key *key)
{
	struct stat st;

	*key = (struct table_key){ .dev = mapping->dev, .inode = mapping->inode };
	if (!mapping->inode)
		return true;
	if (file_stat(fd, &st) < 0)
		return false;
	key->bytes = (uint64_t)st.st_size;
	key->changed_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec;
	return true;
}

static struct code_table *find_or_read(struct code_tables *tables, pid_t pid, uint64_t person,
                                       int fd, const struct table_key *key, const char *path,
                                       bool may_read)
{
	uint64_t begin_ns = clock_now_ns();
	struct code_table *table = MAP_FIND(tables->files, key);

	if (table || !may_read)
		return table;
	table = MAP_ADD(tables->files, key, key);
	table->pid = (uint32_t)pid;
	table->person = person;
	table->marked.probe = -1;
	read_file(tables, table, fd, path);
	tables->figures.ns += clock_now_ns() - begin_ns;
	return table;
}

struct code_table *code_tables_hold(struct code_tables *tables, pid_t pid, uint64_t person,
                                    const struct mapping *mapping, bool may_read)
{
	bool vdso = !mapping->inode && !strcmp(mapping->path, "[vdso]");
	struct code_table *table = NULL;
	struct table_key key;
	int fd;

	if (!mapping->inode && !vdso)
		return NULL;
	fd = vdso ? open_vdso(mapping) : mapping_open(pid, mapping, NULL);
	if (fd < 0)
		return NULL;
	if (find_key(mapping, fd, &key))
		table = find_or_read(tables, pid, person, fd, &key, mapping->path, may_read);
	if (table)
		code_mark_probe(&tables->marks, &table->marked, pid, person, fd);
	helper_close(fd);
	if (table)
		table->holders++;
	return table;
}

void code_tables_drop(struct code_tables *tables, struct code_table **dropped, size_t n)
{
	uint32_t *numbers = xmalloc((n + 1) * sizeof(*numbers)), leaving = 0;
	size_t n_over = 0;

	for (size_t i = 0; i < n; i++) {
		if (--dropped[i]->holders) /* one that was held twice stands there twice */
			continue;
		if (dropped[i]->number)
			numbers[leaving++] = dropped[i]->number;
		dropped[n_over++] = dropped[i];
	}
	take_back(tables, numbers, leaving);
	for (size_t i = 0; i < n_over; i++)
		free_table(tables, dropped[i]);
	free(numbers);
}

/* ---- asking ---------------------------------------------------------------------------------- */

uint32_t code_table_number(const struct code_table *table)
{
	return table->bare ? UNWIND_FILE_BARE : table->number;
}

uint64_t code_table_bias(const struct code_table *table, const struct mapping *mapping)
{
	for (size_t i = 0; i < table->n_segments; i++) {
		const struct table_segment *s = &table->segment[i];
		uint64_t begin = s->offset & ~0xfffull;

		if (mapping->offset >= begin && mapping->offset < s->offset + s->bytes)
			return mapping->start - mapping->offset + s->offset - s->address +
			       table->facts.base;
	}
	return mapping->start - mapping->offset;
}

const struct code_facts *code_table_facts(const struct code_table *table)
{
	return &table->facts;
}

void code_tables_figures(const struct code_tables *tables, struct code_figures *figures)
{
	*figures = tables->figures;
	figures->without_probe = tables->marks.refused;
}
