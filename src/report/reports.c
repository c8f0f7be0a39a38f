// SPDX-License-Identifier: MIT
#include "report/reports.h"

#include <errno.h>
#include <string.h>

#include "base/suggest.h"
#include "base/xalloc.h"

const struct report reports[] = {
	{ .name = "summary",
	  .help = "what 'cuscope trace' prints at its end",
	  .create = summary_report_new },
	{ .name = NULL },
};

static const struct report *find(const char *name, size_t len)
{
	for (const struct report *r = reports; r->name; r++) {
		if (strlen(r->name) == len && !memcmp(r->name, name, len))
			return r;
	}
	return NULL;
}

static int unknown(const char *word, size_t len, struct err *err)
{
	const char *names[64], *near;
	char typed[64];
	size_t n = 0;

	for (const struct report *r = reports; r->name && n < 64; r++)
		names[n++] = r->name;
	snprintf(typed, sizeof(typed), "%.*s", (int)len, word);
	near = suggest(typed, names, n);
	if (near)
		return err_set(err, EINVAL, "there is no report '%s'; did you mean '%s'?", typed,
		               near);
	return err_set(err, EINVAL, "there is no report '%s'; 'cuscope report --help' lists them",
	               typed);
}

int report_choose(const char *word, struct report_choice *choice, struct err *err)
{
	size_t len = strcspn(word, ":");
	const char *names = word[len] ? word + len + 1 : NULL;

	memset(choice, 0, sizeof(*choice));
	choice->report = find(word, len);
	if (!choice->report)
		return unknown(word, len, err);
	if (!names)
		return 0;
	if (!choice->report->kernel_names)
		return err_set(err, EINVAL, "%s takes no ':%s': it names no kernels",
		               choice->report->name, names);
	if (!strcmp(names, "base"))
		choice->names = NAMES_BASE;
	else if (!strcmp(names, "mangled"))
		choice->names = NAMES_MANGLED;
	else
		return err_set(err, EINVAL, "%s: ':%s' is no form of names (:base or :mangled)",
		               choice->report->name, names);
	return 0;
}

char *report_choice_name(const struct report_choice *choice)
{
	static const char *const ending[] = { "", ":base", ":mangled" };

	return xasprintf("%s%s", choice->report->name, ending[choice->names]);
}

void report_title(const struct report *report, char *title, size_t size)
{
	snprintf(title, size, "%s: %s", report->name, report->help);
}

void report_note_no_gpu_times(struct table *table)
{
	table_note(table, "GPU times were not recorded: this trace has the calls only "
	                  "(cuda_api_sum, launches and memory need no GPU times)");
}

void report_note_estimated(struct table *table, const struct run_info *run)
{
	if (run->estimate_scale > 1)
		table_note(table,
		           "calls were recorded in windows of time: about %.2f times as much "
		           "happened as is counted here",
		           run->estimate_scale);
}
