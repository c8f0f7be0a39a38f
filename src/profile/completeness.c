// SPDX-License-Identifier: MIT
/* How whole the stacks of a profile are, in a line: profile_completeness(). */
#include <stdlib.h>

#include "base/xalloc.h"
#include "profile/words.h"

/* The outermost frame of each node; a node's parent comes before it. */
static uint32_t *outermost_nodes(const struct profile *profile)
{
	uint32_t *outermost = xcalloc(profile->n_nodes, sizeof(*outermost));

	for (uint32_t i = 0; i < profile->n_nodes; i++) {
		uint32_t parent = profile->nodes[i].parent;

		outermost[i] = parent == KEEP_NONE ? i : outermost[parent];
	}
	return outermost;
}

/* The file in which most stacks ended in that way; "" where it is not known. */
static const char *mostly_in(const struct profile *profile, const uint32_t *outermost,
                             enum stack_end end)
{
	uint64_t *by_module = xcalloc(profile->texts.n, sizeof(*by_module)), most = 0;
	uint32_t module = 0;

	for (size_t i = 0; i < profile->n_rows; i++) {
		const struct profile_row *row = &profile->rows[i];
		uint32_t in = profile_frame_of(profile, outermost[row->key.node])->module;

		if (row->key.end != end || !in)
			continue;
		for (int kind = 0; kind < WEIGHT_KINDS; kind++)
			by_module[in] += row->sums.count[kind];
		if (by_module[in] > most) {
			most = by_module[in];
			module = in;
		}
	}
	free(by_module);
	return module ? profile_text(profile, module) : "";
}

static void add_end(const struct profile *profile, const uint32_t *outermost, enum stack_end end,
                    uint64_t all, struct buf *out)
{
	static const char *const verbs[STACK_END_COUNT] = {
		[STACK_TOO_DEEP] = "are",      [STACK_NO_MAPPING] = "end in",
		[STACK_NO_TABLE] = "end in",   [STACK_NO_RULE] = "end at",
		[STACK_UNREADABLE] = "end in", [STACK_BAD] = "end at",
	};
	const char *module;

	buf_puts(out, "; ");
	words_add_share(out, profile->ends[end], all);
	buf_printf(out, " %s %s", verbs[end], stack_end_text(end));
	if (end != STACK_NO_TABLE && end != STACK_NO_RULE)
		return;
	module = mostly_in(profile, outermost, end);
	if (*module)
		buf_printf(out, " (mostly %s)", module);
}

/* Of code that has no unwind tables, Go's with it: frames of functions that keep none are missing.
 */
static void add_by_pointers(uint64_t by_pointers, uint64_t all, struct buf *out)
{
	if (!by_pointers) {
		buf_puts(out, " whole");
		return;
	}
	buf_puts(out, " reach their begin, ");
	words_add_share(out, by_pointers, all);
	buf_puts(out, " by frame pointers, which may miss a frame");
}

static void add_ends(const struct profile *profile, uint64_t all, struct buf *out)
{
	uint64_t by_pointers = profile->ends[STACK_BY_POINTERS];
	uint64_t begun = words_sum(profile->ends[STACK_WHOLE], by_pointers);
	uint32_t *outermost;

	if (begun == all)
		buf_printf(out, "all %llu stacks", (unsigned long long)all);
	else
		words_add_share(out, begun, all);
	if (begun != all)
		buf_printf(out, " of %llu stacks", (unsigned long long)all);
	add_by_pointers(by_pointers, all, out);
	if (begun == all)
		return;
	outermost = outermost_nodes(profile);
	for (unsigned end = STACK_WHOLE + 1; end < STACK_END_COUNT; end++) {
		if (profile->ends[end] && end != STACK_BY_POINTERS)
			add_end(profile, outermost, end, all, out);
	}
	free(outermost);
}

static void add_not_kept(const struct profile *profile, struct buf *out)
{
	const struct profile_sums *sums = &profile->rows[PROFILE_ROW_NOT_KEPT].sums;
	uint64_t count = 0, ns = 0;

	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		count = words_sum(count, sums->count[kind]);
		ns = words_sum(ns, sums->ns[kind]);
	}
	if (!count)
		return;
	buf_printf(out, "; %llu samples with ", (unsigned long long)count);
	buf_duration(out, ns);
	buf_puts(out, " have their time, but no stack: there was no memory for more of them");
}

void profile_completeness(const struct profile *profile, struct buf *out)
{
	uint64_t all = 0;

	for (unsigned end = 0; end < STACK_END_COUNT; end++)
		all = words_sum(all, profile->ends[end]);
	if (profile->ends_not_known)
		buf_puts(out, "how whole the stacks are is not known: they are from a file");
	else if (all)
		add_ends(profile, all, out);
	else
		buf_puts(out, "no stacks");
	if (profile->python_cut) {
		buf_puts(out, "; in ");
		words_add_share(out, profile->python_cut, all);
		buf_puts(out, " frames of Python are missing");
	}
	if (profile->without_stack) {
		buf_puts(out, "; of ");
		words_add_share(out, profile->without_stack,
		                words_sum(all, profile->without_stack));
		buf_puts(out, " of all samples the stack is not known");
	}
	add_not_kept(profile, out);
}
