// SPDX-License-Identifier: MIT
#include "capture/kernels.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "cuda/kernel_name.h"
#include "probe/helper.h"
#include "probe/maps.h"
#include "probe/plain_name.h"
#include "stack/code_files.h"

/* ---- code maps ----------------------------------------------------------------------------- */

/*
 * The mappings of code of a process, kept for a moment. A program launches hundreds of kernels by
 * addresses in a few libraries. If /proc/PID/maps were read for each, one process with thousands of
 * mappings could take all of the time of the loop that asks.
 *
 * The mappings of one process are read at most every 100 ms, or after fifty times as long as
 * reading took if that is less. Those of all take a tenth of the time, after half a second at once.
 */

/* Of one process, beyond which the rest of its mappings is not known. */
#define CODE_MAPS_MOST (2u << 20)

struct budget;

/* The time that reading may take, of all processes. */
struct code_maps_share {
	uint64_t credit_ns, since_ns; /* 0: never used */
};

/* Of one process; all 0 is one that was not read yet. */
struct code_maps {
	struct mapping *mappings; /* by address; paths are ours */
	size_t count, bytes;
	uint64_t read_ns, again_ns; /* when it was read, and may be again */
};

enum code_maps_answer {
	CODE_MAPS_FOUND,
	CODE_MAPS_NONE,    /* no file is mapped there, or it is beyond what is kept */
	CODE_MAPS_TOO_SOON /* it may be in a mapping that is new: to be asked again */
};

#define AGAIN_NS     100000000u /* 100 ms */
#define AGAIN_PER_NS 50u        /* of reading */
#define SHARE        10u        /* one part in so many */
#define CREDIT_MOST  500000000u

static void code_maps_drop(struct code_maps *maps, struct budget *budget, uint32_t tgid)
{
	for (size_t i = 0; i < maps->count; i++)
		free((char *)maps->mappings[i].path);
	free(maps->mappings);
	budget_give(budget, tgid, maps->bytes);
	*maps = (struct code_maps){ .read_ns = maps->read_ns, .again_ns = maps->again_ns };
}

/* ---- reading ------------------------------------------------------------------------------- */

struct code_maps_reading {
	struct code_maps *maps;
	struct budget *budget;
	uint32_t tgid;
};

/* What grows by doubling is paid for twice. */
static int maps_note(const struct mapping *mapping, void *data)
{
	struct code_maps_reading *reading = data;
	struct code_maps *maps = reading->maps;
	size_t bytes = 2 * sizeof(*mapping) + strlen(mapping->path) + 1 + 16;

	if (maps->bytes + bytes > CODE_MAPS_MOST ||
	    !budget_take(reading->budget, reading->tgid, bytes))
		return 1;
	maps->bytes += bytes;
	maps->mappings = vec_room(maps->mappings, maps->count, sizeof(*mapping));
	maps->mappings[maps->count] = *mapping;
	maps->mappings[maps->count++].path = xstrdup(mapping->path);
	return 0;
}

ORDER_BY(by_address, struct mapping, UP(start));

static bool has_credit(struct code_maps_share *share, uint64_t now)
{
	if (!share->since_ns)
		share->credit_ns = CREDIT_MOST;
	else
		share->credit_ns += (now - share->since_ns) / SHARE;
	if (share->credit_ns > CREDIT_MOST)
		share->credit_ns = CREDIT_MOST;
	share->since_ns = now;
	return share->credit_ns > 0;
}

/* False: it is not time yet. */
static bool read_again(struct code_maps *maps, struct code_maps_share *share, struct budget *budget,
                       uint32_t tgid)
{
	struct code_maps_reading reading = { .maps = maps, .budget = budget, .tgid = tgid };
	uint64_t begin = clock_now_ns(), took;

	if (begin < maps->again_ns || !has_credit(share, begin))
		return false;
	code_maps_drop(maps, budget, tgid);
	maps_each((pid_t)tgid, maps_note, &reading, NULL);
	if (maps->count) /* of the kernel they come in this order */
		qsort(maps->mappings, maps->count, sizeof(*maps->mappings), by_address);
	maps->read_ns = clock_now_ns();
	took = maps->read_ns - begin;
	share->credit_ns -= took < share->credit_ns ? took : share->credit_ns;
	maps->again_ns =
		maps->read_ns + (took < AGAIN_NS / AGAIN_PER_NS ? took * AGAIN_PER_NS : AGAIN_NS);
	return true;
}

/* ---- asking -------------------------------------------------------------------------------- */

static int place_of(const void *key, const void *element)
{
	const struct mapping *mapping = element;
	uint64_t address = *(const uint64_t *)key;

	return address < mapping->start ? -1 : address >= mapping->end;
}

static const struct mapping *maps_look(const struct code_maps *maps, uint64_t address)
{
	return maps->count ? bsearch(&address, maps->mappings, maps->count, sizeof(*maps->mappings),
	                             place_of)
	                   : NULL;
}

/*
 * *mapping is valid until the next call. What is kept is taken from the budget (may be NULL).
 * What is known is asked again when it may be: another file can be mapped there by now.
 */
static enum code_maps_answer code_maps_find(struct code_maps *maps, struct code_maps_share *share,
                                            struct budget *budget, uint32_t tgid, uint64_t address,
                                            const struct mapping **mapping)
{
	bool fresh = read_again(maps, share, budget, tgid);

	*mapping = maps_look(maps, address);
	if (*mapping)
		return CODE_MAPS_FOUND;
	return fresh ? CODE_MAPS_NONE : CODE_MAPS_TOO_SOON;
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* One kernel, by its mangled name or, unresolved, by the text that stands for it. */
struct known_kernel {
	struct kernel kernel;
	char *key;
	UT_hash_handle hh;
};

struct handle {
	uint64_t value;
	uint64_t given; /* by a call, in this generation of its owner; 0: read through the handle */
	struct known_kernel *kernel;
	uint32_t tgid;
	UT_hash_handle hh;
};

/* A process: its handles are its own, so that what it does costs it alone. */
struct owner {
	uint32_t tgid;
	uint64_t generation; /* from 1; another when a module was unloaded */
	struct handle *handles;
	struct code_maps maps;
	UT_hash_handle hh;
};

#define RECENT 256 /* a power of two */

/* Of a kernel without its texts: here, and in the tables of those who count by kernel. */
#define KERNEL_BYTES 1024
#define HANDLE_BYTES (sizeof(struct handle) + 16)
#define OWNER_BYTES  (sizeof(struct owner) + 1024) /* and its table while it is small */

struct kernels {
	struct budget *budget;
	struct known_kernel *others; /* made at need */
	struct code_files *files;    /* that host stubs are in */
	struct known_kernel *by_name;
	struct owner *owners;
	struct code_maps_share share; /* of the time of whoever asks */
	struct handle
		*recent[RECENT]; /* the last ones found: a look-up at every launch costs more */
	uint32_t next_id;
};

/* ---- processes ----------------------------------------------------------------------------- */

static struct owner *find_owner(struct kernels *kernels, uint32_t tgid)
{
	return MAP_FIND(kernels->owners, &tgid);
}

/* NULL: there is no room. */
static struct owner *get_owner(struct kernels *kernels, uint32_t tgid)
{
	struct owner *owner = find_owner(kernels, tgid);

	if (owner || !budget_take(kernels->budget, tgid, OWNER_BYTES))
		return owner;
	owner = MAP_ADD(kernels->owners, tgid, &tgid);
	owner->generation = 1;
	return owner;
}

static void drop_owner(struct kernels *kernels, struct owner *owner)
{
	struct handle *handle, *next;

	memset(kernels->recent, 0, sizeof(kernels->recent));
	HASH_ITER (hh, owner->handles, handle, next) {
		MAP_DROP(owner->handles, handle);
		budget_give(kernels->budget, owner->tgid, HANDLE_BYTES);
	}
	code_maps_drop(&owner->maps, kernels->budget, owner->tgid);
	budget_give(kernels->budget, owner->tgid, OWNER_BYTES);
	MAP_DROP(kernels->owners, owner);
}

struct kernels *kernels_new(struct budget *budget)
{
	struct kernels *kernels = xcalloc(1, sizeof(*kernels));

	kernels->budget = budget;
	kernels->files = code_files_new();
	return kernels;
}

void kernels_free(struct kernels *kernels)
{
	struct known_kernel *kernel, *next_kernel;
	struct owner *owner, *next_owner;

	if (!kernels)
		return;
	HASH_ITER (hh, kernels->owners, owner, next_owner)
		drop_owner(kernels, owner);
	HASH_ITER (hh, kernels->by_name, kernel, next_kernel) {
		HASH_DEL(kernels->by_name, kernel);
		free((char *)kernel->kernel.name);
		free(kernel->key);
		free(kernel);
	}
	code_files_free(kernels->files);
	free(kernels);
}

/* Takes over `shown`. */
static struct known_kernel *add_kernel(struct kernels *kernels, const char *text, char *shown,
                                       bool resolved)
{
	struct known_kernel *kernel = xcalloc(1, sizeof(*kernel));

	kernel->key = xstrdup(text);
	kernel->kernel.id = kernels->next_id++;
	kernel->kernel.mangled = resolved ? kernel->key : NULL;
	kernel->kernel.name = shown;
	kernel->kernel.resolved = resolved;
	HASH_ADD_KEYPTR(hh, kernels->by_name, kernel->key, strlen(kernel->key), kernel);
	return kernel;
}

static struct known_kernel *others(struct kernels *kernels)
{
	if (!kernels->others)
		kernels->others =
			add_kernel(kernels, KERNELS_OTHERS, xstrdup(KERNELS_OTHERS), false);
	return kernels->others;
}

/*
 * What a name of 4 KiB says can be 35 KiB long: it is taken from the budget as well. Where there is
 * no room for that the name stays as it is linked, since it would be read anew whenever it is told.
 */
static struct known_kernel *intern(struct kernels *kernels, uint32_t tgid, const char *text,
                                   bool resolved)
{
	size_t bytes = KERNEL_BYTES + 2 * strlen(text), longer;
	char *shown;
	struct known_kernel *kernel = MAP_FIND_TEXT(kernels->by_name, text);

	if (kernel)
		return kernel;
	if (!budget_take(kernels->budget, tgid, bytes))
		return others(kernels);
	shown = resolved ? plain_kernel_name(text, helper_person_of((pid_t)tgid)) : xstrdup(text);
	longer = strlen(shown) > strlen(text) ? strlen(shown) - strlen(text) : 0;
	if (!budget_take(kernels->budget, tgid, longer)) {
		free(shown);
		shown = xstrdup(text);
	}
	/* it grew by doubling */
	return add_kernel(kernels, text, xrealloc(shown, strlen(shown) + 1), resolved);
}

static struct handle *find_handle(struct kernels *kernels, uint32_t tgid, uint64_t value)
{
	/* handles are addresses of structs of some hundred bytes */
	struct handle **recent = &kernels->recent[(value >> 4 ^ value >> 12 ^ tgid) % RECENT];
	struct handle *handle = *recent;
	struct owner *owner;

	if (handle && handle->value == value && handle->tgid == tgid)
		return handle;
	owner = find_owner(kernels, tgid);
	if (!owner)
		return NULL;
	handle = MAP_FIND(owner->handles, &value);
	if (handle)
		*recent = handle;
	return handle;
}

/* Where it is new, HANDLE_BYTES and its owner were taken for it before. */
static void set_handle(struct kernels *kernels, uint32_t tgid, uint64_t value,
                       struct known_kernel *kernel, bool given)
{
	struct owner *owner = find_owner(kernels, tgid);
	struct handle *handle = find_handle(kernels, tgid, value);

	if (!handle) {
		handle = MAP_ADD(owner->handles, value, &value);
		handle->tgid = tgid;
	} else if (handle->given == owner->generation && !given && handle->kernel) {
		return;
	}
	handle->kernel = kernel;
	handle->given = given ? owner->generation : 0;
}

/* Whether there is room for this handle: it is known, or room was taken. */
static bool handle_room(struct kernels *kernels, uint32_t tgid, uint64_t value)
{
	return find_handle(kernels, tgid, value) ||
	       (get_owner(kernels, tgid) && budget_take(kernels->budget, tgid, HANDLE_BYTES));
}

void kernels_named(struct kernels *kernels, const struct wire_name *name)
{
	uint32_t tgid = name->head.tgid;

	if (!name->key || !kernel_name_plausible(name->text) ||
	    !handle_room(kernels, tgid, name->key))
		return;
	set_handle(kernels, tgid, name->key, intern(kernels, tgid, name->text, true),
	           name->source == NAME_OF_CALL);
}

void kernels_alias(struct kernels *kernels, uint32_t tgid, uint64_t value, uint64_t known)
{
	struct handle *handle = find_handle(kernels, tgid, known);

	if (value && handle && handle->kernel && handle_room(kernels, tgid, value))
		set_handle(kernels, tgid, value, handle->kernel, true);
}

/* ---- host stubs ---------------------------------------------------------------------------- */

/*
 * CUDA up to 12 launches by the address of a function in the program: its symbol has the name, NULL
 * where it has none, or *late: where that is not known. The file is held until the end: a library
 * has hundreds of kernels, and its table is read once.
 */
static const char *symbol_at(struct kernels *kernels, uint32_t tgid, const struct mapping *mapping,
                             uint64_t offset, bool *late)
{
	struct code_file *file = code_files_hold(kernels->files, (pid_t)tgid, mapping);
	uint64_t into = 0;
	const char *symbol =
		code_file_function(kernels->files, file, (pid_t)tgid, offset, &into, late);

	return into ? NULL : symbol; /* the address of a function is where it begins */
}

static struct known_kernel *unresolved(struct kernels *kernels, uint32_t tgid, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%lx", value);
	return intern(kernels, tgid, text, false);
}

/* NULL: there is no time to look now. */
static struct known_kernel *resolve_stub(struct kernels *kernels, uint32_t tgid, uint64_t value,
                                         const struct mapping *mapping)
{
	const char *slash = strrchr(mapping->path, '/'), *symbol;
	uint64_t offset = value - mapping->start + mapping->offset;
	char place[512];
	bool late;

	snprintf(place, sizeof(place), "%s+0x%lx", slash ? slash + 1 : mapping->path, offset);
	symbol = symbol_at(kernels, tgid, mapping, offset, &late);
	if (late)
		return NULL;
	if (symbol && kernel_name_plausible(symbol))
		return intern(kernels, tgid, symbol, true);
	return intern(kernels, tgid, place, false);
}

/* Of an owner that there is. NULL: there is no time to look now. */
static struct known_kernel *resolve(struct kernels *kernels, uint32_t tgid, uint64_t value)
{
	struct owner *owner = find_owner(kernels, tgid);
	const struct mapping *mapping;

	switch (code_maps_find(&owner->maps, &kernels->share, kernels->budget, tgid, value,
	                       &mapping)) {
	case CODE_MAPS_FOUND:
		return resolve_stub(kernels, tgid, value, mapping);
	case CODE_MAPS_NONE:
		return unresolved(kernels, tgid, value);
	case CODE_MAPS_TOO_SOON:
		break;
	}
	return NULL;
}

const struct kernel *kernels_find(struct kernels *kernels, uint32_t tgid, uint64_t value)
{
	struct handle *handle = find_handle(kernels, tgid, value);
	struct known_kernel *kernel;

	if (handle && handle->kernel)
		return &handle->kernel->kernel;
	if (!handle_room(kernels, tgid, value)) /* nor is it looked for, every time */
		return &others(kernels)->kernel;
	kernel = resolve(kernels, tgid, value);
	if (!kernel && !handle)
		budget_give(kernels->budget, tgid, HANDLE_BYTES);
	if (!kernel) /* its next launch may have a name */
		return &unresolved(kernels, tgid, value)->kernel;
	set_handle(kernels, tgid, value, kernel, false);
	return &kernel->kernel;
}

/* An account of its own: that of the process is closed. */
const struct kernel *kernels_unknown(struct kernels *kernels, uint64_t value)
{
	return &unresolved(kernels, 0, value)->kernel;
}

const struct kernel *kernels_by_name(struct kernels *kernels, uint32_t tgid, const char *mangled)
{
	bool plausible = kernel_name_plausible(mangled);

	return &intern(kernels, tgid, plausible ? mangled : "unnamed", plausible)->kernel;
}

/* ---- forgetting ---------------------------------------------------------------------------- */

/*
 * Which of a process's handles belonged to the module is not known, so none is trusted. What the
 * next launch finds in the handle may replace a name that was given.
 */
void kernels_expire(struct kernels *kernels, uint32_t tgid)
{
	struct owner *owner = find_owner(kernels, tgid);

	if (owner)
		owner->generation++;
}

void kernels_forget(struct kernels *kernels, uint32_t tgid)
{
	struct owner *owner = find_owner(kernels, tgid);

	if (owner)
		drop_owner(kernels, owner);
}

/* ---- where a handle holds its name --------------------------------------------------------- */

static bool leads_to(uint32_t tgid, uint64_t handle, uint64_t offset, const char *name)
{
	size_t len = strnlen(name, 255);
	char text[256];
	uint64_t at;

	return helper_memory(tgid, handle + offset, &at, sizeof(at)) &&
	       helper_memory(tgid, at, text, len + 1) && !memcmp(text, name, len) &&
	       (len == 255 || !text[len]);
}

uint64_t kernels_calibrate(uint32_t tgid, uint64_t handle, const char *name, uint64_t offset)
{
	uint64_t probe;

	if (!helper_memory(tgid, handle, &probe, sizeof(probe)))
		return offset;
	if (offset != UINT64_MAX && leads_to(tgid, handle, offset, name))
		return offset;
	for (uint64_t other = 0; other < 512; other += 8) {
		if (leads_to(tgid, handle, other, name))
			return other;
	}
	return UINT64_MAX;
}
