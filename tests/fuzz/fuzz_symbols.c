// SPDX-License-Identifier: MIT
/*
 * What stacks read of untrusted programs: the functions of an ELF file at any place of it, its
 * build id, and a perf map, which is what other input is taken for; and the names found.
 */
#include "plain_names.h"

#include <sys/mman.h>
#include <unistd.h>

#include "probe/plain_name.h"
#include "stack/function_table.h"
#include "stack/perf_map.h"
#include "stack/place.h"

/* That are read of an input. Each may take its time, and a process to follow the one that took it:
 * 30 ms. An input has a second, on a machine that does other work too. */
#define NAMES 4

static int fd = -1;

/* The debug file that a build id leads to has the same bytes. */
static int find_debug(const uint8_t *id, size_t len)
{
	static volatile uint8_t sink;

	CHECK(len > 0);
	for (size_t i = 0; i < len; i++)
		sink ^= id[i]; /* AddressSanitizer sees what is not there */
	return dup(fd);
}

static void use_name(const char *name)
{
	char *plain = read_plain(plain_function_name, function_name_demangle, name);

	place_is_wrapper(plain);
	free(plain);
}

static void use_table(size_t size)
{
	struct function_table *table = NULL;
	struct function_found found;
	struct err err = { 0 };
	size_t step = size / 64 + 1, names = 0;
	int rc = function_table_open(fd, "input", find_debug, &table, &err);

	CHECK((rc == 0) == (table != NULL) && (rc < 0) == (err.text[0] != '\0'));
	if (!table)
		return;
	CHECK(function_table_count(table) <= FUNCTION_TABLE_MAX);
	for (size_t offset = 0; offset <= size; offset += step) {
		if (function_table_find(table, offset, &found))
			continue;
		CHECK(found.name[0] && found.index < function_table_count(table));
		if (names++ < NAMES)
			use_name(found.name);
	}
	function_table_free(table);
}

static void use_map(const uint8_t *data, size_t size)
{
	struct perf_map *map = perf_map_open_file(dup(fd));
	uint64_t address = 0, into;

	for (size_t i = 0; i + 8 <= size; i += size / 16 + 1) {
		const char *name;
		bool late;

		memcpy(&address, data + i, 8);
		name = perf_map_find(map, i % 2 ? address : address & 0xffff, &into, &late);
		CHECK(!name || *name);
	}
	perf_map_free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* one for all: making them costs the kernel more than the rest of a run */
	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
	use_table(size);
	use_map(data, size);
	return 0;
}
