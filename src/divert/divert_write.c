// SPDX-License-Identifier: MIT
/* What is written into a process, compared before and after, and where its threads are put. */
#include "divert/divert_inside.h"

#ifdef __x86_64__

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/xalloc.h"

#define INT3     0xcc
#define CODE_MAX (4u << 20)

/* Of a stack, the part in which the frame of a signal's handler is looked for. */
#define STACK_BYTES      (64u << 10)
#define STACK_BYTES_MANY (16u << 10)
#define MANY_THREADS     64

/* Written, and then there. */
static bool write_at(const struct divert_target *target, uint64_t address, const void *from,
                     size_t bytes)
{
	uint8_t now[ENTRY_MOVED_MAX];

	return bytes <= sizeof(now) &&
	       pwrite(target->memory, from, bytes, (off_t)address) == (ssize_t)bytes &&
	       write_read_at(target, address, now, bytes) && memcmp(now, from, bytes) == 0;
}

/* ---- where threads are ----------------------------------------------------------------------- */

/* The last entry that begins at or before an address. */
static struct divert_entry *entry_before(const struct divert_target *target, uint64_t address)
{
	size_t low = 0, high = target->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (target->entries[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &target->entries[low - 1] : NULL;
}

/* Where in an entry's written bytes, or between jump and probe, an address is. */
static struct divert_entry *entry_at(const struct divert_target *target, uint64_t address,
                                     uint64_t *offset)
{
	struct divert_entry *entry = entry_before(target, address);

	if (!entry || entry->refusal)
		return NULL;
	*offset = address - entry->address;
	return *offset <= entry->move.probe || *offset < entry->move.skip + entry->move.bytes
	               ? entry
	               : NULL;
}

/* Whether a thread that comes back to an address from a handler would be lost there. */
static bool is_bad_to_come_back_to(const struct divert_target *target, uint64_t address)
{
	const struct divert_entry *entry;
	uint64_t offset;
	uint32_t moved;

	if (address < target->entries[0].address ||
	    address >= target->entries[target->count - 1].address + DIVERT_COMPARE)
		return false;
	entry = entry_at(target, address, &offset);
	return entry && entry_move_step(&entry->move, offset, &moved) != ENTRY_STAYS;
}

/*
 * A signal may have come while a thread was in the first bytes. Then its place lies on the stack,
 * in the frame of the handler, and every aligned word is taken for one.
 */
static bool will_come_back(const struct divert_target *target, const struct stop_thread *thread,
                           size_t bytes)
{
	static uint64_t words[STACK_BYTES / 8];
	struct iovec to = { words, bytes };
	struct iovec from[STACK_BYTES / 4096 + 1];
	uint64_t at = thread->sp & ~7ull, left = bytes;
	size_t n = 0;
	ssize_t got;

	/* by pages: a read ends where the stack does */
	while (left && n < sizeof(from) / sizeof(*from)) {
		uint64_t step = 4096 - at % 4096;

		step = step < left ? step : left;
		from[n++] = (struct iovec){ (void *)(uintptr_t)at, step };
		at += step;
		left -= step;
	}
	got = process_vm_readv(thread->tid, &to, 1, from, n, 0);
	for (ssize_t i = 0; i < got / 8; i++)
		if (is_bad_to_come_back_to(target, words[i]))
			return true;
	return false;
}

static uint64_t handled_signals(pid_t pid)
{
	unsigned long long caught = ~0ull;
	char path[64], line[256];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "SigCgt: %llx", &caught) == 1)
			break;
	if (status)
		fclose(status);
	return caught;
}

/* Handlers run with their own signal blocked, unless SA_NODEFER was asked for. */
static int check_handlers(const struct divert_target *target, const struct stop *stop,
                          struct err *err)
{
	uint64_t caught = handled_signals(target->pid);
	bool many = stop->count > MANY_THREADS;

	for (size_t i = 0; i < stop->count && caught; i++) {
		const struct stop_thread *thread = &stop->threads[i];

		if (!thread->has_regs || (many && !(stop_blocked(thread) & caught)))
			continue;
		if (will_come_back(target, thread, many ? STACK_BYTES_MANY : STACK_BYTES))
			return err_set(err, EAGAIN,
			               "a signal has come to process %d in the first bytes of a "
			               "function",
			               target->pid);
	}
	return 0;
}

/* ---- diverting ------------------------------------------------------------------------------- */

/* The code of all entries, in one read: they lie close to each other. NULL: they do not. */
static uint8_t *read_code(const struct divert_target *target)
{
	uint64_t start = target->entries[0].address;
	uint64_t bytes = target->entries[target->count - 1].address - start + DIVERT_COMPARE;
	uint8_t *code;

	if (bytes > CODE_MAX)
		return NULL;
	code = xmalloc(bytes);
	if (write_read_at(target, start, code, bytes))
		return code;
	free(code);
	return NULL;
}

/* What an entry has now, of what was read before or on its own. */
static const uint8_t *code_of(const struct divert_target *target, const uint8_t *code,
                              const struct divert_entry *entry, size_t bytes, uint8_t *room)
{
	if (code)
		return code + (entry->address - target->entries[0].address);
	return write_read_at(target, entry->address, room, bytes) ? room : NULL;
}

static bool is_as_in_file(const struct divert_target *target, const uint8_t *code,
                          const struct divert_entry *entry)
{
	size_t end = entry->move.skip + entry->move.bytes;
	uint8_t room[DIVERT_COMPARE];
	const uint8_t *now;

	if (end <= entry->move.probe)
		end = entry->move.probe + 1;
	now = end <= sizeof(room) ? code_of(target, code, entry, end, room) : NULL;
	for (size_t i = 0; now && i < end; i++)
		if (now[i] != entry->file[i] && !(i == entry->move.probe && now[i] == INT3))
			return false;
	return now != NULL;
}

static void compare_all(struct divert_target *target)
{
	uint8_t *code = read_code(target);

	for (uint32_t i = 0; i < target->count; i++) {
		struct divert_entry *entry = &target->entries[i];

		entry->refusal = is_as_in_file(target, code, entry) ? ENTRY_MOVABLE : ENTRY_CHANGED;
	}
	free(code);
}

static bool is_written(const struct divert_target *target, const uint8_t *code,
                       const struct divert_entry *entry)
{
	const struct entry_move *move = &entry->move;
	uint8_t room[DIVERT_COMPARE];
	const uint8_t *now = code_of(target, code, entry, move->skip + move->bytes, room);

	return now && !memcmp(now + move->skip, move->written, move->bytes);
}

static bool are_written(const struct divert_target *target)
{
	uint8_t *code = read_code(target);
	bool written = true;

	for (uint32_t i = 0; i < target->count; i++)
		if (target->entries[i].diverted)
			written &= is_written(target, code, &target->entries[i]);
	free(code);
	return written;
}

/* Threads in the first bytes: where they go. One that is within an instruction is another's. */
static void place_threads(const struct divert_target *target, struct stop *stop)
{
	for (size_t i = 0; i < stop->count; i++) {
		struct stop_thread *thread = &stop->threads[i];
		struct divert_entry *entry;
		uint64_t offset;
		uint32_t moved;

		entry = thread->has_regs ? entry_at(target, thread->pc, &offset) : NULL;
		if (!entry)
			continue;
		switch (entry_move_step(&entry->move, offset, &moved)) {
		case ENTRY_STAYS:
			break;
		case ENTRY_AGAIN:
			thread->pc = entry->address + entry->move.skip;
			thread->changed = true;
			break;
		case ENTRY_MOVES:
			thread->pc = entry->moved + moved;
			thread->changed = true;
			break;
		case ENTRY_BETWEEN:
			entry->refusal = ENTRY_CHANGED;
		}
	}
}

static void undo_jumps(struct divert_target *target)
{
	for (uint32_t i = 0; i < target->count; i++) {
		struct divert_entry *entry = &target->entries[i];

		if (entry->diverted)
			write_at(target, entry->address + entry->move.skip,
			         entry->file + entry->move.skip, entry->move.bytes);
		entry->diverted = false;
	}
}

static bool put_jumps(struct divert_target *target)
{
	for (uint32_t i = 0; i < target->count; i++) {
		struct divert_entry *entry = &target->entries[i];
		const struct entry_move *move = &entry->move;

		if (entry->refusal)
			continue;
		entry->diverted = true;
		if (pwrite(target->memory, move->written, move->bytes,
		           (off_t)(entry->address + move->skip)) != (ssize_t)move->bytes)
			return false;
	}
	return are_written(target);
}

int write_jumps(struct divert_target *target, struct stop *stop, struct err *err)
{
	int rc;

	if (!target->count)
		return 0;
	compare_all(target);
	rc = check_handlers(target, stop, err);
	if (rc)
		return rc;
	place_threads(target, stop);
	/* Before any jump is there: should this process be killed, no thread is left within one. */
	if (stop_place(stop) && put_jumps(target))
		return 0;
	undo_jumps(target);
	return err_set(err, EFAULT, "the code of process %d cannot be written", target->pid);
}

/* ---- putting back ---------------------------------------------------------------------------- */

/*
 * Whether the jump is there. Others may have put a breakpoint over its first byte, or taken one
 * away, which leaves the file's byte there. A breakpoint stays: *kept is 1.
 */
static bool has_jump(const struct divert_target *target, const uint8_t *code,
                     const struct divert_entry *entry, size_t *kept)
{
	const struct entry_move *move = &entry->move;
	const uint8_t *file = entry->file + move->skip;
	uint8_t room[DIVERT_COMPARE];
	const uint8_t *now = code_of(target, code, entry, move->skip + move->bytes, room);

	if (!now || memcmp(now + move->skip + 1, move->written + 1, move->bytes - 1) != 0)
		return false;
	now += move->skip;
	*kept = now[0] == INT3;
	return *kept || now[0] == move->written[0] || now[0] == file[0];
}

static bool put_back_one(const struct divert_target *target, const uint8_t *code,
                         const struct divert_entry *entry)
{
	const uint8_t *file = entry->file + entry->move.skip;
	uint64_t at = entry->address + entry->move.skip;
	size_t kept, bytes;

	if (!has_jump(target, code, entry, &kept))
		return false;
	bytes = entry->move.bytes - kept;
	return pwrite(target->memory, file + kept, bytes, (off_t)(at + kept)) == (ssize_t)bytes;
}

static void to_pads(const struct divert_target *target, const uint8_t *code, struct stop *stop)
{
	for (size_t i = 0; i < stop->count; i++) {
		struct stop_thread *thread = &stop->threads[i];
		const struct divert_entry *entry;
		uint64_t offset;
		size_t kept;

		entry = thread->has_regs ? entry_at(target, thread->pc, &offset) : NULL;
		if (!entry || !entry->diverted || !entry_move_to_pad(&entry->move, offset) ||
		    !has_jump(target, code, entry, &kept))
			continue;
		thread->pc = entry->pad;
		thread->changed = true;
	}
}

bool write_back(struct divert_target *target, struct stop *stop, uint32_t *put_back,
                uint32_t *changed)
{
	uint8_t *code = target->count ? read_code(target) : NULL;

	to_pads(target, code, stop);
	if (!stop_place(stop)) {
		free(code);
		return false;
	}
	for (uint32_t i = 0; i < target->count; i++) {
		struct divert_entry *entry = &target->entries[i];

		if (!entry->diverted)
			continue;
		if (put_back_one(target, code, entry))
			++*put_back;
		else
			++*changed;
		entry->diverted = false;
	}
	free(code);
	return true;
}

#endif
