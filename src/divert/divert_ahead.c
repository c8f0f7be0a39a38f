// SPDX-License-Identifier: MIT
/*
 * What does not have to wait until all threads are stopped. The pages of the module's code are the
 * file's, and the first write to one makes a copy of it for the process. So one byte of each is
 * written beforehand, with what it has already: where an entry is as in the file, with the file's.
 *
 * The process may change its code itself meanwhile, as a library does that diverts functions, too:
 * so each entry is looked at again right before. Should it execute another program right now, that
 * one is written to only where it has the same code at the same place, and keeps it.
 */
#include "divert/divert_inside.h"

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
