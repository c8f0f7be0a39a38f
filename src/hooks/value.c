// SPDX-License-Identifier: MIT
/* The arguments of a hook: what stands in its brackets. */
#include "hooks/cursor.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const struct {
	const char *name;
	uint8_t bytes;
	bool is_signed, is_text;
} types[SPEC_TYPES] = {
	[SPEC_I8] = { "i8", 1, true, false },        [SPEC_I16] = { "i16", 2, true, false },
	[SPEC_I32] = { "i32", 4, true, false },      [SPEC_I64] = { "i64", 8, true, false },
	[SPEC_U8] = { "u8", 1, false, false },       [SPEC_U16] = { "u16", 2, false, false },
	[SPEC_U32] = { "u32", 4, false, false },     [SPEC_U64] = { "u64", 8, false, false },
	[SPEC_HEX] = { "hex", 8, false, false },     [SPEC_BYTES] = { "bytes", 8, false, false },
	[SPEC_PTR] = { "ptr", 8, false, false },     [SPEC_STR] = { "str", 8, false, true },
	[SPEC_CHARS] = { "char", 8, false, true },   [SPEC_KSTR] = { "kstr", 8, false, true },
	[SPEC_KCHARS] = { "kchar", 8, false, true },
};

#define TYPES_SAID        "i8 to i64, u8 to u64, hex, bytes, ptr, str, char[N]"
#define TYPES_SAID_KERNEL ", kstr, kchar[N]"

unsigned spec_type_bytes(enum spec_type type)
{
	return types[type].bytes;
}

bool spec_type_is_signed(enum spec_type type)
{
	return types[type].is_signed;
}

bool spec_type_is_text(enum spec_type type)
{
	return types[type].is_text;
}

bool spec_type_has_length(enum spec_type type)
{
	return type == SPEC_CHARS || type == SPEC_KCHARS;
}

bool spec_type_is_kernel(enum spec_type type)
{
	return type == SPEC_KSTR || type == SPEC_KCHARS;
}

/* ---- where a value comes from -------------------------------------------------------------- */

static bool has_return(const struct hook_spec *spec)
{
	return spec_is_span(spec) || spec->kind == SPEC_URETPROBE || spec->kind == SPEC_KRETPROBE;
}

static bool returns_alone(const struct hook_spec *spec)
{
	return spec->kind == SPEC_URETPROBE || spec->kind == SPEC_KRETPROBE;
}

static const char *kind_of(const struct cursor *c)
{
	return spec_kind_name(c->spec->kind);
}

/* argN, as far as the name goes. */
static bool base_is_arg(struct cursor *c, const char *where, const char *name,
                        struct spec_value *value)
{
	unsigned long index = strtoul(name + 3, NULL, 10);

	if (c->spec->kind == SPEC_TRACEPOINT)
		return cursor_wrong(c, where,
		                    "a tracepoint has fields with names, not %s: 'cuscope probes "
		                    "%s:GROUP:NAME' lists them",
		                    name, kind_of(c));
	if (returns_alone(c->spec))
		return cursor_wrong(c, where,
		                    "%s is gone when the function returns: %s has ret alone; use "
		                    "%s for both",
		                    name, kind_of(c),
		                    spec_is_kernel(c->spec) ? "kprobe" : "uprobe");
	if (strlen(name) > 5 || index > SPEC_ARG_LAST)
		return cursor_wrong(c, where, "no argument %s: arg0 to arg%d", name, SPEC_ARG_LAST);
	value->base = BASE_ARG;
	value->index = index;
	return true;
}

static bool base_is_other(struct cursor *c, const char *where, const char *name,
                          struct spec_value *value)
{
	if (!strcmp(name, "ret")) {
		if (!has_return(c->spec))
			return cursor_wrong(c, where, "%s has no return, so no ret: use %s",
			                    kind_of(c),
			                    spec_is_kernel(c->spec) ? "kprobe" : "uprobe");
		value->base = BASE_RET;
		value->on_return = true;
		return true;
	}
	if (c->spec->kind != SPEC_TRACEPOINT)
		return cursor_wrong(c, where, "'%s' is no value: %s", name,
		                    returns_alone(c->spec) ? "ret"
		                    : has_return(c->spec)  ? "arg0 to arg11, or ret"
		                                           : "arg0 to arg11");
	value->base = BASE_FIELD;
	snprintf(value->field, sizeof(value->field), "%s", name);
	return true;
}

static bool base_named(struct cursor *c, const char *where, const char *name,
                       struct spec_value *value)
{
	if (!strncmp(name, "arg", 3) && isdigit((unsigned char)name[3]) &&
	    name[strspn(name + 3, "0123456789") + 3] == '\0')
		return base_is_arg(c, where, name, value);
	return base_is_other(c, where, name, value);
}

/* ---- reads of memory on the way ------------------------------------------------------------ */

static bool add_load(struct cursor *c, const char *where, struct spec_value *value, int64_t offset)
{
	if (value->base == BASE_FIELD)
		return cursor_wrong(c, where,
		                    "fields of tracepoints are values, nothing is read "
		                    "behind them");
	if (value->n_loads == SPEC_LOADS_MAX)
		return cursor_wrong(c, where, "memory is read at most %d times for one value",
		                    SPEC_LOADS_MAX);
	value->offset[value->n_loads++] = (int32_t)offset;
	return true;
}

static bool loads_read(struct cursor *c, struct spec_value *value)
{
	uint64_t offset;

	for (;;) {
		const char *where;
		bool minus = false;

		cursor_skip_blanks(c);
		where = c->at;
		if (!cursor_takes(c, "->") && !cursor_takes(c, "+")) {
			minus = *c->at == '-';
			if (!minus)
				return true;
			c->at++;
		}
		if (value->n_loads && where[0] != '-')
			return cursor_wrong(c, where,
			                    "one offset a read: '->' reads on from there");
		if (value->n_loads && minus)
			return cursor_wrong(c, where,
			                    "one offset a read: '->' reads on from there");
		if (!cursor_number(c, INT32_MAX, &offset) ||
		    !add_load(c, where, value, minus ? -(int64_t)offset : (int64_t)offset))
			return false;
	}
}

/* ---- types --------------------------------------------------------------------------------- */

static bool chars_read(struct cursor *c, struct spec_value *value)
{
	const char *where = c->at;
	uint64_t chars;

	if (!cursor_takes(c, "["))
		return cursor_wrong(c, where, "%s wants its length: %s[16]",
		                    types[value->type].name, types[value->type].name);
	where = c->at;
	if (!cursor_number(c, SPEC_CHARS_MAX, &chars))
		return false;
	if (!chars)
		return cursor_wrong(c, where, "%s[N] has 1 to %d bytes", types[value->type].name,
		                    SPEC_CHARS_MAX);
	where = c->at;
	if (!cursor_takes(c, "]"))
		return cursor_wrong(c, where, "']' is missing after the length of %s",
		                    types[value->type].name);
	value->chars = chars;
	return true;
}

static bool type_read(struct cursor *c, struct spec_value *value)
{
	bool in_kernel = spec_is_kernel(c->spec);
	const char *names[SPEC_TYPES], *where;
	char name[SPEC_NAME_MAX], near[64];

	cursor_skip_blanks(c);
	where = c->at;
	cursor_name(c, name, sizeof(name));
	for (size_t i = 0; i < SPEC_TYPES; i++) {
		names[i] = types[i].name;
		if (strcmp(name, types[i].name))
			continue;
		if (spec_type_is_kernel(i) && !spec_is_kernel(c->spec))
			return cursor_wrong(c, where,
			                    "%s is text of the kernel, and %s sees a program's: "
			                    "%s",
			                    name, kind_of(c), name + 1);
		value->type = i;
		value->typed = true;
		return !spec_type_has_length(i) || chars_read(c, value);
	}
	return cursor_wrong(
		c, where, "'%s' is no type%s (%s%s)", name,
		cursor_near(name, names, in_kernel ? SPEC_TYPES : SPEC_KSTR, near, sizeof(near)),
		TYPES_SAID, in_kernel ? TYPES_SAID_KERNEL : "");
}

/* "user": the argument is an address that a process gave the kernel. */
static bool whose_read(struct cursor *c, const char *where, struct spec_value *value)
{
	if (!spec_is_kernel(c->spec) || value->base == BASE_FIELD)
		return cursor_wrong(c, where,
		                    "only behind arguments of the kernel's functions it has to be "
		                    "said whose the memory is");
	if (spec_type_is_kernel(value->type))
		return cursor_wrong(c, where, "%s is text of the kernel: %s",
		                    types[value->type].name, types[value->type].name + 1);
	if (!value->n_loads && !spec_type_is_text(value->type))
		return cursor_wrong(c, where,
		                    "only memory is somebody's: '*arg1' or 'arg1+16' reads some");
	value->in_user = true;
	return true;
}

static bool moment_read(struct cursor *c, struct spec_value *value)
{
	const char *where = c->at;

	if (cursor_takes(c, "user"))
		return whose_read(c, where, value);
	if (!cursor_takes(c, "return"))
		return cursor_wrong(c, where, "after '@' comes 'return': the memory is read then%s",
		                    spec_is_kernel(c->spec) ? "; or 'user': it is the process's"
		                                            : "");
	if (!has_return(c->spec))
		return cursor_wrong(c, where, "%s has no return", kind_of(c));
	if (!value->n_loads && !spec_type_is_text(value->type))
		return cursor_wrong(c, where,
		                    "only memory can change until the return: '*arg1' or 'arg1+16' "
		                    "reads some");
	value->on_return = true;
	return true;
}

/* ---- products ------------------------------------------------------------------------------ */

static const struct spec_table *table_named(struct cursor *c, const char *where, const char *name)
{
	const char *names[16];
	size_t n = 0;
	char near[64];

	for (const struct spec_table *table = c->tables; table; table = table->next) {
		if (!strcmp(table->name, name))
			return table;
		if (n < ARRAY_SIZE(names))
			names[n++] = table->name;
	}
	cursor_wrong(c, where,
	             "no table is called '%s'%s (a line of a file of hooks makes one: "
	             "table %s = 1 1 4 4 8 8)",
	             name, cursor_near(name, names, n, near, sizeof(near)),
	             name[0] ? name : "sizes");
	return NULL;
}

/* "*TABLE(VALUE)": the place of VALUE is kept, and it is read when all others are. */
static bool product_read(struct cursor *c, struct spec_value *value)
{
	char name[SPEC_NAME_MAX], key[64];
	const char *where;

	cursor_skip_blanks(c);
	where = c->at;
	cursor_name(c, name, sizeof(name));
	value->table = table_named(c, where, name);
	if (!value->table)
		return false;
	where = c->at;
	if (!cursor_takes(c, "("))
		return cursor_wrong(c, where, "'(' is expected here: %s(arg3)", name);
	cursor_skip_blanks(c);
	value->key_at = c->at - c->text;
	where = c->at;
	if (!cursor_name(c, key, sizeof(key)))
		return cursor_wrong(c, where, "a value is expected here: %s(arg3)", name);
	where = c->at;
	return cursor_takes(c, ")") || cursor_wrong(c, where, "')' is missing here");
}

uint64_t spec_value_times(const struct spec_value *value, uint64_t number, uint64_t key)
{
	return value->table && key < value->table->n ? number * value->table->number[key] : 0;
}

bool factors_read(struct cursor *c)
{
	size_t n = c->spec->n_values;

	for (size_t i = 0; i < n; i++) {
		struct spec_value *value = &c->spec->value[i];
		char name[64];
		int factor;

		if (!value->table)
			continue;
		c->at = c->text + value->key_at;
		cursor_name(c, name, sizeof(name));
		factor = value_named(c, c->text + value->key_at, name);
		if (factor < 0)
			return false;
		value->factor = factor;
	}
	return true;
}

/* ---- an argument --------------------------------------------------------------------------- */

/* "NAME=", if that comes next. */
static bool name_read(struct cursor *c, struct spec_value *value)
{
	const char *where;
	size_t len;

	cursor_skip_blanks(c);
	where = c->at;
	len = cursor_name(c, value->name, sizeof(value->name));
	cursor_skip_blanks(c);
	if (!len || *c->at != '=') {
		c->at = where;
		value->name[0] = '\0';
		return true;
	}
	c->at++;
	if (len >= sizeof(value->name))
		return cursor_wrong(c, where, "this name is too long: at most %zu letters",
		                    sizeof(value->name) - 1);
	if (isdigit((unsigned char)*where))
		return cursor_wrong(c, where, "a name does not begin with a digit");
	for (size_t i = 0; i < c->spec->n_values; i++) {
		if (!strcmp(c->spec->value[i].name, value->name))
			return cursor_wrong(c, where, "there is a '%s' already", value->name);
	}
	return true;
}

static bool only_text(struct cursor *c, const struct spec_value *value)
{
	for (size_t i = 0; i < c->spec->n_values && spec_type_is_text(value->type); i++) {
		if (spec_type_is_text(c->spec->value[i].type))
			return cursor_wrong(c, c->text + value->at,
			                    "a hook records one text: '%s' is one already",
			                    c->spec->value[i].name);
	}
	return true;
}

static bool value_read(struct cursor *c, struct spec_value *value)
{
	char base[64];
	const char *where;
	size_t stars = 0;

	if (!name_read(c, value))
		return false;
	cursor_skip_blanks(c);
	value->at = c->at - c->text;
	while (cursor_takes(c, "*"))
		stars++;
	cursor_skip_blanks(c);
	where = c->at;
	if (!cursor_name(c, base, sizeof(base)))
		return cursor_wrong(c, where, "an argument is expected here: NAME=arg0:u64");
	value->type = SPEC_U64;
	if (!base_named(c, where, base, value) || !loads_read(c, value))
		return false;
	for (size_t i = 0; i < stars; i++) {
		if (!add_load(c, c->text + value->at, value, 0))
			return false;
	}
	if (!value->name[0])
		snprintf(value->name, sizeof(value->name), "%.*s", SPEC_NAME_MAX - 1, base);
	where = c->at;
	if (cursor_takes(c, "*") && !product_read(c, value))
		return false;
	if (cursor_takes(c, ":") && !type_read(c, value))
		return false;
	while (cursor_takes(c, "@")) {
		if (!moment_read(c, value))
			return false;
	}
	if (value->table && spec_type_is_text(value->type))
		return cursor_wrong(c, where, "text is not multiplied");
	return only_text(c, value);
}

static bool is_new(struct cursor *c, const struct spec_value *value)
{
	for (size_t i = 0; i < c->spec->n_values; i++) {
		if (!strcmp(c->spec->value[i].name, value->name))
			return cursor_wrong(c, c->text + value->at,
			                    "there is a '%s' already: give one a name (NAME=%s)",
			                    value->name, value->name);
	}
	return true;
}

bool values_read(struct cursor *c)
{
	struct hook_spec *spec = c->spec;

	spec->listed = true;
	if (cursor_takes(c, ")"))
		return true;
	for (;;) {
		struct spec_value value = { 0 };
		const char *where;

		cursor_skip_blanks(c);
		where = c->at;
		if (spec->n_values == SPEC_ARGS_MAX)
			return cursor_wrong(c, where, "a hook has at most %d arguments",
			                    SPEC_ARGS_MAX);
		if (!value_read(c, &value) || !is_new(c, &value))
			return false;
		spec->value[spec->n_values++] = value;
		cursor_skip_blanks(c);
		where = c->at;
		if (cursor_takes(c, ")"))
			return true;
		if (!cursor_takes(c, ","))
			return cursor_wrong(c, where, "',' or ')' is expected here");
	}
}

/* ---- what a filter names ------------------------------------------------------------------- */

static bool hidden_read(struct cursor *c, const char *where, const char *name,
                        struct spec_value *value)
{
	const char *names[SPEC_ARGS_MAX];
	size_t n = 0;
	char near[64];

	for (size_t i = 0; i < c->spec->n_values && n < SPEC_ARGS_MAX; i++)
		names[n++] = c->spec->value[i].name;
	*value = (struct spec_value){ .hidden = true, .type = SPEC_U64, .at = where - c->text };
	if (base_named(c, where, name, value)) {
		snprintf(value->name, sizeof(value->name), "%.*s", SPEC_NAME_MAX - 1, name);
		return true;
	}
	cursor_near(name, names, n, near, sizeof(near));
	return near[0] ? cursor_wrong(c, where, "no argument is called '%s'%s", name, near) : false;
}

int value_named(struct cursor *c, const char *where, const char *name)
{
	struct hook_spec *spec = c->spec;

	for (size_t i = 0; i < spec->n_values; i++) {
		if (strcmp(spec->value[i].name, name))
			continue;
		if (spec->value[i].table) {
			cursor_wrong(c, where,
			             "'%s' is a product, which is made after the filter "
			             "was asked",
			             name);
			return -1;
		}
		if (!spec_type_is_text(spec->value[i].type))
			return (int)i;
		cursor_wrong(c, where, "'%s' is text: only numbers are compared", name);
		return -1;
	}
	if (spec->n_values == SPEC_VALUES_MAX) {
		cursor_wrong(c, where, "a hook has at most %d values, with those of its filter",
		             SPEC_VALUES_MAX);
		return -1;
	}
	if (!hidden_read(c, where, name, &spec->value[spec->n_values]))
		return -1;
	return (int)spec->n_values++;
}
