// SPDX-License-Identifier: MIT
#include "profile/profile_write.h"

#include <string.h>

#include "base/array.h"
#include "profile/writers.h"

static const struct format {
	const char *ending;
	void (*write)(const struct profile *profile, const struct profile_info *info,
	              struct lines *lines);
	bool compressed;
} formats[PROFILE_FORMATS] = {
	[PROFILE_FOLDED] = { ".folded", folded_write },
	[PROFILE_SVG] = { ".svg", svg_write },
	[PROFILE_HTML] = { ".html", html_write },
	[PROFILE_PPROF] = { ".pb.gz", pprof_write, .compressed = true },
	[PROFILE_SPEEDSCOPE] = { ".speedscope.json", speedscope_write },
};

const char *profile_format_ending(enum profile_format format)
{
	return formats[format].ending;
}

void profile_format_endings(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		buf_printf(out, "%s%s", i ? ", " : "", formats[i].ending);
}

enum profile_format profile_format_of(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		size_t ending = strlen(formats[i].ending);

		if (len > ending && !strcmp(path + len - ending, formats[i].ending))
			return (enum profile_format)i;
	}
	return PROFILE_FORMATS;
}

int profile_write(const struct profile *profile, const struct profile_info *info,
                  enum profile_format format, FILE *out, const char *what, struct err *err)
{
	struct lines lines;
	int rc;

	lines_init(&lines, out, what);
	if (formats[format].compressed)
		lines_compress(&lines);
	formats[format].write(profile, info, &lines);
	rc = lines_end(&lines, err);
	lines_free(&lines);
	return rc;
}
