// SPDX-License-Identifier: MIT
#include "unwind/python_code.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "probe/helper.h"

/* What versions have alike. */
#define CODE_BEFORE_311                                                                            \
	.key = 588, .code_file = 104, .code_name = 112, .code_lines = 120, .ascii = 48, .wide = 72
#define CODE_SINCE_311                                                                             \
	.code_file = 112, .code_name = 128, .code_lines = 136, .lines = PYTHON_LOCATIONS
#define FRAME_BEFORE_311                                                                           \
	.frame_code = 32, .frame_previous = 24, .lasti_short = 1, .code_first_line = 40,           \
	.style = PYTHON_EVERY_FRAME
#define FRAME_SINCE_312(owner)                                                                     \
	.frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = (owner),     \
	.frame_bytes = (owner) + 1, .owner_entry = 3, .code_first_line = 68, .style = PYTHON_OWNER

static const struct python_layout layouts[] = {
	{ .minor = 9,
	  .frame = { .state_frame = 24,
	             .frame_instruction = 104,
	             .frame_bytes = 108,
	             FRAME_BEFORE_311 },
	  .lines = PYTHON_LNOTAB,
	  CODE_BEFORE_311 },
	{ .minor = 10,
	  .frame = { .state_frame = 24,
	             .state_cframe = 48,
	             .cframe_previous = 8,
	             .frame_instruction = 96,
	             .frame_bytes = 100,
	             FRAME_BEFORE_311 },
	  .lines = PYTHON_LINETABLE,
	  CODE_BEFORE_311 },
	{ .minor = 11,
	  .frame = { .state_cframe = 56,
	             .has_cframe = 1,
	             .cframe_frame = 8,
	             .cframe_previous = 16,
	             .frame_code = 32,
	             .frame_previous = 48,
	             .frame_instruction = 56,
	             .frame_entry = 68,
	             .frame_bytes = 69,
	             .code_first_line = 72,
	             .style = PYTHON_IS_ENTRY },
	  .key = 596,
	  .code_instructions = 184,
	  .ascii = 48,
	  .wide = 72,
	  CODE_SINCE_311 },
	{ .minor = 12,
	  .frame = { .state_cframe = 56,
	             .has_cframe = 1,
	             .cframe_frame = 0,
	             .cframe_previous = 8,
	             FRAME_SINCE_312(70) },
	  .key = 1548,
	  .code_instructions = 192,
	  .ascii = 40,
	  .wide = 56,
	  CODE_SINCE_311 },
	{ .minor = 13,
	  .frame = { .state_frame = 72, FRAME_SINCE_312(70) },
	  .key = 2164,
	  .code_instructions = 200,
	  .ascii = 40,
	  .wide = 56,
	  CODE_SINCE_311 },
	{ .minor = 14,
	  .frame = { .state_frame = 72, FRAME_SINCE_312(74) },
	  .key = 2340,
	  .code_instructions = 208,
	  .ascii = 40,
	  .wide = 56,
	  CODE_SINCE_311 },
};

const struct python_layout *python_layout(unsigned minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}

/* ---- python lines -------------------------------------------------------------------------- */

/* Each takes the entry that comes next; true: it is the one of the place, or there is none. */

/* Pairs of how far the instruction goes and how far the line does. */
static bool pass_lnotab(const struct python_line_table *lines, uint64_t place,
                        struct python_line_mark *next)
{
	uint64_t end;

	if (next->at + 1 >= lines->bytes)
		return true;
	end = next->begin + lines->table[next->at];
	if (end > place)
		return true;
	next->begin = end;
	next->line += (int8_t)lines->table[next->at + 1];
	next->at += 2;
	return false;
}

/* The same, with stretches that are of no line (-128), and in bytes. */
static bool pass_linetable(const struct python_line_table *lines, uint64_t place,
                           struct python_line_mark *next)
{
	int8_t step;

	if (next->at + 1 >= lines->bytes)
		return true;
	step = (int8_t)lines->table[next->at + 1];
	next->begin += lines->table[next->at];
	if (step != -128)
		next->line += step;
	next->at += 2;
	return place < next->begin;
}

/* 6 bits a byte, the lowest first; the 7th bit: more follow, as many as 32 bits take. */
static uint32_t read_number(const uint8_t *table, size_t bytes, size_t *at)
{
	uint32_t value = 0;

	for (unsigned shift = 0; *at < bytes && shift < 32; shift += 6) {
		uint8_t byte = table[(*at)++];

		value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int32_t read_signed(const uint8_t *table, size_t bytes, size_t *at)
{
	uint32_t value = read_number(table, bytes, at);

	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* How far the line goes with one entry, whose code has been read; moves behind it. */
static int32_t location_step(unsigned code, const uint8_t *table, size_t bytes, size_t *at)
{
	int32_t step = 0;

	if (code == 15) /* no location */
		return 0;
	if (code == 14) { /* in full: line, lines it spans, columns */
		step = read_signed(table, bytes, at);
		for (int i = 0; i < 3; i++)
			read_number(table, bytes, at);
	} else if (code == 13) { /* without columns */
		step = read_signed(table, bytes, at);
	} else if (code >= 10) { /* a line or two further, columns in two bytes */
		step = (int32_t)code - 10;
		*at += 2;
	} else {
		*at += 1;
	}
	return step;
}

static bool pass_location(const struct python_line_table *lines, uint64_t place,
                          struct python_line_mark *next)
{
	size_t at = next->at;
	uint8_t head;

	if (at >= lines->bytes)
		return true;
	head = lines->table[at++];
	next->begin += (head & 7) + 1;
	next->line += location_step(head >> 3 & 15, lines->table, lines->bytes, &at);
	next->at = (uint32_t)at;
	return place < next->begin;
}

static bool pass_entry(const struct python_line_table *lines, uint64_t place,
                       struct python_line_mark *next)
{
	switch (lines->kind) {
	case PYTHON_LNOTAB:
		return pass_lnotab(lines, place, next);
	case PYTHON_LINETABLE:
		return pass_linetable(lines, place, next);
	case PYTHON_LOCATIONS:
		return pass_location(lines, place, next);
	}
	return true;
}

size_t python_line_marks(const struct python_line_table *lines, struct python_line_mark *marks)
{
	struct python_line_mark next = { .line = lines->first_line };
	size_t n = 0;

	while (next.at < lines->bytes) {
		if (next.at >= n * PYTHON_MARK_BYTES)
			marks[n++] = next;
		if (pass_entry(lines, UINT64_MAX, &next))
			break;
	}
	return n;
}

/* In the table's own unit, which is a byte of code up to 3.10. */
static uint64_t place_of(const struct python_line_table *lines, uint32_t instruction)
{
	return lines->kind == PYTHON_LINETABLE ? 2 * (uint64_t)instruction : instruction;
}

uint32_t python_line_of(const struct python_line_table *lines, uint32_t instruction)
{
	const uint64_t place = place_of(lines, instruction);
	size_t before = ARRAY_BEFORE(lines->n_marks, i, lines->marks[i].begin <= place);
	struct python_line_mark next = { .line = lines->first_line };

	if (before)
		next = lines->marks[before - 1];
	while (!pass_entry(lines, place, &next))
		;
	return next.line > 0 && next.line <= UINT32_MAX ? (uint32_t)next.line : lines->first_line;
}

/* ---- python code --------------------------------------------------------------------------- */

#define CODE_BYTES   256 /* of a code object, from its begin: all fields that are asked for */
#define TEXT_MAX     512 /* bytes of a name or path that are kept */
#define TABLE_MAX    (16 << 10) /* bytes of a line table; of a longer one the first line is told */
#define EACH_BYTES   ((size_t)8 << 20) /* of one process */
#define ALL_BYTES    ((size_t)32 << 20)
#define READ_NS      500000ull /* one object of a process in that time */
#define USER_READ_NS 333333ull /* of a user but root */
#define ALL_READ_NS  200000ull /* and of all processes */
#define READS_AHEAD  4000
#define USER_AHEAD   3000
#define USERS_MAX    512 /* beyond, those go who have read nothing for long */
#define HEADER_BYTES 80  /* of a string or of bytes, before its content */

/* PyASCIIObject: the length, and the bits of its state. */
#define STRING_LENGTH 16
#define STRING_STATE  32
#define STATE_KIND(s) ((s) >> 2 & 7)
#define STATE_COMPACT (1u << 5)
#define STATE_ASCII   (1u << 6)

struct code_key {
	uint64_t address;
	uint32_t process, first_line;
};

struct code_object {
	struct code_key key;
	const char *function, *file; /* behind the table; NULL: could not be read */
	struct python_line_table lines;
	size_t bytes;             /* of all of it */
	uint64_t instructions;    /* where they begin, after the object's begin */
	struct code_object *next; /* of the same process */
	UT_hash_handle hh;
	struct python_line_mark marks[]; /* behind them the table and the texts */
};

/* What the reads of one process have taken (see may_read()), and what they found. */
struct code_reads {
	uint32_t process;
	uint64_t until_ns;
	struct code_object *first;
	UT_hash_handle hh;
};

struct code_user {
	uint64_t person, until_ns;
	UT_hash_handle hh;
};

struct python_codes {
	struct code_object *objects;
	struct budget *budget;
	uint64_t refused;
	struct code_reads *reads;
	struct code_user *users;
	uint64_t all_until_ns;
};

struct python_codes *python_codes_new(void)
{
	struct python_codes *codes = xcalloc(1, sizeof(*codes));

	codes->budget = budget_new(EACH_BYTES, ALL_BYTES);
	return codes;
}

static void forget_reads(struct python_codes *codes, struct code_reads *reads)
{
	MAP_DROP(codes->reads, reads);
}

void python_codes_free(struct python_codes *codes)
{
	struct code_reads *reads, *next_reads;

	if (!codes)
		return;
	MAP_FREE(codes->objects, free);
	HASH_ITER (hh, codes->reads, reads, next_reads)
		forget_reads(codes, reads);
	MAP_FREE(codes->users, free);
	budget_free(codes->budget);
	free(codes);
}

/* ---- reading a process ----------------------------------------------------------------------- */

static uint64_t word_at(const uint8_t *from, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, from + offset, sizeof(word));
	return word;
}

/*
 * Whether an object is no more. It begins with the number of its references: 0 in the end, and then
 * Python's allocator, or the C library's, puts an address there, the next piece that is free.
 */
static bool is_freed(const uint8_t *object)
{
	uint64_t references = word_at(object, 0);

	return !references || (references >> 33 && !(references >> 47));
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

/* False where there are numbers that no character has: the text is another object's by now. */
static bool to_utf8(char *text, const uint8_t *from, uint64_t length, unsigned width)
{
	size_t at = 0;

	for (uint64_t i = 0; i < length && at + 5 < TEXT_MAX; i++) {
		uint32_t code = 0;

		memcpy(&code, from + i * width, width);
		if (code > 0x10ffff)
			return false;
		if (!code)
			break;
		at += add_character(text + at, code);
	}
	text[at] = '\0';
	return true;
}

/* A str object. Only compact ones are names: 1, 2 or 4 bytes a character. */
static bool read_string(const struct python_layout *layout, pid_t pid, uint64_t address,
                        char text[TEXT_MAX])
{
	uint8_t header[HEADER_BYTES], content[TEXT_MAX * 4];
	uint64_t length, bytes;
	uint32_t state, at;
	unsigned width;

	if (!address || !helper_memory(pid, address, header, 40) || is_freed(header))
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
	if (bytes && !helper_memory(pid, address + at, content, bytes))
		return false;
	return to_utf8(text, content, length, width);
}

/* A bytes object; false where it is too long. */
static bool read_table(pid_t pid, uint64_t address, uint8_t *to, uint32_t *bytes)
{
	uint64_t size;

	*bytes = 0;
	if (!address || !helper_memory(pid, address + PYTHON_BYTES_SIZE, &size, sizeof(size)) ||
	    !size || size > TABLE_MAX || !helper_memory(pid, address + PYTHON_BYTES, to, size))
		return false;
	*bytes = (uint32_t)size;
	return true;
}

/* What is read of a code object, before it is known whether there is room for it. */
struct code_read {
	char function[TEXT_MAX], file[TEXT_MAX];
	bool has_function, has_file;
	uint8_t table[TABLE_MAX];
	uint32_t table_bytes;
};

static void read_code(const struct python_layout *layout, pid_t pid, const struct code_key *key,
                      struct code_read *read)
{
	uint8_t code[CODE_BYTES], again[CODE_BYTES];
	uint32_t first_line = 0;

	if (!helper_memory(pid, key->address, code, sizeof(code)) || is_freed(code))
		return;
	memcpy(&first_line, code + layout->frame.code_first_line, sizeof(first_line));
	if ((first_line & 0x3fffffff) != key->first_line)
		return;
	read->has_function =
		read_string(layout, pid, word_at(code, layout->code_name), read->function);
	read->has_file = read_string(layout, pid, word_at(code, layout->code_file), read->file);
	read_table(pid, word_at(code, layout->code_lines), read->table, &read->table_bytes);
	/* a module's code is gone as soon as it was run: what was read may be of two objects */
	if (helper_memory(pid, key->address, again, sizeof(again)) && !is_freed(again) &&
	    word_at(code, layout->code_name) == word_at(again, layout->code_name) &&
	    word_at(code, layout->code_file) == word_at(again, layout->code_file))
		return;
	memset(read, 0, sizeof(*read));
}

/* Copies a text to the room at *to, and moves that on; NULL where there is none. */
static const char *put_text(char **to, bool has, const char *text)
{
	char *at = *to;

	if (!has)
		return NULL;
	*to = stpcpy(at, text) + 1;
	return at;
}

static struct code_object *read_object(struct python_codes *codes, struct code_reads *reads,
                                       const struct python_layout *layout, pid_t pid,
                                       const struct code_key *key)
{
	struct code_read read = { .table_bytes = 0 };
	struct python_line_mark marks[TABLE_MAX / PYTHON_MARK_BYTES];
	struct python_line_table lines = { .kind = layout->lines,
		                           .table = read.table,
		                           .first_line = key->first_line };
	struct code_object *object;
	size_t bytes = sizeof(*object);
	char *texts;

	read_code(layout, pid, key, &read);
	lines.bytes = read.table_bytes;
	lines.n_marks = python_line_marks(&lines, marks);
	bytes += lines.n_marks * sizeof(*marks) + read.table_bytes +
	         (read.has_function ? strlen(read.function) + 1 : 0) +
	         (read.has_file ? strlen(read.file) + 1 : 0);
	if (!budget_take(codes->budget, key->process, bytes)) {
		codes->refused++;
		return NULL;
	}
	object = xcalloc(1, bytes);
	object->key = *key;
	object->lines = lines;
	object->bytes = bytes;
	object->instructions = layout->code_instructions;
	object->lines.marks = memcpy(object->marks, marks, lines.n_marks * sizeof(*marks));
	texts = (char *)(object->marks + lines.n_marks);
	object->lines.table = memcpy(texts, read.table, lines.bytes);
	texts += lines.bytes;
	object->function = put_text(&texts, read.has_function, read.function);
	object->file = put_text(&texts, read.has_file, read.file);
	HASH_ADD(hh, codes->objects, key, sizeof(object->key), object);
	object->next = reads->first;
	reads->first = object;
	return object;
}

static void take_time(uint64_t *until_ns, uint64_t now, uint64_t each_ns, uint64_t ahead)
{
	if (*until_ns + ahead * each_ns < now)
		*until_ns = now - ahead * each_ns;
	*until_ns += each_ns;
}

static struct code_reads *reads_of(struct python_codes *codes, uint32_t process)
{
	return MAP_MAKE(codes->reads, process, &process);
}

static struct code_user *user_of(struct python_codes *codes, uint64_t person, uint64_t now)
{
	struct code_user *user = MAP_FIND(codes->users, &person), *next;

	if (user)
		return user;
	if (HASH_COUNT(codes->users) >= USERS_MAX) {
		HASH_ITER (hh, codes->users, user, next)
			if (user->until_ns + USER_AHEAD * USER_READ_NS <= now)
				MAP_DROP(codes->users, user);
	}
	return MAP_ADD(codes->users, person, &person);
}

/*
 * A process can show other code objects in each stack, and each costs five reads of its memory,
 * some 100 us. So there are 2,000 a second of each process, 3,000 of a user but root and 5,000 of
 * all; and 4,000 at once for a program that begins, of a user 3,000.
 */
static bool may_read(struct python_codes *codes, struct code_reads *reads, uint64_t person)
{
	uint64_t now = clock_now_ns();
	struct code_user *user = person == QUOTA_ROOT ? NULL : user_of(codes, person, now);

	if (reads->until_ns + READ_NS > now || codes->all_until_ns + ALL_READ_NS > now ||
	    (user && user->until_ns + USER_READ_NS > now)) {
		codes->refused++;
		return false;
	}
	take_time(&reads->until_ns, now, READ_NS, READS_AHEAD);
	take_time(&codes->all_until_ns, now, ALL_READ_NS, READS_AHEAD);
	if (user)
		take_time(&user->until_ns, now, USER_READ_NS, USER_AHEAD);
	return true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

bool python_codes_find(struct python_codes *codes, const struct python_layout *layout,
                       const struct process *process, const struct wire_entry *entry,
                       struct python_place *place)
{
	uint64_t value = entry->b & ENTRY_VALUE_MASK;
	const struct code_key key = { entry->a, process->id, (uint32_t)(value >> ENTRY_LINE_AT) };
	uint32_t instruction = (uint32_t)value;
	struct code_reads *reads;
	struct code_object *object = MAP_FIND(codes->objects, &key);

	reads = object ? NULL : reads_of(codes, process->id);
	if (reads && may_read(codes, reads, process->person)) {
		budget_person(codes->budget, process->id, process->person);
		object = read_object(codes, reads, layout, (pid_t)process->pid, &key);
	}
	if (!object || !object->function)
		return false;
	if (object->instructions) /* a distance from the object's begin, in bytes */
		instruction = instruction < object->instructions
		                      ? 0
		                      : (uint32_t)(instruction - object->instructions) / 2;
	place->function = object->function;
	place->file = object->file;
	place->first_line = key.first_line;
	place->line = python_line_of(&object->lines, instruction);
	return true;
}

/* Every process that ends comes here, most without an object. */
void python_codes_forget(struct python_codes *codes, uint32_t id)
{
	struct code_object *object, *next;
	struct code_reads *reads = MAP_FIND(codes->reads, &id);

	if (!reads)
		return;
	for (object = reads->first; object; object = next) {
		next = object->next;
		HASH_DEL(codes->objects, object);
		budget_give(codes->budget, id, object->bytes);
		free(object);
	}
	forget_reads(codes, reads);
	budget_end(codes->budget, id);
}

uint64_t python_codes_refused(const struct python_codes *codes)
{
	return codes->refused;
}
