// SPDX-License-Identifier: MIT
#include "profile/words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/place.h"
#include "base/text.h"
#include "base/xalloc.h"

/* ---- frame label --------------------------------------------------------------------------- */

void frame_label(const struct stack_frame *frame, bool by_line, struct buf *out)
{
	if (frame->function && *frame->function)
		buf_puts(out, frame->function);
	else if (!frame->module)
		buf_puts(out, "[unknown]");
	else if (*frame->module == '[')
		buf_puts(out, frame->module);
	else
		buf_printf(out, "[%s]", frame->module);
	if (frame->kind != FRAME_PYTHON || !frame->file || !*frame->file)
		return;
	buf_printf(out, " (%s", place_file(frame->file));
	if (by_line && frame->line)
		buf_printf(out, ":%u", frame->line);
	buf_putc(out, ')');
}

void frame_label_drop_line(char *label)
{
	char *open = strrchr(label, '('), *colon = open ? strrchr(open, ':') : NULL;

	if (!colon || open < label + 2 || open[-1] != ' ' || colon[1] < '0' || colon[1] > '9' ||
	    strcmp(colon + 1 + strspn(colon + 1, "0123456789"), ")"))
		return;
	strcpy(colon, ")");
}

/* ---- words --------------------------------------------------------------------------------- */

void words_add_share(struct buf *out, uint64_t part, uint64_t whole)
{
	double tenths = whole ? (double)part / (double)whole * 1000 + 0.5 : 0;
	uint64_t shown = tenths > 1000 ? 1000 : (uint64_t)tenths;

	if (part && !shown) {
		buf_puts(out, "<0.1 %");
		return;
	}
	if (shown == 1000 && part < whole)
		shown = 999;
	buf_fixed(out, shown, 1);
	buf_puts(out, " %");
}

const char *words_weight(enum weight_kind kind)
{
	static const char *const words[WEIGHT_KINDS] = {
		[WEIGHT_CPU] = "CPU",
		[WEIGHT_OFF_CPU] = "off CPU",
		[WEIGHT_GPU] = "GPU",
		[WEIGHT_HOOK] = "hooks",
	};

	return kind < WEIGHT_KINDS ? words[kind] : "";
}

const char *words_kind(enum profile_kind kind)
{
	static const char *const words[PROFILE_KINDS] = {
		[FRAME_NATIVE] = "native",    [FRAME_PYTHON] = "Python",
		[FRAME_JIT] = "JIT",          [FRAME_CUDA] = "CUDA",
		[FRAME_DRIVER] = "driver",    [FRAME_KERNEL_MODE] = "kernel mode",
		[FRAME_GPU] = "GPU",          [PROFILE_OFF_CPU] = "off CPU",
		[PROFILE_TASK] = "processes", [PROFILE_OTHER] = "not known",
	};

	return kind < PROFILE_KINDS ? words[kind] : "";
}

static void add_times(const struct profile *profile, unsigned kinds, struct buf *out)
{
	static const char *const where[WEIGHT_KINDS] = {
		[WEIGHT_CPU] = "on CPUs",
		[WEIGHT_OFF_CPU] = "blocked",
		[WEIGHT_GPU] = "on GPUs",
		[WEIGHT_HOOK] = "in hooked calls",
	};
	struct profile_sums sums;
	const char *comma = "";

	profile_total(profile, &sums);
	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (!(kinds & 1u << kind) || !sums.count[kind])
			continue;
		buf_puts(out, comma);
		buf_duration(out, sums.ns[kind]);
		buf_printf(out, " %s", where[kind]);
		comma = ", ";
	}
	if (!*comma)
		buf_puts(out, "no samples");
}

void words_add_title(const struct profile *profile, const struct profile_info *info,
                     struct buf *out)
{
	buf_puts(out, "Profile");
	if (info->subject)
		buf_printf(out, " of %s", info->subject);
	buf_puts(out, ": ");
	add_times(profile, info->kinds ? info->kinds : WEIGHTS_ALL, out);
}

void words_add_subject(const struct profile_info *info, struct buf *out)
{
	time_t seconds = (time_t)(info->begin_ns / 1000000000);
	size_t from = out->len;
	char text[40];
	struct tm tm;

	if (info->processes)
		buf_printf(out, "%u process%s, ", info->processes,
		           info->processes == 1 ? "" : "es");
	if (info->duration_ns)
		buf_duration(out, info->duration_ns);
	if (info->rate_hz)
		buf_printf(out, "%s%u samples a second", info->duration_ns ? " at " : "",
		           info->rate_hz);
	if (info->duration_ns || info->rate_hz)
		buf_puts(out, ", ");
	if (info->hostname)
		buf_printf(out, "on %s, ", info->hostname);
	if (info->begin_ns && localtime_r(&seconds, &tm)) {
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
		buf_puts(out, text);
	} else if (out->len > from) {
		out->len -= 2;
		out->data[out->len] = '\0';
	}
}

/* Where " (model.py)" begins, which tells the file of a function of Python; the end where none is.
 */
static size_t before_file(const char *label)
{
	const char *open = strrchr(label, '('), *close;

	if (!open || open < label + 2 || open[-1] != ' ')
		return strlen(label);
	close = open + strcspn(open, open[1] == '<' ? ",)" : ", )"); /* (<frozen codecs>:3) */
	return *close == ')' && !close[1] &&
	                       (open[1] == '<' || memchr(open, '.', (size_t)(close - open)))
	               ? (size_t)(open - 1 - label)
	               : strlen(label);
}

void words_add_frame(struct buf *out, const char *label, size_t columns)
{
	const char *end = *label == '[' ? strchr(label, ']') : NULL;
	size_t prefix = end && end[1] && (size_t)(end - label) < columns / 2 ? end + 1 - label : 0;
	struct buf name = { 0 };

	if (end && !end[1]) { /* "[woken by loader]" is no name with a last part */
		text_add_cut(out, label, columns);
		return;
	}
	buf_add(out, label, prefix);
	buf_puts(&name, label + prefix);
	if (text_columns(name.data) > columns - prefix)
		name.data[before_file(name.data)] = '\0';
	text_add_name(out, name.data, columns - prefix);
	buf_free(&name);
}

/* How whole the stacks of a profile are, in a line: profile_completeness(). */

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
		buf_printf(out, "all %lu stacks", all);
	else
		words_add_share(out, begun, all);
	if (begun != all)
		buf_printf(out, " of %lu stacks", all);
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
	buf_printf(out, "; %lu samples with ", count);
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
