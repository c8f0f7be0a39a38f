// SPDX-License-Identifier: MIT
#include "probe/own_plan.h"

#include <asm/ptrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "cuda/api.h"

/* Registers in the order of arguments, as the programs are given them. */
#ifdef __aarch64__
#define REGISTER(n) (offsetof(struct user_pt_regs, regs) + 8 * (n))
static const uint16_t argument_registers[] = { REGISTER(0), REGISTER(1), REGISTER(2), REGISTER(3),
	                                       REGISTER(4), REGISTER(5), REGISTER(6), REGISTER(7) };
#define STACK_POINTER   offsetof(struct user_pt_regs, sp)
#define RETURN_REGISTER REGISTER(0)
#define STACK_ARGUMENTS 0
#else
static const uint16_t argument_registers[] = {
	offsetof(struct pt_regs, rdi), offsetof(struct pt_regs, rsi), offsetof(struct pt_regs, rdx),
	offsetof(struct pt_regs, rcx), offsetof(struct pt_regs, r8),  offsetof(struct pt_regs, r9)
};
#define STACK_POINTER   offsetof(struct pt_regs, rsp)
#define RETURN_REGISTER offsetof(struct pt_regs, rax)
#define STACK_ARGUMENTS 8 /* behind the return address */
#endif

/* ---- where values begin -------------------------------------------------------------------- */

static void add_load(struct wire_hook_value *to, int32_t offset, bool kernel)
{
	if (to->n_loads == WIRE_HOOK_LOADS)
		return;
	to->kernel |= (uint8_t)(kernel ? KERNEL_LOAD << to->n_loads : 0);
	to->offset[to->n_loads++] = offset;
}

/* Its stack is that of who runs: the kernel's, in functions of the kernel. */
static void begin_argument(struct wire_hook_value *to, uint8_t index, bool kernel)
{
	to->first_bytes = 8;
	if (index < ARRAY_SIZE(argument_registers)) {
		to->at = argument_registers[index];
		return;
	}
	to->at = STACK_POINTER;
	add_load(to, STACK_ARGUMENTS + 8 * (int32_t)(index - ARRAY_SIZE(argument_registers)),
	         kernel);
}

static void begin_place(struct wire_hook_value *to, const struct own_place *place)
{
	to->at = place->at;
	to->first_bytes = place->first_bytes;
	if (place->is_constant) {
		to->flags |= VALUE_CONSTANT;
		to->offset[0] = place->offset;
	} else if (place->in_memory) {
		add_load(to, place->offset, false); /* of a marker, in a program */
	}
	if (place->is_text)
		to->flags |= place->is_data_loc  ? VALUE_DATA_LOC
		             : place->is_pointer ? 0
		                                 : VALUE_IN_RECORD;
	if (to->flags & (VALUE_DATA_LOC | VALUE_IN_RECORD))
		to->kernel |= KERNEL_TEXT;
	to->chars = (uint8_t)place->chars;
}

static bool wrong(struct hook_mistake *mistake, const struct spec_value *value, const char *fmt,
                  const char *name, const char *more)
{
	mistake->at = value->at;
	snprintf(mistake->says, sizeof(mistake->says), fmt, name, more);
	return false;
}

static bool no_field(const struct spec_value *value, const struct own_place *places, size_t n,
                     struct hook_mistake *mistake)
{
	const char **names = xcalloc(n + 1, sizeof(char *)), *near;
	AT_END(buf_free) struct buf more = { 0 };

	for (size_t i = 0; i < n; i++)
		names[i] = places[i].name;
	near = suggest(value->field, names, n);
	buf_puts(&more, near ? ": did you mean '" : "");
	buf_puts(&more, near ? near : "");
	buf_puts(&more, near ? "'? (" : " (");
	for (size_t i = 0; i < n; i++)
		buf_printf(&more, "%s%s", i ? ", " : "", places[i].name);
	buf_puts(&more, ")");
	wrong(mistake, value, "the tracepoint has no field '%s'%s", value->field, more.data);
	free(names);
	return false;
}

static const struct own_place *place_of(const struct spec_value *value,
                                        const struct own_place *places, size_t n,
                                        struct hook_mistake *mistake)
{
	char name[16];

	if (value->base == BASE_ARG && value->index < n)
		return &places[value->index];
	for (size_t i = 0; value->base == BASE_FIELD && i < n; i++) {
		if (!strcmp(places[i].name, value->field))
			return &places[i];
	}
	if (value->base == BASE_FIELD) {
		no_field(value, places, n, mistake);
		return NULL;
	}
	snprintf(name, sizeof(name), "arg%u", value->index);
	wrong(mistake, value, "the marker has no %s%s", name, "");
	return NULL;
}

/* ---- values -------------------------------------------------------------------------------- */

/* A field has the type of the kernel's record unless the user says one. */
static void take_type_of_place(struct wire_hook_value *to, const struct spec_value *value,
                               const struct own_place *place)
{
	if (value->typed || value->n_loads)
		return;
	to->bytes = place->bytes;
	if (place->is_signed)
		to->flags |= VALUE_SIGNED;
	if (place->is_text)
		to->flags |= VALUE_TEXT;
}

static bool make_value(const struct hook_spec *spec, const struct spec_value *value,
                       const struct own_place *places, size_t n, struct wire_hook_value *to,
                       struct hook_mistake *mistake)
{
	const struct own_place *place = NULL;

	if (value->base == BASE_RET) {
		to->flags |= VALUE_OF_RETURN;
		to->at = RETURN_REGISTER;
		to->first_bytes = 8;
	} else if (places || value->base == BASE_FIELD) {
		place = place_of(value, places, n, mistake);
		if (!place)
			return false;
		begin_place(to, place);
	} else {
		begin_argument(to, value->index, spec_is_kernel(spec));
	}
	if (value->on_return)
		to->flags |= VALUE_ON_RETURN;
	for (uint8_t i = 0; i < value->n_loads; i++)
		add_load(to, value->offset[i], spec_is_kernel(spec) && !value->in_user);
	to->bytes = spec_type_bytes(value->type);
	if (spec_type_is_signed(value->type))
		to->flags |= VALUE_SIGNED;
	if (spec_type_is_text(value->type))
		to->flags |= VALUE_TEXT;
	if (spec_type_is_kernel(value->type))
		to->kernel |= KERNEL_TEXT;
	if (spec_type_has_length(value->type)) {
		to->chars = (uint8_t)value->chars;
		to->flags |= value->n_loads ? VALUE_ADDRESS : 0;
	}
	if (place)
		take_type_of_place(to, value, place);
	if (place && place->is_text && value->typed && !spec_type_is_text(value->type))
		return wrong(mistake, value, "'%s' is text: %s", value->name,
		             "its type is str, or none is said");
	if (place && spec->kind == SPEC_TRACEPOINT && value->typed && !place->is_text &&
	    spec_type_is_text(value->type) && !place->is_pointer)
		return wrong(mistake, value, "'%s' is no text%s", value->name, "");
	return true;
}

void own_plan_step(const struct filter_step *from, bool is_signed, struct wire_hook_step *step)
{
	static const uint8_t passes[] = {
		[FILTER_EQ] = PASSES_EQUAL,     [FILTER_NE] = PASSES_LESS | PASSES_MORE,
		[FILTER_LT] = PASSES_LESS,      [FILTER_LE] = PASSES_LESS | PASSES_EQUAL,
		[FILTER_GT] = PASSES_MORE,      [FILTER_GE] = PASSES_MORE | PASSES_EQUAL,
		[FILTER_ANY_BIT] = PASSES_MORE,
	};

	*step = (struct wire_hook_step){ .value = from->value, .mask = ~0ull };
	if (from->op > FILTER_ANY_BIT) {
		step->op = from->op == FILTER_AND  ? STEP_AND
		           : from->op == FILTER_OR ? STEP_OR
		                                   : STEP_NOT;
		return;
	}
	step->op = STEP_COMPARE;
	step->passes = passes[from->op];
	if (from->op == FILTER_ANY_BIT) {
		step->mask = from->with;
		return;
	}
	step->flip = is_signed ? 1ull << 63 : 0;
	step->with = from->with ^ step->flip;
}

/* Comparisons that have to be true where the filter passes, a bit each. */
static uint32_t needed_steps(const struct wire_hook_plan *plan)
{
	uint32_t needed[WIRE_HOOK_STEPS] = { 0 };
	size_t n = 0;

	_Static_assert(WIRE_HOOK_STEPS <= 32, "a bit for each step");
	for (size_t i = 0; i < plan->n_steps; i++) {
		uint32_t last;

		if (plan->step[i].op == STEP_COMPARE) {
			needed[n++] = 1u << i;
			continue;
		}
		last = needed[--n];
		if (plan->step[i].op == STEP_NOT) {
			needed[n++] = 0;
			continue;
		}
		needed[n - 1] =
			plan->step[i].op == STEP_AND ? needed[n - 1] | last : needed[n - 1] & last;
	}
	return n ? needed[n - 1] : 0;
}

/* One that is known on entry; rather of a register than of memory. */
static uint8_t gate_of(const struct wire_hook_plan *plan)
{
	uint32_t needed = needed_steps(plan);
	uint8_t gate = 0;

	for (uint8_t i = 0; i < plan->n_steps; i++) {
		const struct wire_hook_value *value;

		if (!(needed >> i & 1) || plan->step[i].value == WIRE_HOOK_DURATION)
			continue;
		value = &plan->value[plan->step[i].value];
		if (value->flags & (VALUE_ON_RETURN | VALUE_OF_RETURN | VALUE_TEXT))
			continue;
		if (!value->n_loads)
			return i + 1;
		gate = gate ? gate : i + 1;
	}
	return gate;
}

static void look_before(struct wire_hook_plan *plan)
{
	for (size_t i = 0; i < plan->n_values; i++) {
		if (plan->value[i].n_loads || (plan->value[i].flags & VALUE_TEXT))
			plan->flags |= PLAN_READS;
	}
	plan->gate = gate_of(plan);
}

bool own_plan_make(const struct hook_spec *spec, const struct own_place *places, size_t n,
                   struct wire_hook_plan *plan, struct hook_mistake *mistake)
{
	*plan = (struct wire_hook_plan){ .n_values = (uint8_t)spec->n_values,
		                         .n_steps = (uint8_t)spec->n_filter };
	if (spec_is_span(spec) || spec->kind == SPEC_URETPROBE || spec->kind == SPEC_KRETPROBE)
		plan->flags |= PLAN_RETURNS;
	if (spec->kind == SPEC_URETPROBE || spec->kind == SPEC_KRETPROBE)
		plan->flags |= PLAN_MOMENT;
	if (spec_filter_on_entry(spec))
		plan->flags |= PLAN_FILTER_ON_ENTRY;
	for (size_t i = 0; i < n; i++)
		plan->flags |= places[i].is_relative ? PLAN_REL_LOC : 0;
	for (size_t i = 0; i < spec->n_values; i++) {
		if (!make_value(spec, &spec->value[i], places, n, &plan->value[i], mistake))
			return false;
	}
	for (size_t i = 0; i < spec->n_filter; i++) {
		const struct filter_step *step = &spec->filter[i];

		own_plan_step(step,
		              step->op <= FILTER_ANY_BIT && step->value != FILTER_DURATION &&
		                      (plan->value[step->value].flags & VALUE_SIGNED),
		              &plan->step[i]);
	}
	look_before(plan);
	return true;
}

_Static_assert(SPEC_TABLE_MAX == WIRE_HOOK_TABLE && SPEC_VALUES_MAX == WIRE_HOOK_VALUES,
               "the programs have room for what a hook may say");

static const struct spec_value *summed(const struct hook_spec *spec)
{
	for (size_t i = 0; i < spec->n_values; i++) {
		if (spec->value[i].type == SPEC_BYTES && !spec->value[i].hidden)
			return &spec->value[i];
	}
	return NULL;
}

bool own_plan_sum(const struct hook_spec *spec, struct wire_hook_plan *plan,
                  struct wire_hook_table *table)
{
	const struct spec_value *value = summed(spec);
	bool used[SPEC_VALUES_MAX] = { false };

	if (value) {
		plan->sum = (uint8_t)(value - spec->value + 1);
		plan->factor = value->table ? (uint8_t)(value->factor + 1) : 0;
		used[plan->sum - 1] = true;
		if (plan->factor)
			used[plan->factor - 1] = true;
	}
	for (size_t i = 0; i < spec->n_filter; i++) {
		if (spec->filter[i].op <= FILTER_ANY_BIT &&
		    spec->filter[i].value != FILTER_DURATION)
			used[spec->filter[i].value] = true;
	}
	plan->n_values = 0;
	for (size_t i = 0; i < spec->n_values; i++) {
		if (used[i])
			plan->n_values = (uint8_t)(i + 1);
		else
			plan->value[i] = (struct wire_hook_value){ .flags = VALUE_CONSTANT,
				                                   .first_bytes = 1,
				                                   .bytes = 1 };
	}
	memset(table, 0, sizeof(*table));
	if (plan->factor)
		memcpy(table->number, value->table->number,
		       value->table->n * sizeof(*table->number));
	return plan->factor > 0;
}

static enum spec_type type_of(const struct own_place *place)
{
	if (place->is_text)
		return SPEC_STR;
	if (place->is_signed)
		return place->bytes == 8 ? SPEC_I64 : SPEC_I32;
	if (place->is_pointer)
		return SPEC_PTR;
	return place->bytes == 8 ? SPEC_U64 : SPEC_U32;
}

void own_plan_take_types(struct hook_spec *spec, const struct own_place *places, size_t n)
{
	for (size_t i = 0; i < spec->n_values; i++) {
		struct spec_value *value = &spec->value[i];

		for (size_t k = 0; k < n && !value->typed && value->base == BASE_FIELD; k++) {
			if (!strcmp(places[k].name, value->field))
				value->type = type_of(&places[k]);
		}
	}
}

void own_plan_all_fields(const struct hook_spec *spec, const struct own_place *places, size_t n,
                         struct hook_spec *all)
{
	struct spec_value filter_values[SPEC_VALUES_MAX];
	size_t n_filter = spec->n_values, shown = 0;
	bool text = false;

	*all = *spec;
	all->text = xstrdup(spec->text);
	memcpy(filter_values, spec->value, sizeof(filter_values));
	for (size_t i = 0; i < n && shown + n_filter < SPEC_VALUES_MAX && shown < SPEC_ARGS_MAX;
	     i++) {
		struct spec_value *value = &all->value[shown];

		if ((places[i].is_text && text) || strlen(places[i].name) >= SPEC_NAME_MAX ||
		    !places[i].bytes)
			continue;
		text |= places[i].is_text;
		*value = (struct spec_value){ .base = BASE_FIELD, .type = SPEC_U64 };
		snprintf(value->name, sizeof(value->name), "%.*s", SPEC_NAME_MAX - 1,
		         places[i].name);
		snprintf(value->field, sizeof(value->field), "%s", places[i].name);
		value->type = type_of(&places[i]);
		shown++;
	}
	for (size_t i = 0; i < n_filter; i++)
		all->value[shown + i] = filter_values[i];
	all->n_values = shown + n_filter;
	for (size_t i = 0; i < all->n_filter; i++) {
		if (all->filter[i].op <= FILTER_ANY_BIT)
			all->filter[i].value += (uint8_t)shown;
	}
}

/* ---- the row ------------------------------------------------------------------------------- */

const struct api *own_plan_row(const struct hook_spec *spec, const char *name, struct api **made)
{
	static const char *const words[SPEC_TYPES] = {
		[SPEC_I8] = "int",       [SPEC_I16] = "int",     [SPEC_I32] = "int",
		[SPEC_I64] = "s64",      [SPEC_U8] = "uint",     [SPEC_U16] = "uint",
		[SPEC_U32] = "uint",     [SPEC_U64] = "u64",     [SPEC_HEX] = "hex64",
		[SPEC_BYTES] = "size",   [SPEC_PTR] = "addr",    [SPEC_STR] = "string",
		[SPEC_CHARS] = "string", [SPEC_KSTR] = "string", [SPEC_KCHARS] = "string",
	};
	struct api_text text = { .name = name, .cls = CLASS_OTHER };
	AT_END(buf_free) struct buf arguments = { 0 };

	buf_puts(&arguments, "");
	for (size_t i = 0; i < spec->n_values; i++) {
		if (!spec->value[i].hidden)
			buf_printf(&arguments, "%s%s:%s", arguments.len ? " " : "",
			           spec->value[i].name, words[spec->value[i].type]);
	}
	text.spec = arguments.data;
	return api_from_text(&text, made);
}

/* ---- arguments of markers ------------------------------------------------------------------ */

#ifdef __x86_64__
#define R(field) offsetof(struct pt_regs, field)
/* Each in its widths; "%al" is enough to find it, the width is said apart. */
static const struct {
	const char *names;
	uint16_t at;
} registers[] = {
	{ " rax eax ax al ", R(rax) },      { " rbx ebx bx bl ", R(rbx) },
	{ " rcx ecx cx cl ", R(rcx) },      { " rdx edx dx dl ", R(rdx) },
	{ " rsi esi si sil ", R(rsi) },     { " rdi edi di dil ", R(rdi) },
	{ " rbp ebp bp bpl ", R(rbp) },     { " rsp esp sp spl ", R(rsp) },
	{ " r8 r8d r8w r8b ", R(r8) },      { " r9 r9d r9w r9b ", R(r9) },
	{ " r10 r10d r10w r10b ", R(r10) }, { " r11 r11d r11w r11b ", R(r11) },
	{ " r12 r12d r12w r12b ", R(r12) }, { " r13 r13d r13w r13b ", R(r13) },
	{ " r14 r14d r14w r14b ", R(r14) }, { " r15 r15d r15w r15b ", R(r15) },
};

static bool register_at(const char *name, size_t len, uint16_t *at)
{
	char word[16];

	if (!len || len > 5 || memchr(name, ' ', len))
		return false;
	snprintf(word, sizeof(word), " %.*s ", (int)len, name);
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		if (strstr(registers[i].names, word)) {
			*at = registers[i].at;
			return true;
		}
	}
	return false;
}

/* "%edi", "$-5", "-16(%rbp)", "(%rax)"; others have an index, or a symbol. */
static bool operand_read(const char *text, size_t len, struct own_place *place)
{
	const char *bracket = memchr(text, '(', len);
	char *end;
	long number;

	if (len > 1 && text[0] == '%')
		return register_at(text + 1, len - 1, &place->at);
	if (len > 1 && text[0] == '$') {
		number = strtol(text + 1, &end, 0);
		place->is_constant = true;
		place->offset = (int32_t)number;
		return end == text + len && number == (int32_t)number;
	}
	if (!bracket || text[len - 1] != ')' || len - (size_t)(bracket - text) < 4 ||
	    bracket[1] != '%')
		return false;
	number = bracket == text ? 0 : strtol(text, &end, 0);
	if ((bracket != text && end != bracket) || number != (int32_t)number)
		return false;
	place->in_memory = true;
	place->offset = (int32_t)number;
	return register_at(bracket + 2, (size_t)(text + len - 1 - bracket - 2), &place->at);
}
#else
/* "x0", "w0", "sp", "[sp, 16]" has a blank, which stands between arguments: it is left out. */
static bool operand_read(const char *text, size_t len, struct own_place *place)
{
	char *end;
	unsigned long number;

	if (len == 2 && !memcmp(text, "sp", 2)) {
		place->at = STACK_POINTER;
		return true;
	}
	if (len < 2 || (text[0] != 'x' && text[0] != 'w'))
		return false;
	number = strtoul(text + 1, &end, 10);
	place->at = (uint16_t)REGISTER(number);
	return end == text + len && number < 31;
}
#endif

bool own_places_of_marker(const char *text, struct own_place *places, size_t *n)
{
	size_t room = *n;

	*n = 0;
	while (*(text += strspn(text, " "))) {
		size_t len = strcspn(text, " ");
		struct own_place place = { .first_bytes = 8 };
		char *end;
		long width = strtol(text, &end, 10);

		if (*end != '@' || end > text + len || !width || width < -8 || width > 8 ||
		    *n == room)
			return false;
		place.is_signed = width < 0;
		place.bytes = (uint8_t)(width < 0 ? -width : width);
		if ((place.bytes & (place.bytes - 1)) ||
		    !operand_read(end + 1, (size_t)(text + len - end - 1), &place))
			return false;
		places[(*n)++] = place;
		text += len;
	}
	return true;
}
