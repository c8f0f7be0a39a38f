// SPDX-License-Identifier: MIT
/*
 * trace_seeds FOLDER FILE...: trace files as fuzz_trace takes them, each as it is and unpacked.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/file_in.h"

static void save(const char *folder, const char *name, const char *kind, const struct buf *seed)
{
	const char *slash = strrchr(name, '/');
	char path[4096];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s.%s", folder, slash ? slash + 1 : name, kind);
	out = fopen(path, "we");
	if (!out || fwrite(seed->data, 1, seed->len, out) != seed->len || fclose(out)) {
		fprintf(stderr, "trace_seeds: %s: %s\n", path, strerror(errno));
		exit(1);
	}
}

static void add_whole(const struct file_in *in, struct buf *seed)
{
	FILE *file = fopen(in->path, "re");
	int byte;

	buf_putc(seed, 'F');
	while (file && (byte = getc(file)) != EOF)
		buf_putc(seed, (char)byte);
	if (file)
		fclose(file);
}

static void add_unpacked(struct file_in *in, struct buf *seed)
{
	buf_putc(seed, 'U');
	for (size_t i = 0; i < in->n_chunks; i++) {
		const struct chunk_head *head = &in->chunks[i].head;
		const uint8_t *raw = file_in_chunk(in, &in->chunks[i]);
		const char begin[] = { (char)head->type, (char)head->events, (char)head->announced,
			               (char)head->raw_bytes, (char)(head->raw_bytes >> 8) };

		if (!raw)
			continue;
		buf_add(seed, begin, sizeof(begin));
		buf_add(seed, raw, head->raw_bytes);
	}
}

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		struct buf whole = { 0 }, unpacked = { 0 };
		struct err err = { 0 };
		struct file_in in;

		if (file_in_open(&in, argv[i], &err)) {
			fprintf(stderr, "trace_seeds: %s\n", err.text);
			return 1;
		}
		add_whole(&in, &whole);
		add_unpacked(&in, &unpacked);
		save(argv[1], argv[i], "whole", &whole);
		save(argv[1], argv[i], "unpacked", &unpacked);
		buf_free(&whole);
		buf_free(&unpacked);
		file_in_close(&in);
	}
	return 0;
}
