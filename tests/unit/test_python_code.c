// SPDX-License-Identifier: MIT
/* Names and lines from code objects that are laid out in this process as each Python has them. */
#include "unit.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "unwind/python_code.h"

#define CODE_BYTES 256
#define FIRST_LINE 10
#define COMPACT    (1u << 5)
#define ASCII      (1u << 6)

static const struct python_layout *layout;
static struct python_codes *codes;

/* ---- objects of Python's --------------------------------------------------------------------- */

/* Of one test: no address may be used twice in it. */
static char heap[1 << 20];
static size_t heap_used;

static void *object_of(size_t bytes)
{
	void *object = heap + heap_used;

	heap_used += (bytes + 15) & ~(size_t)15;
	assert_true(heap_used <= sizeof(heap));
	memset(object, 0, bytes);
	((char *)object)[0] = 1; /* one reference */
	return object;
}

static void put(void *object, uint32_t offset, uint64_t value)
{
	memcpy((char *)object + offset, &value, sizeof(value));
}

/* `width`: bytes a character has. */
static uint64_t string_of(const void *characters, size_t length, unsigned width, bool ascii)
{
	char *object = object_of(128 + length * width);

	put(object, 16, length);
	put(object, 32, 1u | width << 2 | COMPACT | (ascii ? ASCII : 0));
	memcpy(object + (ascii ? layout->ascii : layout->wide), characters, length * width);
	return (uintptr_t)object;
}

static uint64_t text_of(const char *text)
{
	return string_of(text, strlen(text), 1, true);
}

static uint64_t bytes_of(const void *bytes, size_t size)
{
	char *object = object_of(128 + size);

	put(object, PYTHON_BYTES_SIZE, size);
	memcpy(object + PYTHON_BYTES, bytes, size);
	return (uintptr_t)object;
}

/* A line further with each instruction. */
static uint64_t line_table(void)
{
	static const uint8_t pairs[] = { 2, 1, 2, 1, 2, 1, 2, 1 },
			     linetable[] = { 2, 0, 2, 1, 2, 1, 2, 1 },
			     locations[] = { 0xd0, 0, 0, 0xd8, 0, 0, 0xd8, 0, 0, 0xd8, 0, 0 };

	if (layout->lines == PYTHON_LNOTAB)
		return bytes_of(pairs, sizeof(pairs));
	if (layout->lines == PYTHON_LINETABLE)
		return bytes_of(linetable, sizeof(linetable));
	return bytes_of(locations, sizeof(locations));
}

struct code {
	uint64_t name, file, lines;
	uint32_t first_line;
};

static uint64_t code_of(const struct code *code)
{
	char *object = object_of(CODE_BYTES);

	put(object, layout->code_file, code->file);
	put(object, layout->code_name, code->name);
	put(object, layout->code_lines, code->lines);
	memcpy(object + layout->frame.code_first_line, &code->first_line, 4);
	return (uintptr_t)object;
}

static uint64_t ordinary_code(void)
{
	return code_of(&(struct code){ text_of("Model.forward"), text_of("/home/a/model.py"),
	                               line_table(), FIRST_LINE });
}

/* What the programs send of the nth instruction. */
static struct wire_entry entry_of(uint64_t code, uint32_t instruction, uint32_t first_line)
{
	uint64_t value = layout->code_instructions ? layout->code_instructions + 2 * instruction
	                 : layout->minor == 9      ? 2 * instruction
	                                           : instruction;

	return (struct wire_entry){ code, (uint64_t)ENTRY_PYTHON << ENTRY_KIND_AT |
		                                  (uint64_t)first_line << ENTRY_LINE_AT | value };
}

static uint64_t person; /* whose all processes are */

/* In a process by its number: all have the memory of this one. */
static bool find_in(uint32_t id, const struct wire_entry *entry, struct python_place *place)
{
	const struct process process = { .id = id, .pid = (uint32_t)getpid(), .person = person };

	return python_codes_find(codes, layout, &process, entry, place);
}

static bool find(uint64_t code, uint32_t instruction, struct python_place *place)
{
	const struct wire_entry entry = entry_of(code, instruction, FIRST_LINE);

	return find_in(1, &entry, place);
}

static void begin(unsigned minor)
{
	layout = python_layout(minor);
	assert_non_null(layout);
	codes = python_codes_new();
	heap_used = 0;
}

static void end(void)
{
	python_codes_free(codes);
}

/* ---- what is read ---------------------------------------------------------------------------- */

static void test_names_and_lines_of_each_version(void **state)
{
	struct python_place place;

	for (unsigned minor = PYTHON_FIRST; minor <= PYTHON_LAST; minor++) {
		uint64_t code;

		begin(minor);
		code = ordinary_code();
		for (uint32_t i = 0; i < 4; i++) {
			assert_true(find(code, i, &place));
			assert_string_equal(place.function, "Model.forward");
			assert_string_equal(place.file, "/home/a/model.py");
			assert_int_equal(place.first_line, FIRST_LINE);
			assert_int_equal(place.line, FIRST_LINE + i);
		}
		end();
	}
}

static void test_versions_that_are_not_known(void **state)
{
	assert_null(python_layout(PYTHON_FIRST - 1));
	assert_null(python_layout(PYTHON_LAST + 1));
	assert_null(python_layout(0));
}

static void test_names_of_wide_characters(void **state)
{
	static const uint8_t latin[] = { 'g', 'r', 0xf6, 0xdf, 'e' };
	static const uint16_t two[] = { 0x3c0, 'x', 0x20ac };
	static const uint32_t four[] = { 0x1f40d, 'y' };
	struct python_place place;

	for (unsigned minor = PYTHON_FIRST; minor <= PYTHON_LAST; minor++) {
		begin(minor);
		assert_true(
			find(code_of(&(struct code){ string_of(latin, 5, 1, false),
		                                     string_of(two, 3, 2, false), 0, FIRST_LINE }),
		             0, &place));
		assert_string_equal(place.function, "größe");
		assert_string_equal(place.file, "πx€");
		assert_true(find(
			code_of(&(struct code){ string_of(four, 2, 4, false), 0, 0, FIRST_LINE }),
			0, &place));
		assert_string_equal(place.function, "🐍y");
		assert_null(place.file);
		end();
	}
}

/* Of a name that is longer than is kept, the begin; whole characters of it. */
static void test_long_names_are_cut(void **state)
{
	static char text[5000];
	static uint32_t wide[5000];
	struct python_place place;

	begin(12);
	memset(text, 'n', sizeof(text) - 1);
	for (size_t i = 0; i < 5000; i++)
		wide[i] = 0x1f40d;
	assert_true(find(code_of(&(struct code){ text_of(text), string_of(wide, 5000, 4, false), 0,
	                                         FIRST_LINE }),
	                 0, &place));
	assert_in_range(strlen(place.function), 500, 511);
	assert_in_range(strlen(place.file), 500, 511);
	assert_int_equal(strlen(place.file) % 4, 0);
	end();
}

static void test_a_line_table_that_is_too_long_tells_the_first_line(void **state)
{
	static uint8_t table[64 << 10];
	struct python_place place;

	begin(12);
	assert_true(find(code_of(&(struct code){ text_of("f"), text_of("f.py"),
	                                         bytes_of(table, sizeof(table)), FIRST_LINE }),
	                 3, &place));
	assert_int_equal(place.line, FIRST_LINE);
	end();
}

/* An instruction before the first, as a frame that has not begun has it. */
static void test_a_frame_that_has_not_begun(void **state)
{
	struct wire_entry entry;
	struct python_place place;

	begin(12);
	entry = entry_of(ordinary_code(), 0, FIRST_LINE);
	entry.b -= 2;
	assert_true(find_in(1, &entry, &place));
	assert_int_equal(place.line, FIRST_LINE);
	end();
}

/* ---- what cannot be read --------------------------------------------------------------------- */

static void test_another_object_is_at_the_address_by_now(void **state)
{
	struct wire_entry entry;
	struct python_place place;
	uint64_t code;

	begin(11);
	code = ordinary_code();
	entry = entry_of(code, 0, FIRST_LINE + 1);
	assert_false(find_in(1, &entry, &place));
	assert_true(find(code, 0, &place)); /* they are told apart */
	memset((void *)(uintptr_t)code, 0, CODE_BYTES);
	assert_true(find(code, 0, &place)); /* what was read is kept */
	assert_string_equal(place.function, "Model.forward");
	entry = entry_of(code, 0, 0);
	assert_false(find_in(1, &entry, &place));
	end();
}

static void test_strings_that_are_none(void **state)
{
	struct python_place place;

	for (unsigned minor = PYTHON_FIRST; minor <= PYTHON_LAST; minor++) {
		uint64_t text;

		begin(minor);
		assert_false(find(code_of(&(struct code){ 0, text_of("f.py"), 0, FIRST_LINE }), 0,
		                  &place));
		assert_false(find(code_of(&(struct code){ 8, text_of("f.py"), 0, FIRST_LINE }), 0,
		                  &place));
		text = text_of("legacy");
		put((void *)(uintptr_t)text, 32, 1u << 2 | ASCII);
		assert_false(find(code_of(&(struct code){ text, 0, 0, FIRST_LINE }), 0, &place));
		text = text_of("three bytes a character");
		put((void *)(uintptr_t)text, 32, 3u << 2 | COMPACT);
		assert_false(find(code_of(&(struct code){ text, 0, 0, FIRST_LINE }), 0, &place));
		end();
	}
}

/* At the end of mapped memory. */
/* What was freed has no references, or an address in their place; what it said is not believed. */
static void test_objects_that_are_no_more(void **state)
{
	static const uint64_t words[] = { 0, 0x00007f12c0001230, 0x0000555555555a3f };
	static const uint32_t none = 0x12345678;
	struct python_place place;
	uint64_t code;

	begin(12);
	for (size_t i = 0; i < 3 * ARRAY_SIZE(words); i++) {
		struct code object = { text_of("f"), text_of("f.py"), line_table(), FIRST_LINE };
		uint64_t freed;

		code = code_of(&object);
		freed = i % 3 == 0 ? code : i % 3 == 1 ? object.name : object.file;
		memcpy((void *)(uintptr_t)freed, &words[i / 3], sizeof(words[0]));
		if (freed == object.file) {
			assert_true(find(code, 0, &place));
			assert_null(place.file);
		} else {
			assert_false(find(code, 0, &place));
		}
	}
	code = code_of(
		&(struct code){ string_of(&none, 1, 4, false), text_of("f.py"), 0, FIRST_LINE });
	assert_false(find(code, 0, &place));
	end();
}

static void test_a_length_that_leads_out_of_memory(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct python_place place;
	char *text;

	begin(12);
	munmap(memory + page, page);
	text = memory + page - 64;
	memset(text, 'x', 64);
	put(text, 16, UINT64_MAX);
	put(text, 32, 1u << 2 | COMPACT | ASCII);
	assert_false(find(code_of(&(struct code){ (uintptr_t)text, 0, 0, FIRST_LINE }), 0, &place));
	put(text, 16, 24); /* the last 24 bytes of the page */
	assert_true(find(code_of(&(struct code){ (uintptr_t)text, 0, 0, FIRST_LINE }), 0, &place));
	assert_string_equal(place.function, "xxxxxxxxxxxxxxxxxxxxxxxx");
	munmap(memory, page);
	end();
}

static void test_memory_that_is_not_there(void **state)
{
	struct python_place place;

	begin(13);
	assert_false(find(0, 0, &place));
	assert_false(find(8, 0, &place));
	assert_false(find(UINT64_MAX - 100, 0, &place));
	end();
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void test_objects_of_processes_are_apart_and_forgotten(void **state)
{
	struct wire_entry entry;
	struct python_place place;
	uint64_t code;

	begin(12);
	code = ordinary_code();
	entry = entry_of(code, 0, FIRST_LINE);
	assert_true(find(code, 0, &place));
	memset((void *)(uintptr_t)code, 0, CODE_BYTES);
	assert_false(find_in(2, &entry, &place));
	assert_true(find(code, 0, &place));
	assert_string_equal(place.function, "Model.forward");
	python_codes_forget(codes, 1);
	assert_false(find(code, 0, &place));
	end();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A process that shows another object each time takes neither all of the time nor what others have.
 */
static void test_reads_have_a_rate(void **state)
{
	struct python_place place;
	struct wire_entry entry;
	uint64_t code, since, allowed;

	begin(12);
	code = ordinary_code();
	since = now_ns();
	for (uint32_t line = 0; line < 20000; line++) {
		entry = entry_of(code, 0, line);
		find_in(1, &entry, &place);
	}
	allowed = 4000 + (now_ns() - since) / 500000 + 1;
	assert_in_range(20000 - python_codes_refused(codes), 4000, allowed);
	entry = entry_of(code, 0, FIRST_LINE);
	assert_true(find_in(2, &entry, &place));
	end();
}

/* Nor do many of them take more than a part of it. */
static void test_reads_of_all_have_a_rate(void **state)
{
	struct python_place place;
	size_t found = 0;
	uint64_t code, since, allowed;

	begin(12);
	code = ordinary_code();
	since = now_ns();
	for (uint32_t process = 0; process < 20000; process++) {
		const struct wire_entry entry = entry_of(code, 0, FIRST_LINE);

		found += find_in(process, &entry, &place);
	}
	allowed = 4000 + (now_ns() - since) / 200000 + 1;
	assert_in_range(found, 4000, allowed);
	assert_int_equal(python_codes_refused(codes), 20000 - found);
	end();
}

static void test_reads_of_a_user_leave_others_theirs(void **state)
{
	struct python_place place;
	struct wire_entry entry;
	uint64_t code, since, allowed;

	begin(12);
	code = ordinary_code();
	person = 1000;
	since = now_ns();
	for (uint32_t i = 0; i < 20000; i++) {
		entry = entry_of(code, 0, i / 10);
		find_in(i % 10, &entry, &place);
	}
	allowed = 3000 + (now_ns() - since) / 333333 + 1;
	assert_in_range(20000 - python_codes_refused(codes), 3000, allowed);
	person = 1001;
	entry = entry_of(code, 0, FIRST_LINE);
	assert_true(find_in(10, &entry, &place));
	person = 0;
	end();
}

enum { TABLE = 16 << 10 };

static uint64_t code_with_a_long_table(void)
{
	static uint8_t table[TABLE];

	return code_of(&(struct code){ text_of("f"), text_of("f.py"), bytes_of(table, TABLE),
	                               FIRST_LINE });
}

static void test_memory_has_a_bound(void **state)
{
	struct python_place place;
	size_t found = 0;
	uint64_t code;

	begin(12);
	code = code_with_a_long_table();
	for (uint32_t process = 0; process < 3000; process++) {
		const struct wire_entry entry = entry_of(code, 0, FIRST_LINE);

		found += find_in(process, &entry, &place);
	}
	/* as many as there is room for, and then one of each as long as there are small parts */
	assert_in_range(found, 1500, ((32u + 8) << 20) / TABLE);
	assert_int_equal(python_codes_refused(codes), 3000 - found);
	end();
}

/* What one process has leaves the others room, and it gets its own back. */
static void test_memory_of_a_process_has_a_bound(void **state)
{
	struct wire_entry entry;
	struct python_place place;
	size_t found = 0;
	uint64_t code;

	begin(12);
	code = code_with_a_long_table();
	for (uint32_t i = 0; i < 600; i++) {
		put((void *)(uintptr_t)code, layout->frame.code_first_line, i);
		entry = entry_of(code, 0, i);
		found += find_in(1, &entry, &place);
	}
	assert_in_range(found, 400, (8u << 20) / TABLE);
	entry = entry_of(code, 0, 599);
	assert_false(find_in(1, &entry, &place));
	assert_true(find_in(2, &entry, &place));
	python_codes_forget(codes, 1);
	assert_true(find_in(1, &entry, &place));
	end();
}

/* Nor do two processes of one user take it all from others. */
static void test_memory_of_a_user_has_a_bound(void **state)
{
	struct wire_entry entry;
	struct python_place place;
	size_t found = 0;
	uint64_t code;

	begin(12);
	code = code_with_a_long_table();
	person = 1000;
	for (uint32_t i = 0; i < 2400; i++) {
		put((void *)(uintptr_t)code, layout->frame.code_first_line, i);
		entry = entry_of(code, 0, i);
		found += find_in(i / 400, &entry, &place);
	}
	assert_in_range(found, 1000, (20u << 20) / TABLE);
	assert_int_equal(python_codes_refused(codes), 2400 - found);
	assert_false(find_in(5, &entry, &place));
	person = 1001;
	for (uint32_t i = 0; i < 100; i++) { /* more than what is everybody's anyway */
		put((void *)(uintptr_t)code, layout->frame.code_first_line, i);
		entry = entry_of(code, 0, i);
		assert_true(find_in(7, &entry, &place));
	}
	for (uint32_t process = 0; process < 6; process++)
		python_codes_forget(codes, process);
	person = 1000;
	assert_true(find_in(8, &entry, &place));
	person = 0;
	end();
}

/* Or a machine that starts many processes pays for each with all that others have. */
static void test_the_end_of_other_processes_costs_little(void **state)
{
	struct python_place place;
	struct wire_entry entry;
	uint64_t code;
	clock_t begun;

	begin(12);
	code = ordinary_code();
	for (uint32_t line = 0; line < 4000; line++) {
		entry = entry_of(code, 0, line);
		find_in(1, &entry, &place);
	}
	begun = clock();
	for (uint32_t process = 2; process < 200000; process++)
		python_codes_forget(codes, process);
	assert_in_range(clock() - begun, 0, CLOCKS_PER_SEC / 2);
	assert_int_equal(python_codes_refused(codes), 0);
	entry = entry_of(code, 0, FIRST_LINE);
	memset((void *)(uintptr_t)code, 0, CODE_BYTES);
	assert_true(find_in(1, &entry, &place));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_lines_of_each_version),
		cmocka_unit_test(test_versions_that_are_not_known),
		cmocka_unit_test(test_names_of_wide_characters),
		cmocka_unit_test(test_long_names_are_cut),
		cmocka_unit_test(test_a_line_table_that_is_too_long_tells_the_first_line),
		cmocka_unit_test(test_a_frame_that_has_not_begun),
		cmocka_unit_test(test_another_object_is_at_the_address_by_now),
		cmocka_unit_test(test_strings_that_are_none),
		cmocka_unit_test(test_objects_that_are_no_more),
		cmocka_unit_test(test_a_length_that_leads_out_of_memory),
		cmocka_unit_test(test_memory_that_is_not_there),
		cmocka_unit_test(test_objects_of_processes_are_apart_and_forgotten),
		cmocka_unit_test(test_reads_have_a_rate),
		cmocka_unit_test(test_reads_of_all_have_a_rate),
		cmocka_unit_test(test_memory_has_a_bound),
		cmocka_unit_test(test_memory_of_a_process_has_a_bound),
		cmocka_unit_test(test_memory_of_a_user_has_a_bound),
		cmocka_unit_test(test_reads_of_a_user_leave_others_theirs),
		cmocka_unit_test(test_the_end_of_other_processes_costs_little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
