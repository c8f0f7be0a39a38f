// SPDX-License-Identifier: MIT
/*
 * trace_seeds FOLDER FILE...: trace files as the fuzzers of traces take them, in folders of their
 * names: for fuzz_trace each as it is and unpacked, for the others behind their settings.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/chunk.h"

#define SETTINGS 0x40 /* of reports and exports: as many, one after the other */

static void save(const char *folder, const char *fuzzer, const char *name, const char *kind,
                 const struct buf *seed)
{
	const char *slash = strrchr(name, '/');
	char path[4096];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", folder, fuzzer);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/%s/%s.%s", folder, fuzzer, slash ? slash + 1 : name, kind);
	out = fopen(path, "we");
	if (!out || fwrite(seed->data, 1, seed->len, out) != seed->len || fclose(out)) {
		fprintf(stderr, "trace_seeds: %s: %s\n", path, strerror(errno));
		exit(1);
	}
}

static void add_file(const struct file_in *in, struct buf *seed)
{
	FILE *file = fopen(in->path, "re");
	int byte;

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

/* Every report and format once, a form after the other. */
static void save_with_settings(const char *folder, const char *name, const struct buf *file)
{
	for (unsigned i = 0; i < SETTINGS; i++) {
		char report[] = { (char)(i < 0x3e ? i : i << 4 | 0xe0), (char)(i % 64), 0 };
		char export[] = { (char)i, (char)(i % 2 ? i / 8 : 0x80) };
		struct buf seed = { 0 };
		char kind[16];

		snprintf(kind, sizeof(kind), "%02x", i);
		buf_add(&seed, report, sizeof(report));
		buf_add(&seed, file->data, file->len);
		save(folder, "reports", name, kind, &seed);
		buf_reset(&seed);
		buf_add(&seed, export, sizeof(export));
		buf_add(&seed, file->data, file->len);
		save(folder, "exports", name, kind, &seed);
		buf_free(&seed);
	}
}

static void save_pair(const char *folder, const char *name, const struct buf *file)
{
	for (char form = 0; form < 8; form++) {
		char kind[] = { '0' + form, '\0' };
		const char settings[] = { form, (char)file->len, (char)(file->len >> 8) };
		struct buf seed = { 0 };

		buf_add(&seed, settings, sizeof(settings));
		buf_add(&seed, file->data, file->len);
		buf_add(&seed, file->data, file->len);
		save(folder, "diff", name, kind, &seed);
		buf_free(&seed);
	}
}

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		struct buf whole = { 0 }, unpacked = { 0 }, file = { 0 };
		struct err err = { 0 };
		struct file_in in;

		if (file_in_open(&in, argv[i], &err)) {
			fprintf(stderr, "trace_seeds: %s\n", err.text);
			return 1;
		}
		add_file(&in, &file);
		buf_putc(&whole, 'F');
		buf_add(&whole, file.data, file.len);
		add_unpacked(&in, &unpacked);
		save(argv[1], "trace", argv[i], "whole", &whole);
		save(argv[1], "trace", argv[i], "unpacked", &unpacked);
		save(argv[1], "chunks", argv[i], "whole", &whole);
		save_with_settings(argv[1], argv[i], &file);
		save_pair(argv[1], argv[i], &file);
		buf_free(&whole);
		buf_free(&unpacked);
		buf_free(&file);
		file_in_close(&in);
	}
	return 0;
}
