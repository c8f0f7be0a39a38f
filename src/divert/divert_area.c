// SPDX-License-Identifier: MIT
/* Whether a process is the one that it was, and the area in it for pads and moved code. */
#include "divert/divert_inside.h"

#ifdef __x86_64__

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/process.h"
#include "base/xalloc.h"
#include "probe/maps.h"

#define PAGE 4096u

/* ---- who it is ------------------------------------------------------------------------------- */

static bool read_ids(const char *thread, uint32_t ids[8])
{
	char path[96], line[256];
	int found = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/status", thread);
	file = fopen(path, "re");
	while (file && found < 8 && fgets(line, sizeof(line), file)) {
		const char *form = found ? "Gid: %u %u %u %u" : "Uid: %u %u %u %u";
		uint32_t *to = ids + found;

		if (sscanf(line, form, to, to + 1, to + 2, to + 3) == 4)
			found += 4;
	}
	if (file)
		fclose(file);
	return found == 8;
}

static bool read_exe(pid_t pid, pid_t tid, struct divert_person *person)
{
	struct process_file exe;
	char name[64];

	snprintf(name, sizeof(name), "task/%d/exe", tid);
	if (process_look(pid, PROCESS_FILE, name, &exe, sizeof(exe)) < 0)
		return false;
	person->exe_dev = exe.device;
	person->exe_inode = exe.inode;
	return true;
}

bool area_person(pid_t pid, pid_t tid, struct divert_person *person)
{
	char thread[64];

	memset(person, 0, sizeof(*person));
	tid = tid ? tid : process_living_thread(pid);
	snprintf(thread, sizeof(thread), "/proc/%d/task/%d", pid, tid);
	return read_ids(thread, person->ids) && read_exe(pid, tid, person);
}

bool write_read_at(const struct divert_target *target, uint64_t address, void *to, size_t bytes)
{
	return pread(target->memory, to, bytes, (off_t)address) == (ssize_t)bytes;
}

bool area_is_anothers(const struct divert_target *target, pid_t tid)
{
	struct divert_person person;

	return process_start_time(target->pid) == target->start_time &&
	       area_person(target->pid, tid, &person) && person.exe_dev == target->person.exe_dev &&
	       person.exe_inode == target->person.exe_inode &&
	       memcmp(person.ids, target->person.ids, sizeof(person.ids)) != 0;
}

bool area_open(struct divert_target *target, pid_t tid)
{
	struct divert_person person;
	char path[64];
	uint8_t byte;

	if (target->memory >= 0)
		close(target->memory);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", target->pid, tid);
	target->memory = open(path, O_RDWR | O_CLOEXEC);
	return target->memory >= 0 && process_start_time(target->pid) == target->start_time &&
	       area_person(target->pid, tid, &person) &&
	       memcmp(&person, &target->person, sizeof(person)) == 0 &&
	       (!target->count || write_read_at(target, target->entries[0].address, &byte, 1));
}

/* ---- where it is ----------------------------------------------------------------------------- */

struct area_search {
	const struct divert_target *target;
	bool found;
	uint32_t entries; /* that the module has where they were */
};

/* How many entries of the module a mapping has, at the same addresses. */
static uint32_t entries_in(const struct divert_target *target, const struct mapping *mapping)
{
	uint32_t low = 0, high = target->count, n = 0;

	if (mapping->inode != target->inode || mapping->dev != target->dev || !mapping->private)
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (target->entries[middle].address < mapping->start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < target->count && target->entries[low].address < mapping->end; low++)
		n += target->entries[low].address - mapping->start + mapping->offset ==
		     target->entries[low].offset;
	return n;
}

/* One that has no name: "[vdso]" is not it. */
static int look_at_mapping(const struct mapping *mapping, void *data)
{
	struct area_search *search = data;
	const struct divert_target *target = search->target;

	search->entries += entries_in(target, mapping);
	if (mapping->start <= target->area && target->area < mapping->end)
		search->found = mapping->private && !mapping->writable && !mapping->inode &&
		                (!mapping->path[0] || !strncmp(mapping->path, "[anon:", 6)) &&
		                target->area_bytes <= mapping->end - target->area;
	return 0;
}

int area_find(const struct divert_target *target, struct err *err)
{
	struct area_search search = { target, false, 0 };

	maps_each_code(target->pid, look_at_mapping, &search, NULL);
	if (!search.found)
		return err_set(err, EFAULT,
		               "process %d has no area for moved code where it should be",
		               target->pid);
	if (search.entries != target->count)
		return err_set(err, ESRCH, "process %d has unmapped the library", target->pid);
	return 0;
}

/* ---- what it has ----------------------------------------------------------------------------- */

/* Where something lies in an image of the area. NULL: it does not. */
static uint8_t *place_in(const struct divert_target *target, uint8_t *area, uint64_t address,
                         size_t bytes)
{
	uint64_t offset = address - target->area;

	return offset <= target->area_bytes && bytes <= target->area_bytes - offset ? area + offset
	                                                                            : NULL;
}

/* What is to be in the area. NULL: an entry has its code elsewhere. */
static uint8_t *make_image(const struct divert_target *target)
{
	uint8_t *area = xcalloc(target->area_bytes + 1, 1);

	for (uint32_t i = 0; i < target->count; i++) {
		const struct divert_entry *entry = &target->entries[i];
		const struct entry_move *move = &entry->move;
		uint8_t *moved = place_in(target, area, entry->moved, move->moved_bytes);
		uint8_t *pad = place_in(target, area, entry->pad, move->pad_bytes);

		if (!moved || !pad) {
			free(area);
			return NULL;
		}
		memcpy(moved, move->moved, move->moved_bytes);
		memcpy(pad, move->pad, move->pad_bytes);
	}
	return area;
}

static bool is_all_zero(const uint8_t *bytes, size_t n)
{
	return !n || (!bytes[0] && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* Byte for byte, for each entry; what lies between them may be anything. */
static bool has_code(const struct divert_target *target, uint8_t *area)
{
	for (uint32_t i = 0; i < target->count; i++) {
		const struct divert_entry *entry = &target->entries[i];
		const struct entry_move *move = &entry->move;
		const uint8_t *moved = place_in(target, area, entry->moved, move->moved_bytes);
		const uint8_t *pad = place_in(target, area, entry->pad, move->pad_bytes);

		if (!moved || !pad || memcmp(moved, move->moved, move->moved_bytes) != 0 ||
		    memcmp(pad, move->pad, move->pad_bytes) != 0)
			return false;
	}
	return true;
}

bool area_is_written(const struct divert_target *target)
{
	AT_END(at_end_free) uint8_t *area = xmalloc(target->area_bytes + 1);

	return write_read_at(target, target->area, area, target->area_bytes) &&
	       has_code(target, area);
}

/* At once: all threads are waiting. */
static bool write_image(const struct divert_target *target)
{
	size_t bytes = target->area_bytes;
	AT_END(at_end_free) uint8_t *image = make_image(target);
	bool written = image &&
	               pwrite(target->memory, image, bytes, (off_t)target->area) == (ssize_t)bytes;

	return written && area_is_written(target);
}

/* Makes the pages of an area that has nothing but zeroes. */
static void area_touch(const struct divert_target *target)
{
	AT_END(at_end_free) uint8_t *area = xmalloc(target->area_bytes + 1);

	if (write_read_at(target, target->area, area, target->area_bytes) &&
	    is_all_zero(area, target->area_bytes))
		for (uint64_t at = 0; at < target->area_bytes; at += PAGE)
			if (pwrite(target->memory, area, 1, (off_t)(target->area + at)) != 1)
				break;
}

int area_write(const struct divert_target *target, struct err *err)
{
	uint8_t *area = xmalloc(target->area_bytes + 1);
	bool read = write_read_at(target, target->area, area, target->area_bytes);
	bool zero = read && is_all_zero(area, target->area_bytes);
	bool has = read && has_code(target, area);

	free(area);
	if (!read)
		return err_set(err, EFAULT, "the area for moved code of process %d cannot be read",
		               target->pid);
	if (!zero && !has)
		return err_set(err, EEXIST, "the area of process %d holds other code already",
		               target->pid);
	if (zero && !write_image(target))
		return err_set(err, EFAULT,
		               "the area for moved code of process %d cannot be written",
		               target->pid);
	return 0;
}

#else

bool area_person(pid_t pid, pid_t tid, struct divert_person *person)
{
	return false;
}

#endif

/*
 * What does not have to wait until all threads are stopped. The pages of the module's code are the
 * file's, and the first write to one makes a copy of it for the process. So one byte of each is
 * written beforehand, with what it has already: where an entry is as in the file, with the file's.
 *
 * The process may change its code itself meanwhile, as a library does that diverts functions, too:
 * so each entry is looked at again right before. Should it execute another program right now, that
 * one is written to only where it has the same code at the same place, and keeps it.
 */

#ifdef __x86_64__

#include <string.h>
#include <unistd.h>

#define PAGE_BITS  12
#define SLOWER(ns) ((ns) + (ns) / 4) /* while others write, too */

/* Whether an instruction begins there. */
static bool is_border(const struct entry_move *move, uint32_t offset)
{
	for (uint32_t i = 0; i < move->n_places; i++)
		if (move->place[i].original == offset)
			return true;
	return false;
}

/*
 * A byte that will be written, within an instruction: no probe is ever there, which the kernel
 * could put or take away while the byte is written. 0: there is none.
 */
static uint32_t quiet_byte(const struct entry_move *move)
{
	for (uint32_t i = move->skip + 1; i < move->skip + move->bytes; i++)
		if (!is_border(move, i))
			return i;
	return 0;
}

/* The first byte is left out: a probe of the kernel may have come there, or gone. */
static bool is_still_as_in_file(const struct divert_target *target,
                                const struct divert_entry *entry)
{
	size_t from = entry->move.skip + 1, bytes = entry->move.bytes - 1u;
	uint8_t now[DIVERT_COMPARE];

	return from + bytes <= sizeof(now) &&
	       write_read_at(target, entry->address + from, now, bytes) &&
	       !memcmp(now, entry->file + from, bytes);
}

static bool write_same(const struct divert_target *target, const struct divert_entry *entry)
{
	uint32_t at = quiet_byte(&entry->move);

	return at && pwrite(target->memory, &entry->file[at], 1, (off_t)(entry->address + at)) == 1;
}

/* The second write to a page is as those to come. */
static void measure(struct divert_target *target, const struct divert_entry *entry)
{
	uint64_t begin_ns = stop_now_ns();

	write_same(target, entry);
	target->write_ns = (uint32_t)SLOWER(stop_now_ns() - begin_ns);
}

static void copy_pages(struct divert_target *target)
{
	const struct divert_entry *copied = NULL;
	uint64_t last = 0;

	for (uint32_t i = 0; i < target->count; i++) {
		const struct divert_entry *entry = &target->entries[i];
		uint64_t page = (entry->address + entry->move.skip) >> PAGE_BITS;

		if (entry->refusal || page == last || !is_still_as_in_file(target, entry) ||
		    !write_same(target, entry))
			continue;
		last = page;
		copied = entry;
	}
	if (copied)
		measure(target, copied);
}

void divert_ahead(struct divert_target *target)
{
	write_compare(target, 0);
	copy_pages(target);
	area_touch(target);
}

#endif
