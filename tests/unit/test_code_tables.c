// SPDX-License-Identifier: MIT
/* Rows of files for the programs: each file once, within its limits, and gone with its last user.
 */
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "fake_maps.h"
#include "mapped_files.h"
#include "agent/agent_library.h"
#include "base/array.h"
#include "probe/person.h"
#include "unwind/code_tables.h"

static struct code_tables *tables;
static struct code_figures figures;

static void begin(size_t each, size_t all)
{
	fake_rules = 0;
	tables = code_tables_new(FAKE_FILES, FAKE_RULES, NULL, NULL);
	code_tables_limit(tables, each, all, 0);
}

static void end(void)
{
	code_tables_free(tables);
	assert_int_equal(fake_tables(), 0);
}

static struct code_table *hold_of(uint64_t person, const struct mapped_file *file)
{
	struct code_table *table = code_tables_hold(tables, getpid(), person, &file->mapping, true);

	code_tables_tell(tables);
	return table;
}

static struct code_table *hold(const struct mapped_file *file)
{
	return hold_of(PERSON_ROOT, file);
}

static void drop(struct code_table *table)
{
	code_tables_drop(tables, &table, 1);
}

static struct code_figures figures_now(void)
{
	code_tables_figures(tables, &figures);
	return figures;
}

/* ---- each file once -------------------------------------------------------------------------- */

static void test_who_maps_a_file_again_shares_its_table(void **state)
{
	struct code_table *first, *second;
	struct mapped_file file;

	begin(0, 0);
	mapped_begin(&file);
	first = hold(&file);
	second = hold(&file);
	assert_non_null(first);
	assert_ptr_equal(first, second);
	assert_true(code_table_number(first) > UNWIND_FILE_BARE);
	assert_int_equal(fake_tables(), 1);
	assert_int_equal(figures_now().files, 1);
	assert_true(figures.rows > 10000);
	drop(first);
	assert_int_equal(fake_tables(), 1);
	drop(second);
	assert_int_equal(fake_tables(), 0);
	assert_int_equal(figures_now().files, 0);
	assert_int_equal(figures.bytes, 0);
	assert_int_equal(figures.rows, 0);
	assert_int_equal(figures.tables_ever, 1);
	mapped_end(&file);
	end();
}

/* Each change makes who asks for it wait for the programs. */
static void check_together(bool no_batches, unsigned changes)
{
	struct mapped_file files[3];

	begin(0, 0);
	fake_no_batches = no_batches;
	fake_changes = 0;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		mapped_begin(&files[i]);
		code_tables_hold(tables, getpid(), PERSON_ROOT, &files[i].mapping, true);
	}
	assert_int_equal(fake_tables(), 0);
	code_tables_tell(tables);
	assert_int_equal(fake_tables(), ARRAY_SIZE(files));
	assert_int_equal(fake_changes, changes);
	code_tables_tell(tables);
	assert_int_equal(fake_changes, changes);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		mapped_end(&files[i]);
	end();
	assert_int_equal(fake_changes, 2 * changes); /* and taken back together */
	fake_no_batches = false;
}

static void test_tables_are_told_together(void **state)
{
	check_together(false, 1);
	check_together(true, 3); /* as kernels do that take no batches */
}

static void test_a_table_that_waits_can_be_dropped(void **state)
{
	struct mapped_file file;

	begin(0, 0);
	mapped_begin(&file);
	drop(code_tables_hold(tables, getpid(), PERSON_ROOT, &file.mapping, true));
	code_tables_tell(tables);
	assert_int_equal(fake_tables(), 0);
	mapped_end(&file);
	end();
}

/* Rules are kept once for all files: a copy of a file brings none. */
static void test_files_share_rules(void **state)
{
	struct mapped_file files[2];
	unsigned after_first;

	begin(0, 0);
	mapped_begin(&files[0]);
	mapped_begin(&files[1]);
	hold(&files[0]);
	after_first = fake_rules;
	assert_true(after_first > 50);
	hold(&files[1]);
	assert_int_equal(fake_tables(), 2);
	assert_int_equal(fake_rules, after_first);
	mapped_end(&files[0]);
	mapped_end(&files[1]);
	end();
}

static void test_a_file_that_was_written_anew_is_another(void **state)
{
	struct code_table *before, *after;
	struct mapped_file file;
	int fd;

	begin(0, 0);
	mapped_begin(&file);
	before = hold(&file);
	fd = open(file.path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "", 1), 1);
	close(fd);
	after = hold(&file);
	assert_ptr_not_equal(before, after);
	assert_int_not_equal(code_table_number(before), code_table_number(after));
	assert_int_equal(figures_now().files, 2);
	drop(before);
	assert_int_equal(figures_now().files, 1);
	mapped_end(&file);
	end();
}

static void test_new_files_are_read_only_by_who_may(void **state)
{
	struct mapped_file file;

	begin(0, 0);
	mapped_begin(&file);
	assert_null(code_tables_hold(tables, getpid(), PERSON_ROOT, &file.mapping, false));
	assert_int_equal(figures_now().tables_ever, 0);
	assert_non_null(hold(&file));
	assert_non_null(code_tables_hold(tables, getpid(), PERSON_ROOT, &file.mapping, false));
	mapped_end(&file);
	end();
}

static void test_the_vdso_is_a_file_as_others(void **state)
{
	struct mapping vdso = mapped_find(0, "[vdso]");
	struct code_table *table;

	begin(0, 0);
	table = code_tables_hold(tables, getpid(), PERSON_ROOT, &vdso, true);
	assert_non_null(table);
	assert_true(code_table_number(table) > UNWIND_FILE_BARE);
	end();
}

static void test_a_file_that_is_none_of_ours_has_no_rows(void **state)
{
	struct mapped_file file;
	struct code_table *table;

	begin(0, 0);
	mapped_begin(&file);
	assert_int_equal(truncate(file.path, 0), 0);
	table = hold(&file);
	assert_non_null(table);
	assert_int_equal(code_table_number(table), UNWIND_FILE_NONE);
	assert_int_equal(fake_tables(), 0);
	mapped_end(&file);
	end();
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void test_a_process_brings_as_much_as_it_may(void **state)
{
	struct mapped_file files[3];
	struct code_table *table;
	size_t one;

	begin(0, 0);
	mapped_begin(&files[0]);
	hold(&files[0]);
	one = figures_now().bytes;
	end();

	begin(2 * one, 100 * one);
	for (int i = 0; i < 3; i++) {
		if (i)
			mapped_begin(&files[i]);
		table = hold(&files[i]);
		assert_non_null(table);
		assert_int_equal(code_table_number(table) != UNWIND_FILE_NONE, i < 2);
	}
	assert_int_equal(figures_now().bytes, 2 * one);
	assert_int_equal(figures.without_room, 1);
	drop(table);
	for (int i = 0; i < 3; i++)
		mapped_end(&files[i]);
	end();
}

/* What one has brought that others use, too, is of its share alone. */
static void test_another_process_has_a_share_of_its_own(void **state)
{
	struct mapped_file mine, its;
	struct code_table *table;
	size_t one;
	pid_t child;

	mapped_begin(&mine);
	mapped_begin(&its);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* where the test fails */
		pause();
		_exit(0);
	}
	begin(0, 0);
	hold(&mine);
	one = figures_now().bytes;
	end();
	begin(one, one + one / 2);
	assert_int_not_equal(code_table_number(hold(&mine)), UNWIND_FILE_NONE);
	table = code_tables_hold(tables, child, PERSON_ROOT, &mine.mapping, true);
	assert_int_not_equal(code_table_number(table), UNWIND_FILE_NONE);
	table = code_tables_hold(tables, child, PERSON_ROOT, &its.mapping, true);
	assert_int_equal(code_table_number(table), UNWIND_FILE_NONE); /* all have too much */
	end();
	begin(one, 2 * one);
	hold(&mine);
	table = code_tables_hold(tables, child, PERSON_ROOT, &its.mapping, true);
	assert_int_not_equal(code_table_number(table), UNWIND_FILE_NONE);
	assert_int_equal(figures_now().without_room, 0);
	end();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	mapped_end(&mine);
	mapped_end(&its);
}

static void test_room_that_was_given_back_can_be_had_again(void **state)
{
	struct mapped_file files[2];
	struct code_table *table;
	size_t one;

	begin(0, 0);
	mapped_begin(&files[0]);
	mapped_begin(&files[1]);
	table = hold(&files[0]);
	one = figures_now().bytes;
	end();
	begin(one, 0);
	for (int i = 0; i < 10; i++) {
		table = hold(&files[i % 2]);
		assert_int_not_equal(code_table_number(table), UNWIND_FILE_NONE);
		drop(table);
	}
	assert_int_equal(figures_now().tables_ever, 10);
	assert_int_equal(figures.bytes_most, one);
	mapped_end(&files[0]);
	mapped_end(&files[1]);
	end();
}

#define USER 1000

/* However many processes it has: root's and others' files are walked through all the same. */
static void test_a_user_has_three_quarters_of_the_bytes(void **state)
{
	struct mapped_file files[5];
	size_t one;

	begin(0, 0);
	mapped_begin(&files[0]);
	hold(&files[0]);
	one = figures_now().bytes;
	end();
	begin(100 * one, 4 * one);
	for (int i = 0; i < 5; i++) {
		if (i)
			mapped_begin(&files[i]);
		assert_int_equal(code_table_number(hold_of(i < 4 ? USER : USER + 1, &files[i])) !=
		                         UNWIND_FILE_NONE,
		                 i != 3);
	}
	assert_int_equal(figures_now().without_room, 1);
	for (int i = 0; i < 5; i++)
		mapped_end(&files[i]);
	end();
}

/* They are kept to the end, so one who brings ever new ones would have all. */
static void test_a_user_has_three_quarters_of_the_rules(void **state)
{
	struct mapped_file files[2];
	unsigned of_one;

	begin(0, 0);
	mapped_begin(&files[0]);
	mapped_begin(&files[1]);
	hold(&files[0]);
	of_one = fake_rules;
	end();
	begin(0, 0);
	code_tables_limit(tables, 0, 0, of_one + 8);
	assert_int_equal(code_table_number(hold_of(USER, &files[0])), UNWIND_FILE_NONE);
	assert_int_equal(fake_rules, (of_one + 8) / 4 * 3);
	assert_int_equal(figures_now().without_room, 1);
	assert_int_not_equal(code_table_number(hold(&files[1])), UNWIND_FILE_NONE);
	mapped_end(&files[0]);
	mapped_end(&files[1]);
	end();
}

/* ---- probes in files ------------------------------------------------------------------------- */

static unsigned probes_made, told_again;
static pid_t not_probed; /* a process that is no target */

static int marked(void *data, pid_t pid, enum code_mark mark, int fd, uint64_t offset)
{
	assert_int_equal(mark, CODE_WALKS);
	assert_true(offset > 0 && offset < 1 << 20);
	if (pid == not_probed)
		return -EACCES;
	if (fd < 0) {
		told_again++;
		return -EINVAL;
	}
	probes_made++;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void begin_marked(void)
{
	probes_made = told_again = 0;
	not_probed = 0;
	tables = code_tables_new(FAKE_FILES, FAKE_RULES, marked, NULL);
}

static void agent_library(struct mapped_file *file)
{
	size_t n;
	const void *bytes = agent_library_bytes(&n);

	mapped_new(file, NULL, bytes, n);
}

/* Whoever holds it first. */
static void test_a_file_is_probed_once_for_one_who_is_a_target(void **state)
{
	struct mapped_file file;
	struct code_table *held[3];

	begin_marked();
	agent_library(&file);
	not_probed = getpid();
	held[0] = hold_of(1000, &file);
	assert_int_equal(probes_made, 0);
	not_probed = 0;
	held[1] = hold_of(1001, &file);
	assert_int_equal(told_again, 0);
	held[2] = hold_of(1001, &file); /* it is that process's as well */
	assert_int_equal(probes_made, 1);
	assert_int_equal(told_again, 1);
	code_tables_drop(tables, held, 3);
	held[0] = hold_of(1000, &file);
	assert_int_equal(probes_made, 2);
	drop(held[0]);
	mapped_end(&file);
	end();
}

/* Files with the agent's symbol cost nobody else his probes: a process has two. */
static void test_a_process_has_few_probes_in_its_files(void **state)
{
	struct mapped_file files[4];
	struct code_table *held[ARRAY_SIZE(files)];

	begin_marked();
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		agent_library(&files[i]);
		held[i] = hold_of(1000, &files[i]);
	}
	assert_int_equal(probes_made, 2);
	assert_int_equal(figures_now().without_probe, 2);
	drop(held[0]);
	assert_ptr_equal(hold_of(1000, &files[3]), held[3]);
	assert_int_equal(probes_made, 3);
	code_tables_unmark(tables);
	assert_ptr_equal(hold_of(1000, &files[3]), held[3]);
	assert_int_equal(probes_made, 3);
	for (size_t i = 1; i < ARRAY_SIZE(files); i++)
		drop(held[i]);
	drop(held[3]);
	drop(held[3]);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		mapped_end(&files[i]);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_maps_a_file_again_shares_its_table),
		cmocka_unit_test(test_a_file_is_probed_once_for_one_who_is_a_target),
		cmocka_unit_test(test_a_process_has_few_probes_in_its_files),
		cmocka_unit_test(test_tables_are_told_together),
		cmocka_unit_test(test_a_table_that_waits_can_be_dropped),
		cmocka_unit_test(test_files_share_rules),
		cmocka_unit_test(test_a_file_that_was_written_anew_is_another),
		cmocka_unit_test(test_new_files_are_read_only_by_who_may),
		cmocka_unit_test(test_the_vdso_is_a_file_as_others),
		cmocka_unit_test(test_a_file_that_is_none_of_ours_has_no_rows),
		cmocka_unit_test(test_a_process_brings_as_much_as_it_may),
		cmocka_unit_test(test_another_process_has_a_share_of_its_own),
		cmocka_unit_test(test_room_that_was_given_back_can_be_had_again),
		cmocka_unit_test(test_a_user_has_three_quarters_of_the_bytes),
		cmocka_unit_test(test_a_user_has_three_quarters_of_the_rules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
