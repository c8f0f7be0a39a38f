// SPDX-License-Identifier: MIT
/* Hooks from any text: as one of --hook, and as a file. A mistake is told, with its place in the
 * text; else there is a plan that the programs can follow. */
#include <stdlib.h>
#include <string.h>

#include "hooks/hook_list.h"
#include "probe/own_functions.h"
#include "probe/own_plan.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Memory of the kernel is read where the words say so, and never in a program. */
static void check_value(const struct hook_spec *spec, const struct spec_value *value,
                        const struct wire_hook_value *to)
{
	if (to->n_loads > WIRE_HOOK_LOADS || !to->first_bytes || to->first_bytes > 8 ||
	    !to->bytes || to->bytes > 8 || to->at > 1024)
		abort();
	if (to->kernel && !spec_is_kernel(spec))
		abort();
	if ((to->kernel & KERNEL_TEXT) && !spec_type_is_kernel(value->type))
		abort();
	if (value->in_user && to->kernel && value->index < 6)
		abort();
}

static void check_plan(const struct hook_spec *spec)
{
	struct hook_mistake mistake;
	struct wire_hook_plan plan;

	own_functions_is_module(spec, "/usr/lib/liba.so.1.2");
	if (spec->kind == SPEC_TRACEPOINT || spec->kind == SPEC_USDT)
		return; /* what they have, the kernel and the file know */
	if (!own_plan_make(spec, NULL, 0, &plan, &mistake))
		abort();
	for (size_t i = 0; i < spec->n_values; i++)
		check_value(spec, &spec->value[i], &plan.value[i]);
	if (plan.gate > plan.n_steps ||
	    (plan.gate && (plan.step[plan.gate - 1].op != STEP_COMPARE ||
	                   plan.step[plan.gate - 1].value >= plan.n_values)))
		abort();
	for (size_t i = 0; i < plan.n_steps; i++) {
		const struct wire_hook_step *step = &plan.step[i];

		if (step->op == STEP_COMPARE && step->value >= plan.n_values &&
		    step->value != WIRE_HOOK_DURATION)
			abort();
	}
}

static void check_spec(const struct hook_spec *spec)
{
	uint64_t values[SPEC_VALUES_MAX];

	if (!spec->glob[0] || spec->n_values > SPEC_VALUES_MAX || spec->n_filter > SPEC_FILTER_MAX)
		abort();
	for (size_t i = 0; i < SPEC_VALUES_MAX; i++)
		values[i] = i * 0x9e3779b97f4a7c15ull;
	for (size_t i = 0; i < spec->n_values; i++) {
		const struct spec_value *value = &spec->value[i];

		if (!value->name[0] || value->n_loads > SPEC_LOADS_MAX ||
		    value->factor >= spec->n_values || (value->table && !value->table->n))
			abort();
		spec_value_times(value, values[0], values[i]);
	}
	for (size_t i = 0; i < spec->n_filter; i++) {
		if (spec->filter[i].op <= FILTER_ANY_BIT &&
		    spec->filter[i].value != FILTER_DURATION &&
		    spec->filter[i].value >= spec->n_values)
			abort();
	}
	spec_filter_passes(spec->filter, spec->n_filter, values, 1000000);
	check_plan(spec);
}

static void check(const char *text, bool as_file)
{
	struct hook_list list = { .driver = 570 };
	struct buf wrong = { 0 };
	int r = as_file ? hook_list_add_text(&list, "fuzz.hooks", text, &wrong)
	                : hook_list_add(&list, text, &wrong);

	if ((r != 0) != (wrong.len != 0))
		abort();
	for (size_t i = 0; i < list.n; i++)
		check_spec(list.spec[i]);
	buf_free(&wrong);
	hook_list_free(&list);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	check(text, false);
	check(text, true);
	free(text);
	return 0;
}
