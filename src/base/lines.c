// SPDX-License-Identifier: MIT
#include "base/lines.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/xalloc.h"

/* ---- gzip ---------------------------------------------------------------------------------- */

/* Compression in gzip's format, piece by piece. */

#define ROOM_BYTES  (64 * 1024)
#define GZIP_WINDOW (15 + 16) /* the largest window, and gzip's header rather than zlib's */
#define MEMORY_MOST 9

/*
 * Of a trace as JSON, level 1 leaves an eleventh and level 6 a sixteenth, at less than half of the
 * speed. At 200 bytes an event, level 6 would fall behind half a million calls a second.
 */
#define LEVEL 1

struct gzip {
	z_stream stream;
};

static struct gzip *gzip_new(void)
{
	struct gzip *gzip = xcalloc(1, sizeof(*gzip));

	if (deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY_MOST,
	                 Z_DEFAULT_STRATEGY) != Z_OK)
		abort(); /* memory is out: as with xalloc() */
	return gzip;
}

/* NULL is allowed */
static void gzip_free(struct gzip *gzip)
{
	if (gzip)
		deflateEnd(&gzip->stream);
	free(gzip);
}

/*
 * Compresses `in` and appends what is ready to `out`; with `last` all of it, and the end of the
 * file.
 */
static void gzip_add(struct gzip *gzip, const struct buf *in, bool last, struct buf *out)
{
	z_stream *stream = &gzip->stream;

	stream->next_in = (Bytef *)in->data;
	stream->avail_in = (uInt)in->len;
	do {
		buf_reserve(out, ROOM_BYTES);
		stream->next_out = (Bytef *)out->data + out->len;
		stream->avail_out = ROOM_BYTES;
		deflate(stream, last ? Z_FINISH : Z_NO_FLUSH);
		out->len += ROOM_BYTES - stream->avail_out;
	} while (!stream->avail_out);
}

/* ---- lines --------------------------------------------------------------------------------- */

#define PIECE_BYTES (64 * 1024)
#define PATIENCE_MS 5000 /* with a reader that does not read, once we are to end */
#define LOOK_MS     100

void lines_init(struct lines *lines, FILE *out, const char *what)
{
	memset(lines, 0, sizeof(*lines));
	lines->out = out;
	lines->what = what;
	buf_reserve(&lines->pending, PIECE_BYTES);
}

void lines_compress(struct lines *lines)
{
	lines->gzip = gzip_new();
	lines->binary = true;
}

void lines_free(struct lines *lines)
{
	buf_free(&lines->pending);
	buf_free(&lines->packed);
	gzip_free(lines->gzip);
}

/* ---- readers that do not read ---------------------------------------------------------------- */

static atomic_bool told_to_end; /* as signals are: of the whole process */

void lines_hurry(void)
{
	atomic_store(&told_to_end, true);
}

/* Waits until something can be written without being held up; false: it was waited long enough. */
static bool wait_for_reader(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	for (unsigned waited_ms = 0; waited_ms < PATIENCE_MS;
	     waited_ms += atomic_load(&told_to_end) ? LOOK_MS : 0) {
		if (poll(&ready, 1, LOOK_MS) > 0)
			return true;
	}
	return false;
}

/* A pipe takes PIPE_BUF bytes without delay when it takes any. */
static bool may_block(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !S_ISREG(st.st_mode);
}

/* Writes to the descriptor; returns 0 or a negative errno, and in `done` how far it came. */
static int write_all(int fd, const char *data, size_t len, size_t *done)
{
	bool waits = may_block(fd);

	*done = 0;
	while (*done < len) {
		size_t piece = waits && len - *done > PIPE_BUF ? PIPE_BUF : len - *done;
		ssize_t n;

		if (waits && !wait_for_reader(fd))
			return -ETIMEDOUT;
		n = write(fd, data + *done, piece);
		if (n >= 0)
			*done += n;
		else if (errno == EAGAIN) /* that another program made non-blocking */
			waits = true;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/*
 * Takes the last, incomplete line off a file again, unless somebody else wrote after it. Where
 * packets end cannot be seen: all that this write brought goes.
 */
static void drop_partial_line(const struct lines *lines, int fd, const char *data, size_t done)
{
	size_t whole = lines->binary ? 0 : done;
	struct stat st;
	off_t at;

	while (whole && data[whole - 1] != '\n')
		whole--;
	if (whole == done || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	at = lseek(fd, 0, SEEK_CUR);
	if (at != st.st_size)
		return;
	at -= (off_t)(done - whole);
	if (!ftruncate(fd, at))
		lseek(fd, at, SEEK_SET);
}

static int write_text(struct lines *lines, const struct buf *text)
{
	int fd = fileno(lines->out), rc;
	size_t done;

	if (fd < 0) /* a stream without a descriptor: memory */
		return fwrite(text->data, 1, text->len, lines->out) == text->len &&
		                       !fflush(lines->out)
		               ? 0
		               : -EIO;
	if (fflush(lines->out))
		return -errno;
	rc = write_all(fd, text->data, text->len, &done);
	if (rc)
		drop_partial_line(lines, fd, text->data, done);
	lines->unwritten = text->len - done;
	return rc;
}

static int write_pending(struct lines *lines, bool last)
{
	int rc;

	if (!lines->gzip)
		return lines->pending.len ? write_text(lines, &lines->pending) : 0;
	gzip_add(lines->gzip, &lines->pending, last, &lines->packed);
	rc = lines->packed.len ? write_text(lines, &lines->packed) : 0;
	buf_reset(&lines->packed);
	return rc;
}

static int explain(struct lines *lines, int code)
{
	if (code == -EPIPE)
		return err_set(&lines->failure, code,
		               "cannot write %s: the program that read it has closed its end",
		               lines->what);
	if (code == -ETIMEDOUT)
		return err_set(&lines->failure, code,
		               "%zu bytes of %s, and what came after them, were not written: the "
		               "program that is to read them does not read",
		               lines->unwritten, lines->what);
	if (code == -ENOSPC || code == -EDQUOT)
		return err_set(&lines->failure, code,
		               "cannot write %s: %s; free some space or choose another place "
		               "(what was written so far is whole)",
		               lines->what, strerror(-code));
	return err_set(&lines->failure, code, "cannot write %s: %s", lines->what, strerror(-code));
}

/* ---- how much ----------------------------------------------------------------------------------
 */

/* As what is written is of one trace: of the whole process. */
static uint64_t most_bytes;
static const char *most_why;

void lines_bound(uint64_t most, const char *why)
{
	most_bytes = most;
	most_why = why;
}

uint64_t lines_most(void)
{
	return most_bytes ? most_bytes : UINT64_MAX;
}

bool lines_full(const struct lines *lines)
{
	return lines->written + lines->elsewhere + lines->pending.len > lines_most();
}

int lines_say_full(const struct lines *lines, struct err *err)
{
	AT_END(buf_free) struct buf size = { 0 };

	buf_bytes(&size, most_bytes);
	return err_set(err, EOVERFLOW, "%s ends at %s, and there would be more: %s", lines->what,
	               size.data, most_why);
}

static int failed_before(const struct lines *lines, struct err *err)
{
	if (lines->failure.code && err)
		*err = lines->failure;
	return lines->failure.code;
}

static int flush(struct lines *lines, bool last, struct err *err)
{
	int rc = 0;

	if (!lines->failure.code && !lines->ends_itself && lines_full(lines))
		lines_say_full(lines, &lines->failure);
	if (!lines->failure.code && lines->out)
		rc = write_pending(lines, last);
	if (rc)
		explain(lines, rc);
	lines->written += lines->pending.len;
	buf_reset(&lines->pending);
	return failed_before(lines, err);
}

int lines_flush(struct lines *lines, struct err *err)
{
	return flush(lines, false, err);
}

int lines_end(struct lines *lines, struct err *err)
{
	return flush(lines, true, err);
}

int lines_added(struct lines *lines, struct err *err)
{
	if (lines->pending.len < PIECE_BYTES && !lines->failure.code)
		return 0;
	return lines_flush(lines, err);
}
