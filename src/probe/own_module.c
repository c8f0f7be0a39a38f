// SPDX-License-Identifier: MIT
/* Hooks that users ask for, in one file: found, numbered, attached. */
#include "probe/own_hooks_inside.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/selection.h"
#include "probe/patched.h"
#include "probe/person.h"

/* For one file: a million symbols take 0.4 s with forty hooks. */
#define HURRIED_NS 1000000000ull
#define PATIENT_NS 5000000000ull

static uint64_t person_behind(int fd)
{
	struct stat st;

	return file_stat(fd, &st) ? PERSON_UNKNOWN
	                          : person_of_file(st.st_uid, helper_mapped_by(fd));
}

bool own_module_open(int fd, const char *path, enum elf_depth depth, const struct hook_list *list,
                     struct own_module **made)
{
	bool patient = depth == ELF_WHOLE;
	struct own_module *module;
	struct err err = { 0 };
	int r;

	*made = NULL;
	if (!own_functions_wanted(list, path))
		return true;
	if (depth == ELF_DYNSYM_ONLY)
		return false;
	module = xcalloc(1, sizeof(*module));
	module->path = xstrdup(path);
	module->person = person_behind(fd);
	r = own_functions_read(fd, path, list, patient ? PATIENT_NS : HURRIED_NS,
	                       &module->functions, &err);
	if (r == -EBADMSG || (r == -ETIME && patient))
		module->refused = xstrdup(err.text);
	if (r && !module->refused)
		own_module_free(module);
	else
		*made = module;
	return r != -ETIME || patient;
}

bool own_module_meets(const struct own_module *own, const struct own_module *other)
{
	const struct own_functions *a = own ? &own->functions : NULL,
				   *b = other ? &other->functions : NULL;
	size_t i = 0, j = 0;

	while (a && b && i < a->n && j < b->n) { /* in order of the file, both */
		if (a->list[i].offset == b->list[j].offset)
			return true;
		if (a->list[i].offset < b->list[j].offset)
			i++;
		else
			j++;
	}
	return false;
}

void own_module_detach(struct own_module *module)
{
	attachment_free(module->spans);
	attachment_free(module->moments);
	module->spans = module->moments = NULL;
}

void own_module_free(struct own_module *module)
{
	if (!module)
		return;
	own_module_detach(module);
	own_functions_free(&module->functions);
	free(module->hooks);
	free(module->path);
	free(module->refused);
	free(module);
}

static void tell_refused(struct own_hooks *own, const struct own_module *module, own_miss_fn miss,
                         void *data)
{
	for (size_t i = 0; i < own->list->n; i++) {
		if (!own_functions_is_module(own->list->spec[i], module->path))
			continue;
		own->found[i] = true; /* and told of */
		miss(data, MISS_NOT_HOOKED, own->list->spec[i]->glob, module->refused);
	}
}

/* Two hooks of one file that meet: the one that was named first is there. */
static void tell_taken(const struct own_hooks *own, const struct own_functions *found, size_t spec,
                       own_miss_fn miss, void *data)
{
	const struct own_taken *taken = &found->taken[spec];
	const struct hook_spec *by = own->list->spec[taken->by];
	AT_END(buf_free) struct buf why = { 0 };

	if (!taken->places || own->list->spec[spec]->unasked)
		return;
	if (taken->places == 1)
		buf_puts(&why, "its place has");
	else
		buf_printf(&why, "%zu of its places have", taken->places);
	buf_puts(&why, " a hook already, of which there is one for each place: '");
	text_add_safe(&why, by->glob);
	buf_puts(&why, "' of ");
	hook_list_add_origin(by, &why);
	miss(data, MISS_NOT_HOOKED, own->list->spec[spec]->glob, why.data);
}

/* Notes what this file has of each hook; told at once is what has too much, or meets another. */
static void note_matches(struct own_hooks *own, const struct own_module *module, own_miss_fn miss,
                         void *data)
{
	const struct own_functions *found = &module->functions;
	size_t limit = own_functions_limit(own->list);
	char why[160];

	for (size_t i = 0; i < found->n_specs; i++) {
		const struct hook_spec *spec = own->list->spec[i];
		const char *near = found->near[i];

		if (!own_functions_is_module(spec, module->path))
			continue;
		if (!found->matches[i] && !own->missing[i])
			own->missing[i] = xasprintf("%s does not define it%s%s%s", module->path,
			                            near ? "; did you mean '" : "",
			                            near ? near : "", near ? "'?" : "");
		if (found->matches[i])
			own->found[i] = true;
		tell_taken(own, found, i, miss, data);
		if (found->matches[i] <= limit)
			continue;
		snprintf(why, sizeof(why),
		         "more than %zu functions match: none of them is hooked; --hook-limit "
		         "raises that, up to %d",
		         limit, HOOK_MATCHES_TOP);
		miss(data, MISS_NOT_HOOKED, spec->glob, why);
	}
}

static struct own_hook *hook_of(struct own_hooks *own, const struct own_module *module,
                                const struct own_function *function, const char *lib,
                                own_miss_fn miss, void *data)
{
	struct own_place places[SPEC_ARG_LAST + 1];
	struct err err = { 0 };
	struct own_hook *hook;
	size_t n = SPEC_ARG_LAST + 1;
	char *shown;

	if (function->arguments && !own_places_of_marker(function->arguments, places, &n)) {
		miss(data, MISS_NOT_HOOKED, function->name,
		     "its arguments are of a kind that is not known");
		return NULL;
	}
	if (function->no_return && own->returns &&
	    spec_needs_return(own->list->spec[function->spec])) {
		miss(data, MISS_NOT_HOOKED, function->name, function->no_return);
		return NULL;
	}
	shown = own_function_shown(function->name, module->person);
	hook = own_hooks_add(own, function->spec, shown, lib, function->arguments ? places : NULL,
	                     function->arguments ? n : 0, !function->no_return, &err);
	free(shown);
	if (!hook)
		miss(data, MISS_NOT_HOOKED, function->name, err.text);
	return hook;
}

/* Where a process has other code than the file, a probe would end it: patched.h. */
static void leave_patched(struct own_module *module, int fd, own_miss_fn miss, void *data)
{
	size_t n = module->functions.n;
	AT_END(at_end_free) struct patch_point *points = xcalloc(n + 1, sizeof(*points));

	for (size_t i = 0; i < n; i++) {
		const struct own_function *function = &module->functions.list[i];

		points[i] = (struct patch_point){ .entry = function->offset,
			                          .probe = function->skip,
			                          .bytes = function->skip + function->length };
	}
	patched_find(fd, points, n, NULL, NULL, 0);
	for (size_t i = 0; i < n; i++) {
		char why[PATCH_WHY_MAX + 32];

		if (!module->hooks[i] || !points[i].pid)
			continue;
		snprintf(why, sizeof(why), "process %d %s", (int)points[i].pid,
		         patch_why(points[i].kind));
		miss(data, MISS_NOT_HOOKED, module->hooks[i]->name, why);
		module->hooks[i]->error = -EEXIST;
	}
}

/* Spans that are moments for this reason, from one of the functions on. */
static size_t count_entries(const struct own_module *module, size_t from, const char *why)
{
	size_t n = 0;

	for (size_t i = from; i < module->functions.n; i++)
		n += module->hooks[i] && spec_is_span(module->hooks[i]->spec) &&
		     module->functions.list[i].no_return == why;
	return n;
}

/* All that have one reason are told of at once: a glob can stand for a whole program of Go. */
static void tell_entries(const struct own_module *module, own_miss_fn miss, void *data)
{
	const char *told[NO_RETURN_REASONS] = { NULL };

	for (size_t i = 0; i < module->functions.n; i++) {
		const struct own_function *function = &module->functions.list[i];
		const char *why = function->no_return;
		char text[256];
		size_t at = 0, n;

		while (at < NO_RETURN_REASONS && told[at] && told[at] != why)
			at++;
		if (!why || at == NO_RETURN_REASONS || told[at] || !module->hooks[i] ||
		    !spec_is_span(module->hooks[i]->spec))
			continue;
		told[at] = why;
		n = count_entries(module, i, why);
		if (n > 1)
			snprintf(text, sizeof(text), "and %zu more: %s", n - 1, why);
		miss(data, MISS_ENTRY_ONLY, function->name, n > 1 ? text : why);
	}
}

/* Those that want their returns, or those that do not. */
static void attach_some(struct own_hooks *own, struct own_module *module, int fd, bool spans,
                        own_miss_fn miss, void *data)
{
	struct attach_point *points = xcalloc(module->functions.n + 1, sizeof(*points));
	struct own_hook **hooks = xcalloc(module->functions.n + 1, sizeof(struct own_hook *));
	size_t n = 0;
	struct err err = { 0 };
	int r = 0;

	for (size_t i = 0; i < module->functions.n; i++) {
		const struct own_function *function = &module->functions.list[i];
		struct own_hook *hook = module->hooks[i];
		bool waits;

		if (!hook || hook->error)
			continue;
		waits = hook->returns &&
		        (spec_is_span(hook->spec) || hook->spec->kind == SPEC_URETPROBE);
		if (waits != spans)
			continue;
		points[n] = (struct attach_point){ .offset = function->offset + function->skip,
			                           .cookie = own_hook_cookie(hook),
			                           .counter = function->counter };
		hooks[n++] = hook;
	}
	if (n)
		r = attach_own(own->programs, fd, points, n, spans,
		               spans ? &module->spans : &module->moments, &err);
	for (size_t i = 0; i < n; i++) {
		hooks[i]->error = r && !points[i].error ? r : points[i].error;
		if (hooks[i]->error)
			miss(data, MISS_NOT_HOOKED, hooks[i]->name, strerror(-hooks[i]->error));
	}
	free(points);
	free(hooks);
}

void own_module_attach(struct own_hooks *own, struct own_module *module, int fd, const char *lib,
                       size_t room, own_miss_fn miss, void *data)
{
	pthread_mutex_lock(&own->lock);
	if (module->refused)
		tell_refused(own, module, miss, data);
	else
		note_matches(own, module, miss, data);
	pthread_mutex_unlock(&own->lock);
	if (!module->hooks) {
		module->hooks = xcalloc(module->functions.n + 1, sizeof(struct own_hook *));
		for (size_t i = 0; i < module->functions.n && i < room; i++)
			module->hooks[i] =
				hook_of(own, module, &module->functions.list[i], lib, miss, data);
	}
	if (own->returns)
		tell_entries(module, miss, data);
	leave_patched(module, fd, miss, data);
	attach_some(own, module, fd, true, miss, data);
	attach_some(own, module, fd, false, miss, data);
}

void own_hooks_tell_unseen(const struct own_hooks *own, own_miss_fn miss, void *data)
{
	for (size_t i = 0; i < own->list->n; i++) {
		const struct hook_spec *spec = own->list->spec[i];
		char why[SPEC_PLACE_MAX + PATH_MAX + 64];

		if (spec_is_kernel(spec) || own->found[i] || spec->optional)
			continue;
		snprintf(why, sizeof(why), "no target has mapped %s%s%s", spec->module,
		         spec->real_module ? ", which is " : "",
		         spec->real_module ? spec->real_module : "");
		miss(data, MISS_NOT_HOOKED, spec->glob, own->missing[i] ? own->missing[i] : why);
	}
}
