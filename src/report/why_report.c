// SPDX-License-Identifier: MIT
/* The report `why`: what the command of that name prints. */
#include "report/reports.h"
#include "report/why.h"

struct consumer *why_report_new(const struct report *report, const struct report_options *options)
{
	const struct table_options *table = table_options(options->table);
	bool json = table->form == TABLE_FORM_JSON;
	const struct why_options why = { .text = json ? NULL : table->out,
		                         .json = json ? table->out : NULL,
		                         .color = table->color,
		                         .width = table->width,
		                         .next = table->top,
		                         .part = options->part,
		                         .chosen = options->chosen };

	return why_new(&why);
}
