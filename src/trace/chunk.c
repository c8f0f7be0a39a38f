// SPDX-License-Identifier: MIT
#include "trace/chunk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/xalloc.h"

/* Level 3 makes files 4 % smaller (docs/results/pipeline.md); recording is to cost little. */
#define LEVEL 1

/* ---- heads --------------------------------------------------------------------------------- */

static void chunk_head_write(const struct chunk_head *head, uint8_t into[FORMAT_CHUNK_BYTES])
{
	uint8_t *at = into;

	memset(into, 0, FORMAT_CHUNK_BYTES);
	at = put_fixed(at, FORMAT_CHUNK_MAGIC, 4);
	at = put_fixed(at, head->type, 4);
	at = put_fixed(at, head->stored_bytes, 4);
	at = put_fixed(at, head->raw_bytes, 4);
	at = put_fixed(at, head->events, 4);
	at = put_fixed(at, head->announced, 4);
	at = put_fixed(at, head->first_ns, 8);
	at = put_fixed(at, head->last_ns, 8);
	at = put_fixed(at, head->begin_ns, 8);
	at = put_fixed(at, head->definitions, 4);
	put_fixed(at, head->payload_crc, 4);
	put_fixed(into + FORMAT_CHUNK_BYTES - 4, crc32(0, into, FORMAT_CHUNK_BYTES - 4), 4);
}

#ifdef FUZZING
bool chunk_any_checksum;
#endif

static bool crc_is(uint64_t expected, const void *data, size_t bytes)
{
#ifdef FUZZING
	if (chunk_any_checksum)
		return true;
#endif
	return crc32(0, data, (uInt)bytes) == expected;
}

/* Cheap, and what most of a file's bytes that look like a head fail at. */
static bool sizes_fit(const uint8_t *from)
{
	return from[4] == CHUNK_INDEX || /* as long as the file asks for */
	       (get_fixed(from + 12, 4) <= FORMAT_RAW_MAX &&
	        get_fixed(from + 8, 4) <= ZSTD_compressBound(FORMAT_RAW_MAX));
}

bool chunk_head_read(const uint8_t from[FORMAT_CHUNK_BYTES], struct chunk_head *head)
{
	if (get_fixed(from, 4) != FORMAT_CHUNK_MAGIC || !sizes_fit(from) ||
	    !crc_is(get_fixed(from + FORMAT_CHUNK_BYTES - 4, 4), from, FORMAT_CHUNK_BYTES - 4))
		return false;
	*head = (struct chunk_head){
		.type = from[4],
		.stored_bytes = (uint32_t)get_fixed(from + 8, 4),
		.raw_bytes = (uint32_t)get_fixed(from + 12, 4),
		.events = (uint32_t)get_fixed(from + 16, 4),
		.announced = (uint32_t)get_fixed(from + 20, 4),
		.first_ns = get_fixed(from + 24, 8),
		.last_ns = get_fixed(from + 32, 8),
		.begin_ns = get_fixed(from + 40, 8),
		.definitions = (uint32_t)get_fixed(from + 48, 4),
		.payload_crc = (uint32_t)get_fixed(from + 52, 4),
	};
	return head->first_ns <= head->last_ns;
}

/* ---- packing ------------------------------------------------------------------------------- */

struct packer {
	ZSTD_CCtx *zstd;
};

struct packer *packer_new(void)
{
	struct packer *packer = xcalloc(1, sizeof(*packer));

	packer->zstd = ZSTD_createCCtx();
	if (!packer->zstd)
		abort(); /* out of memory, as xalloc */
	ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, LEVEL);
	return packer;
}

void packer_free(struct packer *packer)
{
	if (!packer)
		return;
	ZSTD_freeCCtx(packer->zstd);
	free(packer);
}

/*
 * A reader unpacks a hundred times a file's bytes and no more (reader.c), and texts that are alike
 * pack to a thousandth: what packs to less than a 64th has a frame behind it that zstd passes over,
 * so that nothing that was written is beyond that.
 */
#define DENSE_TIMES      64
#define PASSED_OVER      0x184d2a50u
#define PASSED_OVER_HEAD 8

static size_t fill_up(char *packed, size_t stored, size_t bytes)
{
	size_t least = bytes / DENSE_TIMES, fill;

	if (stored >= least)
		return stored;
	fill = stored + PASSED_OVER_HEAD < least ? least - stored - PASSED_OVER_HEAD : 0;
	put_fixed((uint8_t *)packed + stored, PASSED_OVER, 4);
	put_fixed((uint8_t *)packed + stored + 4, fill, 4);
	memset(packed + stored + PASSED_OVER_HEAD, 0, fill);
	return stored + PASSED_OVER_HEAD + fill;
}

void packer_add(struct packer *packer, struct chunk_head *head, const void *raw, size_t bytes,
                struct buf *out)
{
	size_t room = ZSTD_compressBound(bytes), stored;
	char *at;

	buf_reserve(out, FORMAT_CHUNK_BYTES + room);
	at = out->data + out->len;
	stored = ZSTD_compress2(packer->zstd, at + FORMAT_CHUNK_BYTES, room, raw, bytes);
	if (ZSTD_isError(stored))
		abort(); /* cannot be, with that much room */
	stored = fill_up(at + FORMAT_CHUNK_BYTES, stored, bytes);
	head->raw_bytes = (uint32_t)bytes;
	head->stored_bytes = (uint32_t)stored;
	head->payload_crc =
		(uint32_t)crc32(0, (const Bytef *)at + FORMAT_CHUNK_BYTES, (uInt)stored);
	chunk_head_write(head, (uint8_t *)at);
	out->len += FORMAT_CHUNK_BYTES + stored;
	out->data[out->len] = '\0';
}

/* ---- unpacking ----------------------------------------------------------------------------- */

struct unpacker {
	ZSTD_DCtx *zstd;
	uint8_t *raw;
	size_t room;
};

struct unpacker *unpacker_new(void)
{
	struct unpacker *unpacker = xcalloc(1, sizeof(*unpacker));

	unpacker->zstd = ZSTD_createDCtx();
	if (!unpacker->zstd)
		abort(); /* out of memory, as xalloc */
	return unpacker;
}

void unpacker_free(struct unpacker *unpacker)
{
	if (!unpacker)
		return;
	ZSTD_freeDCtx(unpacker->zstd);
	free(unpacker->raw);
	free(unpacker);
}

const uint8_t *unpacker_open(struct unpacker *unpacker, const struct chunk_head *head,
                             const void *payload)
{
	size_t got;

	if (!crc_is(head->payload_crc, payload, head->stored_bytes))
		return NULL;
	if (unpacker->room < head->raw_bytes || !unpacker->raw) {
		free(unpacker->raw);
		unpacker->room = head->raw_bytes;
		unpacker->raw = xmalloc(unpacker->room + UNPACK_SPARE);
	}
	got = ZSTD_decompressDCtx(unpacker->zstd, unpacker->raw, head->raw_bytes, payload,
	                          head->stored_bytes);
	if (ZSTD_isError(got) || got != head->raw_bytes)
		return NULL;
	memset(unpacker->raw + got, 0, UNPACK_SPARE);
	return unpacker->raw;
}

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

/* ---- holes --------------------------------------------------------------------------------- */

/*
 * A file of 4 KiB can be a TiB long: holes are zeros that nobody has written. Each step past one
 * takes a microsecond. A file in more pieces than these is none that was recorded.
 */
#define PIECES_MAX 65536

/* Where the next bytes are that somebody has written, from `offset` on; the file's end: none. */
static uint64_t next_data(int fd, uint64_t offset, uint64_t bytes)
{
	off_t at = lseek(fd, (off_t)offset, SEEK_DATA);

	if (at < 0)
		return errno == ENXIO ? bytes
		                      : offset; /* holes are not known here: there are none */
	return (uint64_t)at < bytes ? (uint64_t)at : bytes;
}

static uint64_t next_hole(int fd, uint64_t offset, uint64_t bytes)
{
	off_t at = lseek(fd, (off_t)offset, SEEK_HOLE);

	return at < 0 || (uint64_t)at > bytes ? bytes : (uint64_t)at;
}

uint64_t file_data_bytes(int fd, uint64_t bytes)
{
	uint64_t at = 0, data = 0;

	for (unsigned i = 0; i < PIECES_MAX && at < bytes; i++) {
		uint64_t begin = next_data(fd, at, bytes);

		at = next_hole(fd, begin, bytes);
		data += at - begin;
	}
	return data;
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
	    index.head.type != CHUNK_INDEX || index.head.raw_bytes > in->data_bytes ||
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

	while ((offset = next_data(in->fd, offset, in->bytes)) < in->bytes) {
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
	while ((offset = next_data(in->fd, offset, in->bytes)) < in->bytes &&
	       in->bytes - offset >= FORMAT_CHUNK_BYTES) {
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
	in->data_bytes = file_data_bytes(in->fd, in->bytes);
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
