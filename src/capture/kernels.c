// SPDX-License-Identifier: MIT
#include "capture/kernels.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uthash.h>

#include "base/xalloc.h"
#include "cuda/kernel_name.h"
#include "probe/maps.h"
#include "probe/memory.h"
#include "stack/code_files.h"

/* One kernel, by its mangled name or, unresolved, by the text that stands for it. */
struct known_kernel {
	struct kernel kernel;
	char *key;
	UT_hash_handle hh;
};

struct handle_key {
	uint64_t handle, tgid;
};

struct handle {
	struct handle_key key;
	struct known_kernel *kernel;
	bool given; /* by a call, not read through the handle */
	UT_hash_handle hh;
};

#define RECENT 256 /* a power of two */

struct kernels {
	struct code_files *files; /* that host stubs are in */
	struct known_kernel *by_name;
	struct handle *handles;
	struct handle
		*recent[RECENT]; /* the last ones found: a look-up at every launch costs more */
	uint32_t next_id;
};

struct kernels *kernels_new(void)
{
	struct kernels *kernels = xcalloc(1, sizeof(*kernels));

	kernels->files = code_files_new();
	return kernels;
}

void kernels_free(struct kernels *kernels)
{
	struct known_kernel *kernel, *next_kernel;
	struct handle *handle, *next_handle;

	if (!kernels)
		return;
	HASH_ITER (hh, kernels->handles, handle, next_handle) {
		HASH_DEL(kernels->handles, handle);
		free(handle);
	}
	HASH_ITER (hh, kernels->by_name, kernel, next_kernel) {
		HASH_DEL(kernels->by_name, kernel);
		free((char *)kernel->kernel.name);
		free(kernel->key);
		free(kernel);
	}
	code_files_free(kernels->files);
	free(kernels);
}

static struct known_kernel *intern(struct kernels *kernels, const char *text, bool resolved)
{
	struct known_kernel *kernel;

	HASH_FIND_STR(kernels->by_name, text, kernel);
	if (kernel)
		return kernel;
	kernel = xcalloc(1, sizeof(*kernel));
	kernel->key = xstrdup(text);
	kernel->kernel.id = kernels->next_id++;
	kernel->kernel.mangled = resolved ? kernel->key : NULL;
	kernel->kernel.name = resolved ? kernel_name_demangle(text) : xstrdup(text);
	kernel->kernel.resolved = resolved;
	HASH_ADD_KEYPTR(hh, kernels->by_name, kernel->key, strlen(kernel->key), kernel);
	return kernel;
}

static struct handle *find_handle(struct kernels *kernels, uint32_t tgid, uint64_t value)
{
	struct handle_key key = { .handle = value, .tgid = tgid };
	/* handles are addresses of structs of some hundred bytes */
	struct handle **recent = &kernels->recent[(value >> 4 ^ value >> 12 ^ tgid) % RECENT];
	struct handle *handle = *recent;

	if (handle && handle->key.handle == value && handle->key.tgid == tgid)
		return handle;
	HASH_FIND(hh, kernels->handles, &key, sizeof(key), handle);
	if (handle)
		*recent = handle;
	return handle;
}

static void set_handle(struct kernels *kernels, uint32_t tgid, uint64_t value,
                       struct known_kernel *kernel, bool given)
{
	struct handle *handle = find_handle(kernels, tgid, value);

	if (!handle) {
		handle = xcalloc(1, sizeof(*handle));
		handle->key = (struct handle_key){ .handle = value, .tgid = tgid };
		HASH_ADD(hh, kernels->handles, key, sizeof(handle->key), handle);
	} else if (handle->given && !given && handle->kernel) {
		return;
	}
	handle->kernel = kernel;
	handle->given = given;
}

void kernels_named(struct kernels *kernels, const struct wire_name *name)
{
	if (!name->key || !kernel_name_plausible(name->text))
		return;
	set_handle(kernels, name->head.tgid, name->key, intern(kernels, name->text, true),
	           name->source == NAME_OF_CALL);
}

void kernels_alias(struct kernels *kernels, uint32_t tgid, uint64_t value, uint64_t known)
{
	struct handle *handle = find_handle(kernels, tgid, known);

	if (value && handle && handle->kernel)
		set_handle(kernels, tgid, value, handle->kernel, true);
}

/* ---- host stubs ---------------------------------------------------------------------------- */

struct stub_search {
	struct code_files *files;
	pid_t pid;
	uint64_t address;
	const char *symbol; /* NULL: it has none; valid until files are asked again */
	char place[512];
};

/* CUDA up to 12 launches by the address of a function in the program: its symbol has the name. */
static int look_for_stub(const struct mapping *mapping, void *data)
{
	struct stub_search *search = data;
	const char *slash = strrchr(mapping->path, '/');
	uint64_t offset = search->address - mapping->start + mapping->offset, into = 0;
	struct code_file *file;

	if (search->address < mapping->start || search->address >= mapping->end)
		return 0;
	snprintf(search->place, sizeof(search->place), "%s+0x%llx",
	         slash ? slash + 1 : mapping->path, (unsigned long long)offset);
	/* Held until the end: a library has hundreds of kernels, and its table is read once. */
	file = code_files_hold(search->files, search->pid, mapping);
	search->symbol = code_file_function(search->files, file, offset, &into);
	if (into) /* the address of a function is where it begins */
		search->symbol = NULL;
	return 1;
}

static struct known_kernel *resolve_stub(struct kernels *kernels, uint32_t tgid, uint64_t value)
{
	struct stub_search search = { .files = kernels->files,
		                      .pid = (pid_t)tgid,
		                      .address = value };

	maps_each(tgid, look_for_stub, &search, NULL);
	if (search.symbol && kernel_name_plausible(search.symbol))
		return intern(kernels, search.symbol, true);
	if (!search.place[0])
		snprintf(search.place, sizeof(search.place), "0x%llx", (unsigned long long)value);
	return intern(kernels, search.place, false);
}

const struct kernel *kernels_find(struct kernels *kernels, uint32_t tgid, uint64_t value)
{
	struct handle *handle = find_handle(kernels, tgid, value);

	if (!handle || !handle->kernel) {
		set_handle(kernels, tgid, value, resolve_stub(kernels, tgid, value), false);
		handle = find_handle(kernels, tgid, value);
	}
	return &handle->kernel->kernel;
}

const struct kernel *kernels_by_name(struct kernels *kernels, const char *mangled)
{
	bool plausible = kernel_name_plausible(mangled);

	return &intern(kernels, plausible ? mangled : "unnamed", plausible)->kernel;
}

/* ---- forgetting ---------------------------------------------------------------------------- */

static void drop_handles(struct kernels *kernels, uint32_t tgid)
{
	struct handle *handle, *next;

	memset(kernels->recent, 0, sizeof(kernels->recent));
	HASH_ITER (hh, kernels->handles, handle, next) {
		if (handle->key.tgid != tgid)
			continue;
		HASH_DEL(kernels->handles, handle);
		free(handle);
	}
}

/*
 * Which of a process's handles belonged to the module is not known, so none is trusted: a name
 * that was given may be replaced by what the next launch finds in the handle.
 */
void kernels_expire(struct kernels *kernels, uint32_t tgid)
{
	struct handle *handle, *next;

	HASH_ITER (hh, kernels->handles, handle, next) {
		if (handle->key.tgid == tgid)
			handle->given = false;
	}
}

void kernels_forget(struct kernels *kernels, uint32_t tgid)
{
	drop_handles(kernels, tgid);
}

/* ---- where a handle holds its name --------------------------------------------------------- */

static bool leads_to(uint32_t tgid, uint64_t handle, uint64_t offset, const char *name)
{
	size_t len = strnlen(name, 255);
	char text[256];
	uint64_t at;

	return memory_read(tgid, handle + offset, &at, sizeof(at)) &&
	       memory_read(tgid, at, text, len + 1) && !memcmp(text, name, len) &&
	       (len == 255 || !text[len]);
}

uint64_t kernels_calibrate(uint32_t tgid, uint64_t handle, const char *name, uint64_t offset)
{
	uint64_t probe;

	if (!memory_read(tgid, handle, &probe, sizeof(probe)))
		return offset;
	if (offset != UINT64_MAX && leads_to(tgid, handle, offset, name))
		return offset;
	for (uint64_t other = 0; other < 512; other += 8) {
		if (leads_to(tgid, handle, other, name))
			return other;
	}
	return UINT64_MAX;
}
