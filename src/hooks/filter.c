// SPDX-License-Identifier: MIT
/* Filters: comparisons of values with numbers, joined by and, or, not and brackets. */
#include "hooks/cursor.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

#define DEPTH_MAX 8 /* of brackets and nots */

static bool add_step(struct cursor *c, const char *where, struct filter_step step)
{
	struct hook_spec *spec = c->spec;

	if (spec->n_filter == SPEC_FILTER_MAX)
		return cursor_wrong(c, where,
		                    "this filter is too long: at most %d comparisons and "
		                    "words between them",
		                    SPEC_FILTER_MAX);
	spec->filter[spec->n_filter++] = step;
	return true;
}

/* ---- a comparison -------------------------------------------------------------------------- */

static const struct {
	const char *sign;
	enum filter_op op;
} signs[] = { /* the longer ones first */
	      { "==", FILTER_EQ }, { "!=", FILTER_NE }, { "<=", FILTER_LE },    { ">=", FILTER_GE },
	      { "<", FILTER_LT },  { ">", FILTER_GT },  { "&", FILTER_ANY_BIT }
};

static const struct {
	const char *name;
	uint64_t times;
	bool of_time;
} units[] = { { "ns", 1, true },          { "us", 1000, true },       { "ms", 1000000, true },
	      { "s", 1000000000, true },  { "KiB", 1u << 10, false }, { "MiB", 1u << 20, false },
	      { "GiB", 1u << 30, false }, { "K", 1u << 10, false },   { "M", 1u << 20, false },
	      { "G", 1u << 30, false } };

static bool unit_read(struct cursor *c, bool duration, uint64_t *number)
{
	const char *where = c->at;
	char name[SPEC_NAME_MAX];

	if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", *where) || !*where)
		return !duration || !*number ||
		       cursor_wrong(c, where, "a duration has a unit: ns, us, ms or s");
	cursor_name(c, name, sizeof(name));
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(name, units[i].name) || units[i].of_time != duration)
			continue;
		return !__builtin_mul_overflow(*number, units[i].times, number) ||
		       cursor_wrong(c, where, "this number is too large");
	}
	return cursor_wrong(c, where, "'%s' is no unit of %s", name,
	                    duration ? "time: ns, us, ms or s" : "a number: KiB, MiB or GiB");
}

static bool sign_read(struct cursor *c, struct filter_step *step)
{
	const char *where;

	cursor_skip_blanks(c);
	where = c->at;
	for (size_t i = 0; i < ARRAY_SIZE(signs); i++) {
		if (cursor_takes(c, signs[i].sign)) {
			step->op = signs[i].op;
			return true;
		}
	}
	if (*where == '=')
		return cursor_wrong(c, where, "'=' gives a name; '==' compares");
	return cursor_wrong(c, where, "a comparison is expected here: == != < <= > >= &");
}

static bool number_read(struct cursor *c, struct filter_step *step)
{
	bool duration = step->value == FILTER_DURATION, minus;
	const char *where;

	cursor_skip_blanks(c);
	where = c->at;
	if (*where == '"' || *where == '\'')
		return cursor_wrong(c, where, "only numbers are compared, not text");
	minus = cursor_takes(c, "-");
	if (!cursor_number(c, minus ? INT64_MAX : UINT64_MAX, &step->with) ||
	    !unit_read(c, duration, &step->with))
		return false;
	if (minus && !step->is_signed)
		return cursor_wrong(c, where, "'%s' is never below 0: its type has no sign",
		                    duration ? "duration" : c->spec->value[step->value].name);
	if (minus)
		step->with = -step->with;
	else if (step->is_signed && step->with > INT64_MAX)
		return cursor_wrong(c, where, "this number is too large: %lld is the most",
		                    (long long)INT64_MAX);
	return true;
}

static bool comparison_read(struct cursor *c)
{
	struct filter_step step = { 0 };
	char name[64];
	const char *where;
	int value;

	cursor_skip_blanks(c);
	where = c->at;
	if (!cursor_name(c, name, sizeof(name)))
		return cursor_wrong(c, where, "a comparison is expected here: count > 1024");
	if (!strcmp(name, "duration")) {
		if (!spec_is_span(c->spec))
			return cursor_wrong(c, where, "%s is a moment: it has no duration",
			                    spec_kind_name(c->spec->kind));
		step.value = FILTER_DURATION;
	} else {
		value = value_named(c, where, name);
		if (value < 0)
			return false;
		step.value = value;
		step.is_signed = spec_type_is_signed(c->spec->value[value].type);
	}
	return sign_read(c, &step) && number_read(c, &step) && add_step(c, where, step);
}

/* ---- what joins them ----------------------------------------------------------------------- */

static bool or_read(struct cursor *c, unsigned depth);

static bool one_read(struct cursor *c, unsigned depth)
{
	const char *where;

	cursor_skip_blanks(c);
	where = c->at;
	if (depth == DEPTH_MAX)
		return cursor_wrong(c, where, "brackets go %d deep at most", DEPTH_MAX);
	if (cursor_takes(c, "not") || (*where == '!' && cursor_takes(c, "!")))
		return one_read(c, depth + 1) &&
		       add_step(c, where, (struct filter_step){ .op = FILTER_NOT });
	if (!cursor_takes(c, "("))
		return comparison_read(c);
	if (!or_read(c, depth + 1))
		return false;
	where = c->at;
	return cursor_takes(c, ")") || cursor_wrong(c, where, "')' is missing here");
}

static bool and_read(struct cursor *c, unsigned depth)
{
	if (!one_read(c, depth))
		return false;
	for (;;) {
		const char *where = c->at;

		if (!cursor_takes(c, "and") && !cursor_takes(c, "&&"))
			return true;
		if (!one_read(c, depth) ||
		    !add_step(c, where, (struct filter_step){ .op = FILTER_AND }))
			return false;
	}
}

static bool or_read(struct cursor *c, unsigned depth)
{
	if (!and_read(c, depth))
		return false;
	for (;;) {
		const char *where = c->at;

		if (!cursor_takes(c, "or") && !cursor_takes(c, "||"))
			return true;
		if (!and_read(c, depth) ||
		    !add_step(c, where, (struct filter_step){ .op = FILTER_OR }))
			return false;
	}
}

bool filter_read(struct cursor *c)
{
	return or_read(c, 0);
}

/* ---- what it says -------------------------------------------------------------------------- */

bool spec_filter_on_entry(const struct hook_spec *spec)
{
	for (size_t i = 0; i < spec->n_filter; i++) {
		const struct filter_step *step = &spec->filter[i];

		if (step->op <= FILTER_ANY_BIT &&
		    (step->value == FILTER_DURATION || spec->value[step->value].on_return))
			return false;
	}
	return true;
}

bool spec_needs_return(const struct hook_spec *spec)
{
	for (size_t i = 0; i < spec->n_values; i++) {
		if (spec->value[i].on_return)
			return true;
	}
	return spec->kind == SPEC_URETPROBE || spec->kind == SPEC_KRETPROBE ||
	       !spec_filter_on_entry(spec);
}

static bool compare(const struct filter_step *step, uint64_t value)
{
	bool less = step->is_signed ? (int64_t)value < (int64_t)step->with : value < step->with;

	switch (step->op) {
	case FILTER_EQ:
		return value == step->with;
	case FILTER_NE:
		return value != step->with;
	case FILTER_LT:
		return less;
	case FILTER_LE:
		return less || value == step->with;
	case FILTER_GT:
		return !less && value != step->with;
	case FILTER_GE:
		return !less;
	default:
		return (value & step->with) != 0;
	}
}

bool spec_filter_passes(const struct filter_step *steps, size_t n, const uint64_t *values,
                        uint64_t duration_ns)
{
	uint64_t truths = 1; /* a bit each, the last one lowest; without steps it passes */

	for (size_t i = 0; i < n; i++) {
		const struct filter_step *step = &steps[i];
		uint64_t last = truths & 1, before = truths >> 1 & 1;

		if (step->op == FILTER_NOT)
			truths ^= 1;
		else if (step->op == FILTER_AND)
			truths = truths >> 2 << 1 | (last & before);
		else if (step->op == FILTER_OR)
			truths = truths >> 2 << 1 | (last | before);
		else
			truths = truths << 1 | compare(step, step->value == FILTER_DURATION
			                                             ? duration_ns
			                                             : values[step->value]);
	}
	return truths & 1;
}
