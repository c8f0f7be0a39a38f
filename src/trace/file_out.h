/* SPDX-License-Identifier: MIT */
/*
 * A trace file as it grows: header, chunks one after the other, index and trailer. After a failure
 * the file ends with the last whole chunk, and nothing more is written.
 */
#ifndef CUSCOPE_TRACE_FILE_OUT_H
#define CUSCOPE_TRACE_FILE_OUT_H

#include "base/buf.h"
#include "base/err.h"
#include "trace/chunk.h"

struct file_out {
	int fd;
	const char *name;
	uint64_t bytes;     /* written, all of them whole chunks */
	struct buf heads;   /* of the chunks, for the index */
	struct err failure; /* the first one */
};

void file_out_init(struct file_out *out, int fd, const char *name);
void file_out_free(struct file_out *out); /* does not close fd */

/* What was in the file before is gone. */
int file_out_begin(struct file_out *out, struct err *err);

/* Head and payload of one chunk, as packer_add() made them. */
int file_out_chunk(struct file_out *out, const void *chunk, size_t bytes, struct err *err);

/* Index and trailer. */
int file_out_end(struct file_out *out, struct packer *packer, struct err *err);

#endif
