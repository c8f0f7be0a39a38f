// SPDX-License-Identifier: MIT
/* The html page of a recording that is at hand: of `record --html` and `why -o report.html`. */
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"
#include "output/sink.h"
#include "trace/reader.h"

static bool page_worth_keeping(int rc)
{
	return cli_worth_showing(rc) || rc == -ENODATA || cli_is_full(rc);
}

bool cli_is_page(const char *path)
{
	const struct sink_format *format = path ? sink_format_by_ending(path) : NULL;

	return format && !strcmp(format->name, "html");
}

static int page_open(struct new_file *out, const struct cli_page *page, struct err *err)
{
	const struct new_file_options wanted = { .replace = page->force, .mode = page->mode };

	return new_file_open(out, page->path, &wanted, err);
}

int cli_page_check(const struct cli_page *page, struct err *err)
{
	struct new_file out;
	int rc = page_open(&out, page, err);

	if (!rc)
		new_file_drop(&out);
	return rc;
}

int cli_page_write(struct trace_file *file, const char *trace, const struct cli_page *page,
                   struct err *err)
{
	const struct trace_read_options all = { 0 };
	struct sink_options options = { .path = page->path, .trace = trace };
	struct consumer *sink;
	struct new_file out;
	struct err ignored;
	int rc = page_open(&out, page, err);

	if (rc)
		return rc;
	options.out = out.out;
	sink = sink_format_by_name("html")->create(&options);
	rc = trace_read(file, &all, &sink, 1, err);
	sink->ops->free(sink);
	if (!page_worth_keeping(rc))
		new_file_drop(&out);
	else if (new_file_keep(&out, rc ? &ignored : err) && !rc)
		rc = err->code;
	return rc;
}

int cli_page_of(int fd, const char *trace, const struct cli_page *page, struct err *err)
{
	struct trace_file *file;
	int rc = trace_open_fd(fd, trace, &file, err);

	if (rc)
		return rc;
	rc = cli_page_write(file, trace, page, err);
	trace_close(file);
	return rc;
}
