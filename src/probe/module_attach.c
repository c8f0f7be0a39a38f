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

/* Links in the order in which they are made. */
static const enum hook_group order[] = { HOOK_CORE, HOOK_LAUNCH, HOOK_RUNTIME_LAUNCH, HOOK_LITTLE };

/* Whose link a hook's is, unless it has one of its own. */
static enum hook_group link_of(const struct hook *hook)
{
	return hook->group == HOOK_SUPPORT ? HOOK_CORE : hook->group;
}

/* Whether a module can lose the returns of this link for good. */
static bool loses_returns(enum hook_group link)
{
	return link == HOOK_CORE || link == HOOK_LAUNCH;
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
	AT_END(at_end_free) struct patch_point *points = module_patch_points(module, false);

	patched_find(module->fd, points, module->n_hooks, NULL, NULL, 0);
	for (size_t i = 0; i < module->n_hooks; i++) {
		module->hooks[i].patched = points[i].pid;
		module->hooks[i].patch = points[i].kind;
	}
}

/* Attaches hooks together. */
static int attach_hooks(const struct module *module, struct hook *const *hooks, size_t count,
                        bool moved, bool returns, struct attachment **attachment, struct err *err)
{
	AT_END(at_end_free) struct attach_point *points = xcalloc(count + 1, sizeof(*points));
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		points[i].offset = hooks[i]->entry + hooks[i]->placement.skip;
		points[i].cookie =
			hook_cookie(hooks[i]) | cookie_with_moved(moved || hooks[i]->moved);
	}
	if (count)
		r = attach(module->programs, module->fd, points, count, returns, module->is_new,
		           attachment, err);
	for (size_t i = 0; i < count; i++)
		hooks[i]->error = r && !points[i].error ? r : points[i].error;
	return r;
}

/* All of a link, but for those that were given up or have one of their own. */
static int make_link(struct module *module, enum hook_group link, struct err *err)
{
	AT_END(at_end_free) struct hook **hooks = xcalloc(module->n_hooks + 1, sizeof(*hooks));
	bool returns = module->returns && !(module->no_returns && loses_returns(link));
	bool guarded = false;
	size_t count = 0;
	int r;

	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook *hook = &module->hooks[i];

		if (link_of(hook) != link || hook->given_up || has_own_link(module, hook))
			continue;
		hook->error = hook->patched ? -EEXIST : 0;
		hook->hooked = false;
		if (!hook->patched)
			hooks[count++] = hook;
	}
	r = attach_hooks(module, hooks, count, false, returns, &module->links[link], err);
	for (size_t i = 0; i < count; i++) {
		hooks[i]->hooked = !hooks[i]->error;
		guarded |= hooks[i]->error == -EFAULT;
	}
	if (guarded)
		find_patched(module); /* who has put guard pages there since the last look */
	return r;
}

/* `later`: nobody waits for the kernel. */
static void drop_link(struct module *module, enum hook_group link, bool later)
{
	struct attachment *attachment = module->links[link];

	if (!attachment)
		return;
	if (later)
		attachment_free_later(attachment);
	else
		attachment_free(attachment);
	module->links[link] = NULL;
	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook *hook = &module->hooks[i];

		if (link_of(hook) == link && !has_own_link(module, hook))
			hook->hooked = false;
	}
}

static int attach_all(struct module *module, struct err *err)
{
	const bool wanted[] = {
		[HOOK_CORE] = true,
		[HOOK_LAUNCH] = !module->no_launches,
		[HOOK_RUNTIME_LAUNCH] = wire_runtime_launches(programs_state(module->programs)),
		[HOOK_LITTLE] = true,
	};
	int r = 0;

	find_patched(module);
	for (size_t i = 0; i < ARRAY_SIZE(order) && !r; i++)
		if (wanted[order[i]])
			r = make_link(module, order[i], err);
	return r;
}

int module_attach(struct module *module, struct err *err)
{
	int r;

	if (module->attached || module->rewritten)
		return 0;
	module->attached = module->is_new = true;
	r = attach_all(module, err);
	module->is_new = false; /* probes that are put back are needed at the end, too */
	if (!module->hooked_ns)
		module->hooked_ns = clock_now_ns();
	return r;
}

int module_hook_group(struct module *module, enum hook_group group, bool hook, struct err *err)
{
	if (group == HOOK_LAUNCH)
		module->no_launches = !hook;
	if (!hook)
		drop_link(module, group, true);
	if (!hook || !module->attached || module->probes == PROBES_AWAY || module->links[group])
		return 0;
	find_patched(module);
	return make_link(module, group, err);
}

void module_ignore_launches(struct module *module, bool ignore)
{
	struct wire_state *state = programs_state(module->programs);
	uint8_t mode = module->no_returns ? HOOK_ENTRY_ONLY | HOOK_RETURN_GONE : 0;

	if (ignore)
		mode |= HOOK_IGNORE;
	for (size_t i = 0; i < module->n_hooks; i++) {
		uint8_t *of = &state->mode[module->hooks[i].id];

		if (module->hooks[i].group == HOOK_LAUNCH)
			*of = mode | (*of & ~HOOK_GIVEN_UP);
	}
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

bool module_relink_little(struct module *module)
{
	if (!any_to_give_up(module))
		return false;
	drop_link(module, HOOK_LITTLE, false);
	find_patched(module);
	make_link(module, HOOK_LITTLE, NULL);
	return true;
}

static void add_mode(const struct module *module, enum hook_mode mode)
{
	struct wire_state *state = programs_state(module->programs);

	for (size_t i = 0; i < module->n_hooks; i++) {
		if (module->hooks[i].group != HOOK_OFF && loses_returns(link_of(&module->hooks[i])))
			state->mode[module->hooks[i].id] |= mode;
	}
}

void module_drop_returns(struct module *module)
{
	add_mode(module, HOOK_ENTRY_ONLY);
	module->no_returns = true;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (loses_returns(order[i]) && module->links[order[i]])
			attachment_drop_returns(module->links[order[i]]);
	add_mode(module, HOOK_RETURN_GONE);
}

/* ---- taken away and put back --------------------------------------------------------------- */

/* From now on those of the link that was made last are looked at, and the others are not. */
static void flip(struct module *module, struct hook *const *hooks, size_t count,
                 struct attachment *attachment)
{
	struct wire_state *state = programs_state(module->programs);

	module->moved = vec_room(module->moved, module->n_moved, sizeof(*module->moved));
	module->moved[module->n_moved++] = attachment;
	for (size_t i = 0; i < count; i++) {
		hooks[i]->moved = true;
		state->mode[hooks[i]->id] |= HOOK_MOVED;
	}
}

int module_move_hooks(struct module *module, bool (*stays)(void *data, const struct hook *hook),
                      void *data, struct err *err)
{
	AT_END(at_end_free) struct hook **hooks = xcalloc(module->n_hooks + 1, sizeof(*hooks));
	struct attachment *attachment = NULL;
	size_t count = 0;
	int r = 0;

	find_patched(module);
	for (size_t i = 0; i < module->n_hooks && !r; i++) {
		struct hook *hook = &module->hooks[i];

		if (!hook->hooked || hook->moved || hook->given_up || !stays(data, hook))
			continue;
		if (hook->patched)
			r = err_set(err, EEXIST, "%s: process %d %s", hook->name,
			            (int)hook->patched, patch_why(hook->patch));
		hooks[count++] = hook;
	}
	if (!r)
		r = attach_hooks(module, hooks, count, true, module->returns && !module->no_returns,
		                 &attachment, err);
	for (size_t i = 0; i < count && !r; i++)
		r = hooks[i]->error;
	for (size_t i = 0; i < count; i++)
		hooks[i]->error = 0; /* it is hooked as before */
	if (r && attachment)
		attachment_free_later(attachment);
	else if (!r && count)
		flip(module, hooks, count, attachment);
	return r;
}

void module_take_away(struct module *module)
{
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		drop_link(module, order[i], true);
	module->probes = PROBES_AWAY;
}

int module_put_back(struct module *module, struct err *err)
{
	int r;

	if (module->probes != PROBES_AWAY || !module->attached)
		return 0;
	module->probes = PROBES_THERE;
	module->came_back = true;
	r = attach_all(module, err);
	module->hooked_ns = clock_now_ns();
	return r;
}

uint64_t module_attach_ns(const struct module *module)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		ns += attachment_took_ns(module->links[order[i]]);
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
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		drop_link(module, order[i], false);
	for (size_t i = 0; i < module->n_moved; i++)
		attachment_free(module->moved[i]);
	free(module->moved);
	module->moved = NULL;
	module->n_moved = 0;
	module->attached = false;
	module->probes = PROBES_THERE;
	for (size_t i = 0; i < module->n_hooks; i++)
		module->hooks[i].hooked = false;
}
