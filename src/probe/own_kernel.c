// SPDX-License-Identifier: MIT
#include "probe/own_kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/bpf_call.h"

/* Tracepoints: which there are, and what their records have, as tracefs says it. */

#define FORMAT_BYTES 65536

/* What comes behind `key` in a line of a format, up to ';'. */
static bool field_number(const char *line, const char *key, unsigned *number)
{
	const char *at = strstr(line, key);
	char *end;

	if (!at)
		return false;
	*number = (unsigned)strtoul(at + strlen(key), &end, 10);
	return *end == ';' && end != at + strlen(key);
}

/* The name in a declaration: "char comm[16]", "__data_loc char[] name", "unsigned int a". */
static bool declared_name(const char *declaration, size_t len, char *name, size_t room)
{
	size_t end = len, begin;

	if (end && declaration[end - 1] == ']') {
		while (end && declaration[end - 1] != '[')
			end--;
		end -= end > 0;
	}
	begin = end;
	while (begin && declaration[begin - 1] != ' ' && declaration[begin - 1] != '*' &&
	       declaration[begin - 1] != '\t')
		begin--;
	if (end == begin || end - begin >= room)
		return false;
	memcpy(name, declaration + begin, end - begin);
	name[end - begin] = '\0';
	return true;
}

/* "	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;" */
static bool field_read(const char *line, struct own_place *field)
{
	const char *begin = strstr(line, "field:"), *end;
	unsigned offset, size, is_signed = 0;
	bool chars, array;

	if (!begin)
		return false;
	begin += strlen("field:");
	end = strchr(begin, ';');
	*field = (struct own_place){ 0 };
	if (!end || !field_number(end, "offset:", &offset) || !field_number(end, "size:", &size) ||
	    offset > UINT16_MAX - size || size > UINT16_MAX ||
	    !declared_name(begin, (size_t)(end - begin), field->name, sizeof(field->name)) ||
	    !strncmp(field->name, "common_", 7))
		return false;
	field_number(end, "signed:", &is_signed);
	chars = memmem(begin, (size_t)(end - begin), "char", 4) != NULL;
	array = memchr(begin, '[', (size_t)(end - begin)) != NULL;
	field->at = (uint16_t)offset;
	field->is_data_loc = !strncmp(begin, "__data_loc ", 11);
	field->is_relative = !strncmp(begin, "__rel_loc ", 10);
	field->is_text = chars && array;
	field->is_data_loc |= field->is_relative && field->is_text;
	field->is_pointer = memchr(begin, '*', (size_t)(end - begin)) && !array;
	field->is_signed = is_signed != 0;
	field->first_bytes = field->is_data_loc ? 4 : (uint8_t)size;
	if (field->is_text) {
		field->bytes = 8;
		field->first_bytes = field->is_data_loc ? 4 : 8;
		field->chars = field->is_data_loc ? 0 : (uint16_t)(size < 256 ? size : 255);
		return true;
	}
	field->bytes = (uint8_t)size;
	return !array && (size == 1 || size == 2 || size == 4 || size == 8);
}

int own_tracepoint_parse(const char *format, struct own_place *fields)
{
	int n = 0;

	while (*format && n < OWN_FIELDS_MAX) {
		size_t len = strcspn(format, "\n");
		char *line = xstrndup(format, len);

		if (!strncmp(line, "print fmt:", 10)) {
			free(line);
			break;
		}
		n += field_read(line, &fields[n]);
		free(line);
		format += len + (format[len] == '\n');
	}
	return n;
}

static int read_file(const char *path, char *text, size_t room)
{
	int fd = tracefs_open(path), r = 0;
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	while ((n = read(fd, text + len, room - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		r = -errno;
	text[len] = '\0';
	close(fd);
	return r;
}

int own_tracepoint_fields(const char *group, const char *name, struct own_place *fields)
{
	char path[2 * SPEC_PLACE_MAX + 32], *text = xmalloc(FORMAT_BYTES);
	int r;

	snprintf(path, sizeof(path), "events/%s/%s/format", group, name);
	r = strchr(group, '/') || strchr(name, '/') ? -ENOENT : read_file(path, text, FORMAT_BYTES);
	if (!r)
		r = own_tracepoint_parse(text, fields);
	free(text);
	return r;
}

/* ---- which there are ----------------------------------------------------------------------- */

/* Each tracepoint of a group, or each group (""). */
static int own_tracepoints_each(const char *group, void (*each)(void *data, const char *name),
                                void *data)
{
	char path[SPEC_PLACE_MAX + 16];
	struct dirent *entry;
	DIR *folder;
	int fd;

	if (strchr(group, '/') || !strcmp(group, "..") || !strcmp(group, "."))
		return -ENOENT;
	snprintf(path, sizeof(path), "events%s%s", *group ? "/" : "", group);
	fd = tracefs_open(path);
	if (fd < 0)
		return fd;
	folder = fdopendir(fd);
	if (!folder) {
		close(fd);
		return -errno;
	}
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] != '.' && entry->d_type == DT_DIR)
			each(data, entry->d_name);
	}
	closedir(folder);
	return 0;
}

#define NEAR_MAX 65536

/* ---- what a hook stands for ---------------------------------------------------------------- */

void own_targets_free(struct own_targets *targets)
{
	for (size_t i = 0; i < targets->n; i++) {
		free(targets->list[i].name);
		free(targets->list[i].module);
	}
	free(targets->list);
	*targets = (struct own_targets){ 0 };
}

struct own_kernel_search {
	const struct hook_spec *spec;
	size_t limit;
	struct own_targets *targets;
	char *near;
	size_t compared;
};

static void add_target(struct own_kernel_search *search, const char *name, const char *module,
                       const char *why)
{
	struct own_targets *targets = search->targets;

	if (targets->n == search->limit) {
		targets->left_out++;
		return;
	}
	targets->list = vec_room(targets->list, targets->n, sizeof(*targets->list));
	targets->list[targets->n++] =
		(struct own_target){ .name = xstrdup(name), .module = xstrdup(module), .why = why };
}

static void compare_near(struct own_kernel_search *search, const char *name)
{
	const char *both[2] = { name, search->near };

	if (search->compared++ > NEAR_MAX || suggest(search->spec->glob, both, 2) != name)
		return;
	free(search->near);
	search->near = xstrdup(name);
}

static void consider(void *data, const char *name)
{
	struct own_kernel_search *search = data;

	if (!fnmatch(search->spec->glob, name, 0))
		add_target(search, name, search->spec->module, NULL);
	else
		compare_near(search, name);
}

/* The kernel finds functions by their name alone, and older ones take the first. */
static bool has_namesake(const struct own_symbol *list, size_t n, size_t i)
{
	return (i && !strcmp(list[i - 1].name, list[i].name)) ||
	       (i + 1 < n && !strcmp(list[i + 1].name, list[i].name));
}

static void consider_symbol(struct own_kernel_search *search, const struct own_symbol *symbol,
                            bool namesake)
{
	const struct hook_spec *spec = search->spec;
	const struct own_targets *targets = search->targets;

	if (spec->module[0] && !own_symbols_is_module(spec->module, symbol->module))
		return;
	if (fnmatch(spec->glob, symbol->name, 0)) {
		compare_near(search, symbol->name);
		return;
	}
	if (targets->n && !strcmp(targets->list[targets->n - 1].name, symbol->name))
		return;
	add_target(search, symbol->name, symbol->module,
	           namesake             ? "the kernel has several functions of this name"
	           : symbol->forbidden  ? "the kernel lets nobody probe it (blacklist)"
	           : !symbol->traceable ? "it is not traceable: not among "
	                                  "available_filter_functions"
	                                : NULL);
}

static int nothing(const struct own_kernel_search *search, struct hook_mistake *mistake)
{
	const struct hook_spec *spec = search->spec;
	const char *what = spec->kind == SPEC_TRACEPOINT ? "tracepoint" : "function of the kernel";

	mistake->at = spec->glob_at;
	snprintf(mistake->says, sizeof(mistake->says), "there is no %s '%.80s'%s%.80s%s%s%.80s%s%s",
	         what, spec->glob, spec->module[0] ? " in " : "", spec->module,
	         search->near ? "" : "", search->near ? ": did you mean '" : "",
	         search->near ? search->near : "", search->near ? "'?" : "",
	         spec->kind == SPEC_TRACEPOINT ? "" : " (what is inlined has no place to hook)");
	return -ENOENT;
}

static int none_hookable(const struct own_kernel_search *search, struct hook_mistake *mistake)
{
	const struct own_targets *targets = search->targets;

	for (size_t i = 0; i < targets->n; i++) {
		if (!targets->list[i].why)
			return 0;
	}
	mistake->at = search->spec->glob_at;
	snprintf(mistake->says, sizeof(mistake->says), "%.80s%s cannot be hooked: %s",
	         targets->list[0].name, targets->n > 1 ? " and all others" : "",
	         targets->list[0].why);
	return -ENOENT;
}

static int find_tracepoints(struct own_kernel_search *search, struct hook_mistake *mistake)
{
	const struct hook_spec *spec = search->spec;
	int r = own_tracepoints_each(spec->module, consider, search);

	if (!r)
		return 0;
	mistake->at = spec->module_at;
	if (r == -ENOENT)
		snprintf(mistake->says, sizeof(mistake->says),
		         "there is no group of tracepoints '%.80s'", spec->module);
	else
		snprintf(mistake->says, sizeof(mistake->says), "the tracepoints cannot be read: %s",
		         strerror(-r));
	return r;
}

/* All that its words fit, hookable or not. */
static int search_all(struct own_kernel_search *search, const struct own_symbols *symbols,
                      struct hook_mistake *mistake)
{
	const struct own_symbol *list;
	size_t n = own_symbols_list(symbols, &list);

	*search->targets = (struct own_targets){ 0 };
	if (search->spec->kind == SPEC_TRACEPOINT)
		return find_tracepoints(search, mistake);
	for (size_t i = 0; i < n; i++)
		consider_symbol(search, &list[i], has_namesake(list, n, i));
	return 0;
}

static bool waits_for_module(const struct hook_spec *spec)
{
	return spec->kind != SPEC_TRACEPOINT && spec->module[0] &&
	       !own_symbols_is_loaded(spec->module);
}

/*
 * What a hook stands for on this machine; `symbols` may be NULL, of a tracepoint. -ENOENT with
 * *mistake where there is nothing that can be hooked. An optional hook, and one on a module that is
 * not loaded, may have nothing: 0 then.
 */
static int own_kernel_find(const struct hook_spec *spec, const struct own_symbols *symbols,
                           size_t limit, struct own_targets *targets, struct hook_mistake *mistake)
{
	struct own_kernel_search search = { .spec = spec, .limit = limit, .targets = targets };
	int r = search_all(&search, symbols, mistake);

	if (!r && !targets->n && !waits_for_module(spec))
		r = nothing(&search, mistake);
	if (!r && targets->left_out) {
		mistake->at = spec->glob_at;
		snprintf(mistake->says, sizeof(mistake->says),
		         "%zu %s match '%.80s', and a pattern stands for %zu at most: --hook-limit "
		         "raises that, up to %d",
		         targets->n + targets->left_out,
		         spec->kind == SPEC_TRACEPOINT ? "tracepoints" : "functions of the kernel",
		         spec->glob, limit, HOOK_MATCHES_TOP);
		r = -E2BIG;
	}
	if (!r && targets->n)
		r = none_hookable(&search, mistake);
	if (r == -ENOENT && spec->optional)
		r = 0;
	free(search.near);
	return r;
}

int own_kernel_list(const struct hook_spec *spec, const struct own_symbols *symbols, size_t limit,
                    struct own_targets *targets, struct hook_mistake *mistake)
{
	struct own_kernel_search search = { .spec = spec, .limit = limit, .targets = targets };
	int r = search_all(&search, symbols, mistake);

	if (!r && !targets->n && waits_for_module(spec)) {
		mistake->at = spec->module_at;
		snprintf(mistake->says, sizeof(mistake->says),
		         "the module '%.80s' is not loaded: a hook on it waits until it is",
		         spec->module);
		r = -ENOENT;
	} else if (!r && !targets->n) {
		r = nothing(&search, mistake);
	}
	free(search.near);
	return r;
}

/* ---- checked beforehand -------------------------------------------------------------------- */

static bool check_fields(const struct hook_spec *spec, const struct own_targets *targets,
                         struct hook_mistake *mistake)
{
	struct own_place fields[OWN_FIELDS_MAX];
	struct wire_hook_plan plan;

	for (size_t i = 0; i < targets->n; i++) {
		int n = own_tracepoint_fields(targets->list[i].module, targets->list[i].name,
		                              fields);

		if (n >= 0 && !own_plan_make(spec, fields, (size_t)n, &plan, mistake))
			return false;
	}
	return true;
}

static int check(const struct hook_spec *spec, const struct own_symbols *symbols, size_t limit,
                 struct hook_mistake *mistake)
{
	const char *refused = spec->kind == SPEC_TRACEPOINT ? NULL : own_symbols_refused();
	AT_END(own_targets_free) struct own_targets targets = { 0 };
	int r;

	if (refused && spec->optional)
		return 0;
	if (refused) {
		mistake->at = 0;
		snprintf(mistake->says, sizeof(mistake->says), "%s", refused);
		return -ENOTSUP;
	}
	r = own_kernel_find(spec, symbols, limit, &targets, mistake);
	if (!r && spec->kind == SPEC_TRACEPOINT && !check_fields(spec, &targets, mistake))
		r = -EINVAL;
	return r;
}

static struct own_symbols *symbols_for(const struct hook_list *list)
{
	return own_hooks_kinds(list) & OWN_HOOKS_KERNEL ? own_symbols_new() : NULL;
}

int own_kernel_check(const struct hook_list *list, struct buf *wrong)
{
	struct own_symbols *symbols = symbols_for(list);
	struct hook_mistake mistake = { 0 };
	int r = 0;

	for (size_t i = 0; i < list->n && !r; i++) {
		if (!spec_is_kernel(list->spec[i]))
			continue;
		r = check(list->spec[i], symbols, own_functions_limit(list), &mistake);
		if (r)
			hook_list_add_mistake(list->spec[i], &mistake, wrong);
	}
	own_symbols_free(symbols);
	return r ? -EINVAL : 0;
}

/* ---- attached ------------------------------------------------------------------------------ */

struct own_kernel {
	struct own_hooks *own;
	int *events; /* perf events, or links */
	size_t n_events;
	bool *waits; /* of each of the list: its module is not loaded */
};

static void keep(struct own_kernel *kernel, int fd)
{
	kernel->events = vec_room(kernel->events, kernel->n_events, sizeof(int));
	kernel->events[kernel->n_events++] = fd;
}

/* Ties a program to a perf event, with the cookie of the hook. 0 or a negative errno. */
static int tie(struct own_kernel *kernel, int event, const char *program, const char *exit,
               uint64_t cookie)
{
	struct programs *programs = own_hooks_programs(kernel->own);
	bool cookies = programs_mechanism(programs) != MECHANISM_STUB;
	int fd = cookies ? programs_fd(programs, program)
	                 : programs_stub(programs, exit, cookie, NULL);
	int link = fd < 0 ? fd : perf_event_attach(event, fd, cookies, cookie);

	if (!cookies && fd >= 0)
		close(fd);
	if (link < 0)
		return link;
	if (link > 0)
		keep(kernel, link);
	return 0;
}

static int attach_event(struct own_kernel *kernel, int event, const char *program, const char *exit,
                        uint64_t cookie)
{
	int r;

	if (event < 0)
		return event;
	r = tie(kernel, event, program, exit, cookie);
	if (r)
		close(event);
	else
		keep(kernel, event);
	return r;
}

/* The return first: an entry without its return would be a call without an end. */
static int attach_function(struct own_kernel *kernel, const struct own_hook *hook,
                           const char *function)
{
	uint64_t cookie = own_hook_cookie(hook);
	bool returns = own_hooks_returns(kernel->own) && hook->spec->kind != SPEC_KENTRY;
	int r = 0;

	if (returns)
		r = attach_event(kernel, perf_kprobe_open(function, true), "khook_return",
		                 "khook_return_exit", cookie);
	if (!r)
		r = attach_event(kernel, perf_kprobe_open(function, false), "khook_enter",
		                 "khook_exit", cookie);
	return r;
}

static int attach_tracepoint(struct own_kernel *kernel, const struct own_hook *hook,
                             const struct own_target *target)
{
	AT_END(at_end_free) char *name = xasprintf("%s/%s", target->module, target->name);
	int event = perf_tracepoint_open(name);

	return attach_event(kernel, event, "hook_tracepoint", "trace_exit", own_hook_cookie(hook));
}

static void attach_target(struct own_kernel *kernel, size_t spec, const struct own_target *target,
                          own_miss_fn miss, void *data)
{
	bool traces = own_hooks_list(kernel->own)->spec[spec]->kind == SPEC_TRACEPOINT;
	struct own_place fields[OWN_FIELDS_MAX];
	int n = traces ? own_tracepoint_fields(target->module, target->name, fields) : 0, r;
	struct err err = { 0 };
	struct own_hook *hook;

	if (target->why || n < 0) {
		miss(data, MISS_NOT_HOOKED, target->name, target->why ? target->why : strerror(-n));
		return;
	}
	hook = own_hooks_add(kernel->own, spec, target->name, target->module,
	                     traces ? fields : NULL, (size_t)n, true, &err);
	if (!hook) {
		miss(data, MISS_NOT_HOOKED, target->name, err.text);
		return;
	}
	r = traces ? attach_tracepoint(kernel, hook, target)
	           : attach_function(kernel, hook, target->name);
	hook->error = r;
	if (r)
		miss(data, MISS_NOT_HOOKED, target->name,
		     r == -EADDRNOTAVAIL ? "the kernel has several functions of this name"
		                         : strerror(-r));
}

static void attach_spec(struct own_kernel *kernel, size_t i, const struct own_symbols *symbols,
                        own_miss_fn miss, void *data)
{
	const struct hook_list *list = own_hooks_list(kernel->own);
	AT_END(own_targets_free) struct own_targets targets = { 0 };
	struct hook_mistake mistake = { 0 };
	int r = own_kernel_find(list->spec[i], symbols, own_functions_limit(list), &targets,
	                        &mistake);

	kernel->waits[i] = !r && !targets.n && !list->spec[i]->optional;
	if (r)
		miss(data, MISS_NOT_HOOKED, list->spec[i]->glob, mistake.says);
	for (size_t k = 0; k < targets.n && !r; k++)
		attach_target(kernel, i, &targets.list[k], miss, data);
}

struct own_kernel *own_kernel_new(struct own_hooks *own, own_miss_fn miss, void *data)
{
	const struct hook_list *list = own_hooks_list(own);
	struct own_kernel *kernel = xcalloc(1, sizeof(*kernel));
	struct own_symbols *symbols = symbols_for(list);

	kernel->own = own;
	kernel->waits = xcalloc(list->n + 1, sizeof(bool));
	for (size_t i = 0; i < list->n; i++) {
		if (spec_is_kernel(list->spec[i]))
			attach_spec(kernel, i, symbols, miss, data);
	}
	own_symbols_free(symbols);
	return kernel;
}

void own_kernel_look_again(struct own_kernel *kernel, own_miss_fn miss, void *data)
{
	const struct hook_list *list = own_hooks_list(kernel->own);
	struct own_symbols *symbols = NULL;

	for (size_t i = 0; i < list->n; i++) {
		if (!kernel->waits[i] || !own_symbols_is_loaded(list->spec[i]->module))
			continue;
		if (!symbols)
			symbols = own_symbols_new();
		attach_spec(kernel, i, symbols, miss, data);
		kernel->waits[i] = false;
	}
	own_symbols_free(symbols);
}

void own_kernel_free(struct own_kernel *kernel)
{
	if (!kernel)
		return;
	for (size_t i = 0; i < kernel->n_events; i++)
		close(kernel->events[i]);
	free(kernel->events);
	free(kernel->waits);
	free(kernel);
}
