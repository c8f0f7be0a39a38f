// SPDX-License-Identifier: MIT
/* The packets of a Perfetto trace, as bytes. */
#include "base/text.h"
#include "output/perfetto/perfetto.h"

/* ---- packets -------------------------------------------------------------------------------- */

size_t packet_begin(struct buf *out, unsigned flags)
{
	size_t packet = pb_begin(out, TRACE_PACKET);

	pb_varint(out, PACKET_SEQUENCE_ID, SEQUENCE_ID);
	pb_varint(out, PACKET_SEQUENCE_FLAGS, flags);
	return packet;
}

struct open_event event_begin(struct buf *out, uint64_t time_ns, enum track_event_type type,
                              uint64_t track)
{
	struct open_event open;

	open.packet = packet_begin(out, SEQUENCE_NEEDS);
	pb_varint(out, PACKET_TIMESTAMP, time_ns);
	open.event = pb_begin(out, PACKET_TRACK_EVENT);
	pb_varint(out, EVENT_EVENT_TYPE, type);
	pb_varint(out, EVENT_TRACK_UUID, track);
	return open;
}

void event_end(struct buf *out, struct open_event open)
{
	pb_end(out, open.event);
	pb_end(out, open.packet);
}

void event_add_name(struct buf *out, uint32_t category, uint32_t name)
{
	pb_varint(out, EVENT_CATEGORY_IIDS, category);
	pb_varint(out, EVENT_NAME_IID, name);
}

/* ---- annotations ---------------------------------------------------------------------------- */

void annotate(struct perfetto *p, uint32_t name, enum annotation_field field, uint64_t value)
{
	size_t annotation = pb_begin(&p->packet, EVENT_ANNOTATIONS);

	pb_varint(&p->packet, ANNOTATION_NAME, name);
	pb_varint(&p->packet, field, value);
	pb_end(&p->packet, annotation);
}

void annotate_double(struct perfetto *p, uint32_t name, double value)
{
	size_t annotation = pb_begin(&p->packet, EVENT_ANNOTATIONS);

	pb_varint(&p->packet, ANNOTATION_NAME, name);
	pb_double(&p->packet, ANNOTATION_DOUBLE, value);
	pb_end(&p->packet, annotation);
}

void annotate_text(struct perfetto *p, uint32_t name, const char *text)
{
	size_t annotation = pb_begin(&p->packet, EVENT_ANNOTATIONS);
	struct buf safe = { 0 };

	buf_puts(&safe, "");
	text_add_safe(&safe, text);
	pb_varint(&p->packet, ANNOTATION_NAME, name);
	pb_string(&p->packet, ANNOTATION_STRING, safe.data);
	pb_end(&p->packet, annotation);
	buf_free(&safe);
}

uint32_t annotation(struct perfetto *p, const char *name)
{
	return perfetto_constant(p->names, NAME_ANNOTATION, name);
}

void annotate_u64(struct perfetto *p, const char *name, uint64_t value)
{
	annotate(p, annotation(p, name), ANNOTATION_UINT, value);
}
