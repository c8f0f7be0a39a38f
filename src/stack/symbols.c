// SPDX-License-Identifier: MIT
#include "stack/symbols.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/order.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/account.h"
#include "probe/maps.h"
#include "probe/person.h"
#include "probe/plain_name.h"
#include "stack/code_files.h"
#include "stack/perf_map.h"

#define MAPPINGS_MAX  65536 /* vm.max_map_count is 65,530 */
#define NAMES_BYTES   ((size_t)16 << 20)
#define NAMES_OF_EACH ((size_t)8 << 20)  /* of a process */
#define EACH_BYTES    ((size_t)16 << 20) /* of a process: its mappings and its perf map */
#define ALL_BYTES     ((size_t)32 << 20)
#define MAPPING_BYTES (sizeof(struct code) + 192) /* with the file that it is of */
#define LIST_NS       500000000ull /* of a processor, for a list of a user's but root */
#define LOOKS_MAX     256          /* processes that were looked at and not asked about */
#define MISSES        64 /* addresses with nothing at them for which a process is seen again */
#define MISSES_NS     10000000000ull /* in this time */

struct symbol_name {
	UT_hash_handle hh;
	char text[];
};

struct demangled { /* linked name -> shown name */
	const char *shown;
	UT_hash_handle hh;
	char linked[];
};

struct known_names { /* each kept once */
	struct symbol_name *shown;
	struct demangled *demangled;
	struct budget *budget; /* by pid and start; nothing is given back but all */
};

struct code { /* an executable mapping */
	uint64_t start, end;
	uint64_t offset;        /* in the file */
	struct code_file *file; /* NULL: no file */
	const char *module, *path;
};

struct program { /* a process */
	uint32_t id;
	pid_t pid;
	uint64_t started; /* since boot, as /proc says: tells it from a later one of the same pid */
	bool over;        /* its pid is another's, or another program's, by now */
	struct code *code;
	size_t n_code, taken; /* from the budget, for these */
	struct perf_map *perf_map;
	uint64_t missed[MISSES];
	size_t n_missed;
	uint64_t misses_ns; /* when the first of them was */
	uint64_t recalled;  /* number of the look that was its; 0: none was */
	UT_hash_handle hh, by_pid;
};

struct symbols_listing {
	struct symbols *symbols;
	pid_t pid;
	struct code *code;
	size_t count, room;
};

struct symbols_look { /* what a pid had mapped when it was last looked at */
	pid_t pid;
	uint64_t started;
	struct symbols_listing listing;
	size_t taken;    /* from the budget */
	uint64_t number; /* of all looks, from 1 on */
	UT_hash_handle hh;
};

struct symbols {
	pthread_mutex_t lock;
	struct code_files *files;
	struct symbols_look *looks; /* the oldest first */
	uint64_t n_looks;           /* that there were */
	struct program *programs;
	struct program *current; /* those that are not over, by pid */
	struct known_names names;
	uint64_t refused;      /* of names, before the last symbols_renew() */
	struct budget *budget; /* of mappings and perf maps, by pid */
};

/* ---- names, each kept once ------------------------------------------------------------------- */

/* NULL when there is no room for more. */
static const char *keep_name(struct symbols *symbols, pid_t pid, const char *text)
{
	size_t len = strlen(text);
	struct symbol_name *name = MAP_FIND_BYTES(symbols->names.shown, text, len);

	if (name)
		return name->text;
	if (!budget_take(symbols->names.budget, (uint32_t)pid, sizeof(*name) + len))
		return NULL;
	name = xmalloc(sizeof(*name) + len + 1);
	memcpy(name->text, text, len + 1);
	HASH_ADD_KEYPTR(hh, symbols->names.shown, name->text, len, name);
	return name->text;
}

/* Demangling takes longer than all the rest, and stacks have most of their frames in common. */
static const char *keep_demangled(struct symbols *symbols, pid_t pid, const char *linked)
{
	size_t len = strlen(linked);
	char *plain;
	struct demangled *entry = MAP_FIND_BYTES(symbols->names.demangled, linked, len);

	if (entry)
		return entry->shown;
	if (!budget_take(symbols->names.budget, (uint32_t)pid, sizeof(*entry) + len))
		return NULL;
	entry = xmalloc(sizeof(*entry) + len + 1);
	memcpy(entry->linked, linked, len + 1);
	plain = plain_function_name(linked, helper_person_of(pid));
	entry->shown = keep_name(symbols, pid, plain);
	free(plain);
	HASH_ADD_KEYPTR(hh, symbols->names.demangled, entry->linked, len, entry);
	return entry->shown;
}

static const char *keep_or(struct symbols *symbols, pid_t pid, const char *text,
                           const char *otherwise)
{
	const char *name = keep_name(symbols, pid, text);

	return name ? name : otherwise;
}

static struct known_names begin_names(void)
{
	struct known_names names = { .budget = budget_new(NAMES_OF_EACH, NAMES_BYTES) };

	budget_of_persons(names.budget, helper_person_of_owner);
	return names;
}

static void free_names(struct known_names *names)
{
	MAP_FREE(names->demangled, free);
	MAP_FREE(names->shown, free);
	budget_free(names->budget);
}

/* ---- what a process has mapped --------------------------------------------------------------- */

static struct code *add_code(struct symbols_listing *listing)
{
	if (listing->count == listing->room) {
		listing->room = listing->room ? 2 * listing->room : 64;
		listing->code = xrealloc(listing->code, listing->room * sizeof(*listing->code));
	}
	return &listing->code[listing->count++];
}

static int note_mapping(const struct mapping *mapping, void *data)
{
	struct symbols_listing *listing = data;
	const char *slash = strrchr(mapping->path, '/');
	bool named = mapping->inode || mapping->path[0] == '[';
	struct code *code;

	if (listing->count == MAPPINGS_MAX)
		return 1;
	code = add_code(listing);
	code->start = mapping->start;
	code->end = mapping->end;
	code->offset = mapping->offset;
	code->path =
		keep_or(listing->symbols, listing->pid, named ? mapping->path : "[anon]", "[?]");
	code->module = mapping->inode && slash
	                       ? keep_or(listing->symbols, listing->pid, slash + 1, "[?]")
	                       : code->path;
	code->file = mapping->inode
	                     ? code_files_hold(listing->symbols->files, listing->pid, mapping)
	                     : NULL;
	return 0;
}

ORDER_BY(compare_code, struct code, UP(start));

/* The mapping that covers `address`, NULL if none does. */
static const struct code *find_code(const struct code *code, size_t count, uint64_t address)
{
	size_t low = ARRAY_BEFORE(count, i, code[i].start <= address);

	return low && address < code[low - 1].end ? &code[low - 1] : NULL;
}

static bool overlaps(const struct code *code, size_t count, const struct code *other)
{
	size_t low = 0, high = count;

	while (low < high) { /* the first that ends behind the begin of the other */
		size_t middle = low + (high - low) / 2;

		if (code[middle].end <= other->start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && code[low].start < other->end;
}

/* What was mapped before and has not been replaced since stays: a stack may be older than that. */
static void merge(struct symbols *symbols, struct program *program, struct symbols_listing *listing)
{
	size_t fresh = listing->count;

	for (size_t i = 0; i < program->n_code; i++) {
		struct code *old = &program->code[i];

		if (listing->count < MAPPINGS_MAX && !overlaps(listing->code, fresh, old))
			*add_code(listing) = *old;
		else
			code_files_drop(symbols->files, old->file);
	}
	free(program->code);
	if (listing->count)
		qsort(listing->code, listing->count, sizeof(*listing->code), compare_code);
	program->code = listing->code;
	program->n_code = listing->count;
}

/* ---- processes ------------------------------------------------------------------------------- */

static void end_program(struct symbols *symbols, struct program *program)
{
	if (!program->over)
		HASH_DELETE(by_pid, symbols->current, program);
	program->over = true;
}

static struct program *make_program(struct symbols *symbols, const struct process *process)
{
	struct program *program = MAP_FIND(symbols->programs, &process->id), *before;
	pid_t pid = (pid_t)process->pid;

	if (program)
		return program;
	HASH_FIND(by_pid, symbols->current, &pid, sizeof(pid), before);
	if (before)
		end_program(symbols, before);
	program = MAP_ADD(symbols->programs, id, &process->id);
	program->pid = pid;
	HASH_ADD(by_pid, symbols->current, pid, sizeof(pid), program);
	return program;
}

static void drop_listing(struct symbols *symbols, struct symbols_listing *listing)
{
	for (size_t i = 0; i < listing->count; i++)
		code_files_drop(symbols->files, listing->code[i].file);
	free(listing->code);
}

/* The account of one list, which was of `*taken` bytes. False where there is no room for more. */
static bool take_room(struct symbols *symbols, pid_t pid, size_t *taken, size_t count)
{
	size_t bytes = count * MAPPING_BYTES;

	budget_give(symbols->budget, (uint32_t)pid, *taken);
	*taken = 0;
	if (!budget_take(symbols->budget, (uint32_t)pid, bytes))
		return false;
	*taken = bytes;
	return true;
}

/*
 * `taken` is what the list that it takes the place of has taken, and what it takes then. A process
 * has one account of names as long as it lives, whatever is forgotten of it meanwhile.
 */
static int list_code(struct symbols *symbols, pid_t pid, uint64_t started,
                     struct symbols_listing *listing, size_t *taken, struct err *err)
{
	const uint64_t most_ns = helper_person_of(pid) == PERSON_ROOT ? 0 : LIST_NS;
	const size_t before = *taken;
	int rc;

	budget_began(symbols->names.budget, (uint32_t)pid, started);
	*listing = (struct symbols_listing){ .symbols = symbols, .pid = pid };
	rc = maps_each_code_within(pid, most_ns, note_mapping, listing, err);
	/* Of a process that has ended and was not waited for, the file is empty. */
	if (rc >= 0 && !listing->count)
		rc = err_set(err, ESRCH, "process %d has ended", pid);
	if (rc >= 0 && !take_room(symbols, pid, taken, listing->count)) {
		take_room(symbols, pid, taken, before / MAPPING_BYTES);
		rc = err_set(err, ENOMEM, "process %d has more mapped than is kept of it", pid);
	}
	if (rc < 0)
		drop_listing(symbols, listing);
	return rc < 0 ? rc : 0;
}

static void free_look(struct symbols *symbols, struct symbols_look *look)
{
	HASH_DEL(symbols->looks, look);
	drop_listing(symbols, &look->listing);
	take_room(symbols, look->pid, &look->taken, 0);
	free(look);
}

static struct symbols_look *find_look(struct symbols *symbols, pid_t pid)
{
	return MAP_FIND(symbols->looks, &pid);
}

static void copy_listing(struct symbols_listing *to, const struct symbols_listing *from)
{
	*to = *from;
	to->room = to->count;
	to->code = xmalloc((to->count + 1) * sizeof(*to->code));
	memcpy(to->code, from->code, to->count * sizeof(*to->code));
	for (size_t i = 0; i < to->count; i++)
		code_files_hold_again(to->code[i].file);
}

/*
 * What the process had mapped when it was last looked at. The look stays: before an exec and after
 * it the pid is two programs, and which of them was seen is not known.
 */
static int recall(struct symbols *symbols, struct program *program, struct err *err)
{
	struct symbols_look *look = find_look(symbols, program->pid);
	struct symbols_listing listing;

	if (!look || (program->started && program->started != look->started))
		return err_set(err, ESRCH, "process %d has ended", program->pid);
	if (program->recalled == look->number)
		return 0;
	if (!take_room(symbols, program->pid, &program->taken, look->listing.count))
		return err_set(err, ENOMEM, "process %d has more mapped than is kept of it",
		               program->pid);
	program->started = look->started;
	program->recalled = look->number;
	copy_listing(&listing, &look->listing);
	merge(symbols, program, &listing);
	return 0;
}

/*
 * Stacks can be of any addresses, and each that leads nowhere asks for the list once more; so does
 * each look of the unwinder's that has brought something new. Whoever wants a name waits meanwhile.
 */
static int list_in_time(struct symbols *symbols, pid_t pid, uint64_t started,
                        struct symbols_listing *listing, size_t *taken, struct err *err)
{
	uint64_t person = helper_person_of(pid), busy_ns = helper_busy_ns();
	int rc;

	if (look_time_is_over(LOOK_FOR_NAMES, person))
		return err_set(err, ETIMEDOUT, "to list what process %d has mapped takes too long",
		               pid);
	rc = list_code(symbols, pid, started, listing, taken, err);
	look_time_charge(LOOK_FOR_NAMES, person, helper_busy_ns() - busy_ns);
	return rc;
}

static int see(struct symbols *symbols, struct program *program, struct err *err)
{
	uint64_t started = process_start_time(program->pid);
	struct symbols_listing listing;

	if (program->over)
		return err_set(err, ESRCH, "process %d has ended", program->pid);
	if (program->started && program->started != started)
		return recall(symbols, program, err);
	if (list_in_time(symbols, program->pid, started, &listing, &program->taken, err))
		return recall(symbols, program, err);
	program->started = started;
	merge(symbols, program, &listing);
	if (!program->perf_map)
		program->perf_map = perf_map_open(program->pid, symbols->budget);
	return 0;
}

void symbols_look(struct symbols *symbols, pid_t pid)
{
	uint64_t started = process_start_time(pid);
	struct symbols_listing listing;
	struct symbols_look *look;
	size_t taken = 0;

	LOCKED(&symbols->lock);
	if (list_in_time(symbols, pid, started, &listing, &taken, NULL) == 0) {
		look = find_look(symbols, pid);
		if (look)
			free_look(symbols, look);
		else if (HASH_COUNT(symbols->looks) >= LOOKS_MAX)
			free_look(symbols, symbols->looks);
		look = MAP_ADD(symbols->looks, pid, &pid);
		look->started = started;
		look->listing = listing;
		look->taken = taken;
		look->number = ++symbols->n_looks;
	}
}

int symbols_see(struct symbols *symbols, const struct process *process, struct err *err)
{
	struct program *program;

	LOCKED(&symbols->lock);
	program = make_program(symbols, process);
	program->n_missed = 0;
	return see(symbols, program, err);
}

static void free_program(struct symbols *symbols, struct program *program)
{
	end_program(symbols, program);
	HASH_DEL(symbols->programs, program);
	for (size_t i = 0; i < program->n_code; i++)
		code_files_drop(symbols->files, program->code[i].file);
	free(program->code);
	take_room(symbols, program->pid, &program->taken, 0);
	perf_map_free(program->perf_map);
	free(program);
}

void symbols_forget(struct symbols *symbols, const struct process *process)
{
	struct program *program;
	struct symbols_look *look;

	LOCKED(&symbols->lock);
	program = MAP_FIND(symbols->programs, &process->id);
	look = find_look(symbols, (pid_t)process->pid);
	if (look && program && look->started == program->started)
		free_look(symbols, look);
	if (program)
		free_program(symbols, program);
}

void symbols_execed(struct symbols *symbols, const struct process *process)
{
	struct program *program;

	LOCKED(&symbols->lock);
	program = MAP_FIND(symbols->programs, &process->id);
	if (program)
		free_program(symbols, program);
}

struct symbols *symbols_new(void)
{
	struct symbols *symbols = xcalloc(1, sizeof(*symbols));

	symbols->names = begin_names();
	symbols->budget = budget_new(EACH_BYTES, ALL_BYTES);
	budget_of_persons(symbols->budget, helper_person_of_owner);
	pthread_mutex_init(&symbols->lock, NULL);
	symbols->files = code_files_new();
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	struct program *program, *next;

	if (!symbols)
		return;
	HASH_ITER (hh, symbols->programs, program, next)
		free_program(symbols, program);
	while (symbols->looks)
		free_look(symbols, symbols->looks);
	code_files_free(symbols->files);
	free_names(&symbols->names);
	pthread_mutex_destroy(&symbols->lock);
	budget_free(symbols->budget);
	free(symbols);
}

/* ---- names that nothing has ------------------------------------------------------------------ */

static void name_again(struct symbols *symbols, pid_t pid, uint64_t started, struct code *code,
                       size_t n)
{
	budget_began(symbols->names.budget, (uint32_t)pid, started);
	for (size_t i = 0; i < n; i++) {
		code[i].path = keep_or(symbols, pid, code[i].path, "[?]");
		code[i].module = keep_or(symbols, pid, code[i].module, "[?]");
	}
}

/* The names of before are there until those that are mapped have been kept anew. */
static void renew_names(struct symbols *symbols)
{
	struct known_names before = symbols->names;

	symbols->refused += budget_refused(before.budget);
	symbols->names = begin_names();
	for (struct program *p = symbols->programs; p; p = p->hh.next)
		name_again(symbols, p->pid, p->started, p->code, p->n_code);
	for (struct symbols_look *look = symbols->looks; look; look = look->hh.next)
		name_again(symbols, look->pid, look->started, look->listing.code,
		           look->listing.count);
	budget_as_new(symbols->names.budget);
	free_names(&before);
}

void symbols_renew(struct symbols *symbols)
{
	LOCKED(&symbols->lock);
	renew_names(symbols);
}

bool symbols_are_worn(struct symbols *symbols)
{
	LOCKED(&symbols->lock);
	return budget_is_worn(symbols->names.budget);
}

/* ---- looking up ------------------------------------------------------------------------------ */

/* Whether to see the process again for the sake of an address: once, and not for everything. */
static bool is_worth_a_look(struct program *program, uint64_t address)
{
	for (size_t i = 0; i < program->n_missed; i++)
		if (program->missed[i] == address)
			return false;
	if (program->n_missed == MISSES) {
		if (clock_now_ns() < program->misses_ns + MISSES_NS)
			return false;
		program->n_missed = 0;
	}
	if (!program->n_missed)
		program->misses_ns = clock_now_ns();
	program->missed[program->n_missed++] = address;
	return true;
}

static const struct code *code_at(struct symbols *symbols, struct program *program,
                                  uint64_t address)
{
	const struct code *code = find_code(program->code, program->n_code, address);

	if (code || !is_worth_a_look(program, address) || see(symbols, program, NULL))
		return code;
	return find_code(program->code, program->n_code, address);
}

static const char *function_at(struct symbols *symbols, const struct program *program,
                               const struct code *code, uint64_t place, struct frame *frame)
{
	uint64_t *into_bytes = &frame->into_bytes;
	const char *name = NULL;
	bool late;

	if (code->file)
		name = code_file_function(symbols->files, code->file, program->pid,
		                          place - code->start + code->offset, into_bytes,
		                          &frame->late);
	if (name)
		return keep_demangled(symbols, program->pid, name);
	/* Code made at run time may be in a file without a name (memfd), too. */
	if (program->perf_map) {
		name = perf_map_find(program->perf_map, place, into_bytes, &late);
		frame->late = (frame->late || late) && !name;
	}
	return name ? keep_name(symbols, program->pid, name) : NULL;
}

/* `place` is what belongs to the function: the address, or the call before it. */
static void find_at(struct symbols *symbols, const struct process *process, uint64_t address,
                    uint64_t place, struct frame *frame)
{
	struct program *program = make_program(symbols, process);
	const struct code *code = code_at(symbols, program, place);

	memset(frame, 0, sizeof(*frame));
	frame->address = address;
	frame->fd = -1;
	if (!code)
		return;
	frame->module = code->module;
	frame->path = code->path;
	frame->function = function_at(symbols, program, code, place, frame);
	if (!frame->function)
		frame->into_bytes = place - code->start + code->offset;
	frame->into_bytes += address - place;
	frame->offset = code->file ? place - code->start + code->offset : 0;
	if (code->file)
		frame->fd = code_file_fd(code->file);
	if (code->file && code_file_build_id(code->file))
		frame->build_id = keep_name(symbols, program->pid, code_file_build_id(code->file));
}

void symbols_find(struct symbols *symbols, const struct process *process, uint64_t address,
                  struct frame *frame)
{
	LOCKED(&symbols->lock);
	find_at(symbols, process, address, address, frame);
}

void symbols_find_call(struct symbols *symbols, const struct process *process, uint64_t address,
                       struct frame *frame)
{
	LOCKED(&symbols->lock);
	find_at(symbols, process, address, address ? address - 1 : 0, frame);
}

uint64_t symbols_refused(struct symbols *symbols)
{
	LOCKED(&symbols->lock);
	return symbols->refused + budget_refused(symbols->names.budget) +
	       budget_refused(symbols->budget);
}
