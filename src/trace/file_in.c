// SPDX-License-Identifier: MIT
#include "trace/file_in.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/xalloc.h"
#include "trace/bytes.h"

#define BLOCK_BYTES     ((size_t)64 << 10) /* of what is looked through for heads */
#define INDEX_BYTES_MAX (FORMAT_CHUNKS_MAX * (size_t)FORMAT_CHUNK_BYTES)

static bool read_at(const struct file_in *in, uint64_t offset, void *into, size_t bytes)
{
	char *at = into;

	while (bytes) {
		ssize_t n = pread(in->fd, at, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return true;
}

const uint8_t *file_in_chunk(struct file_in *in, const struct chunk_at *chunk)
{
	size_t bytes = chunk->head.stored_bytes;

	buf_reset(&in->payload);
	buf_reserve(&in->payload, bytes);
	if (!read_at(in, chunk->offset + FORMAT_CHUNK_BYTES, in->payload.data, bytes))
		return NULL;
	return unpacker_open(in->unpacker, &chunk->head, in->payload.data);
}

/* ---- blocks -------------------------------------------------------------------------------- */

static bool in_block(const struct file_in *in, uint64_t offset)
{
	return offset >= in->block_at &&
	       offset + FORMAT_CHUNK_BYTES <= in->block_at + in->block_bytes;
}

/* What lies there, of which `n` bytes can be read: a head's at least. NULL where it cannot be. */
static const uint8_t *look_at(struct file_in *in, uint64_t offset, size_t *n)
{
	uint64_t left = in->bytes - offset;

	if (!in_block(in, offset)) {
		if (!in->block)
			in->block = xmalloc(BLOCK_BYTES);
		in->block_at = offset;
		in->block_bytes = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
		if (!read_at(in, offset, in->block, in->block_bytes)) {
			in->block_bytes = 0;
			return NULL;
		}
	}
	*n = in->block_bytes - (size_t)(offset - in->block_at);
	return in->block + (offset - in->block_at);
}

/* From the block where it is there: who looks for a head finds one after the other in a block. */
static bool read_head(const struct file_in *in, uint64_t offset, struct chunk_head *head)
{
	uint8_t bytes[FORMAT_CHUNK_BYTES];

	if (in->bytes - offset < sizeof(bytes))
		return false;
	if (in_block(in, offset))
		return chunk_head_read(in->block + (offset - in->block_at), head);
	return read_at(in, offset, bytes, sizeof(bytes)) && chunk_head_read(bytes, head);
}

/* ---- which chunks there are ---------------------------------------------------------------- */

static void add_chunk(struct file_in *in, const struct chunk_head *head, uint64_t offset)
{
	if ((in->n_chunks & (in->n_chunks - 1)) == 0)
		in->chunks = xrealloc(in->chunks,
		                      (in->n_chunks ? 2 * in->n_chunks : 1) * sizeof(*in->chunks));
	in->chunks[in->n_chunks++] = (struct chunk_at){ .head = *head, .offset = offset };
}

/* Whether a chunk begins there that is whole. */
static bool chunk_whole(struct file_in *in, uint64_t offset, struct chunk_at *chunk)
{
	chunk->offset = offset;
	return read_head(in, offset, &chunk->head) &&
	       chunk->head.stored_bytes <= in->bytes - offset - FORMAT_CHUNK_BYTES;
}

/* The chunks that an index lists; they have to fill the file up to the index. */
static bool take_index(struct file_in *in, const uint8_t *raw, size_t bytes, uint64_t end)
{
	uint64_t offset = FORMAT_HEADER_BYTES;
	struct chunk_head head;

	for (size_t at = 0; at + FORMAT_CHUNK_BYTES <= bytes; at += FORMAT_CHUNK_BYTES) {
		if (!chunk_head_read(raw + at, &head) ||
		    FORMAT_CHUNK_BYTES + (uint64_t)head.stored_bytes > end - offset)
			break;
		add_chunk(in, &head, offset);
		offset += FORMAT_CHUNK_BYTES + (uint64_t)head.stored_bytes;
	}
	return offset == end && in->n_chunks == bytes / FORMAT_CHUNK_BYTES;
}

/* That of an index can be longer than any other. */
static void forget_payload(struct file_in *in)
{
	buf_free(&in->payload);
	unpacker_free(in->unpacker);
	in->unpacker = unpacker_new();
}

static bool read_index(struct file_in *in)
{
	uint8_t trailer[FORMAT_TRAILER_BYTES];
	struct chunk_at index;
	const uint8_t *raw;
	uint64_t at;

	if (in->bytes < FORMAT_HEADER_BYTES + sizeof(trailer) ||
	    !read_at(in, in->bytes - sizeof(trailer), trailer, sizeof(trailer)) ||
	    memcmp(trailer + 16, FORMAT_MAGIC, FORMAT_MAGIC_BYTES) ||
	    get_fixed(trailer + 12, 4) != crc32(0, trailer, 12))
		return false;
	in->has_trailer = true;
	at = get_fixed(trailer, 8);
	if (at < FORMAT_HEADER_BYTES || at > in->bytes || !chunk_whole(in, at, &index) ||
	    index.head.type != CHUNK_INDEX || index.head.raw_bytes > in->bytes ||
	    index.head.raw_bytes > INDEX_BYTES_MAX || index.head.stored_bytes > INDEX_BYTES_MAX)
		return false;
	raw = file_in_chunk(in, &index);
	if (raw && take_index(in, raw, index.head.raw_bytes, at)) {
		forget_payload(in);
		return true;
	}
	forget_payload(in);
	in->n_chunks = 0;
	return false;
}

/* What a system that crashed may leave behind the last write. */
static bool only_zeros(const struct file_in *in, uint64_t offset)
{
	char block[4096];

	while (offset < in->bytes) {
		size_t n = in->bytes - offset < sizeof(block) ? (size_t)(in->bytes - offset)
		                                              : sizeof(block);

		if (!read_at(in, offset, block, n))
			return false;
		for (size_t i = 0; i < n; i++) {
			if (block[i])
				return false;
		}
		offset += n;
	}
	return true;
}

/*
 * A chunk that has a good head and no end was being written when the writing stopped. But the
 * writing of a file with a trailer did not: it lacks bytes in the middle. Behind the end they are
 * no loss.
 */
static bool cut_off(const struct file_in *in, const struct chunk_at *chunk)
{
	struct chunk_head unused;

	if (in->has_trailer &&
	    !(in->n_chunks && in->chunks[in->n_chunks - 1].head.type == CHUNK_END))
		return false;
	return in->bytes - chunk->offset < FORMAT_CHUNK_BYTES ||
	       read_head(in, chunk->offset, &unused) || only_zeros(in, chunk->offset);
}

/* Where the first head begins that lies in these bytes as a whole; n: none does. */
static size_t head_within(const uint8_t *bytes, size_t n)
{
	uint8_t magic[4];
	size_t places = n - FORMAT_CHUNK_BYTES + sizeof(magic);
	const uint8_t *at = bytes;
	struct chunk_head unused;

	put_fixed(magic, FORMAT_CHUNK_MAGIC, sizeof(magic));
	while ((at = memmem(at, places - (size_t)(at - bytes), magic, sizeof(magic)))) {
		if (chunk_head_read(at, &unused))
			return (size_t)(at - bytes);
		at++;
	}
	return n;
}

/* The first place from `offset` on where a chunk begins; 0: none. */
static uint64_t next_head(struct file_in *in, uint64_t offset)
{
	while (offset < in->bytes && in->bytes - offset >= FORMAT_CHUNK_BYTES) {
		size_t n, at;
		const uint8_t *bytes = look_at(in, offset, &n);

		if (!bytes)
			return 0;
		at = head_within(bytes, n);
		if (at < n)
			return offset + at;
		offset += n - (FORMAT_CHUNK_BYTES - 1);
	}
	return 0;
}

static void walk(struct file_in *in)
{
	uint64_t offset = FORMAT_HEADER_BYTES, gap = 0;
	struct chunk_at chunk;

	while (in->n_chunks < FORMAT_CHUNKS_MAX) {
		if (!chunk_whole(in, offset, &chunk)) {
			uint64_t next = cut_off(in, &chunk) ? 0 : next_head(in, offset + 1);

			if (!next)
				break;
			gap += next - offset;
			offset = next;
			continue;
		}
		if (chunk.head.type == CHUNK_INDEX) {
			in->complete = true;
			break;
		}
		add_chunk(in, &chunk.head, offset);
		in->chunks[in->n_chunks - 1].gap = gap;
		in->has_gaps |= gap != 0;
		gap = 0;
		offset += FORMAT_CHUNK_BYTES + (uint64_t)chunk.head.stored_bytes;
	}
	if (gap || in->n_chunks == FORMAT_CHUNKS_MAX || (!in->complete && !cut_off(in, &chunk)))
		in->damaged_at = offset - gap;
	in->has_gaps |= in->damaged_at != 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int check_header(struct file_in *in, struct err *err)
{
	uint8_t header[FORMAT_HEADER_BYTES] = { 0 };
	size_t bytes = in->bytes < sizeof(header) ? (size_t)in->bytes : sizeof(header);

	if (!bytes)
		return err_set(err, ENODATA, "%s is empty: nothing was recorded in it", in->path);
	if (!read_at(in, 0, header, bytes))
		return err_set(err, EIO, "cannot read %s: %s", in->path, strerror(EIO));
	if (memcmp(header, FORMAT_MAGIC, bytes < FORMAT_MAGIC_BYTES ? bytes : FORMAT_MAGIC_BYTES))
		return err_set(err, EINVAL,
		               "%s is no trace: such a file is made by 'cuscope record'", in->path);
	if (bytes < sizeof(header))
		return err_set(err, ENODATA,
		               "%s ends within its header: nothing was recorded in it", in->path);
	in->major = (unsigned)get_fixed(header + 8, 2);
	in->minor = (unsigned)get_fixed(header + 10, 2);
	if (in->major > FORMAT_MAJOR)
		return err_set(err, EPROTONOSUPPORT,
		               "%s was written by a newer cuscope (format %u.%u; this one reads "
		               "%u): a newer cuscope is needed to read it",
		               in->path, in->major, in->minor, FORMAT_MAJOR);
	if (in->major < FORMAT_MAJOR)
		return err_set(err, EBADMSG, "%s is damaged: its header says format %u.%u",
		               in->path, in->major, in->minor);
	return 0;
}

static int look_at_file(struct file_in *in, struct err *err)
{
	struct stat st;

	if (in->fd < 0 || fstat(in->fd, &st))
		return err_set(err, errno, "cannot read %s: %s", in->path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(err, EISDIR, "%s is a folder, not a trace", in->path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL,
		               "%s is not a regular file: a trace is read in several places at "
		               "once; copy it into a file first",
		               in->path);
	in->bytes = (uint64_t)st.st_size;
	return 0;
}

int file_in_open(struct file_in *in, const char *path, struct err *err)
{
	return file_in_open_fd(in, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), path, err);
}

int file_in_open_fd(struct file_in *in, int fd, const char *called, struct err *err)
{
	int r;

	*in = (struct file_in){ .fd = fd, .path = called };
	r = look_at_file(in, err);
	if (!r)
		r = check_header(in, err);
	if (r)
		return r;
	in->unpacker = unpacker_new();
	in->complete = read_index(in);
	if (!in->complete)
		walk(in);
	return 0;
}

void file_in_close(struct file_in *in)
{
	if (in->fd >= 0)
		close(in->fd);
	unpacker_free(in->unpacker);
	buf_free(&in->payload);
	free(in->block);
	free(in->chunks);
}
