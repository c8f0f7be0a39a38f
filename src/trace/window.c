// SPDX-License-Identifier: MIT
#include "trace/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/quota.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "trace/codec.h"

#define PERSONS_MOST FORMAT_CHUNK_BYTES /* whose events are in one chunk */
#define NEARLY       16                 /* a part of it less is nearly as much */

/* What a user has in a chunk, and what was taken out of it. */
struct part {
	uint64_t person;
	uint64_t events; /* but those announced, which definitions hold */
	uint64_t bytes;  /* of the packed ones, in proportion to what he has of the others */
	uint64_t given;  /* events that were taken out of this chunk, */
	uint64_t before; /* and of chunks between the one before and this, of which nothing is left
	                  */
	uint64_t until_ns; /* the latest time of those */
};

/* The parts of a chunk that is being made. */
struct parts {
	struct part of[PERSONS_MOST];
	size_t n, last;
	uint64_t bytes;
};

struct kept_chunk {
	struct kept_chunk *next;
	struct chunk_head head;
	struct part *parts; /* of a shared window's events */
	size_t n_parts;
	size_t bytes, names_bytes; /* all; of its names, a chunk before it */
	char data[];
};

struct window {
	uint64_t last_ns, last_bytes;
	bool shared;
	struct kept_chunk *first, **end;
	size_t n_event_chunks;
	struct window_figures figures;
	struct buf names; /* a chunk that waits for its events */
	/* shared */
	struct quota shares; /* of the bytes of events */
	uint64_t *persons;   /* by the number of a process */
	uint32_t n_persons;
	struct parts making;
	struct window_anew *anew; /* NULL: nothing was taken out of a chunk so far */
};

/* ---- chunks that are made anew ------------------------------------------------------------- */

struct window_anew {
	struct unpacker *unpacker;
	struct decoder *decoder;
	struct encoder *encoder;
	struct packer *packer;
	struct buf raw, names, events;
	struct parts parts;
	struct chunk_head head;
};

static struct window_anew *anew_new(void)
{
	struct window_anew *anew = xcalloc(1, sizeof(*anew));

	anew->unpacker = unpacker_new();
	anew->decoder = decoder_new(NULL);
	anew->encoder = encoder_new();
	anew->packer = packer_new();
	return anew;
}

static void anew_free(struct window_anew *anew)
{
	if (!anew)
		return;
	unpacker_free(anew->unpacker);
	decoder_free(anew->decoder);
	encoder_free(anew->encoder);
	packer_free(anew->packer);
	buf_free(&anew->raw);
	buf_free(&anew->names);
	buf_free(&anew->events);
	free(anew);
}

/* ---- parts --------------------------------------------------------------------------------- */

static bool parts_add(struct parts *parts, uint64_t person, size_t bytes, bool counts)
{
	if (parts->last >= parts->n || parts->of[parts->last].person != person) {
		for (parts->last = 0; parts->last < parts->n; parts->last++)
			if (parts->of[parts->last].person == person)
				break;
		if (parts->last == parts->n)
			parts->of[parts->n++] = (struct part){ .person = person };
	}
	parts->of[parts->last].events += counts;
	parts->of[parts->last].bytes += bytes;
	parts->bytes += bytes;
	return parts->n == PERSONS_MOST;
}

bool window_count(struct window *window, uint32_t process, const struct event *event, size_t bytes)
{
	uint64_t person = event->process->person;

	while (process >= window->n_persons) /* they are numbered as they are met */
		*VEC_ADD(window->persons, window->n_persons) = person;
	return parts_add(&window->making, person, bytes,
	                 event->type != EVENT_PROCESS && event->type != EVENT_THREAD);
}

/* A user's place among the parts of a chunk, made where there is none. */
static struct part *part_of(struct kept_chunk *chunk, uint64_t person)
{
	struct part *part;

	for (size_t i = 0; i < chunk->n_parts; i++)
		if (chunk->parts[i].person == person)
			return &chunk->parts[i];
	part = VEC_ADD(chunk->parts, chunk->n_parts);
	*part = (struct part){ .person = person };
	return part;
}

static bool has_bytes_of(const struct kept_chunk *chunk, uint64_t person)
{
	for (size_t i = 0; i < chunk->n_parts; i++)
		if (chunk->parts[i].person == person && chunk->parts[i].bytes)
			return true;
	return false;
}

/* What each has of the packed bytes: one at least, as a chunk has more than one for each. */
static void take_parts(struct kept_chunk *chunk, struct parts *parts)
{
	uint64_t rest = chunk->bytes - parts->n;

	for (size_t i = 0; i < parts->n; i++) {
		struct part *part = part_of(chunk, parts->of[i].person);

		part->events = parts->of[i].events;
		part->bytes = 1 + rest * parts->of[i].bytes / parts->bytes;
	}
	parts->n = parts->bytes = 0;
}

/* ---- the list ------------------------------------------------------------------------------ */

struct window *window_new(uint64_t last_ns, uint64_t last_bytes, bool shared)
{
	struct window *window = xcalloc(1, sizeof(*window));

	window->last_ns = last_ns ? last_ns : UINT64_MAX;
	window->last_bytes = last_bytes ? last_bytes : UINT64_MAX;
	window->shared = shared;
	window->end = &window->first;
	return window;
}

static void chunk_free(struct kept_chunk *chunk)
{
	free(chunk->parts);
	free(chunk);
}

void window_free(struct window *window)
{
	struct kept_chunk *next;

	if (!window)
		return;
	for (struct kept_chunk *chunk = window->first; chunk; chunk = next) {
		next = chunk->next;
		chunk_free(chunk);
	}
	anew_free(window->anew);
	buf_free(&window->names);
	quota_free(&window->shares);
	free(window->persons);
	free(window);
}

/* What a chunk is in all figures, put in, or taken out where `out` is. */
static void count_chunk(struct window *window, const struct kept_chunk *chunk, bool out)
{
	uint64_t sign = out ? -1ull : 1;

	window->figures.held_bytes += sign * chunk->bytes;
	if (chunk->head.type != CHUNK_EVENTS)
		return;
	window->n_event_chunks += sign;
	window->figures.event_bytes += sign * chunk->bytes;
	window->figures.events += sign * chunk->head.events;
	for (size_t i = 0; i < chunk->n_parts; i++)
		(out ? quota_give : quota_add)(&window->shares, chunk->parts[i].person, 0,
		                               chunk->parts[i].bytes);
}

/* In the place of what is there. */
static void chunk_put(struct window *window, struct kept_chunk **at, struct kept_chunk *chunk)
{
	chunk->next = *at;
	if (window->end == at)
		window->end = &chunk->next;
	*at = chunk;
	count_chunk(window, chunk, false);
}

static struct kept_chunk *chunk_take(struct window *window, struct kept_chunk **at)
{
	struct kept_chunk *chunk = *at;

	count_chunk(window, chunk, true);
	if (window->end == &chunk->next)
		window->end = at;
	*at = chunk->next;
	return chunk;
}

static struct kept_chunk *chunk_new(const struct chunk_head *head, const struct buf *names,
                                    const struct buf *chunk)
{
	size_t bytes = names->len + chunk->len;
	struct kept_chunk *kept = xmalloc(sizeof(*kept) + bytes);

	*kept = (struct kept_chunk){ .head = *head, .bytes = bytes, .names_bytes = names->len };
	if (names->len)
		memcpy(kept->data, names->data, names->len);
	memcpy(kept->data + names->len, chunk->data, chunk->len);
	return kept;
}

/* From there on, with that one; the end where there is none. */
static struct kept_chunk **next_events(struct kept_chunk **at)
{
	while (*at && (*at)->head.type != CHUNK_EVENTS)
		at = &(*at)->next;
	return at;
}

/* The definitions before it stay where they are. */
static void drop_oldest(struct window *window)
{
	struct kept_chunk *chunk = chunk_take(window, next_events(&window->first));

	if (chunk->head.last_ns > window->figures.dropped_ns)
		window->figures.dropped_ns = chunk->head.last_ns;
	chunk_free(chunk);
}

/* ---- who has most gives -------------------------------------------------------------------- */

/* Those who give what they have in a chunk. */
struct givers {
	uint64_t persons[PERSONS_MOST];
	size_t n;
};

static bool is_giver(const struct givers *givers, uint64_t person)
{
	for (size_t i = 0; i < givers->n; i++)
		if (givers->persons[i] == person)
			return true;
	return false;
}

static bool has_bytes_before(struct window *window, const struct kept_chunk *chunk, uint64_t person)
{
	for (const struct kept_chunk *at = window->first; at != chunk; at = at->next)
		if (has_bytes_of(at, person))
			return true;
	return false;
}

/*
 * With who has most those who have nearly as much, and nothing older: of ten who flood alike a
 * chunk is made anew once, not ten times.
 */
static struct givers givers_of(struct window *window, const struct kept_chunk *chunk, uint64_t most)
{
	size_t has = quota_of_user(&window->shares, most);
	struct givers givers = { .persons = { most }, .n = 1 };

	for (size_t i = 0; i < chunk->n_parts && givers.n < PERSONS_MOST; i++) {
		const struct part *part = &chunk->parts[i];

		if (part->bytes && part->person != most &&
		    quota_of_user(&window->shares, part->person) >= has - has / NEARLY &&
		    !has_bytes_before(window, chunk, part->person))
			givers.persons[givers.n++] = part->person;
	}
	return givers;
}

static bool is_all_of(const struct kept_chunk *chunk, const struct givers *givers)
{
	for (size_t i = 0; i < chunk->n_parts; i++)
		if (chunk->parts[i].bytes && !is_giver(givers, chunk->parts[i].person))
			return false;
	return true;
}

static bool begin_reading(struct window_anew *anew, const struct kept_chunk *chunk)
{
	const uint8_t *names = (const uint8_t *)chunk->data, *raw = NULL;
	struct chunk_head head = { 0 };

	if (chunk->names_bytes && chunk_head_read(names, &head))
		raw = unpacker_open(anew->unpacker, &head, names + FORMAT_CHUNK_BYTES);
	decoder_names(anew->decoder, raw, raw ? head.raw_bytes : 0);
	raw = unpacker_open(anew->unpacker, &chunk->head,
	                    names + chunk->names_bytes + FORMAT_CHUNK_BYTES);
	return raw && decoder_begin(anew->decoder, &chunk->head, raw);
}

/* The events of the others are put into the encoder; whether there are any. */
static bool encode_others(struct window *window, const struct givers *givers)
{
	struct window_anew *anew = window->anew;
	uint32_t last = UINT32_MAX;
	struct event event;
	bool gives = false;

	while (decoder_next(anew->decoder, &event) == DECODED_EVENT) {
		const struct event_ids *ids = decoder_ids(anew->decoder);
		size_t before = encoder_bytes(anew->encoder);

		if (event.type == EVENT_PROCESS) { /* defined, and so not to be taken away */
			encode_announced(anew->encoder, event.time_ns);
			continue;
		}
		if (ids->process != last)
			gives = is_giver(givers, window->persons[ids->process]);
		last = ids->process;
		if (gives)
			continue;
		encode_event(anew->encoder, &event, ids);
		parts_add(&anew->parts, window->persons[last],
		          encoder_bytes(anew->encoder) - before, true);
	}
	return anew->parts.n > 0;
}

static void pack(struct window_anew *anew, struct chunk_head *head, struct buf *out)
{
	packer_add(anew->packer, head, anew->raw.data, anew->raw.len, out);
}

/* The same chunk without their events; NULL: there are no others. */
static struct kept_chunk *chunk_without(struct window *window, const struct kept_chunk *old,
                                        const struct givers *givers)
{
	struct window_anew *anew = window->anew ? window->anew : anew_new();
	struct chunk_head names = { .type = CHUNK_NAMES }, head;
	struct kept_chunk *chunk;
	bool others;

	window->anew = anew;
	others = begin_reading(anew, old) && encode_others(window, givers);
	buf_reset(&anew->names);
	buf_reset(&anew->events);
	encoder_take_names(anew->encoder, &anew->raw);
	if (anew->raw.len)
		pack(anew, &names, &anew->names);
	encoder_take(anew->encoder, &head, &anew->raw);
	if (!others)
		return NULL;
	pack(anew, &head, &anew->events);
	chunk = chunk_new(&head, &anew->names, &anew->events);
	for (size_t i = 0; i < old->n_parts; i++) {
		struct part *part = part_of(chunk, old->parts[i].person);

		*part = old->parts[i];
		part->events = part->bytes = 0;
	}
	take_parts(chunk, &anew->parts);
	return chunk;
}

/* What they have in the old one is told with the new one, or, where there is none, with the next:
 * what was told with it as well. */
static void tell_given(struct window *window, const struct kept_chunk *old,
                       const struct givers *givers, struct kept_chunk *with, bool is_next)
{
	for (size_t i = 0; i < old->n_parts; i++) {
		const struct part *from = &old->parts[i];
		uint64_t given = is_giver(givers, from->person) ? from->events : 0;
		uint64_t before = is_next ? from->given + from->before + given : 0;
		uint64_t until_ns = given ? old->head.last_ns : from->until_ns;
		struct part *part;

		window->figures.events_given += given;
		if (!given && !before)
			continue;
		part = part_of(with, from->person);
		part->given += is_next ? 0 : given;
		part->before += before;
		if (until_ns > part->until_ns)
			part->until_ns = until_ns;
	}
}

static void give_up(struct window *window, struct kept_chunk **at, const struct givers *givers)
{
	struct kept_chunk *old = *at, *chunk = NULL, *next = *next_events(&old->next);

	if (!is_all_of(old, givers))
		chunk = chunk_without(window, old, givers);
	if (!chunk && at == next_events(&window->first)) {
		drop_oldest(window);
		return;
	}
	tell_given(window, old, givers, chunk ? chunk : next, !chunk);
	chunk_take(window, at);
	if (chunk)
		chunk_put(window, at, chunk);
	chunk_free(old);
}

/* The last event chunk is nobody's to give: what happened last is what somebody asks for. */
static void make_room(struct window *window)
{
	struct kept_chunk **at = next_events(&window->first);
	struct givers givers;
	uint64_t most;

	if (!window->shared || !window->shares.taken) {
		drop_oldest(window);
		return;
	}
	most = quota_most(&window->shares);
	while (*at && !has_bytes_of(*at, most))
		at = next_events(&(*at)->next);
	if (!*at || !*next_events(&(*at)->next)) {
		drop_oldest(window);
		return;
	}
	givers = givers_of(window, *at, most);
	give_up(window, at, &givers);
}

/* ---- what goes ----------------------------------------------------------------------------- */

void window_until(struct window *window, uint64_t now_ns)
{
	uint64_t from_ns = now_ns > window->last_ns ? now_ns - window->last_ns : 0;

	while (window->n_event_chunks > 1 && (*next_events(&window->first))->head.last_ns < from_ns)
		drop_oldest(window);
	while (window->n_event_chunks > 1 && window->figures.event_bytes > window->last_bytes)
		make_room(window);
}

void window_add(struct window *window, const struct chunk_head *head, const struct buf *chunk)
{
	const struct buf none = { 0 };
	struct kept_chunk *kept;

	if (head->type == CHUNK_NAMES) {
		buf_reset(&window->names);
		buf_add(&window->names, chunk->data, chunk->len);
		return;
	}
	kept = chunk_new(head, head->type == CHUNK_EVENTS ? &window->names : &none, chunk);
	if (head->type == CHUNK_EVENTS) {
		take_parts(kept, &window->making);
		buf_reset(&window->names);
	}
	chunk_put(window, window->end, kept);
	if (head->type == CHUNK_EVENTS)
		window_until(window, head->last_ns);
}

void window_shorten(struct window *window, uint64_t last_ns)
{
	if (last_ns < window->last_ns)
		window->last_ns = last_ns;
}

/* ---- what is there ------------------------------------------------------------------------- */

const struct window_figures *window_figures(const struct window *window)
{
	return &window->figures;
}

uint64_t window_begin_ns(const struct window *window)
{
	uint64_t begin_ns = UINT64_MAX;

	for (const struct kept_chunk *chunk = window->first; chunk; chunk = chunk->next) {
		if (chunk->head.type == CHUNK_EVENTS && chunk->head.begin_ns < begin_ns)
			begin_ns = chunk->head.begin_ns;
	}
	return window->n_event_chunks ? begin_ns : 0;
}

int window_write(const struct window *window, struct file_out *out, struct err *err)
{
	int r = 0;

	for (const struct kept_chunk *chunk = window->first; chunk && !r; chunk = chunk->next) {
		if (chunk->names_bytes)
			r = file_out_chunk(out, chunk->data, chunk->names_bytes, err);
		if (!r)
			r = file_out_chunk(out, chunk->data + chunk->names_bytes,
			                   chunk->bytes - chunk->names_bytes, err);
	}
	return r;
}

ORDER_BY(most_first, struct writer_left_out, DOWN(events), UP(person));

size_t window_left_out(const struct window *window, struct writer_left_out *left, size_t most)
{
	AT_END(at_end_free) struct writer_left_out *all = NULL;
	size_t n = 0, at;
	bool oldest = true; /* what was given before it is older than all that is held */

	for (const struct kept_chunk *chunk = window->first; chunk; chunk = chunk->next) {
		for (size_t i = 0; i < chunk->n_parts; i++) {
			const struct part *part = &chunk->parts[i];
			uint64_t events = part->given + (oldest ? 0 : part->before);

			if (!events)
				continue;
			for (at = 0; at < n && all[at].person != part->person; at++)
				;
			if (at == n)
				*VEC_ADD(all, n) =
					(struct writer_left_out){ .person = part->person };
			all[at].events += events;
			if (part->until_ns > all[at].until_ns)
				all[at].until_ns = part->until_ns;
		}
		oldest &= chunk->head.type != CHUNK_EVENTS;
	}
	if (n)
		qsort(all, n, sizeof(*all), most_first);
	for (at = 0; at < n && at < most; at++)
		left[at] = all[at];
	return n;
}
