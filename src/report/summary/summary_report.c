// SPDX-License-Identifier: MIT
/* The report `summary`: what a trace prints at its end, of a file. */
#include "report/summary/summary.h"
#include "report/reports.h"

struct consumer *summary_report_new(const struct report *report,
                                    const struct report_options *options)
{
	const struct table_options *table = table_options(options->table);
	struct summary_options calls = {
		.color = table->color,
		.width = table->width,
		.top = table->top,
		.work = options->work,
	};

	if (table->form == TABLE_FORM_JSON)
		calls.json_stream = table->out;
	else
		calls.text = table->out;
	return summary_new(&calls);
}
