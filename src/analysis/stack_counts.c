// SPDX-License-Identifier: MIT
#include "analysis/stack_counts.h"

static void count_stack(struct stack_counts *counts, const struct stack *stack)
{
	counts->ends[stack->end]++;
	counts->python_cut += stack->end == STACK_WHOLE && stack->python_cut;
}

void stack_counts_event(struct stack_counts *counts, const struct event *event)
{
	if (event->call && event->call->stack)
		count_stack(counts, event->call->stack);
	if (event->type != EVENT_SAMPLE)
		return;
	if (event->sample->stack)
		count_stack(counts, event->sample->stack);
	else
		counts->without += sample_is_placed(event->sample);
}

uint64_t stack_counts_all(const struct stack_counts *counts)
{
	uint64_t all = counts->without;

	for (int end = 0; end < STACK_END_COUNT; end++)
		all += counts->ends[end];
	return all;
}

uint64_t stack_counts_whole(const struct stack_counts *counts)
{
	return counts->ends[STACK_WHOLE] - counts->python_cut;
}

uint64_t stack_counts_begun(const struct stack_counts *counts)
{
	return stack_counts_whole(counts) + counts->ends[STACK_BY_POINTERS];
}

const char *stack_counts_word(const struct stack_counts *counts)
{
	return counts->ends[STACK_BY_POINTERS] ? "reach their begin" : "whole";
}

/* ---- text ------------------------------------------------------------------------------------ */

static void add_reason(struct buf *out, size_t begin, uint64_t n, const char *one, const char *many,
                       const char *what)
{
	if (n)
		buf_printf(out, "%s%lu %s%s", out->len > begin ? "; " : "", n, n == 1 ? one : many,
		           what);
}

void stack_counts_add_cut(const struct stack_counts *counts, struct buf *out)
{
	static const struct {
		const char *one, *many;
	} verbs[STACK_END_COUNT] = {
		[STACK_TOO_DEEP] = { "is ", "are " },
		[STACK_NO_MAPPING] = { "ends in ", "end in " },
		[STACK_NO_TABLE] = { "ends in ", "end in " },
		[STACK_NO_RULE] = { "ends at ", "end at " },
		[STACK_UNREADABLE] = { "ends in ", "end in " },
		[STACK_BAD] = { "ends at ", "end at " },
		[STACK_BY_POINTERS] = { "relies on ", "rely on " },
	};
	size_t begin = out->len;

	for (int end = STACK_WHOLE + 1; end < STACK_END_COUNT; end++)
		add_reason(out, begin, counts->ends[end], verbs[end].one, verbs[end].many,
		           stack_end_text((enum stack_end)end));
	add_reason(out, begin, counts->python_cut, "lacks ", "lack ", "frames of Python");
	add_reason(out, begin, counts->without, "is not known", "are not known", "");
}

void stack_counts_text(const struct stack_counts *counts, struct buf *out)
{
	uint64_t all = stack_counts_all(counts), whole = stack_counts_whole(counts);

	if (!all)
		return;
	if (whole == all) {
		buf_printf(out, "all %lu stacks are whole", all);
		return;
	}
	if (counts->ends[STACK_BY_POINTERS])
		buf_printf(out, "%lu of %lu stacks reach their begin; ", stack_counts_begun(counts),
		           all);
	else
		buf_printf(out, "%lu of %lu stacks %s whole; ", whole, all,
		           whole == 1 ? "is" : "are");
	stack_counts_add_cut(counts, out);
}

/* ---- for programs ---------------------------------------------------------------------------- */

void stack_counts_json(const struct stack_counts *counts, struct json *json)
{
	json_u64(json, "whole", stack_counts_whole(counts));
	json_open(json, "cut", '{');
	for (int end = STACK_WHOLE + 1; end < STACK_END_COUNT; end++) {
		json_u64_if(json, stack_end_text((enum stack_end)end), counts->ends[end]);
	}
	json_close(json, '}');
	json_u64(json, "python_cut", counts->python_cut);
	json_u64(json, "without", counts->without);
}
