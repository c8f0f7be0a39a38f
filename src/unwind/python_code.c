// SPDX-License-Identifier: MIT
#include "unwind/python_code.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uthash.h>

#include "base/xalloc.h"
#include "probe/memory.h"
#include "unwind/python_lines.h"

#define CODE_BYTES   256 /* of a code object, from its begin: all fields that are asked for */
#define TEXT_MAX     512 /* bytes of a name or path that are kept */
#define TABLE_MAX    (16 << 10) /* bytes of a line table; of a longer one the first line is told */
#define ALL_BYTES    ((size_t)32 << 20)
#define READ_NS      500000ull /* one object in that time */
#define READS_AHEAD  4000
#define HEADER_BYTES 80 /* of a string or of bytes, before its content */

/* PyASCIIObject: the length, and the bits of its state. */
#define STRING_LENGTH 16
#define STRING_STATE  32
#define STATE_KIND(s) ((s) >> 2 & 7)
#define STATE_COMPACT (1u << 5)
#define STATE_ASCII   (1u << 6)

struct code_text { /* each name and path once */
	UT_hash_handle hh;
	char text[];
};

struct code_key {
	uint64_t address;
	uint32_t process, first_line;
};

struct code_object {
	struct code_key key;
	const char *function, *file; /* NULL: could not be read */
	enum python_lines kind;
	uint32_t table_bytes;
	uint64_t instructions; /* where they begin, after the object's begin */
	UT_hash_handle hh;
	uint8_t table[];
};

struct python_codes {
	struct code_object *objects;
	struct code_text *texts;
	size_t bytes;
	uint64_t refused;
	uint64_t reads_ns; /* of time that reads may take until now: see may_read() */
};

struct python_codes *python_codes_new(void)
{
	return xcalloc(1, sizeof(struct python_codes));
}

void python_codes_free(struct python_codes *codes)
{
	struct code_object *object, *next_object;
	struct code_text *text, *next_text;

	if (!codes)
		return;
	HASH_ITER (hh, codes->objects, object, next_object) {
		HASH_DEL(codes->objects, object);
		free(object);
	}
	HASH_ITER (hh, codes->texts, text, next_text) {
		HASH_DEL(codes->texts, text);
		free(text);
	}
	free(codes);
}

static bool has_room(struct python_codes *codes, size_t bytes)
{
	if (codes->bytes + bytes > ALL_BYTES) {
		codes->refused++;
		return false;
	}
	codes->bytes += bytes;
	return true;
}

static const char *keep_text(struct python_codes *codes, const char *text)
{
	size_t len = strlen(text);
	struct code_text *kept;

	HASH_FIND(hh, codes->texts, text, len, kept);
	if (kept)
		return kept->text;
	if (!has_room(codes, sizeof(*kept) + len + 1))
		return NULL;
	kept = xmalloc(sizeof(*kept) + len + 1);
	memcpy(kept->text, text, len + 1);
	HASH_ADD_KEYPTR(hh, codes->texts, kept->text, len, kept);
	return kept->text;
}

/* ---- reading a process ----------------------------------------------------------------------- */

static uint64_t word_at(const uint8_t *from, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, from + offset, sizeof(word));
	return word;
}

/* One character of a string, as its kind has it, in UTF-8. */
static size_t add_character(char *to, uint32_t code)
{
	if (code < 0x80) {
		to[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		to[0] = (char)(0xc0 | code >> 6);
		to[1] = (char)(0x80 | (code & 63));
		return 2;
	}
	if (code < 0x10000) {
		to[0] = (char)(0xe0 | code >> 12);
		to[1] = (char)(0x80 | (code >> 6 & 63));
		to[2] = (char)(0x80 | (code & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | (code >> 18 & 7));
	to[1] = (char)(0x80 | (code >> 12 & 63));
	to[2] = (char)(0x80 | (code >> 6 & 63));
	to[3] = (char)(0x80 | (code & 63));
	return 4;
}

static void to_utf8(char *text, const uint8_t *from, uint64_t length, unsigned width)
{
	size_t at = 0;

	for (uint64_t i = 0; i < length && at + 5 < TEXT_MAX; i++) {
		uint32_t code = 0;

		memcpy(&code, from + i * width, width);
		if (!code)
			break;
		at += add_character(text + at, code);
	}
	text[at] = '\0';
}

/* A str object. Only compact ones are names: 1, 2 or 4 bytes a character. */
static bool read_string(const struct python_layout *layout, pid_t pid, uint64_t address,
                        char text[TEXT_MAX])
{
	uint8_t header[HEADER_BYTES], content[TEXT_MAX * 4];
	uint64_t length, bytes;
	uint32_t state, at;
	unsigned width;

	if (!address || !memory_read(pid, address, header, 40))
		return false;
	length = word_at(header, STRING_LENGTH);
	memcpy(&state, header + STRING_STATE, sizeof(state));
	width = STATE_KIND(state);
	if (!(state & STATE_COMPACT) || (width != 1 && width != 2 && width != 4))
		return false;
	at = state & STATE_ASCII ? layout->ascii : layout->wide;
	if (length > TEXT_MAX - 1)
		length = TEXT_MAX - 1;
	bytes = length * width;
	if (bytes && !memory_read(pid, address + at, content, bytes))
		return false;
	to_utf8(text, content, length, width);
	return true;
}

/* A bytes object; false where it is too long. */
static bool read_table(const struct python_layout *layout, pid_t pid, uint64_t address, uint8_t *to,
                       uint32_t *bytes)
{
	uint64_t size;

	*bytes = 0;
	if (!address || !memory_read(pid, address + layout->bytes_size, &size, sizeof(size)) ||
	    !size || size > TABLE_MAX || !memory_read(pid, address + layout->bytes, to, size))
		return false;
	*bytes = (uint32_t)size;
	return true;
}

static const char *read_name(struct python_codes *codes, const struct python_layout *layout,
                             pid_t pid, uint64_t address)
{
	char text[TEXT_MAX];

	return read_string(layout, pid, address, text) ? keep_text(codes, text) : NULL;
}

static struct code_object *read_object(struct python_codes *codes,
                                       const struct python_layout *layout, pid_t pid,
                                       const struct code_key *key)
{
	uint8_t code[CODE_BYTES], table[TABLE_MAX];
	uint32_t table_bytes = 0, first_line = 0;
	const char *function = NULL, *file = NULL;
	struct code_object *object;

	if (memory_read(pid, key->address, code, sizeof(code))) {
		memcpy(&first_line, code + layout->frame.code_first_line, sizeof(first_line));
		if ((first_line & 0x3fffffff) == key->first_line) {
			function = read_name(codes, layout, pid, word_at(code, layout->code_name));
			file = read_name(codes, layout, pid, word_at(code, layout->code_file));
			read_table(layout, pid, word_at(code, layout->code_lines), table,
			           &table_bytes);
		}
	}
	if (!has_room(codes, sizeof(*object) + table_bytes))
		return NULL;
	object = xcalloc(1, sizeof(*object) + table_bytes);
	object->key = *key;
	object->function = function;
	object->file = file;
	object->kind = layout->lines;
	object->instructions = layout->code_instructions;
	object->table_bytes = table_bytes;
	memcpy(object->table, table, table_bytes);
	HASH_ADD(hh, codes->objects, key, sizeof(object->key), object);
	return object;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * A process can show other code objects in each stack, and each costs four reads of its memory,
 * some 100 us. So there are 2,000 a second, and 4,000 at once for a program that begins.
 */
static bool may_read(struct python_codes *codes)
{
	uint64_t now = now_ns();

	if (codes->reads_ns + READS_AHEAD * READ_NS < now)
		codes->reads_ns = now - READS_AHEAD * READ_NS;
	if (codes->reads_ns + READ_NS > now) {
		codes->refused++;
		return false;
	}
	codes->reads_ns += READ_NS;
	return true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

bool python_codes_find(struct python_codes *codes, const struct python_layout *layout, uint32_t id,
                       pid_t pid, const struct wire_entry *entry, struct python_place *place)
{
	uint64_t value = entry->b & ENTRY_VALUE_MASK;
	const struct code_key key = { entry->a, id, (uint32_t)(value >> ENTRY_LINE_AT) };
	uint32_t instruction = (uint32_t)value;
	struct code_object *object;

	HASH_FIND(hh, codes->objects, &key, sizeof(key), object);
	if (!object && may_read(codes))
		object = read_object(codes, layout, pid, &key);
	if (!object || !object->function)
		return false;
	if (object->instructions) /* a distance from the object's begin, in bytes */
		instruction = instruction < object->instructions
		                      ? 0
		                      : (uint32_t)(instruction - object->instructions) / 2;
	place->function = object->function;
	place->file = object->file;
	place->first_line = key.first_line;
	place->line = python_line_of(object->kind, object->table, object->table_bytes,
	                             key.first_line, instruction);
	return true;
}

void python_codes_forget(struct python_codes *codes, uint32_t id)
{
	struct code_object *object, *next;

	HASH_ITER (hh, codes->objects, object, next) {
		if (object->key.process != id)
			continue;
		HASH_DEL(codes->objects, object);
		codes->bytes -= sizeof(*object) + object->table_bytes;
		free(object);
	}
}

uint64_t python_codes_refused(const struct python_codes *codes)
{
	return codes->refused;
}
