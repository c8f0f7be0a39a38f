// SPDX-License-Identifier: MIT
/* `cuscope probes SPEC`: what the pattern of a hook (hooks/spec.h) stands for on this machine. */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/libraries.h"
#include "probe/maps.h"
#include "probe/own_kernel.h"
#include "probe/person.h"

/* What is listed of one pattern: as much as a hook may stand for with --hook-limit. */
#define LISTED_MOST HOOK_MATCHES_TOP
#define FILE_NS     30000000000ull /* of the processor, for one file: nobody else waits for it */

struct hook_row {
	const char *hook; /* "yes", "no" */
	const char *place, *name, *symbol, *arguments, *cost, *why;
	char offset[24];
};

static const struct table_column function_columns[] = {
	{ "Hook", TABLE_TEXT, TABLE_AT(struct hook_row, hook) },
	{ "File", TABLE_TEXT, TABLE_AT(struct hook_row, place) },
	{ "Offset", TABLE_FIGURE },
	{ "Cost", TABLE_TEXT, TABLE_AT(struct hook_row, cost) },
	{ "Function", TABLE_TEXT, TABLE_AT(struct hook_row, name) },
	{ "Symbol", TABLE_TEXT, TABLE_AT(struct hook_row, symbol) },
};

static const struct table_column marker_columns[] = {
	{ "Hook", TABLE_TEXT, TABLE_AT(struct hook_row, hook) },
	{ "File", TABLE_TEXT, TABLE_AT(struct hook_row, place) },
	{ "Offset", TABLE_FIGURE },
	{ "Marker", TABLE_TEXT, TABLE_AT(struct hook_row, name) },
	{ "Arguments", TABLE_TEXT, TABLE_AT(struct hook_row, arguments) },
	{ "Why Not", TABLE_TEXT, TABLE_AT(struct hook_row, why) },
};

static const struct table_column kernel_columns[] = {
	{ "Hook", TABLE_TEXT, TABLE_AT(struct hook_row, hook) },
	{ "Module", TABLE_TEXT, TABLE_AT(struct hook_row, place) },
	{ "Function", TABLE_TEXT, TABLE_AT(struct hook_row, name) },
	{ "Why Not", TABLE_TEXT, TABLE_AT(struct hook_row, why) },
};

static const struct table_column tracepoint_columns[] = {
	{ "Hook", TABLE_TEXT, TABLE_AT(struct hook_row, hook) },
	{ "Group", TABLE_TEXT, TABLE_AT(struct hook_row, place) },
	{ "Tracepoint", TABLE_TEXT, TABLE_AT(struct hook_row, name) },
	{ "Why Not", TABLE_TEXT, TABLE_AT(struct hook_row, why) },
	{ "Fields", TABLE_TEXT, TABLE_AT(struct hook_row, arguments) },
};

struct hook_listing {
	struct hook_list hooks; /* of one */
	const struct hook_spec *spec;
	struct table *table;
	pid_t pid; /* whose maps are being read */
	struct {
		dev_t dev;
		uint64_t inode;
	} * seen; /* files that were looked into */
	size_t n_seen, n_files, n_rows;
	bool more;         /* than are listed */
	const char *noted; /* why a return cannot be probed, as it was said last */
	char *near;
};

bool probes_is_hook(const char *word)
{
	size_t len = 0;

	while (isalpha((unsigned char)word[len]))
		len++;
	return len && word[len] == ':' && access(word, F_OK);
}

/* ---- places -------------------------------------------------------------------------------- */

/* "prev_pid:i32 next_comm:char[16] " */
static void add_places(struct buf *out, const struct own_place *places, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct own_place *place = &places[i];

		buf_puts(out, i ? " " : "");
		if (place->name[0])
			buf_puts(out, place->name);
		else
			buf_printf(out, "arg%zu", i);
		if (place->is_text && place->chars)
			buf_printf(out, ":char[%u]", place->chars);
		else if (place->is_text)
			buf_puts(out, ":str");
		else
			buf_printf(out, ":%c%u", place->is_signed ? 'i' : 'u', 8 * place->bytes);
	}
}

/* What `places` do not have of what the hook asks for; NULL: nothing. */
static const char *missing_of(const struct hook_spec *spec, const struct own_place *places,
                              size_t n, struct hook_mistake *mistake)
{
	struct wire_hook_plan plan;

	return own_plan_make(spec, places, n, &plan, mistake) ? NULL : mistake->says;
}

/* ---- of the kernel ------------------------------------------------------------------------- */

static void list_tracepoint(struct hook_listing *listing, const struct own_target *target)
{
	struct hook_row row = { .place = target->module, .name = target->name };
	struct own_place fields[OWN_FIELDS_MAX];
	struct hook_mistake mistake;
	AT_END(buf_free) struct buf text = { 0 };
	int n = own_tracepoint_fields(target->module, target->name, fields);

	if (n < 0) {
		row.why = strerror(-n);
	} else {
		add_places(&text, fields, (size_t)n);
		row.why = missing_of(listing->spec, fields, (size_t)n, &mistake);
	}
	row.arguments = text.data;
	row.hook = row.why ? "no" : "yes";
	table_row(listing->table, &row);
}

static void list_targets(struct hook_listing *listing, const struct own_targets *targets)
{
	const char *refused = listing->spec->kind == SPEC_TRACEPOINT ? NULL : own_symbols_refused();

	for (size_t i = 0; i < targets->n; i++) {
		const struct own_target *target = &targets->list[i];
		const char *why = refused ? refused : target->why;
		struct hook_row row = { .hook = why ? "no" : "yes",
			                .place = target->module,
			                .name = target->name,
			                .why = why };

		if (listing->spec->kind == SPEC_TRACEPOINT)
			list_tracepoint(listing, target);
		else
			table_row(listing->table, &row);
	}
	listing->n_rows = targets->n;
}

static void say_beyond(struct hook_listing *listing, const char *how_many)
{
	table_note(listing->table,
	           "%s match, of which %d are listed. A hook's pattern stands for %d at most; "
	           "--hook-limit raises that, up to %d.",
	           how_many, LISTED_MOST, HOOK_MATCHES, HOOK_MATCHES_TOP);
}

static void begin_table(struct hook_listing *listing)
{
	switch (listing->spec->kind) {
	case SPEC_TRACEPOINT:
		table_begin(listing->table, NULL, NULL, TABLE_COLUMNS(tracepoint_columns));
		break;
	case SPEC_USDT:
		table_begin(listing->table, NULL, NULL, TABLE_COLUMNS(marker_columns));
		break;
	case SPEC_KPROBE:
	case SPEC_KENTRY:
	case SPEC_KRETPROBE:
		table_begin(listing->table, NULL, NULL, TABLE_COLUMNS(kernel_columns));
		break;
	default:
		table_begin(listing->table, NULL, NULL, TABLE_COLUMNS(function_columns));
	}
}

static int list_kernel(struct hook_listing *listing, struct hook_mistake *mistake, struct err *err)
{
	bool functions = listing->spec->kind != SPEC_TRACEPOINT;
	struct own_symbols *symbols = functions ? own_symbols_new() : NULL;
	AT_END(own_targets_free) struct own_targets targets = { 0 };
	char count[32];
	int r;

	if (functions && !symbols)
		return err_set(err, errno, "cannot open /proc/kallsyms: %s", strerror(errno));
	r = own_kernel_list(listing->spec, symbols, LISTED_MOST, &targets, mistake);
	if (!r) {
		begin_table(listing);
		list_targets(listing, &targets);
		snprintf(count, sizeof(count), "%zu", targets.n + targets.left_out);
		if (targets.left_out)
			say_beyond(listing, count);
		if (functions && own_symbols_unread(symbols))
			table_note(listing->table, "%s.", own_symbols_unread(symbols));
		r = table_end(listing->table, err);
	}
	own_symbols_free(symbols);
	return r;
}

/* ---- of files ------------------------------------------------------------------------------ */

static void list_function(struct hook_listing *listing, const char *path,
                          const struct own_function *function)
{
	AT_END(at_end_free) char *shown = own_function_shown(function->name, PERSON_UNKNOWN);
	struct hook_row row = { .hook = "yes",
		                .place = path,
		                .name = shown,
		                .symbol = strcmp(shown, function->name) ? function->name : NULL,
		                .cost = function->cheap ? "cheap" : "slow" };
	struct own_place places[SPEC_ARG_LAST + 1];
	size_t n = SPEC_ARG_LAST + 1;
	struct hook_mistake mistake;
	AT_END(buf_free) struct buf text = { 0 };

	snprintf(row.offset, sizeof(row.offset), "0x%lx", function->offset + function->skip);
	if (function->arguments) {
		bool known = own_places_of_marker(function->arguments, places, &n);

		row.arguments = function->arguments;
		row.why = known ? missing_of(listing->spec, places, n, &mistake)
		                : "its arguments are of a kind that is not known";
		if (known) {
			add_places(&text, places, n);
			row.arguments = text.len ? text.data : NULL;
		}
		row.hook = row.why ? "no" : "yes";
	} else if (function->no_return && spec_is_span(listing->spec)) {
		row.hook = "entry";
	}
	if (function->no_return && spec_needs_return(listing->spec))
		row.hook = "no";
	if (strcmp(row.hook, "yes") && function->no_return && function->no_return != listing->noted)
		table_note(listing->table, "%s: %s.", shown, function->no_return);
	if (strcmp(row.hook, "yes"))
		listing->noted = function->no_return;
	table_fields(listing->table, &row);
	table_text(listing->table, row.offset);
	table_row(listing->table, &row);
	listing->n_rows++;
}

/* Whether the file was not looked into yet. */
static bool is_new(struct hook_listing *listing, int fd)
{
	struct stat st = { 0 };

	file_stat(fd, &st);
	for (size_t i = 0; i < listing->n_seen; i++) {
		if (listing->seen[i].dev == st.st_dev && listing->seen[i].inode == st.st_ino)
			return false;
	}
	listing->seen = vec_room(listing->seen, listing->n_seen, sizeof(*listing->seen));
	listing->seen[listing->n_seen].dev = st.st_dev;
	listing->seen[listing->n_seen++].inode = st.st_ino;
	return true;
}

/* Takes `fd` over. */
static int list_fd(struct hook_listing *listing, int fd, const char *path, struct err *err)
{
	struct own_functions functions = { 0 };
	int r = 0;

	if (is_new(listing, fd)) {
		r = own_functions_read(fd, path, &listing->hooks, FILE_NS, &functions, err);
		listing->n_files += !r;
	}
	close(fd);
	for (size_t i = 0; !r && i < functions.n; i++) {
		if (listing->n_rows < LISTED_MOST)
			list_function(listing, path, &functions.list[i]);
		else
			listing->more = true;
	}
	if (!r && functions.n_specs) {
		listing->more |= functions.matches[0] > LISTED_MOST;
		if (!listing->near && functions.near[0])
			listing->near = xstrdup(functions.near[0]);
	}
	own_functions_free(&functions);
	return r;
}

static int list_mapping(const struct mapping *mapping, void *data)
{
	struct hook_listing *listing = data;
	int fd = -1;

	if (own_functions_is_module(listing->spec, mapping->path))
		fd = mapping_open(listing->pid, mapping, NULL);
	if (fd >= 0)
		list_fd(listing, fd, mapping->path, NULL);
	return 0;
}

static int list_process(void *data, pid_t pid)
{
	struct hook_listing *listing = data;

	listing->pid = pid;
	maps_each(pid, list_mapping, listing, NULL); /* gone, or not ours to read */
	return 0;
}

/* A FIFO would wait for somebody who writes. */
static int open_file(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int list_library(void *data, const char *path)
{
	struct hook_listing *listing = data;
	int fd = own_functions_is_module(listing->spec, path) ? open_file(path) : -1;

	if (fd >= 0)
		list_fd(listing, fd, path, NULL);
	return 0;
}

static int list_file(struct hook_listing *listing, const char *path, struct err *err)
{
	int fd;

	if (!own_functions_is_module(listing->spec, path))
		return err_set(err, EINVAL, "a hook on '%s' is not for a file that is called %s",
		               listing->spec->module, path);
	fd = open_file(path);
	if (fd < 0)
		return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	return list_fd(listing, fd, path, err);
}

static int look_for_files(struct hook_listing *listing, const char *file,
                          struct target_choice *choice, struct err *err)
{
	const char *module = listing->spec->module;
	int r;

	if (!file && !choice->given && strchr(module, '/') && !strpbrk(module, "*?["))
		file = module;
	if (file)
		return list_file(listing, file, err);
	if (!choice->given) {
		libraries_named_each(module, list_library, listing);
		return listing->n_files ? 0
		                        : err_set(err, ENOENT,
		                                  "no %s in the usual places of libraries: name "
		                                  "it with its path, or a process with -p",
		                                  module);
	}
	r = helper_begin(err);
	if (!r)
		r = cli_target_settle(choice, NULL, err);
	if (!r)
		r = target_each(&choice->target, list_process, listing, err);
	if (!r && !listing->n_files)
		r = err_set(err, ENOENT, "none of these processes has mapped %s", module);
	return r;
}

static int list_files(struct hook_listing *listing, const char *file, struct target_choice *choice,
                      struct hook_mistake *mistake, struct err *err)
{
	int r;
	char count[32];

	begin_table(listing);
	r = look_for_files(listing, file, choice, err);
	snprintf(count, sizeof(count), "more than %d", LISTED_MOST);
	if (!r && listing->more)
		say_beyond(listing, count);
	if (!r && !listing->n_rows) {
		mistake->at = listing->spec->glob_at;
		snprintf(mistake->says, sizeof(mistake->says),
		         "nothing there is called '%.80s'%s%.80s%s", listing->spec->glob,
		         listing->near ? ": did you mean '" : "",
		         listing->near ? listing->near : "", listing->near ? "'?" : "");
		r = -ENOENT;
	}
	return r ? r : table_end(listing->table, err);
}

/* ---- both ---------------------------------------------------------------------------------- */

/* What --hook would say, without that name. */
static void say_mistake(const struct buf *wrong)
{
	fprintf(stderr, "cuscope probes: %s\n", wrong->data + strlen("--hook: "));
}

static void tell_note(void *data, const char *name, const char *text)
{
	cli_say("%s", text);
}

static int list(struct hook_listing *listing, const char *file, struct target_choice *choice)
{
	bool kernel = spec_is_kernel(listing->spec);
	struct hook_mistake mistake = { 0 };
	struct err err = { 0 };
	AT_END(buf_free) struct buf wrong = { 0 };
	int r;

	if (kernel && (file || choice->given))
		r = err_set(&err, EINVAL, "a hook of the kernel is not looked for in %s",
		            file ? "files" : "processes");
	else if (kernel)
		r = list_kernel(listing, &mistake, &err);
	else
		r = list_files(listing, file, choice, &mistake, &err);
	if (err.code)
		cli_say("%s", err.text);
	if (r && mistake.says[0]) {
		hook_list_add_mistake(listing->spec, &mistake, &wrong);
		say_mistake(&wrong);
	}
	return r ? EXIT_FAILURE : 0;
}

int probes_list_hook(const char *text, const char *file, struct target_choice *choice,
                     enum table_form form)
{
	struct hook_listing listing = { .hooks = { .matches = LISTED_MOST, .first_kept = true } };
	struct table_options options = {
		.form = form, .out = stdout, .width = cli_width(stdout), .note = tell_note
	};
	AT_END(buf_free) struct buf wrong = { 0 };
	int status = EXIT_USAGE;

	if (hook_list_add(&listing.hooks, text, &wrong)) {
		say_mistake(&wrong);
	} else {
		listing.spec = listing.hooks.spec[0];
		listing.table = table_open(&options, false);
		status = list(&listing, file, choice);
		table_close(listing.table);
	}
	hook_list_free(&listing.hooks);
	free(listing.seen);
	free(listing.near);
	return status;
}
