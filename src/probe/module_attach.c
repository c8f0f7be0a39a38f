// SPDX-License-Identifier: MIT
/* The probes of a module: put there in groups, given up in part, taken away and put back. */
#include "probe/module.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/patched.h"

/* Groups that are attached together. */
#define ALWAYS (1u << HOOK_CORE | 1u << HOOK_SUPPORT)

static bool in_groups(const struct hook *hook, unsigned groups)
{
	return groups >> hook->group & 1;
}

static bool has_own_link(const struct module *module, const struct hook *hook)
{
	return hook->moved && module->n_moved;
}

struct patch_point *module_patch_points(const struct module *module, bool hooked)
{
	struct patch_point *points = xcalloc(module->n_hooks + 1, sizeof(*points));

	for (size_t i = 0; i < module->n_hooks; i++) {
		const struct hook *hook = &module->hooks[i];

		if (hook->group == HOOK_OFF || (hooked && !hook->hooked))
			continue;
		points[i].entry = hook->entry;
		points[i].probe = hook->placement.skip;
		points[i].bytes = hook->placement.skip + hook->placement.length;
	}
	return points;
}

/* Looks anew who has other code where probes would be. Each time: anybody may have by now. */
static void find_patched(struct module *module)
{
	struct patch_point *points = module_patch_points(module, false);

	patched_find(module->fd, points, module->n_hooks, NULL, NULL, 0);
	for (size_t i = 0; i < module->n_hooks; i++)
		module->hooks[i].patched = points[i].pid;
	free(points);
}

/* Attaches hooks together. */
static int attach_hooks(const struct module *module, struct programs *programs,
                        struct hook *const *hooks, size_t count, bool moved, bool returns,
                        struct attachment **attachment, struct err *err)
{
	struct attach_point *points = xcalloc(count + 1, sizeof(*points));
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		points[i].offset = hooks[i]->entry + hooks[i]->placement.skip;
		points[i].cookie =
			hook_cookie(hooks[i]) | cookie_with_moved(moved || hooks[i]->moved);
	}
	if (count)
		r = attach(programs, module->fd, points, count, returns, module->is_new, attachment,
		           err);
	for (size_t i = 0; i < count; i++)
		hooks[i]->error = r && !points[i].error ? r : points[i].error;
	free(points);
	return r;
}

/* All of some groups, but for those that were given up or have a link of their own. */
static int attach_groups(struct module *module, struct programs *programs, unsigned groups,
                         bool returns, struct attachment **attachment, struct err *err)
{
	struct hook **hooks = xcalloc(module->n_hooks + 1, sizeof(*hooks));
	size_t count = 0;
	int r;

	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook *hook = &module->hooks[i];

		if (!in_groups(hook, groups) || hook->given_up || has_own_link(module, hook))
			continue;
		hook->error = hook->patched ? -EEXIST : 0;
		hook->hooked = false;
		if (!hook->patched)
			hooks[count++] = hook;
	}
	r = attach_hooks(module, programs, hooks, count, false, returns, attachment, err);
	for (size_t i = 0; i < count; i++)
		hooks[i]->hooked = !hooks[i]->error;
	free(hooks);
	return r;
}

static int attach_all(struct module *module, struct programs *programs, bool returns,
                      bool runtime_launches, struct err *err)
{
	int r;

	find_patched(module);
	r = attach_groups(module, programs, ALWAYS, returns && !module->no_returns, &module->core,
	                  err);
	if (!r && !module->no_launches)
		r = attach_groups(module, programs, 1u << HOOK_LAUNCH,
		                  returns && !module->no_returns, &module->launches, err);
	if (r)
		return r;
	if (runtime_launches)
		r = attach_groups(module, programs, 1u << HOOK_RUNTIME_LAUNCH, returns,
		                  &module->runtime_launches, err);
	if (!r)
		r = attach_groups(module, programs, 1u << HOOK_LITTLE, returns, &module->little,
		                  err);
	return r;
}

int module_attach(struct module *module, struct programs *programs, bool returns,
                  bool runtime_launches, struct err *err)
{
	int r;

	if (module->attached || module->rewritten)
		return 0;
	module->attached = module->is_new = true;
	r = attach_all(module, programs, returns, runtime_launches, err);
	module->is_new = false; /* probes that are put back are needed at the end, too */
	if (!module->hooked_ns)
		module->hooked_ns = clock_now_ns();
	return r;
}

static void mark_unhooked(struct module *module, unsigned groups)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		if (in_groups(&module->hooks[i], groups) &&
		    !has_own_link(module, &module->hooks[i]))
			module->hooks[i].hooked = false;
	}
}

void module_drop_runtime_launches(struct module *module)
{
	if (!module->runtime_launches)
		return;
	attachment_free_later(module->runtime_launches);
	module->runtime_launches = NULL;
	mark_unhooked(module, 1u << HOOK_RUNTIME_LAUNCH);
}

int module_hook_runtime_launches(struct module *module, struct programs *programs, bool returns,
                                 struct err *err)
{
	if (!module->attached || module->probes == PROBES_AWAY || module->runtime_launches)
		return 0;
	find_patched(module);
	return attach_groups(module, programs, 1u << HOOK_RUNTIME_LAUNCH, returns,
	                     &module->runtime_launches, err);
}

void module_ignore_launches(struct module *module, struct programs *programs, bool ignore)
{
	struct wire_state *state = programs_state(programs);
	uint8_t mode = module->no_returns ? HOOK_ENTRY_ONLY | HOOK_RETURN_GONE : 0;

	if (ignore)
		mode |= HOOK_IGNORE;
	for (size_t i = 0; i < module->n_hooks; i++) {
		uint8_t *of = &state->mode[module->hooks[i].id];

		if (module->hooks[i].group == HOOK_LAUNCH)
			*of = mode | (*of & HOOK_MOVED);
	}
}

int module_hook_launches(struct module *module, struct programs *programs, bool returns, bool hook,
                         struct err *err)
{
	module->no_launches = !hook;
	if (hook && module->attached && module->probes != PROBES_AWAY && !module->launches) {
		find_patched(module);
		return attach_groups(module, programs, 1u << HOOK_LAUNCH,
		                     returns && !module->no_returns, &module->launches, err);
	}
	if (!hook && module->launches) {
		attachment_free_later(module->launches);
		module->launches = NULL;
		mark_unhooked(module, 1u << HOOK_LAUNCH);
	}
	return 0;
}

static bool any_to_give_up(const struct module *module)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		const struct hook *hook = &module->hooks[i];

		if (hook->given_up && hook->hooked && !hook->moved)
			return true;
	}
	return false;
}

bool module_relink_little(struct module *module, struct programs *programs, bool returns)
{
	if (!any_to_give_up(module))
		return false;
	attachment_free(module->little);
	module->little = NULL;
	mark_unhooked(module, 1u << HOOK_LITTLE);
	find_patched(module);
	attach_groups(module, programs, 1u << HOOK_LITTLE, returns, &module->little, NULL);
	return true;
}

static void add_mode(const struct module *module, struct programs *programs, enum hook_mode mode)
{
	struct wire_state *state = programs_state(programs);

	for (size_t i = 0; i < module->n_hooks; i++) {
		if (in_groups(&module->hooks[i], ALWAYS | 1u << HOOK_LAUNCH))
			state->mode[module->hooks[i].id] |= mode;
	}
}

void module_drop_returns(struct module *module, struct programs *programs)
{
	add_mode(module, programs, HOOK_ENTRY_ONLY);
	module->no_returns = true;
	if (module->core)
		attachment_drop_returns(module->core);
	if (module->launches)
		attachment_drop_returns(module->launches);
	add_mode(module, programs, HOOK_RETURN_GONE);
}

/* ---- taken away and put back --------------------------------------------------------------- */

/* From now on those of the link that was made last are looked at, and the others are not. */
static void flip(struct module *module, struct programs *programs, struct hook *const *hooks,
                 size_t count, struct attachment *attachment)
{
	struct wire_state *state = programs_state(programs);

	module->moved = vec_room(module->moved, module->n_moved, sizeof(*module->moved));
	module->moved[module->n_moved++] = attachment;
	for (size_t i = 0; i < count; i++) {
		hooks[i]->moved = true;
		state->mode[hooks[i]->id] |= HOOK_MOVED;
	}
}

int module_move_hooks(struct module *module, struct programs *programs, bool returns,
                      bool (*stays)(void *data, const struct hook *hook), void *data,
                      struct err *err)
{
	struct hook **hooks = xcalloc(module->n_hooks + 1, sizeof(*hooks));
	struct attachment *attachment = NULL;
	size_t count = 0;
	int r = 0;

	find_patched(module);
	for (size_t i = 0; i < module->n_hooks && !r; i++) {
		struct hook *hook = &module->hooks[i];

		if (!hook->hooked || hook->moved || hook->given_up || !stays(data, hook))
			continue;
		if (hook->patched)
			r = err_set(err, EEXIST, "%s: process %d has code of its own there",
			            hook->name, (int)hook->patched);
		hooks[count++] = hook;
	}
	if (!r)
		r = attach_hooks(module, programs, hooks, count, true,
		                 returns && !module->no_returns, &attachment, err);
	for (size_t i = 0; i < count && !r; i++)
		r = hooks[i]->error;
	for (size_t i = 0; i < count; i++)
		hooks[i]->error = 0; /* it is hooked as before */
	if (r && attachment)
		attachment_free_later(attachment);
	else if (!r && count)
		flip(module, programs, hooks, count, attachment);
	free(hooks);
	return r;
}

void module_take_away(struct module *module)
{
	struct attachment **all[] = { &module->core, &module->launches, &module->runtime_launches,
		                      &module->little };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (*all[i])
			attachment_free_later(*all[i]);
		*all[i] = NULL;
	}
	mark_unhooked(module, ~0u);
	module->probes = PROBES_AWAY;
}

int module_put_back(struct module *module, struct programs *programs, bool returns,
                    bool runtime_launches, struct err *err)
{
	int r;

	if (module->probes != PROBES_AWAY || !module->attached)
		return 0;
	module->probes = PROBES_THERE;
	module->came_back = true;
	r = attach_all(module, programs, returns, runtime_launches, err);
	module->hooked_ns = clock_now_ns();
	return r;
}

uint64_t module_attach_ns(const struct module *module)
{
	uint64_t ns = attachment_took_ns(module->core) + attachment_took_ns(module->launches) +
	              attachment_took_ns(module->runtime_launches) +
	              attachment_took_ns(module->little);

	for (size_t i = 0; i < module->n_moved; i++)
		ns += attachment_took_ns(module->moved[i]);
	if (module->own)
		ns += attachment_took_ns(module->own->spans) +
		      attachment_took_ns(module->own->moments);
	return ns;
}

void module_detach(struct module *module)
{
	if (module->own)
		own_module_detach(module->own);
	attachment_free(module->core);
	attachment_free(module->launches);
	attachment_free(module->runtime_launches);
	attachment_free(module->little);
	for (size_t i = 0; i < module->n_moved; i++)
		attachment_free(module->moved[i]);
	free(module->moved);
	module->core = module->launches = module->runtime_launches = NULL;
	module->little = NULL;
	module->moved = NULL;
	module->n_moved = 0;
	module->attached = false;
	module->probes = PROBES_THERE;
	for (size_t i = 0; i < module->n_hooks; i++)
		module->hooks[i].hooked = false;
}
