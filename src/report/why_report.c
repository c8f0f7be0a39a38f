// SPDX-License-Identifier: MIT
/* The report `why`: what the command of that name prints. */
#include "report/reports.h"
#include "report/why.h"

/* Of what a report reads of the recording; of how the report is written what is the same. */
static struct why_options why_options_of(const struct table_options *table,
                                         const struct report_options *options)
{
	return (struct why_options){ .color = table->color,
		                     .width = table->width,
		                     .next = table->top,
		                     .from_ns = options->from_ns,
		                     .to_ns = options->to_ns,
		                     .part = options->part,
		                     .chosen = options->chosen };
}

struct consumer *why_report_common(const struct table_options *table,
                                   const struct report_options *options)
{
	struct why_options why = why_options_of(table, options);

	if (table->form != TABLE_FORM_TEXT)
		why.width = 0;
	return why_new(&why);
}

struct consumer *why_report_kept(const struct report_options *options)
{
	return options->why ? why_share(options->why)
	                    : why_report_common(table_options(options->table), options);
}

static int write_why(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct report_writer *writer = (struct report_writer *)self;
	const struct table_options *table = table_options(writer->table);
	int rc = writer->analysis->ops->end(writer->analysis, run, err);

	return rc ? rc
	          : why_write(writer->analysis, table->out, table_form_is_json(table->form), err);
}

const struct report_kind why_report = {
	.why = true, .metrics = true, .stalls = true, .end = write_why
};
