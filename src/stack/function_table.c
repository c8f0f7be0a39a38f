// SPDX-License-Identifier: MIT
#include "stack/function_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/elf_image.h"

#define SIZE_MOST   0x3fffffffu
#define NAME_BYTES  16384 /* names of CUTLASS templates exceed 8 KiB */
#define NOTES_BYTES 65536

/* Assembly code leaves st_size 0. How far such a function may reach is a guess. */
#define SIZELESS_REACH 4096

/* How many functions that begin later may lie inside of the one looked for. */
#define NESTED_MAX 32

struct function_table_entry {
	uint64_t start;     /* as linked */
	uint32_t size : 30; /* 0: not known */
	uint32_t local : 1;
	uint32_t dynamic : 1;
	uint32_t name; /* offset in the strings of its table */
};

struct function_table {
	struct elf_image image, debug; /* debug.fd -1 where there is none */
	struct elf_symbols statics, dynamic;
	struct function_table_entry *entries;
	char **names; /* of those that were asked for, by index */
	size_t count, names_bytes;
	uint8_t id[BUILD_ID_MAX];
	size_t id_len;
};

/* ---- the build id -------------------------------------------------------------------------- */

/* Finds NT_GNU_BUILD_ID in notes; its length is 0 where there is none. */
static struct elf_note id_in_notes(const char *notes, size_t len)
{
	struct elf_note note;

	while (elf_note_next(&notes, &len, &note))
		if (note.type == NT_GNU_BUILD_ID && elf_note_is_of(&note, "GNU"))
			return note;
	return (struct elf_note){ 0 };
}

static void read_build_id(struct function_table *table)
{
	const struct elf_image *image = &table->image;
	AT_END(at_end_free) char *notes = xmalloc(NOTES_BYTES);
	struct elf_note id;

	for (size_t i = 0; i < image->n_segments && !table->id_len; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		size_t len = segment->p_filesz < NOTES_BYTES ? segment->p_filesz : NOTES_BYTES;

		if (segment->p_type != PT_NOTE ||
		    !elf_image_read(image, segment->p_offset, notes, len))
			continue;
		id = id_in_notes(notes, len);
		if (!id.bytes || id.bytes > BUILD_ID_MAX)
			continue;
		memcpy(table->id, id.content, id.bytes);
		table->id_len = id.bytes;
	}
}

/* ---- reading ------------------------------------------------------------------------------- */

struct filling {
	struct function_table *table;
	bool dynamic;
};

static int add_entry(const Elf64_Sym *symbol, void *data)
{
	struct filling *filling = data;
	struct function_table *table = filling->table;
	struct function_table_entry *entry;

	if (table->count == FUNCTION_TABLE_MAX)
		return 1;
	table->entries = vec_room(table->entries, table->count, sizeof(*entry));
	entry = &table->entries[table->count++];
	entry->start = symbol->st_value;
	entry->size = symbol->st_size < SIZE_MOST ? symbol->st_size : SIZE_MOST;
	entry->local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;
	entry->dynamic = filling->dynamic;
	entry->name = symbol->st_name;
	return 0;
}

/* Of aliases, the one with a size, then the one that other files can name: people know it. */
ORDER_BY(compare_entries, struct function_table_entry, ORDER_OF(!a->size, !b->size), UP(local),
         DOWN(dynamic), UP(name));

#define DIGIT_BITS 11

/* One digit of where they start, from the one array into the other; those alike keep their order.
 */
static void sort_by_digit(const struct function_table_entry *from, struct function_table_entry *to,
                          size_t n, uint64_t least, unsigned shift)
{
	size_t places[1 << DIGIT_BITS] = { 0 }, place = 0, here;

	for (size_t i = 0; i < n; i++)
		places[(from[i].start - least) >> shift & ((1 << DIGIT_BITS) - 1)]++;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		here = places[i];
		places[i] = place;
		place += here;
	}
	for (size_t i = 0; i < n; i++)
		to[places[(from[i].start - least) >> shift & ((1 << DIGIT_BITS) - 1)]++] = from[i];
}

/* By where they start alone, digit by digit: the capture stands still for two million of them. */
static void sort_by_start(struct function_table *table)
{
	struct function_table_entry *from = table->entries, *to, *sorted;
	uint64_t least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < table->count; i++) {
		least = from[i].start < least ? from[i].start : least;
		most = from[i].start > most ? from[i].start : most;
	}
	to = xmalloc((table->count + 1) * sizeof(*to));
	for (unsigned shift = 0; shift < 64 && most > least && (most - least) >> shift;
	     shift += DIGIT_BITS) {
		sort_by_digit(from, to, table->count, least, shift);
		sorted = to;
		to = from;
		from = sorted;
	}
	table->entries = from;
	free(to);
}

/* In order of their begins, of each begin the entry that comes first. */
static void sort_entries(struct function_table *table)
{
	size_t kept = 0;

	sort_by_start(table);
	for (size_t i = 0; i < table->count; i++) {
		struct function_table_entry *last = kept ? &table->entries[kept - 1] : NULL;

		if (!last || last->start != table->entries[i].start)
			table->entries[kept++] = table->entries[i];
		else if (compare_entries(&table->entries[i], last) < 0)
			*last = table->entries[i];
	}
	table->count = kept;
	table->entries = xrealloc(table->entries, (kept ? kept : 1) * sizeof(*table->entries));
	table->names = xcalloc(kept ? kept : 1, sizeof(*table->names));
}

/* Where .symtab is: in the file itself or in its debug file. */
static const struct elf_image *static_image(const struct function_table *table)
{
	return table->debug.fd >= 0 ? &table->debug : &table->image;
}

/* .symtab of the file itself, or of its debug file, which keeps the addresses of the first. */
static bool find_statics(struct function_table *table, const char *what,
                         int (*find_debug)(const uint8_t *id, size_t len))
{
	int fd;

	if (elf_symbols_static(&table->image, &table->statics) == 0)
		return true;
	fd = find_debug && table->id_len ? find_debug(table->id, table->id_len) : -1;
	if (fd < 0)
		return false;
	if (elf_image_open(&table->debug, fd, what, NULL))
		table->debug.fd = -1;
	close(fd);
	return table->debug.fd >= 0 && elf_symbols_static(&table->debug, &table->statics) == 0;
}

int function_table_open(int fd, const char *what, int (*find_debug)(const uint8_t *id, size_t len),
                        struct function_table **out, struct err *err)
{
	struct function_table *table = xcalloc(1, sizeof(*table));
	struct filling filling = { table, false };
	int rc;

	*out = NULL;
	table->debug.fd = -1;
	rc = elf_image_open(&table->image, fd, what, err);
	if (rc) {
		free(table);
		return rc;
	}
	read_build_id(table);
	/* A damaged table gives the names before the damage: they are as right as any. */
	if (find_statics(table, what, find_debug))
		elf_symbols_each(static_image(table), &table->statics, add_entry, &filling);
	filling.dynamic = true;
	if (elf_symbols_dynamic(&table->image, &table->dynamic) == 0)
		elf_symbols_each(&table->image, &table->dynamic, add_entry, &filling);
	sort_entries(table);
	*out = table;
	return 0;
}

void function_table_free(struct function_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->count; i++)
		free(table->names[i]);
	free(table->names);
	free(table->entries);
	elf_image_close(&table->image);
	if (table->debug.fd >= 0)
		elf_image_close(&table->debug);
	free(table);
}

/* ---- looking up ------------------------------------------------------------------------------ */

/*
 * The linked address of a file offset. Segments share pages where one ends and the next begins;
 * code is in an executable one.
 */
static bool address_of(const struct elf_image *image, uint64_t offset, uint64_t *address)
{
	for (int executable = 1; executable >= 0; executable--) {
		for (size_t i = 0; i < image->n_segments; i++) {
			const Elf64_Phdr *segment = &image->segments[i];

			if (segment->p_type == PT_LOAD &&
			    !(segment->p_flags & PF_X) == !executable &&
			    offset >= segment->p_offset &&
			    offset - segment->p_offset < segment->p_filesz) {
				*address = offset - segment->p_offset + segment->p_vaddr;
				return true;
			}
		}
	}
	return false;
}

/* Entries that begin at `address` or before. */
static size_t entries_until(const struct function_table *table, uint64_t address)
{
	return ARRAY_BEFORE(table->count, i, table->entries[i].start <= address);
}

/* The index of the entry that covers `address`, or the number of entries. */
static size_t covering(const struct function_table *table, uint64_t address)
{
	size_t after = entries_until(table, address);

	for (size_t back = 1; back <= NESTED_MAX && back <= after; back++) {
		const struct function_table_entry *entry = &table->entries[after - back];
		uint64_t into = address - entry->start;

		if (entry->size ? into < entry->size : back == 1 && into < SIZELESS_REACH)
			return after - back;
	}
	return table->count;
}

/* NULL where the strings do not hold one. The caller frees. */
static char *read_name(const struct function_table *table, const struct function_table_entry *entry)
{
	const struct elf_image *image = entry->dynamic ? &table->image : static_image(table);
	const struct elf_symbols *symbols = entry->dynamic ? &table->dynamic : &table->statics;
	char name[NAME_BYTES];
	size_t have = 0, len = 0;

	/* Most names are short, and a read of 16 KiB takes longer than all the rest. */
	for (size_t step = 256; have < NAME_BYTES && len == have; step = NAME_BYTES - have) {
		uint64_t at = (uint64_t)entry->name + have;

		if (at >= symbols->strings_bytes)
			return NULL;
		if (step > symbols->strings_bytes - at)
			step = symbols->strings_bytes - at;
		if (!elf_image_read(image, symbols->strings + at, name + have, step))
			return NULL;
		have += step;
		len = strnlen(name, have);
	}
	if (len == have)
		return NULL;
	len = strcspn(name, "@");
	return len ? xstrndup(name, len) : NULL;
}

int function_table_find(struct function_table *table, uint64_t offset, struct function_found *found)
{
	uint64_t address;
	size_t index;

	if (!address_of(&table->image, offset, &address))
		return -ENOENT;
	index = covering(table, address);
	if (index == table->count)
		return -ENOENT;
	if (!table->names[index]) {
		table->names[index] = read_name(table, &table->entries[index]);
		if (table->names[index])
			table->names_bytes += strlen(table->names[index]) + 1;
	}
	found->index = index;
	found->name = table->names[index];
	found->into_bytes = address - table->entries[index].start;
	return found->name ? 0 : -ENOENT;
}

size_t function_table_forget_names(struct function_table *table)
{
	size_t bytes = table->names_bytes;

	for (size_t i = 0; i < table->count; i++) {
		free(table->names[i]);
		table->names[i] = NULL;
	}
	table->names_bytes = 0;
	return bytes;
}

size_t function_table_names_bytes(const struct function_table *table)
{
	return table->names_bytes;
}

size_t function_table_build_id(const struct function_table *table, uint8_t id[BUILD_ID_MAX])
{
	memcpy(id, table->id, table->id_len);
	return table->id_len;
}

size_t function_table_count(const struct function_table *table)
{
	return table->count;
}

size_t function_table_bytes(const struct function_table *table)
{
	return table->count * (sizeof(*table->entries) + sizeof(*table->names)) +
	       table->names_bytes + sizeof(*table);
}

#define SYMBOLS_MAX  (2u << 20)
#define TEXT_MAX     ((size_t)128 << 20)
#define NO_MODULE    UINT32_MAX
#define FUNCTION_MAX (1u << 20) /* bytes; farther from its begin an address is of no function */

struct kernel_symbol {
	uint64_t address;
	uint32_t name, module; /* where they stand in the text */
};

struct kernel_symbols {
	struct kernel_symbol *symbols;
	size_t count;
	struct buf text;
	uint32_t last_module; /* its lines stand together */
};

static uint32_t keep(struct kernel_symbols *s, const char *text)
{
	uint32_t at = (uint32_t)s->text.len;

	buf_add(&s->text, text, strlen(text) + 1);
	return at;
}

/* "[nvidia]" without its brackets; the same as of the line before, as a rule. */
static uint32_t keep_module(struct kernel_symbols *s, char *name)
{
	char *end = strchr(name, ']');

	if (name[0] != '[' || !end)
		return NO_MODULE;
	*end = '\0';
	if (s->last_module == NO_MODULE || strcmp(s->text.data + s->last_module, name + 1) != 0)
		s->last_module = keep(s, name + 1);
	return s->last_module;
}

/* "ffffffff81000000 T _text" or "ffffffffc0a4e000 t nv_open [nvidia]" */
static void take_line(struct kernel_symbols *s, const char *line)
{
	char type, name[512], module[128] = "";
	struct kernel_symbol *symbol;
	uint64_t address;

	if (sscanf(line, "%" SCNx64 " %c %511s %127s", &address, &type, name, module) < 3)
		return;
	if (!address || !strchr("tTwW", type) || s->count == SYMBOLS_MAX || s->text.len > TEXT_MAX)
		return;
	s->symbols = vec_room(s->symbols, s->count, sizeof(*s->symbols));
	symbol = &s->symbols[s->count++];
	symbol->address = address;
	symbol->module = keep_module(s, module);
	symbol->name = keep(s, name);
}

ORDER_BY(compare, struct kernel_symbol, UP(address));

struct kernel_symbols *kernel_symbols_read(FILE *from)
{
	struct kernel_symbols *s = xcalloc(1, sizeof(*s));
	char line[1024];

	s->last_module = NO_MODULE;
	while (fgets(line, sizeof(line), from))
		take_line(s, line);
	if (s->count)
		qsort(s->symbols, s->count, sizeof(*s->symbols), compare);
	return s;
}

struct kernel_symbols *kernel_symbols_of_this_kernel(void)
{
	AT_END(at_end_fclose) FILE *file = fopen("/proc/kallsyms", "re");

	if (!file)
		return xcalloc(1, sizeof(struct kernel_symbols));
	return kernel_symbols_read(file);
}

void kernel_symbols_free(struct kernel_symbols *s)
{
	if (!s)
		return;
	free(s->symbols);
	buf_free(&s->text);
	free(s);
}

size_t kernel_symbols_count(const struct kernel_symbols *s)
{
	return s->count;
}

bool kernel_symbols_find(const struct kernel_symbols *s, uint64_t address,
                         struct kernel_function *function)
{
	const struct kernel_symbol *symbol;
	size_t low = ARRAY_BEFORE(s->count, i, s->symbols[i].address <= address);

	if (!low || address - s->symbols[low - 1].address > FUNCTION_MAX)
		return false;
	symbol = &s->symbols[low - 1];
	function->name = s->text.data + symbol->name;
	function->module = symbol->module == NO_MODULE ? NULL : s->text.data + symbol->module;
	function->into_bytes = address - symbol->address;
	return true;
}
