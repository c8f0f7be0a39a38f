// SPDX-License-Identifier: MIT
#include "divert/divert_plan.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "divert/entry_file.h"
#include "probe/account.h"
#include "probe/elf_image.h"
#include "probe/maps.h"
#include "probe/helper.h"
#include "probe/person.h"

#define PAGE         4096u
#define PAD_STRIDE   32u
#define MOVED_ALIGN  16u
#define MAPPINGS_MAX 16          /* of a module's code */
#define READ_MAX     (64u << 10) /* of helper_memory */

/* ---- the process ----------------------------------------------------------------------------- */

struct place {
	uint64_t start, end, offset;
};

struct mapped {
	const struct divert_module *module;
	struct place places[MAPPINGS_MAX];
	size_t count;
	bool emulated; /* valgrind's: it runs copies of the code */
};

static int note_mapping(const struct mapping *mapping, void *data)
{
	struct mapped *mapped = data;

	mapped->emulated |= strstr(mapping->path, "/vgpreload_") != NULL;
	if (mapping->inode != mapped->module->inode || mapping->dev != mapped->module->dev ||
	    !mapping->private || mapped->count == MAPPINGS_MAX)
		return 0;
	mapped->places[mapped->count++] =
		(struct place){ mapping->start, mapping->end, mapping->offset };
	return 0;
}

/* 0: it is not mapped there. *end: of the mapping that it lies in. */
static uint64_t address_of(const struct mapped *mapped, uint64_t offset, uint64_t *end)
{
	for (size_t i = 0; i < mapped->count; i++) {
		const struct place *place = &mapped->places[i];

		*end = place->end;
		if (offset >= place->offset && offset - place->offset < place->end - place->start)
			return place->start + (offset - place->offset);
	}
	return 0;
}

/* Another process than this one traces it. */
static int check_tracer(pid_t pid, struct err *err)
{
	char path[64], name[32];
	int tracer = 0;

	if (!process_status(pid, 0, "TracerPid: %d", &tracer))
		return err_set(err, ESRCH, "no process has the pid %d", pid);
	snprintf(path, sizeof(path), "/proc/self/task/%d", tracer);
	if (!tracer || access(path, F_OK) == 0)
		return 0;
	return err_set(err, EBUSY,
	               "process %d is traced by process %d (%s), and only one can do that", pid,
	               tracer, process_comm(tracer, 0, name, sizeof(name)) ? name : "?");
}

/*
 * By what the kernel has handed to it: the file may be of a file system that somebody serves, and
 * whoever opens it waits for him.
 */
static int check_program(pid_t pid, pid_t tid, struct err *err)
{
	uint64_t pairs[64][2] = { 0 };
	char name[64];

	snprintf(name, sizeof(name), "task/%d/auxv", tid);
	if (process_look(pid, PROCESS_TEXT, name, pairs, sizeof(pairs)) <= 0)
		return err_set(err, ESRCH, "process %d has ended", pid);
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (pairs[i][0] == AT_PHENT && pairs[i][1] == sizeof(Elf64_Phdr))
			return 0;
	return err_set(err, ENOTSUP, "process %d is no 64-bit program", pid);
}

/* On its user's account, as a process can have as many mappings as it likes. */
static int find_mappings(const struct divert_plan *plan, struct mapped *mapped, struct err *err)
{
	uint64_t busy_ns = helper_busy_ns();
	int rc;

	if (look_time_is_over(LOOK_AT_MAPS, plan->owner))
		return err_set(err, EAGAIN,
		               "its user's time for looks at what processes have mapped is used "
		               "up");
	rc = maps_each_code(plan->pid, note_mapping, mapped, err);
	look_time_charge(LOOK_AT_MAPS, plan->owner, helper_busy_ns() - busy_ns);
	return rc && rc != -ESRCH ? -EAGAIN : rc;
}

static bool has_twice(const struct mapped *mapped, uint64_t offset)
{
	size_t times = 0;

	for (size_t i = 0; i < mapped->count; i++)
		times += offset >= mapped->places[i].offset &&
		         offset - mapped->places[i].offset <
		                 mapped->places[i].end - mapped->places[i].start;
	return times > 1;
}

static int look_at_process(struct divert_plan *plan, struct mapped *mapped, uint64_t offset,
                           struct err *err)
{
	pid_t pid = plan->pid;
	int rc = check_tracer(pid, err);
	uint64_t end;

	if (!rc)
		rc = check_program(pid, plan->tid, err);
	if (!rc)
		rc = find_mappings(plan, mapped, err);
	if (!rc && mapped->emulated)
		rc = err_set(err, ENOTSUP, "process %d runs under valgrind", pid);
	plan->first = rc ? 0 : address_of(mapped, offset, &end);
	if (!rc && !plan->first)
		rc = err_set(err, ENXIO, "process %d has not mapped the code of %s", pid,
		             mapped->module->path);
	if (!rc && has_twice(mapped, offset))
		rc = err_set(err, ENOTSUP,
		             "the process has it twice (dlmopen), and calls of only one could be "
		             "told apart from those of the probes");
	return rc;
}

/* ---- its functions --------------------------------------------------------------------------- */

static int judge_file(struct judged_files *files, const struct divert_module *module,
                      struct divert_function *functions, size_t count,
                      const struct entry_function **judged, struct err *err)
{
	int rc = judged_files_get(files, module, functions, count, judged, err);

	for (size_t i = 0; !rc && i < count; i++) {
		functions[i].refusal = (*judged)[i].refusal;
		functions[i].refused_at = (*judged)[i].refused_at;
	}
	return rc;
}

/*
 * What was read last. Another process reads, so each time takes two switches between them, on a
 * busy machine some milliseconds; and functions lie side by side.
 */
struct window {
	uint64_t start;
	size_t bytes;
	uint8_t code[READ_MAX];
};

/* From there on as much as there is room for, but not beyond the end of its mapping. */
static bool move_window(struct window *window, pid_t pid, uint64_t address, uint64_t end,
                        size_t least)
{
	size_t most = end - address < READ_MAX ? end - address : READ_MAX;

	window->start = address;
	window->bytes = 0;
	if (most > least && helper_memory(pid, address, window->code, most))
		window->bytes = most;
	else if (helper_memory(pid, address, window->code, least))
		window->bytes = least;
	return window->bytes;
}

static bool read_memory(struct window *window, pid_t pid, uint64_t address, uint64_t end,
                        uint8_t *to, size_t bytes)
{
	for (size_t at = 0, step; at < bytes; at += step) {
		uint64_t from = address + at;
		size_t left = bytes - at;

		step = left < READ_MAX ? left : READ_MAX;
		if ((from < window->start || from + step > window->start + window->bytes) &&
		    !move_window(window, pid, from, end, step))
			return false;
		memcpy(to + at, window->code + (from - window->start), step);
	}
	return true;
}

/* A write of one page is done whole, or not at all. */
static bool in_one_page(uint64_t address, uint32_t bytes)
{
	return address / PAGE == (address + bytes - 1) / PAGE;
}

/* A place for pad and moved code; the thunk is anywhere. */
static bool lay_out(struct divert_plan *plan, struct plan_function *function,
                    struct entry_move *move)
{
	uint64_t near = (plan->near_end + (64u << 20)) & ~(uint64_t)(PAGE - 1);
	const struct entry_places places = { near, near + PAD_STRIDE, near };

	if (!entry_move(&function->code, &places, move))
		return false;
	if (!in_one_page(function->code.address + move->skip, move->bytes)) {
		*move = (struct entry_move){ .refusal = ENTRY_TWO_PAGES, .refused_at = move->skip };
		return false;
	}
	function->pad = (uint32_t)plan->area_bytes;
	function->moved = function->pad + PAD_STRIDE;
	plan->area_bytes = (function->moved + move->moved_bytes + MOVED_ALIGN - 1) &
	                   ~(size_t)(MOVED_ALIGN - 1);
	return true;
}

/* False: it is refused, and says why. */
static bool add_function(struct divert_plan *plan, const struct mapped *mapped,
                         struct window *window, const struct entry_function *judged,
                         struct divert_function *asked)
{
	struct plan_function *function = &plan->functions[plan->count];
	struct entry_code *code = &function->code;
	uint8_t *memory = NULL;
	struct entry_move move;
	uint64_t end;
	bool can;

	*code = (struct entry_code){ .abi = ABI_NATIVE,
		                     .size = judged->known_size,
		                     .address = address_of(mapped, judged->offset, &end),
		                     .next_start = judged->next_start,
		                     .targets = judged->targets,
		                     .probed = true,
		                     .probe = judged->probe,
		                     .known = true,
		                     .bytes = judged->code_bytes };
	memory = code->address ? xmalloc(code->bytes) : NULL;
	if (memory && read_memory(window, plan->tid, code->address, end, memory, code->bytes)) {
		code->memory = memory;
		code->file = judged->code;
	}
	can = lay_out(plan, function, &move);
	asked->refusal = move.refusal;
	asked->refused_at = move.refused_at;
	if (can)
		memcpy(memory, judged->code, code->bytes);
	else
		free(memory);
	if (!can)
		return false;
	code->memory = code->file = memory; /* a copy: the file's may be forgotten */
	asked->original = function->moved;
	asked->met = move.jump == JUMP_BEHIND_PROBE;
	function->offset = judged->offset;
	plan->count++;
	return true;
}

static void add_functions(struct divert_plan *plan, const struct mapped *mapped,
                          const struct entry_function *judged, struct divert_function *asked)
{
	struct window *window = xcalloc(1, sizeof(*window));

	plan->near_start = mapped->places[0].start;
	for (size_t i = 0; i < mapped->count; i++) {
		const struct place *place = &mapped->places[i];

		plan->near_start =
			place->start < plan->near_start ? place->start : plan->near_start;
		plan->near_end = place->end > plan->near_end ? place->end : plan->near_end;
	}
	plan->functions = xcalloc(plan->asked + 1, sizeof(*plan->functions));
	for (uint32_t i = 0; i < plan->asked; i++) {
		if (asked[i].refusal)
			continue;
		if (add_function(plan, mapped, window, &judged[i], &asked[i]))
			plan->functions[plan->count - 1].function = i;
	}
	free(window);
	plan->area_bytes = (plan->area_bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* Its code is copied: what a function has beyond 1 KiB is taken as that of others. */
static int take_code(struct divert_plan *plan, const struct entry_function *judged, struct err *err)
{
	uint32_t more = 0;
	const char *why;

	for (uint32_t i = 0; i < plan->asked; i++)
		more += (uint32_t)(judged[i].code_bytes >> 10);
	why = quota_take(&plan->shares->entries, plan->owner, 0, more);
	if (why)
		return err_set(err, ENOSPC, "%s", why);
	plan->entries += more;
	return 0;
}

static void free_functions(struct divert_plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++)
		free((void *)plan->functions[i].code.file);
	free(plan->functions);
	plan->functions = NULL;
	plan->count = 0;
	quota_give(&plan->shares->entries, plan->owner, 0, plan->entries - plan->asked);
	plan->entries = plan->asked;
}

int divert_plan_new(struct divert_shares *shares, pid_t pid, const struct divert_module *module,
                    size_t count, struct divert_plan **out, struct err *err)
{
	uint64_t owner = person_of_process(pid);
	const char *why;
	struct divert_plan *plan;

	if (count > DIVERT_FUNCTIONS_MAX)
		return err_set(err, E2BIG, "%s has more than %d functions", module->path,
		               DIVERT_FUNCTIONS_MAX);
	why = shares_put(shares, owner, (uint32_t)count);
	if (why)
		return err_set(err, ENOSPC, "%s", why);
	plan = xcalloc(1, sizeof(*plan));
	plan->pid = pid;
	plan->owner = owner;
	plan->shares = shares;
	plan->asked = plan->entries = (uint32_t)count;
	plan->dev = module->dev;
	plan->inode = module->inode;
	*out = plan;
	return 0;
}

int divert_plan_make(struct divert_plan *plan, struct judged_files *files,
                     const struct divert_module *module, struct divert_function *functions,
                     struct err *err)
{
	struct mapped mapped = { .module = module };
	const struct entry_function *judged = NULL;
	int rc;

	free_functions(plan);
	plan->area_bytes = plan->near_end = 0;
	plan->start_time = process_start_time(plan->pid);
	plan->tid = process_living_thread(plan->pid);
	rc = look_at_process(plan, &mapped, functions->offset, err);
	if (!rc && !area_person(plan->pid, plan->tid, &plan->person))
		rc = err_set(err, ESRCH, "process %d has ended", plan->pid);
	if (!rc)
		rc = judge_file(files, module, functions, plan->asked, &judged, err);
	if (!rc)
		rc = take_code(plan, judged, err);
	if (!rc)
		add_functions(plan, &mapped, judged, functions);
	if (!rc && process_start_time(plan->pid) != plan->start_time)
		rc = err_set(err, ESRCH, "process %d has ended", plan->pid);
	return rc;
}

void divert_plan_free(struct divert_plan *plan)
{
	if (!plan)
		return;
	free_functions(plan);
	shares_put_free(plan->shares, plan->owner, plan->asked);
	free(plan->thunks);
	free(plan->found);
	free(plan);
}

/* ---- what is written ------------------------------------------------------------------------- */

static bool make_entry(const struct plan_function *function, uint64_t area, uint64_t thunk,
                       struct divert_entry *entry)
{
	const struct entry_code *code = &function->code;
	const struct entry_places places = { area + function->pad, area + function->moved, thunk };
	size_t bytes = code->bytes < DIVERT_COMPARE ? code->bytes : DIVERT_COMPARE;

	memset(entry, 0, sizeof(*entry));
	if (!entry_move(code, &places, &entry->move))
		return false;
	entry->address = code->address;
	entry->pad = places.pad;
	entry->moved = places.moved;
	entry->offset = function->offset;
	entry->function = function->function;
	memcpy(entry->file, code->file, bytes);
	return true;
}

static void keep_places(struct divert_plan *plan, uint64_t area, const uint64_t *thunks)
{
	free(plan->thunks);
	free(plan->found);
	plan->area = area;
	plan->thunks = xcalloc(plan->asked + 1, sizeof(*thunks));
	memcpy(plan->thunks, thunks, plan->asked * sizeof(*thunks));
	plan->found = NULL;
	plan->not_found = false;
}

int divert_plan_write(struct divert_plan *plan, uint64_t area, const uint64_t *thunks,
                      uint32_t *count, struct err *err)
{
	struct divert_entry entry;
	int fd = memfd_create("cuscope-entries", MFD_CLOEXEC);

	*count = 0;
	if (fd < 0)
		return err_set(err, errno, "diverting: no memory for its orders: %s",
		               strerror(errno));
	keep_places(plan, area, thunks);
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct plan_function *function = &plan->functions[i];

		if (!thunks[function->function])
			continue;
		if (!make_entry(function, area, thunks[function->function], &entry)) {
			close(fd);
			return err_set(err, ERANGE,
			               "the area for moved code is too far from the module");
		}
		if (write(fd, &entry, sizeof(entry)) != (ssize_t)sizeof(entry)) {
			close(fd);
			return err_set(err, ENOSPC, "diverting: no memory for its orders");
		}
		++*count;
	}
	return fd;
}

/* ---- what was written ------------------------------------------------------------------------ */

/* False: the memory does not tell. */
static bool find_jump(const struct divert_plan *plan, pid_t tid, struct window *window,
                      const struct plan_function *function, uint8_t *refusal)
{
	uint8_t now[ENTRY_MOVED_MAX];
	struct divert_entry entry;
	const struct entry_move *move = &entry.move;
	uint64_t thunk = plan->thunks[function->function], at;

	if (!thunk || !make_entry(function, plan->area, thunk, &entry))
		return true;
	at = entry.address + move->skip;
	if (!read_memory(window, tid, at, plan->near_end, now, move->bytes))
		return false;
	*refusal = memcmp(now, move->written, move->bytes) ? ENTRY_CHANGED : ENTRY_MOVABLE;
	return true;
}

void divert_plan_find(struct divert_plan *plan)
{
	pid_t tid = process_living_thread(plan->pid);
	struct window *window;

	if (plan->found)
		return;
	window = xcalloc(1, sizeof(*window));
	plan->found = xmalloc(DIVERT_FUNCTIONS_MAX);
	memset(plan->found, ENTRY_REFUSALS, DIVERT_FUNCTIONS_MAX);
	for (uint32_t i = 0; i < plan->count && !plan->not_found; i++) {
		const struct plan_function *function = &plan->functions[i];

		plan->not_found =
			!find_jump(plan, tid, window, function, &plan->found[function->function]);
	}
	free(window);
}
