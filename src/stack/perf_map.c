// SPDX-License-Identifier: MIT
#include "stack/perf_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/order.h"
#include "base/process.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/account.h"
#include "trace/format.h"

#define TEXT_MAX   (8u << 20)
#define LINE_BYTES 32 /* few are shorter; of a file of shorter ones not all are kept */

struct perf_map_line {
	uint64_t start, size;
	uint32_t name;  /* offset in the text */
	uint32_t order; /* in the file */
};

struct perf_map {
	int fd;
	off_t read; /* size of the file when it was read */
	char *text;
	struct perf_map_line *lines;
	size_t count;
	uint64_t again_ns; /* not to be read again before */
	struct budget *budget;
	uint32_t owner;
	size_t taken;
};

/* ---- opening ------------------------------------------------------------------------------- */

/* Others can write to /tmp as well, and would give names to this process's code. */
static bool is_its_own(int fd, pid_t pid)
{
	struct stat file, process;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return file_stat(fd, &file) == 0 && S_ISREG(file.st_mode) && stat(path, &process) == 0 &&
	       (file.st_uid == process.st_uid || file.st_uid == 0);
}

struct perf_map *perf_map_open_file(int fd)
{
	struct perf_map *map = xcalloc(1, sizeof(*map));

	map->fd = fd;
	return map;
}

/* By the pid that the process has in its own pid namespace. */
static int open_by_pid(pid_t pid)
{
	uint64_t person = helper_person_of(pid), busy_ns = helper_busy_ns();
	char path[64];
	pid_t own;

	if (look_time_is_over(LOOK_AT_SYMBOLS, person))
		return -EAGAIN;
	own = process_own_number(pid, pid);
	look_time_charge(LOOK_AT_SYMBOLS, person, helper_busy_ns() - busy_ns);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", own ? own : pid);
	return helper_open_in_root(pid, path);
}

struct perf_map *perf_map_open(pid_t pid, struct budget *budget)
{
	int fd = open_by_pid(pid);
	struct perf_map *map;

	if (fd < 0)
		return NULL;
	if (!is_its_own(fd, pid)) {
		close(fd);
		return NULL;
	}
	map = perf_map_open_file(fd);
	map->budget = budget;
	map->owner = (uint32_t)pid;
	return map;
}

void perf_map_free(struct perf_map *map)
{
	if (!map)
		return;
	helper_close(map->fd);
	budget_give(map->budget, map->owner, map->taken);
	free(map->text);
	free(map->lines);
	free(map);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* "7f00aa10 4c py::train:/app/train.py": the numbers, with or without 0x, and the rest. */
static bool parse_line(char *text, struct perf_map_line *line, char **name)
{
	char *end;

	line->start = strtoull(text, &end, 16);
	if (end == text || *end != ' ')
		return false;
	text = end + 1;
	line->size = strtoull(text, &end, 16);
	if (end == text || *end != ' ' || !line->size || line->start + line->size < line->start)
		return false;
	*name = end + 1;
	return **name != '\0';
}

ORDER_BY(compare_lines, struct perf_map_line, UP(start), UP(order));

/* Splits the text into lines; one that is not whole yet is left for the next time. */
static void parse_text(struct perf_map *map, size_t len)
{
	size_t room = 0, most = len / LINE_BYTES + 1024;
	char *next, *name;

	map->count = 0;
	for (char *at = map->text; (next = strchr(at, '\n')) && map->count < most; at = next + 1) {
		if (map->count == room) {
			room = room && 2 * room < most ? 2 * room : room ? most : 1024;
			map->lines = xrealloc(map->lines, room * sizeof(*map->lines));
		}
		*next = '\0';
		if (!parse_line(at, &map->lines[map->count], &name))
			continue;
		text_cut_bytes(name, FORMAT_FRAME_TEXT_MAX - 1);
		map->lines[map->count].name = (uint32_t)(name - map->text);
		map->lines[map->count].order = (uint32_t)map->count;
		map->count++;
	}
	if (map->count)
		qsort(map->lines, map->count, sizeof(*map->lines), compare_lines);
}

static bool take_room(struct perf_map *map, size_t bytes)
{
	if (bytes <= map->taken)
		return true;
	if (!budget_take(map->budget, map->owner, bytes - map->taken))
		return false;
	map->taken = bytes;
	return true;
}

static void read_whole(struct perf_map *map, off_t size)
{
	size_t want = size < (off_t)TEXT_MAX ? (size_t)size : TEXT_MAX, have = 0;

	if (!take_room(map, want + (want / LINE_BYTES + 1024) * sizeof(*map->lines)))
		return;
	map->text = xrealloc(map->text, want + 1);
	while (have < want) {
		ssize_t got = helper_pread(map->fd, map->text + have, want - have, have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	map->text[have] = '\0';
	map->read = size;
	parse_text(map, have);
}

/*
 * Whether there was something new to read. A program that makes its file grow all the time shall
 * not keep us busy: reading may take a tenth of the time, and what its user has of that.
 */
static bool read_again(struct perf_map *map, bool *late)
{
	uint64_t begin_ns = clock_now_ns(), busy_ns = helper_busy_ns(), person;
	struct stat st;

	if (file_stat(map->fd, &st) < 0 || st.st_size == map->read)
		return false;
	person = helper_person_of((pid_t)map->owner);
	*late = begin_ns < map->again_ns || look_time_is_over(LOOK_AT_SYMBOLS, person);
	if (*late)
		return false;
	read_whole(map, st.st_size);
	look_time_charge(LOOK_AT_SYMBOLS, person, helper_busy_ns() - busy_ns);
	map->again_ns = begin_ns + 10 * (clock_now_ns() - begin_ns);
	return true;
}

/* ---- looking up ------------------------------------------------------------------------------ */

/* Of lines with overlapping ranges only near ones are looked at; JITs reuse places whole. */
#define OVERLAPS_MAX 64

static const struct perf_map_line *find_line(const struct perf_map *map, uint64_t address)
{
	const struct perf_map_line *best = NULL;
	size_t low = ARRAY_BEFORE(map->count, i, map->lines[i].start <= address);

	for (size_t back = 1; back <= OVERLAPS_MAX && back <= low; back++) {
		const struct perf_map_line *line = &map->lines[low - back];

		if (address - line->start < line->size && (!best || line->order > best->order))
			best = line;
	}
	return best;
}

const char *perf_map_find(struct perf_map *map, uint64_t address, uint64_t *into_bytes, bool *late)
{
	const struct perf_map_line *line = find_line(map, address);

	*late = false;
	if (!line && read_again(map, late))
		line = find_line(map, address);
	if (!line)
		return NULL;
	*into_bytes = address - line->start;
	return map->text + line->name;
}
