// SPDX-License-Identifier: MIT
#include "base/gzip.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/xalloc.h"

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

struct gzip *gzip_new(void)
{
	struct gzip *gzip = xcalloc(1, sizeof(*gzip));

	if (deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY_MOST,
	                 Z_DEFAULT_STRATEGY) != Z_OK)
		abort(); /* memory is out: as with xalloc() */
	return gzip;
}

void gzip_free(struct gzip *gzip)
{
	if (gzip)
		deflateEnd(&gzip->stream);
	free(gzip);
}

void gzip_add(struct gzip *gzip, const struct buf *in, bool last, struct buf *out)
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
