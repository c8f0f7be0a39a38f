// SPDX-License-Identifier: MIT
#include "cli/profile_notes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/missed.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "profile/profile_write.h"

__attribute__((format(printf, 3, 4))) static void note(struct profile_notes *notes, uint64_t count,
                                                       const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!count || notes->n == PROFILE_NOTES_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	notes->text[notes->n++] = xstrdup(text);
}

static void note_hooks(struct profile_notes *notes, const struct collect_figures *f)
{
	double all = f->gpu_ns ? (double)f->gpu_ns / 100 : 1;
	uint64_t known = f->gpu_walked_ns + f->gpu_guessed_ns;

	note(notes, f->gpu_guessed_ns,
	     "%.1f %% of the time is of calls whose stack was not walked: it stands where that of "
	     "the same hook's others does (--launch-stacks)",
	     (double)f->gpu_guessed_ns / all);
	note(notes, f->gpu_ns - known, "%.1f %% of the time is of calls that no stack is known for",
	     (double)(f->gpu_ns - known) / all);
	note(notes, f->no_end, "%lu calls whose return was not seen: they have no time", f->no_end);
	note(notes, f->pairs_refused, "%lu calls had no room to be told apart by their stacks",
	     f->pairs_refused);
}

static void note_gpu(struct profile_notes *notes, const struct collect_figures *f)
{
	double all = f->gpu_ns ? (double)f->gpu_ns / 100 : 1;

	note(notes, f->gpu_guessed_ns,
	     "%.1f %% of the GPU time is of launches whose stack was not walked: it stands where "
	     "that "
	     "of the same kernel's others does (--launch-stacks)",
	     (double)f->gpu_guessed_ns / all);
	note(notes, f->gpu_ns - f->gpu_walked_ns - f->gpu_guessed_ns,
	     "%.1f %% of the GPU time is of launches that no stack is known for",
	     (double)(f->gpu_ns - f->gpu_walked_ns - f->gpu_guessed_ns) / all);
	note(notes, f->pairs_refused, "%lu activities had no room to be told apart by their stacks",
	     f->pairs_refused);
}

int profile_no_form(const char *path, struct err *err)
{
	AT_END(buf_free) struct buf known = { 0 };

	profile_format_endings(&known);
	err_set(err, EINVAL, "--output: no form of a profile has the ending of '%s' (there are %s)",
	        path, known.data);
	return err->code;
}

void profile_say_completeness(const struct profile *profile, const char *path)
{
	struct buf text = { 0 }, safe = { 0 };

	if (profile_format_of(path) != PROFILE_FOLDED)
		return;
	profile_completeness(profile, &text);
	text_add_safe(&safe, text.data);
	cli_say("%s: %s", path, safe.data);
	buf_free(&text);
	buf_free(&safe);
}

bool profile_is_empty(const struct profile *profile)
{
	struct profile_sums all;
	uint64_t n = 0;

	profile_total(profile, &all);
	for (int kind = 0; kind < WEIGHT_KINDS; kind++)
		n += all.count[kind];
	return !n;
}

static void note_chosen(const struct cli_range *range, const struct run_info *run,
                        struct profile_notes *notes)
{
	uint64_t whole_ns = run->end_ns - run->begin_ns;
	bool late = range->has_from && range->from_ns >= whole_ns;

	note(notes, late, "The trace ends %.3f s after its begin, before --from",
	     (double)whole_ns / 1e9);
	note(notes, !late && range->n_pids,
	     "Of these processes there is nothing: 'cuscope info FILE' lists those of the file");
	note(notes, !late && !range->n_pids && run->stacks.blocked,
	     "Where threads were blocked, --mode off-cpu shows");
}

void profile_notes_of_nothing(const struct profile *profile, const struct collect_figures *figures,
                              const struct cli_range *range, const struct run_info *run,
                              struct profile_notes *notes)
{
	if (!profile_is_empty(profile))
		return;
	if (run)
		note_chosen(range, run, notes);
	else
		note(notes, !figures->processes, "No such process was there");
}

void profile_notes_of_file(const struct run_info *run, struct profile_notes *notes)
{
	AT_END(buf_free) struct buf why = { 0 };

	if (missed_of_file(run, &why))
		note(notes, 1, "Not all: %s", why.data);
}

void profile_notes_of_tables(const struct code_figures *code, struct profile_notes *notes)
{
	note(notes, code->tables_ever,
	     "Unwind tables: of %lu files, %.1f MiB, made in %.0f ms beside the program",
	     code->tables_ever, (double)code->bytes_most / (1 << 20), (double)code->ns / 1e6);
}

void profile_notes_of_lines(const struct source_lines_figures *lines, struct profile_notes *notes)
{
	note(notes, lines->files,
	     "Source of native code: %lu of %lu places found in %lu files, in %.0f ms beside "
	     "the program",
	     lines->found, lines->places, lines->files, (double)lines->ns / 1e6);
	note(notes, lines->fetched + lines->not_fetched,
	     "Debug files from DEBUGINFOD_URLS: %lu of %lu that were asked for, in %.0f ms "
	     "beside the program",
	     lines->fetched, lines->fetched + lines->not_fetched, (double)lines->fetch_ns / 1e6);
}

void profile_notes_of(const struct collect_figures *figures, struct profile_notes *notes)
{
	if (figures->hooks)
		note_hooks(notes, figures);
	else
		note_gpu(notes, figures);
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++)
		note(notes, figures->asked.missed[i], "%lu %s", figures->asked.missed[i],
		     stacks_missed_text((enum stacks_missed)i, figures->asked.missed[i]));
	for (size_t i = 0; i < LOST_COUNT; i++)
		note(notes, figures->lost[i], "lost: %lu: %s", figures->lost[i],
		     lost_reason_text((enum lost_reason)i));
}

void profile_notes_free(struct profile_notes *notes)
{
	for (size_t i = 0; i < notes->n; i++)
		free(notes->text[i]);
	notes->n = 0;
}
