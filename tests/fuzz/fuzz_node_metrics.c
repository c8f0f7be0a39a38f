// SPDX-License-Identifier: MIT
/*
 * Labels and Accept headers from any bytes: what is written is lines of which each is one sample or
 * a comment, whose quotes are closed, in UTF-8.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "node/metrics.h"

static const struct metric_family family = { "t_calls", METRIC_COUNTER, NULL, "Calls" };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_utf8(const char *text)
{
	while (*text) {
		size_t bytes = text_utf8(text, NULL);

		if (!bytes)
			abort();
		text += bytes;
	}
}

/* t_calls_total{a="...",b="..."} 7 */
static const char *check_sample(const char *line)
{
	static const char begin[] = "t_calls_total";

	if (strncmp(line, begin, sizeof(begin) - 1))
		abort();
	line += sizeof(begin) - 1;
	for (bool quoted = false; *line != ' ' || quoted; line++) {
		if (!*line || *line == '\n')
			abort();
		if (quoted && *line == '\\')
			line++;
		else if (*line == '"')
			quoted = !quoted;
	}
	if (strncmp(line, " 7\n", 3))
		abort();
	return line + 3;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *value = strndup((const char *)data, size);
	struct metrics *metrics = metrics_new();
	struct buf out = { 0 };
	const char *line;

	metrics_accepted(value);
	metrics_family(metrics, &family);
	metrics_add(metrics,
	            metrics_labels(metrics, 0, "a", value, "b", value + strlen(value) / 2, NULL), 7,
	            0, 0);
	metrics_write(metrics, METRICS_TEXT, &out);
	check_utf8(out.data);
	for (line = out.data; *line == '#'; line++)
		line = strchr(line, '\n');
	if (*check_sample(line))
		abort();
	buf_free(&out);
	metrics_free(metrics);
	free(value);
	return 0;
}
