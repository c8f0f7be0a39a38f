// SPDX-License-Identifier: MIT
#include "profile/words.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

/* ---- frame label --------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

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
	buf_printf(out, " (%s", base_name(frame->file));
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

static void add_times(const struct profile *profile, unsigned kinds, bool estimated,
                      struct buf *out)
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
		if (kind == WEIGHT_GPU && estimated)
			buf_puts(out, " (estimated)");
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
	add_times(profile, info->kinds ? info->kinds : WEIGHTS_ALL, info->estimated, out);
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
