// SPDX-License-Identifier: MIT
/* The rule of one address, which is to be the same that all rows of the file have for it. */
#include "unwind/frame_find.h"

#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/inject_stack.h"
#include "unwind/frame_rows.h"

#define ENOUGH ((size_t)256 << 20)

struct file {
	int fd;
	struct elf_image image;
	struct frame_rows rows;
	struct frame_find find;
};

/* Of this program. */
static void open_file(struct file *file)
{
	file->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(file->fd >= 0);
	assert_int_equal(elf_image_open(&file->image, file->fd, "this program", NULL), 0);
	assert_int_equal(frame_rows_read(file->fd, "this program", ENOUGH, &file->rows, NULL), 0);
	assert_true(frame_find_read(&file->image, ENOUGH, &file->find));
}

static void close_file(struct file *file)
{
	frame_find_free(&file->find);
	frame_rows_free(&file->rows);
	elf_image_close(&file->image);
	close(file->fd);
}

static bool is_plain(const struct wire_rule *rule)
{
	return rule->cfa_kind == CFA_NONE || rule->cfa_kind == CFA_OTHER;
}

static void test_each_row_of_a_file_is_found(void **state)
{
	uint32_t found = 0;
	struct file file;

	open_file(&file);
	assert_true(file.rows.n_rows > 1000);
	for (uint32_t i = 0; i < file.rows.n_rows; i++) {
		const struct wire_rule *wanted = &file.rows.rules[file.rows.rows[i].rule];
		uint64_t address = file.rows.base + file.rows.rows[i].address;
		struct wire_rule rule;

		if (!frame_find_rule(&file.find, address, &rule)) {
			assert_true(is_plain(wanted));
			continue;
		}
		found++;
		if (memcmp(&rule, wanted, sizeof(rule)))
			fail_msg("another rule at %#lx", (unsigned long)address);
	}
	assert_true(found > 1000);
	close_file(&file);
}

static void test_where_no_function_is_there_is_no_rule(void **state)
{
	struct wire_rule rule;
	struct file file;

	open_file(&file);
	assert_false(frame_find_rule(&file.find, 0, &rule));
	assert_false(frame_find_rule(&file.find, UINT64_MAX, &rule));
	assert_false(frame_find_rule(&file.find, file.rows.base + UINT32_MAX, &rule));
	close_file(&file);
}

static void test_what_is_too_large_is_not_read(void **state)
{
	struct frame_find find;
	struct file file;

	open_file(&file);
	assert_false(frame_find_read(&file.image, file.find.bytes - 1, &find));
	assert_true(frame_find_read(&file.image, file.find.bytes, &find));
	frame_find_free(&find);
	close_file(&file);
}

/* A table may say anything: the file is a stranger's. */
static void test_a_damaged_table_leads_nowhere_else(void **state)
{
	struct wire_rule rule;
	struct file file;
	uint8_t *table, *data;

	open_file(&file);
	table = (uint8_t *)file.find.table;
	data = (uint8_t *)file.find.section.data;
	for (unsigned seed = 1; seed <= 64; seed++) {
		unsigned number = seed * 2654435761u;

		for (int i = 0; i < 256; i++) {
			number = number * 1664525u + 1013904223u;
			table[number % (file.find.count * 8)] ^= (uint8_t)(number >> 24);
			data[(number >> 3) % file.find.section.bytes] ^= (uint8_t)(number >> 16);
		}
		for (uint32_t i = 0; i < file.rows.n_rows; i += 97)
			frame_find_rule(&file.find, file.rows.base + file.rows.rows[i].address,
			                &rule);
	}
	close_file(&file);
}

static void test_names_that_hold_locks(void **state)
{
	static const char *const hold[] = { "malloc",
		                            "__libc_calloc",
		                            "_int_free",
		                            "_Znwm",
		                            "_ZdlPvm",
		                            "je_malloc_default",
		                            "tc_free",
		                            "dlopen",
		                            "_dl_catch_exception",
		                            "__libc_fork",
		                            "_ZN8tcmalloc8SpinLock8SlowLockEv" };
	static const char *const not [] = { "poll",           "__poll", "mallocate",
		                            "cuMemAlloc_v2",  "freeze", "PyObject_Malloc",
		                            "clock_nanosleep" };

	for (size_t i = 0; i < sizeof(hold) / sizeof(*hold); i++)
		if (!thread_stacks_name_holds(hold[i]))
			fail_msg("%s holds none", hold[i]);
	for (size_t i = 0; i < sizeof(not ) / sizeof(*not ); i++)
		if (thread_stacks_name_holds(not [i]))
			fail_msg("%s holds some", not [i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_row_of_a_file_is_found),
		cmocka_unit_test(test_where_no_function_is_there_is_no_rule),
		cmocka_unit_test(test_what_is_too_large_is_not_read),
		cmocka_unit_test(test_a_damaged_table_leads_nowhere_else),
		cmocka_unit_test(test_names_that_hold_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
