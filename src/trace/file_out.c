// SPDX-License-Identifier: MIT
#include "trace/file_out.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "trace/bytes.h"

void file_out_init(struct file_out *out, int fd, const char *name)
{
	*out = (struct file_out){ .fd = fd, .name = name };
}

void file_out_free(struct file_out *out)
{
	buf_free(&out->heads);
}

static int fail(struct file_out *out, int code, struct err *err)
{
	const char *advice = code == ENOSPC || code == EDQUOT || code == EFBIG
	                             ? "; free some space or choose another place"
	                             : "";

	/* what did not fit is cut off; where that fails too, a reader finds the place itself */
	if (ftruncate(out->fd, (off_t)out->bytes))
		errno = 0;
	err_set(&out->failure, code, "cannot write %s: %s%s (what was written so far is whole)",
	        out->name, strerror(code), advice);
	*err = out->failure;
	return err->code;
}

/* All of it or nothing. */
static int add(struct file_out *out, const void *data, size_t bytes, struct err *err)
{
	const char *at = data;
	size_t left = bytes;

	if (out->failure.code) {
		*err = out->failure;
		return err->code;
	}
	while (left) {
		ssize_t n = write(out->fd, at, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(out, n < 0 ? errno : EIO, err);
		at += n;
		left -= (size_t)n;
	}
	out->bytes += bytes;
	return 0;
}

int file_out_begin(struct file_out *out, struct err *err)
{
	uint8_t header[FORMAT_HEADER_BYTES] = { 0 };

	if (ftruncate(out->fd, 0))
		return fail(out, errno, err);
	memcpy(header, FORMAT_MAGIC, FORMAT_MAGIC_BYTES);
	put_fixed(header + 8, FORMAT_MAJOR, 2);
	put_fixed(header + 10, FORMAT_MINOR, 2);
	return add(out, header, sizeof(header), err);
}

int file_out_chunk(struct file_out *out, const void *chunk, size_t bytes, struct err *err)
{
	int r = add(out, chunk, bytes, err);

	if (!r)
		buf_add(&out->heads, chunk, FORMAT_CHUNK_BYTES);
	return r;
}

int file_out_end(struct file_out *out, struct packer *packer, struct err *err)
{
	struct chunk_head head = { .type = CHUNK_INDEX };
	uint8_t trailer[FORMAT_TRAILER_BYTES];
	struct buf chunk = { 0 };
	uint64_t at = out->bytes;
	int r;

	packer_add(packer, &head, out->heads.data, out->heads.len, &chunk);
	put_fixed(trailer, at, 8);
	put_fixed(trailer + 8, chunk.len, 4);
	put_fixed(trailer + 12, crc32(0, trailer, 12), 4);
	memcpy(trailer + 16, FORMAT_MAGIC, FORMAT_MAGIC_BYTES);
	buf_add(&chunk, trailer, sizeof(trailer));
	r = add(out, chunk.data, chunk.len, err);
	buf_free(&chunk);
	return r;
}
