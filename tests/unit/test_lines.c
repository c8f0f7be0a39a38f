// SPDX-License-Identifier: MIT
/* Streams of lines and packets: what is in a file afterwards, whatever went wrong. */
#include "base/lines.h"

#include <errno.h>
#include <sys/stat.h>
#include <zlib.h>

#include "failing_output.h"

static char path[] = "/tmp/cuscope-lines-XXXXXX";

static FILE *new_file_of_nothing(void)
{
	strcpy(path + sizeof(path) - 7, "XXXXXX");
	return fdopen(mkstemp(path), "w+");
}

static size_t size_of(FILE *file)
{
	struct stat st;

	fflush(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	return (size_t)st.st_size;
}

static void close_and_remove(FILE *file)
{
	fclose(file);
	unlink(path);
}

static void test_a_full_disk_leaves_whole_lines(void **state)
{
	FILE *file = new_file_of_nothing();
	struct lines lines;
	struct err err = { 0 };

	lines_init(&lines, file, "the trace");
	limit_file_size(1005);
	for (int i = 0; i < 200; i++)
		buf_puts(&lines.pending, "123456789\n");
	assert_int_equal(lines_flush(&lines, &err), -EFBIG);
	unlimit_file_size();
	assert_int_equal(size_of(file), 1000);
	lines_free(&lines);
	close_and_remove(file);
}

/* Where a packet ends cannot be seen: all that was under way goes. */
static void test_a_full_disk_leaves_whole_packets(void **state)
{
	FILE *file = new_file_of_nothing();
	struct lines lines;
	struct err err = { 0 };

	lines_init(&lines, file, "the trace");
	lines.binary = true;
	limit_file_size(1005);
	buf_puts(&lines.pending, "a packet\nwith a line end");
	assert_int_equal(lines_flush(&lines, &err), 0);
	for (int i = 0; i < 200; i++)
		buf_puts(&lines.pending, "123456789\n");
	assert_int_equal(lines_flush(&lines, &err), -EFBIG);
	unlimit_file_size();
	assert_int_equal(size_of(file), strlen("a packet\nwith a line end"));
	lines_free(&lines);
	close_and_remove(file);
}

static void test_compressed_lines_come_back(void **state)
{
	FILE *file = new_file_of_nothing();
	size_t want = 0, got = 0;
	struct lines lines;
	struct err err = { 0 };
	char piece[1000];
	gzFile packed;
	int n;

	lines_init(&lines, file, "the trace");
	lines_compress(&lines);
	for (int i = 0; i < 50000; i++) {
		buf_printf(&lines.pending, "line %d\n", i);
		want += snprintf(piece, sizeof(piece), "line %d\n", i);
		assert_int_equal(lines_added(&lines, &err), 0);
	}
	assert_int_equal(lines_end(&lines, &err), 0);
	assert_true(size_of(file) < want / 2);
	packed = gzopen(path, "r");
	while ((n = gzread(packed, piece, sizeof(piece))) > 0)
		got += n;
	assert_int_equal(n, 0);
	assert_int_equal(gzclose(packed), Z_OK);
	assert_int_equal(got, want);
	lines_free(&lines);
	close_and_remove(file);
}

/* A format that opens its file itself has no stream, but its failures go the same way. */
static void test_without_a_stream_failures_pass(void **state)
{
	struct lines lines;
	struct err err = { 0 };

	lines_init(&lines, NULL, "the trace");
	assert_int_equal(lines_flush(&lines, &err), 0);
	err_set(&lines.failure, EIO, "the database is broken");
	assert_int_equal(lines_added(&lines, &err), -EIO);
	assert_string_equal(err.text, "the database is broken");
	lines_free(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_full_disk_leaves_whole_lines),
		cmocka_unit_test(test_a_full_disk_leaves_whole_packets),
		cmocka_unit_test(test_compressed_lines_come_back),
		cmocka_unit_test(test_without_a_stream_failures_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
