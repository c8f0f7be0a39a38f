// SPDX-License-Identifier: MIT
/* What is written into a process, compared before and after, and where its threads are put. */
#include "divert/divert_inside.h"

#ifdef __x86_64__

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/process.h"

#define INT3     0xcc
#define PAGE     4096u
#define WRITE_NS 2000u /* for one entry by one thread, where that was not measured */

/* Of a stack, the part in which the frame of a signal's handler is looked for. */
#define STACK_BYTES      (64u << 10)
#define STACK_BYTES_MANY (16u << 10)
#define MANY_THREADS     64

/* What is found on a stack. */
static uint64_t words[STACK_BYTES / 8];

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
	size_t low = ARRAY_BEFORE(target->count, i, target->entries[i].address <= address);

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

	process_status(pid, 0, "SigCgt: %llx", &caught);
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
		if (!stop_left_ns(stop))
			break; /* which is told later */
		if (will_come_back(target, thread, many ? STACK_BYTES_MANY : STACK_BYTES))
			return err_set(err, EAGAIN,
			               "a signal has come to process %d in the first bytes of a "
			               "function",
			               target->pid);
	}
	return 0;
}

/* ---- diverting ------------------------------------------------------------------------------- */

static bool is_as_in_file(const struct divert_target *target, const struct divert_entry *entry)
{
	size_t end = entry->move.skip + entry->move.bytes;
	const uint8_t *now;

	if (end <= entry->move.probe)
		end = entry->move.probe + 1;
	now = end <= DIVERT_COMPARE ? divert_code_at(target->code, target, entry, end) : NULL;
	for (size_t i = 0; now && i < end; i++)
		if (now[i] != entry->file[i] && !(i == entry->move.probe && now[i] == INT3))
			return false;
	return now != NULL;
}

void write_compare(struct divert_target *target, pid_t tid)
{
	divert_code_read(target->code, target, tid);
	for (uint32_t i = 0; i < target->count; i++) {
		struct divert_entry *entry = &target->entries[i];

		entry->refusal = is_as_in_file(target, entry) ? ENTRY_MOVABLE : ENTRY_CHANGED;
	}
}

static bool is_written(const struct divert_target *target, const struct divert_entry *entry)
{
	const struct entry_move *move = &entry->move;
	const uint8_t *now = divert_code_at(target->code, target, entry, move->skip + move->bytes);

	return now && !memcmp(now + move->skip, move->written, move->bytes);
}

static bool are_written(const struct divert_target *target)
{
	bool written = true;

	divert_code_read(target->code, target, target->tid);
	for (uint32_t i = 0; i < target->count; i++)
		if (target->entries[i].diverted)
			written &= is_written(target, &target->entries[i]);
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

/* Those that are refused are done. */
static bool put_jump(const struct divert_target *target, struct divert_entry *entry)
{
	const struct entry_move *move = &entry->move;

	if (entry->refusal)
		return true;
	entry->diverted = true;
	return pwrite(target->memory, move->written, move->bytes,
	              (off_t)(entry->address + move->skip)) == (ssize_t)move->bytes;
}

static bool put_jumps(struct divert_target *target)
{
	divert_writers_run(target->writers, target, put_jump);
	return are_written(target);
}

int write_jumps(struct divert_target *target, struct stop *stop, struct err *err)
{
	int rc;

	if (!target->count)
		return 0;
	write_compare(target, target->tid);
	rc = check_handlers(target, stop, err);
	if (rc)
		return rc;
	if (stop_left_ns(stop) < write_time_ns(target))
		return err_set(err, EAGAIN,
		               "there was no time left to write the code of process %d",
		               target->pid);
	place_threads(target, stop);
	/* Before any jump is there: should this process be killed, no thread is left within one. */
	if (stop_place(stop) && put_jumps(target))
		return 0;
	undo_jumps(target);
	return err_set(err, EFAULT, "the code of process %d cannot be written", target->pid);
}

void write_touch(const struct divert_target *target)
{
	volatile uint8_t *entries = (volatile uint8_t *)target->entries, *stack = (void *)words;
	size_t bytes = target->count * sizeof(*target->entries);

	for (size_t i = 0; i < bytes; i += PAGE)
		entries[i] = entries[i];
	for (size_t i = 0; i < sizeof(words); i += PAGE)
		stack[i] = 0;
}

uint64_t write_time_ns(const struct divert_target *target)
{
	uint64_t all_ns = target->count * (target->write_ns ? target->write_ns : WRITE_NS);

	/* of two threads the second one saves a third, rather than half */
	return all_ns * 2 / (1 + divert_writers_count(target->writers));
}

/* ---- putting back ---------------------------------------------------------------------------- */

/*
 * Whether the jump is there. Others may have put a breakpoint over its first byte, or taken one
 * away, which leaves the file's byte there. A breakpoint stays: *kept is 1.
 */
static bool has_jump(const struct divert_target *target, const struct divert_entry *entry,
                     size_t *kept)
{
	const struct entry_move *move = &entry->move;
	const uint8_t *file = entry->file + move->skip;
	const uint8_t *now = divert_code_at(target->code, target, entry, move->skip + move->bytes);

	if (!now || memcmp(now + move->skip + 1, move->written + 1, move->bytes - 1) != 0)
		return false;
	now += move->skip;
	*kept = now[0] == INT3;
	return *kept || now[0] == move->written[0] || now[0] == file[0];
}

/* By an earlier try, or never written: a try that was given up tells nothing. */
static bool was_back(const struct divert_target *target, const struct divert_entry *entry)
{
	const struct entry_move *move = &entry->move;
	const uint8_t *then = divert_code_at(target->code, target, entry, move->skip + move->bytes);

	return then && !memcmp(then + move->skip, entry->file + move->skip, move->bytes);
}

static bool put_back_one(const struct divert_target *target, struct divert_entry *entry)
{
	const uint8_t *file = entry->file + entry->move.skip;
	uint64_t at = entry->address + entry->move.skip;
	size_t kept, bytes;

	if (!entry->diverted || !has_jump(target, entry, &kept))
		return false;
	bytes = entry->move.bytes - kept;
	return pwrite(target->memory, file + kept, bytes, (off_t)(at + kept)) == (ssize_t)bytes;
}

static void to_pads(const struct divert_target *target, struct stop *stop)
{
	for (size_t i = 0; i < stop->count; i++) {
		struct stop_thread *thread = &stop->threads[i];
		const struct divert_entry *entry;
		uint64_t offset;
		size_t kept;

		entry = thread->has_regs ? entry_at(target, thread->pc, &offset) : NULL;
		if (!entry || !entry->diverted || !entry_move_to_pad(&entry->move, offset) ||
		    !has_jump(target, entry, &kept))
			continue;
		thread->pc = entry->pad;
		thread->changed = true;
	}
}

bool write_back(struct divert_target *target, struct stop *stop, uint32_t *put_back,
                uint32_t *changed)
{
	divert_code_read(target->code, target, target->tid);
	to_pads(target, stop);
	if (!stop_place(stop))
		return false;
	divert_writers_run(target->writers, target, put_back_one);
	for (uint32_t i = 0; i < target->count; i++) {
		struct divert_entry *entry = &target->entries[i];

		*put_back += entry->written;
		*changed += entry->diverted && !entry->written && !was_back(target, entry);
		entry->diverted = false;
	}
	return true;
}

#endif

#ifdef __x86_64__

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/xalloc.h"

#define GAP_MAX   512u /* between entries that are read together */
#define AT_ONCE   512  /* runs */
#define RUN_BYTES (64u << 10)

/* Entries that are read together. */
struct run {
	uint64_t start;
	uint32_t bytes, at; /* at: in the copy */
	bool read;
};

struct divert_code {
	struct run *runs;
	size_t count, bytes;
	uint32_t *run_of; /* of each entry */
	uint8_t *copy;
};

static struct run *add_run(struct divert_code *code, uint64_t start)
{
	struct run *run = &code->runs[code->count++];

	*run = (struct run){ .start = start, .bytes = DIVERT_COMPARE, .at = (uint32_t)code->bytes };
	code->bytes += DIVERT_COMPARE;
	return run;
}

/* The entry is within the run, or close behind it. */
static bool joins(const struct run *run, uint64_t address)
{
	return address <= run->start + run->bytes + GAP_MAX &&
	       address + DIVERT_COMPARE - run->start <= RUN_BYTES;
}

struct divert_code *divert_code_new(const struct divert_target *target)
{
	struct divert_code *code = xcalloc(1, sizeof(*code));
	struct run *run = NULL;

	code->runs = xcalloc(target->count + 1, sizeof(*code->runs));
	code->run_of = xcalloc(target->count + 1, sizeof(*code->run_of));
	for (uint32_t i = 0; i < target->count; i++) {
		uint64_t address = target->entries[i].address;
		uint64_t end = address + DIVERT_COMPARE;

		if (!run || !joins(run, address)) {
			run = add_run(code, address);
		} else if (end - run->start > run->bytes) {
			code->bytes += end - run->start - run->bytes;
			run->bytes = (uint32_t)(end - run->start);
		}
		code->run_of[i] = (uint32_t)(run - code->runs);
	}
	code->copy = xmalloc(code->bytes + 1);
	memset(code->copy, 0, code->bytes + 1);
	return code;
}

void divert_code_free(struct divert_code *code)
{
	if (!code)
		return;
	free(code->runs);
	free(code->run_of);
	free(code->copy);
	free(code);
}

/* All of some runs, which lie one behind the other in the copy; or none. */
static bool read_some(struct divert_code *code, size_t first, size_t n, pid_t tid)
{
	struct iovec from[AT_ONCE], to = { .iov_base = code->copy + code->runs[first].at };

	for (size_t i = 0; i < n; i++) {
		const struct run *run = &code->runs[first + i];

		from[i] = (struct iovec){ (void *)(uintptr_t)run->start, run->bytes };
		to.iov_len += run->bytes;
	}
	return process_vm_readv(tid, &to, 1, from, n, 0) == (ssize_t)to.iov_len;
}

void divert_code_read(struct divert_code *code, const struct divert_target *target, pid_t tid)
{
	for (size_t first = 0; first < code->count; first += AT_ONCE) {
		size_t n = code->count - first < AT_ONCE ? code->count - first : AT_ONCE;
		bool read = tid && read_some(code, first, n, tid);

		for (size_t i = first; i < first + n; i++) {
			struct run *run = &code->runs[i];

			run->read = read || write_read_at(target, run->start, code->copy + run->at,
			                                  run->bytes);
		}
	}
}

const uint8_t *divert_code_at(const struct divert_code *code, const struct divert_target *target,
                              const struct divert_entry *entry, size_t bytes)
{
	static _Thread_local uint8_t room[DIVERT_COMPARE];
	const struct run *run = &code->runs[code->run_of[entry - target->entries]];

	if (run->read)
		return code->copy + run->at + (entry->address - run->start);
	return bytes <= sizeof(room) && write_read_at(target, entry->address, room, bytes) ? room
	                                                                                   : NULL;
}

#endif
