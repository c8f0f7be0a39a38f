// SPDX-License-Identifier: MIT
/* All reports as tables of a page. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "page/page.h"
#include "report/set.h"

struct page_tables {
	FILE *out;
	struct report_choice *choices;
	size_t n;
	struct report_set *set;
};

struct page_tables *page_tables_new(const struct sink *sink, struct err *err)
{
	const struct sink_options *options = &sink->options;
	struct page_tables *tables = xcalloc(1, sizeof(*tables));
	struct report_set_options set = { .table = { .form = TABLE_FORM_HTML,
		                                     .top = PAGE_TABLE_ROWS },
		                          .from_ns = options->from_ns,
		                          .to_ns = options->to_ns,
		                          .part = options->part,
		                          .chosen = options->chosen,
		                          .work = sink->work };

	for (const struct report *report = reports; report->name; report++) {
		if (report->kind->rows_come || report->again)
			continue;
		tables->choices = vec_room(tables->choices, tables->n, sizeof(*tables->choices));
		tables->choices[tables->n++] = (struct report_choice){ .report = report };
	}
	tables->out = set.table.out = page_temporary(err);
	if (tables->out && !report_set_new(tables->choices, tables->n, &set, &tables->set, err))
		return tables;
	page_tables_free(tables);
	return NULL;
}

void page_tables_free(struct page_tables *tables)
{
	if (!tables)
		return;
	report_set_free(tables->set);
	free(tables->choices);
	if (tables->out)
		fclose(tables->out);
	free(tables);
}

struct consumer *const *page_tables_consumers(const struct page_tables *tables, size_t *n)
{
	return report_set_consumers(tables->set, n);
}

struct consumer *page_tables_why(const struct page_tables *tables)
{
	return report_set_why(tables->set);
}

FILE *page_tables_finish(struct page_tables *tables, struct err *err)
{
	if (report_set_finish(tables->set, err))
		return NULL;
	rewind(tables->out);
	return tables->out;
}

void page_tables_forget(struct page_tables *tables)
{
	report_set_free(tables->set);
	tables->set = NULL;
}

void page_tables_json(const struct page_tables *tables, const char *path, struct json *json)
{
	json_open(json, "reports", '[');
	for (size_t i = 0; i < tables->n; i++) {
		const struct report *report = tables->choices[i].report;
		AT_END(buf_free) struct buf command = { 0 };

		buf_printf(&command, "cuscope report %s %s", path, report->name);
		json_open(json, NULL, '{');
		json_string(json, "name", report->name);
		json_string(json, "help", report->help);
		json_string(json, "command", command.data);
		json_close(json, '}');
	}
	json_close(json, ']');
}
