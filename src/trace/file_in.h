/* SPDX-License-Identifier: MIT */
/*
 * A trace file as chunks: which there are and where. The index tells that. Where a crash left none,
 * chunks are found by walking from one to the next, over damage to the next head.
 */
#ifndef CUSCOPE_TRACE_FILE_IN_H
#define CUSCOPE_TRACE_FILE_IN_H

#include "base/buf.h"
#include "base/err.h"
#include "trace/chunk.h"

struct chunk_at {
	struct chunk_head head;
	uint64_t offset; /* of the head */
	uint64_t gap;    /* without an index: bytes before it that are no chunk */
};

struct file_in {
	int fd;
	const char *path; /* kept, not copied */
	uint64_t bytes;
	unsigned major, minor; /* of the format */
	struct chunk_at *chunks;
	size_t n_chunks;
	bool complete;       /* ends as a writer ends it */
	bool has_trailer;    /* its last bytes are what a writer ends a file with */
	bool has_gaps;       /* without an index: bytes that are no chunk lie between chunks */
	uint64_t damaged_at; /* without an index: where bytes begin that are no chunk, up to the */
			     /* end; 0: nowhere */
	struct unpacker *unpacker;
	struct buf payload;
	uint8_t *block; /* of the file, which heads are looked for in */
	uint64_t block_at;
	size_t block_bytes;
};

/* A descriptor is closed by file_in_close(), which follows failures, too. */
int file_in_open(struct file_in *in, const char *path, struct err *err);
int file_in_open_fd(struct file_in *in, int fd, const char *called, struct err *err);
void file_in_close(struct file_in *in);

/* The payload of a chunk, unpacked; valid until the next call. NULL: it is damaged. */
const uint8_t *file_in_chunk(struct file_in *in, const struct chunk_at *chunk);

#endif
