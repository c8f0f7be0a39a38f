// SPDX-License-Identifier: MIT
#include "hooks/hook_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/secure_file.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "hooks/cursor.h"

/* ---- files --------------------------------------------------------------------------------- */

/* The files of hooks that cuscope has in itself: those of src/hooks/files. */

/* The bytes of a file, with a NUL behind them. */
#define FILE_IN_SECTION(name)                                                                      \
	extern const char hook_file_##name[];                                                      \
	__asm__(".pushsection .rodata\n"                                                           \
	        ".globl hook_file_" #name "\n"                                                     \
	        "hook_file_" #name ":\n"                                                           \
	        ".incbin \"src/hooks/files/" #name ".hooks\"\n"                                    \
	        ".byte 0\n"                                                                        \
	        ".popsection\n")

FILE_IN_SECTION(cublas);
FILE_IN_SECTION(cudnn);
FILE_IN_SECTION(nccl);
FILE_IN_SECTION(nvidia);
FILE_IN_SECTION(nvidia_uvm);
FILE_IN_SECTION(pytorch);

static const struct {
	const char *name, *text;
} files[] = {
	{ "cublas", hook_file_cublas },
	{ "cudnn", hook_file_cudnn },
	{ "nccl", hook_file_nccl },
	{ "nvidia", hook_file_nvidia },
	{ "nvidia-uvm", hook_file_nvidia_uvm },
	{ "pytorch", hook_file_pytorch },
};

const char *hook_file_name(size_t index)
{
	return index < ARRAY_SIZE(files) ? files[index].name : NULL;
}

static const char *hook_file_text(size_t index)
{
	return index < ARRAY_SIZE(files) ? files[index].text : NULL;
}

/* ---- hook list ----------------------------------------------------------------------------- */

#define FILES_NAMED 32 /* of those in cuscope itself */
#define BEFORE      60 /* bytes of a long text that are shown before the mistake, and after it */

/* ---- telling what is wrong ----------------------------------------------------------------- */

static void add_origin(const char *file, size_t line, struct buf *out)
{
	if (file)
		buf_printf(out, "%s, line %zu", file, line);
	else
		buf_puts(out, "--hook");
}

void hook_list_add_origin(const struct hook_spec *spec, struct buf *out)
{
	add_origin(spec->file, spec->line, out);
}

static void add_part(struct buf *out, const char *text, size_t from, size_t to)
{
	AT_END(at_end_free) char *part = xstrndup(text + from, to - from);

	text_add_safe(out, part);
}

/* The text, or what is around the mistake, and a caret under that. */
static void add_caret(const char *text, size_t at, struct buf *out)
{
	size_t len = strlen(text), from = at > BEFORE ? at - BEFORE : 0,
	       to = len > at + BEFORE ? at + BEFORE : len, begin, columns;

	while (from && ((unsigned char)text[from] & 0xc0) == 0x80)
		from--;
	buf_puts(out, "\n  ");
	buf_puts(out, from ? "..." : "");
	begin = out->len;
	add_part(out, text, from, at);
	columns = text_columns(out->data + begin) + (from ? 3 : 0);
	add_part(out, text, at, to);
	buf_puts(out, to < len ? "...\n  " : "\n  ");
	buf_fill(out, ' ', columns);
	buf_putc(out, '^');
}

static void add_mistake(const char *file, size_t line, const char *text,
                        const struct hook_mistake *mistake, struct buf *out)
{
	size_t len = strnlen(text, SPEC_TEXT_MAX);
	AT_END(at_end_free) char *shown = xstrndup(text, len);

	add_origin(file, line, out);
	buf_printf(out, ": %s", mistake->says);
	add_caret(shown, mistake->at < len ? mistake->at : len, out);
}

void hook_list_add_mistake(const struct hook_spec *spec, const struct hook_mistake *mistake,
                           struct buf *wrong)
{
	add_mistake(spec->file, spec->line, spec->text, mistake, wrong);
}

/* ---- one hook ------------------------------------------------------------------------------ */

/*
 * /usr/local/cuda is a link, and what processes map are files by their own names: the path as it is
 * without links, as far as there is no wildcard in it. NULL: it is the same, or there is no such
 * file.
 */
static char *without_links(const char *path)
{
	size_t whole = strcspn(path, "*?[\\"), len = strlen(path);
	char *folder, *real = NULL, *joined = NULL;

	if (*path != '/')
		return NULL;
	while (whole < len && whole && path[whole] != '/')
		whole--;
	folder = xstrndup(path, whole);
	real = whole ? realpath(folder, NULL) : NULL;
	if (real && strcmp(real, folder) && !strpbrk(real, "*?[\\"))
		joined = xasprintf("%s%s", real, path + whole);
	free(real);
	free(folder);
	return joined;
}

static void free_hook(struct hook_spec *spec)
{
	free(spec->real_module);
	spec_free(spec);
	free(spec);
}

static int add_hook(struct hook_list *list, const char *file, size_t line, const char *text,
                    struct buf *wrong)
{
	struct hook_mistake mistake = { 0 };
	struct hook_spec *spec;
	bool optional = file && *text == '?';

	if (list->n == HOOK_LIST_MAX) {
		add_origin(file, line, wrong);
		buf_printf(wrong,
		           ": there are more than %d hooks: a glob stands for many functions",
		           HOOK_LIST_MAX);
		return -EINVAL;
	}
	spec = xcalloc(1, sizeof(*spec));
	if (!spec_read(text + optional, list->tables, spec, &mistake)) {
		add_mistake(file, line, text + optional, &mistake, wrong);
		free(spec);
		return -EINVAL;
	}
	spec->real_module = without_links(spec->module);
	spec->file = file;
	spec->line = line;
	spec->optional = optional;
	list->spec = vec_room(list->spec, list->n, sizeof(struct hook_spec *));
	list->spec[list->n++] = spec;
	return 0;
}

int hook_list_add(struct hook_list *list, const char *text, struct buf *wrong)
{
	return add_hook(list, NULL, 0, text, wrong);
}

void hook_list_free(struct hook_list *list)
{
	struct spec_table *table;

	for (size_t i = 0; i < list->n; i++)
		free_hook(list->spec[i]);
	for (size_t i = 0; i < list->n_files; i++)
		free(list->files[i]);
	while ((table = list->tables)) {
		list->tables = table->next;
		free(table);
	}
	free(list->spec);
	free(list->files);
	*list = (struct hook_list){ 0 };
}

/* ---- files --------------------------------------------------------------------------------- */

/* What is known of the file that is being read. */
struct reading {
	struct hook_list *list;
	const char *file;
	size_t line;
	bool for_driver, for_machine; /* what comes next is for this version, for this processor */
};

#ifdef __aarch64__
#define MACHINE "aarch64"
#else
#define MACHINE "x86_64"
#endif

/* "table NAME = 1 1 4 8", from behind the word. */
static bool table_read(struct cursor *c, struct hook_list *list)
{
	struct spec_table *table = xcalloc(1, sizeof(*table));
	const char *where;
	bool ok = false;

	cursor_skip_blanks(c);
	where = c->at;
	if (!cursor_name(c, table->name, sizeof(table->name)))
		cursor_wrong(c, where, "a table has a name: table sizes = 1 1 4 8");
	else if (c->at - where >= SPEC_NAME_MAX)
		cursor_wrong(c, where, "this name is too long: at most %d letters",
		             SPEC_NAME_MAX - 1);
	else if (where = c->at, !cursor_takes(c, "="))
		cursor_wrong(c, where, "'=' is expected here: table %s = 1 1 4 8", table->name);
	else
		ok = true;
	while (ok) {
		cursor_skip_blanks(c);
		if (!*c->at && table->n)
			break;
		ok = table->n < SPEC_TABLE_MAX
		             ? cursor_number(c, UINT32_MAX, &table->number[table->n])
		             : cursor_wrong(c, c->at, "a table has at most %d numbers",
		                            SPEC_TABLE_MAX);
		table->n += ok;
	}
	for (struct spec_table *t = list->tables; ok && t; t = t->next)
		ok = strcmp(t->name, table->name) ||
		     cursor_wrong(c, where, "there is a table '%s' already", table->name);
	if (!ok) {
		free(table);
		return false;
	}
	table->next = list->tables;
	list->tables = table;
	return true;
}

/* "driver 515-544", "driver 545-", "driver any". */
static bool driver_read(struct cursor *c, struct reading *reading)
{
	uint64_t from = 0, to = 100000;
	const char *where = c->at;
	bool any = cursor_takes(c, "any");

	if (!any && !cursor_number(c, to, &from))
		return cursor_wrong(c, where,
		                    "versions of the driver are expected here: 515-544, "
		                    "545- or any");
	cursor_skip_blanks(c);
	where = c->at;
	if (!any && !cursor_takes(c, "-"))
		to = from;
	cursor_skip_blanks(c);
	if (!any && to != from && *c->at && !cursor_number(c, to, &to))
		return false;
	cursor_skip_blanks(c);
	if (*c->at)
		return cursor_wrong(c, c->at, "the end of the line is expected here");
	if (from > to)
		return cursor_wrong(c, where, "the first version comes first: 515-544");
	reading->for_driver = any || !reading->list->driver ||
	                      (reading->list->driver >= from && reading->list->driver <= to);
	return true;
}

/* "machine x86_64", "machine aarch64", "machine any": where arguments lie is not the same. */
static bool machine_read(struct cursor *c, struct reading *reading)
{
	static const char *const machines[] = { "x86_64", "aarch64", "any" };
	const char *own = reading->list->machine ? reading->list->machine : MACHINE, *where;
	char name[32], near[64];
	bool known = false;

	cursor_skip_blanks(c);
	where = c->at;
	cursor_name(c, name, sizeof(name));
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		known |= !strcmp(name, machines[i]);
	if (!known)
		return cursor_wrong(
			c, where, "'%s' is no machine%s (x86_64, aarch64, any)", name,
			cursor_near(name, machines, ARRAY_SIZE(machines), near, sizeof(near)));
	cursor_skip_blanks(c);
	if (*c->at)
		return cursor_wrong(c, c->at, "the end of the line is expected here");
	reading->for_machine = !strcmp(name, "any") || !strcmp(name, own);
	return true;
}

static int line_read(struct reading *reading, const char *text, struct buf *wrong)
{
	struct hook_mistake mistake = { 0 };
	struct hook_spec unused = { 0 };
	struct cursor c = { .text = text, .at = text, .spec = &unused, .mistake = &mistake };
	bool ok;
	int r;

	if (cursor_takes(&c, "table"))
		ok = table_read(&c, reading->list);
	else if (cursor_takes(&c, "driver"))
		ok = driver_read(&c, reading);
	else if (cursor_takes(&c, "machine"))
		ok = machine_read(&c, reading);
	else {
		r = add_hook(reading->list, reading->file, reading->line, text, wrong);
		if (r || (reading->for_driver && reading->for_machine))
			return r;
		free_hook(reading->list->spec[--reading->list->n]); /* not for here */
		return 0;
	}
	if (ok)
		return 0;
	add_mistake(reading->file, reading->line, text, &mistake, wrong);
	return -EINVAL;
}

/* Takes off blanks at both ends, and a remark, which begins a line or stands behind a blank. */
static char *line_of(const char *text, size_t len)
{
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '#' && (i == 0 || isspace((unsigned char)text[i - 1])))
			len = i;
	}
	while (from < len && isspace((unsigned char)text[from]))
		from++;
	while (len > from && isspace((unsigned char)text[len - 1]))
		len--;
	return xstrndup(text + from, len - from);
}

int hook_list_add_text(struct hook_list *list, const char *file, const char *text,
                       struct buf *wrong)
{
	struct reading reading = { .list = list, .for_driver = true, .for_machine = true };
	int r = 0;

	list->files = vec_room(list->files, list->n_files, sizeof(char *));
	reading.file = list->files[list->n_files++] = xstrdup(file);
	while (*text && !r) {
		size_t len = strcspn(text, "\n");
		char *line = line_of(text, len);

		reading.line++;
		if (*line)
			r = line_read(&reading, line, wrong);
		free(line);
		text += len + (text[len] == '\n');
	}
	return r;
}

/* One that cuscope has in itself. */
static int add_own_file(struct hook_list *list, const char *name, struct buf *wrong)
{
	const char *names[FILES_NAMED], *near;
	size_t n = 0;

	for (; hook_file_name(n) && n < FILES_NAMED; n++) {
		names[n] = hook_file_name(n);
		if (!strcmp(name, names[n]))
			return hook_list_add_text(list, name, hook_file_text(n), wrong);
	}
	near = suggest(name, names, n);
	buf_printf(wrong, "--hooks: cuscope has no hooks called '");
	text_add_safe(wrong, name);
	buf_printf(wrong, near ? "': did you mean '%s'? (" : "' (", near);
	for (size_t i = 0; i < n; i++)
		buf_printf(wrong, "%s%s", i ? ", " : "", names[i]);
	buf_puts(wrong, "); a file of yours has a slash in its name: ./");
	text_add_safe(wrong, name);
	return -ENOENT;
}

int hook_list_add_file(struct hook_list *list, const char *name, struct buf *wrong)
{
	AT_END(buf_free) struct buf text = { 0 };
	struct err err = { 0 };
	int r;

	if (!strchr(name, '/'))
		return add_own_file(list, name, wrong);
	r = secure_file_read(name, SECURE_FILE_PUBLIC, &text, &err);
	if (!r && strlen(text.data) != text.len)
		r = err_set(&err, EINVAL, "%s is no text: it has a NUL in it", name);
	if (r)
		buf_printf(wrong, "--hooks: %s", err.text);
	else
		r = hook_list_add_text(list, name, text.data, wrong);
	return r;
}

void hook_list_add_unasked(struct hook_list *list, const char *name)
{
	AT_END(buf_free) struct buf wrong = { 0 };
	size_t before = list->n;

	hook_list_add_file(list, name, &wrong); /* its own files are read in tests */
	for (size_t i = before; i < list->n; i++)
		list->spec[i]->optional = list->spec[i]->unasked = true;
}

bool hook_list_was_asked(const struct hook_list *list)
{
	for (size_t i = 0; list && i < list->n; i++)
		if (!list->spec[i]->unasked)
			return true;
	return false;
}
