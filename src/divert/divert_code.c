// SPDX-License-Identifier: MIT
#include "divert/divert_inside.h"

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
