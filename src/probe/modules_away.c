// SPDX-License-Identifier: MIT
/*
 * Modules whose probes are away, since all who have them mapped are recorded inside
 * (capture/inside/inside_away.c). Whoever maps one of them meanwhile is told of as if nobody had
 * seen the file before. A held process waits until the probes are back.
 */
#include "probe/modules_inside.h"

#include <string.h>
#include <sys/sysmacros.h>

struct wire_file modules_file_id(const struct seen_file *file, uint64_t stamp)
{
	return (struct wire_file){ .inode = file->key.inode,
		                   .dev = (uint64_t)major(file->key.dev) << 20 |
		                          minor(file->key.dev),
		                   .stamp = stamp };
}

/* Under each number of its device that it was met by. */
void modules_set_known(struct modules *modules, const struct module *module, bool known)
{
	struct seen_file *file, *next;

	HASH_ITER (hh, modules->files, file, next) {
		const struct wire_file id = modules_file_id(file, file->stamp);

		if (file->module != module)
			continue;
		if (!known)
			programs_file_unknown(modules->options.programs, &id);
		else if (file->stamp)
			programs_file_known(modules->options.programs, &id, KNOWN_CUDA);
	}
}

static bool has_double(const struct modules *modules, const struct module *module)
{
	for (size_t i = 0; i < modules->count; i++) {
		const struct module *other = modules->list[i];

		if (other != module && other->attached && other->alike == module->alike)
			return true;
	}
	return false;
}

static void mark_double(struct wire_state *state, const struct module *module)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		if (module->hooks[i].id != HOOK_NO_ID)
			state->mode[module->hooks[i].id] |= HOOK_DOUBLE;
	}
}

static uint32_t alike_number(struct modules *modules, const struct module *module)
{
	for (size_t i = 0; i < modules->count; i++) {
		const struct module *other = modules->list[i];

		if (other != module && module_is_alike(module, other))
			return other->alike;
	}
	return ++modules->alike;
}

void modules_mark_double(struct modules *modules, struct module *module)
{
	struct wire_state *state = programs_state(modules->options.programs);

	module->alike = alike_number(modules, module);
	for (size_t i = 0; i < modules->count; i++) {
		const struct module *other = modules->list[i];

		if (other == module || other->rewritten)
			continue;
		if (own_module_meets(module->own, other->own))
			state->own_double = 1;
		if (other->alike != module->alike)
			continue;
		mark_double(state, module);
		mark_double(state, other);
	}
}

bool modules_watch(struct modules *modules, struct module *module)
{
	if (module->probes != PROBES_THERE || !module->attached || module->rewritten ||
	    module->expected || has_double(modules, module))
		return false;
	module->probes = PROBES_WATCHED;
	modules_set_known(modules, module, false);
	return true;
}

static void tell_failed(struct modules *modules, struct module *module, const struct err *err)
{
	if (module->told_unhooked)
		return;
	module->told_unhooked = true;
	modules_miss(modules, MISS_NOT_HOOKED, NULL, module->name, 0,
	             "probes that were away could not be put back: %s", err->text);
}

bool modules_put_back(struct modules *modules, struct module *module)
{
	bool was_away = module->probes == PROBES_AWAY;
	struct err err = { 0 };

	if (module->probes == PROBES_THERE)
		return false;
	if (was_away && module_put_back(module, &err))
		tell_failed(modules, module, &err);
	module->probes = PROBES_THERE;
	modules_set_known(modules, module, true);
	if (was_away)
		modules_tell_unhooked(modules, module);
	return was_away;
}

static bool has_noted(const struct modules_runtimes *runtimes, const struct module *module)
{
	for (size_t i = 0; i < runtimes->n; i++) {
		if (runtimes->away[i] == module)
			return true;
	}
	return false;
}

void modules_note_runtime(struct modules_runtimes *runtimes, struct module *module)
{
	if (!module->has[LAYER_DRIVER] && module->probes == PROBES_AWAY &&
	    !has_noted(runtimes, module) && runtimes->n < RUNTIMES_MOST)
		runtimes->away[runtimes->n++] = module;
}

void modules_driver_came(struct modules *modules, uint32_t pid,
                         const struct modules_runtimes *runtimes)
{
	for (size_t i = 0; i < modules->count; i++) {
		struct module *module = modules->list[i];

		if (!module->has[LAYER_DRIVER] && modules_put_back(modules, module) &&
		    has_noted(runtimes, module))
			modules_miss(modules, MISS_UNHOOKED, NULL, module->name, pid,
			             "calls until it had loaded the driver, as its first does");
	}
}

const struct module *modules_of_mapping(struct modules *modules, const struct mapping *mapping)
{
	const struct file_key key = { .dev = mapping->dev, .inode = mapping->inode };
	const struct seen_file *file;

	LOCKED(&modules->lock);
	file = modules_file(modules, key);
	return file ? file->module : NULL;
}

/* ---- the driver ---------------------------------------------------------------------------- */

/* Whether the driver's first call will tell if it works. */
static bool will_tell(const struct modules *modules, const struct module *driver)
{
	if (modules->looking == LOOK_RUNNING || !modules->options.returns)
		return false;
	for (size_t i = 0; i < driver->n_hooks; i++) {
		if (hook_proves_driver(&driver->hooks[i]) && driver->hooks[i].group != HOOK_OFF)
			return true;
	}
	return false;
}

/*
 * Launches are seen in the driver once it works: until then, in the runtime, which refuses those
 * that it finds no device for. See capture/runtime_launches.h for the rest.
 */
void modules_driver_appeared(struct modules *modules, const struct module *driver)
{
	struct wire_state *state = programs_state(modules->options.programs);

	if (modules->driver_seen)
		return;
	modules->driver_seen = true;
	if (modules->options.selection->layers == LAYERS_AUTO &&
	    !modules->options.selection->n_only)
		state->driver_tells = 1;
	if (!will_tell(modules, driver))
		state->driver_works = 1;
}

/* ---- calls that no driver told of ----------------------------------------------------------- */

void modules_tell_alone(struct modules *modules)
{
	const struct wire_state *state = programs_state(modules->options.programs);

	for (size_t m = 0; m < modules->count; m++) {
		struct module *module = modules->list[m];

		for (size_t i = 0; i < module->n_hooks; i++) {
			struct hook *hook = &module->hooks[i];
			struct modules_counted counted = { 0 };

			if (hook->id == HOOK_NO_ID || !state->alone[hook->id])
				continue;
			counted.alone = state->alone[hook->id];
			modules_counted(modules, &hook->alone_told, hook->name, module->name,
			                &counted);
		}
	}
}
