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
#define WASTE_PART   4   /* of a chunk: what is given up of it is taken out when it is as much */
#define CLEANED_MOST 256 /* chunks that it is taken out of when they are written, in 2 s */

/* What a user has in a chunk, and what he has given up of it. */
struct part {
	uint64_t person;
	uint64_t events; /* but those announced, which definitions hold */
	uint64_t bytes;  /* of the packed ones, in proportion to what he has of the others */
	bool is_waste;   /* he has given them up, and they are in the chunk yet */
	uint64_t given;  /* events of this chunk that he has given up, */
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
	uint64_t waste_bytes, waste_events;
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
	window->figures.events += sign * (chunk->head.events - chunk->waste_events);
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

/*
 * With who has most those who have nearly as much, and nothing older: of ten who flood alike a
 * chunk is made anew once, not ten times. `older`: who has something in chunks before, or so many
 * that not all of them are known.
 */
static struct givers givers_of(struct window *window, const struct kept_chunk *chunk, uint64_t most,
                               const struct givers *older)
{
	size_t has = quota_of_user(&window->shares, most);
	struct givers givers = { .persons = { most }, .n = 1 };

	for (size_t i = 0; i < chunk->n_parts && older->n < PERSONS_MOST; i++) {
		const struct part *part = &chunk->parts[i];

		if (part->bytes && part->person != most && givers.n < PERSONS_MOST &&
		    quota_of_user(&window->shares, part->person) >= has - has / NEARLY &&
		    !is_giver(older, part->person))
			givers.persons[givers.n++] = part->person;
	}
	return givers;
}

static void add_owners(const struct kept_chunk *chunk, struct givers *owners)
{
	for (size_t i = 0; i < chunk->n_parts && owners->n < PERSONS_MOST; i++)
		if (chunk->parts[i].bytes && !is_giver(owners, chunk->parts[i].person))
			owners->persons[owners->n++] = chunk->parts[i].person;
}

/*
 * They give up what they have in a chunk, where it stays: of one event among a hundred thousand all
 * others would have to be unpacked and packed again, in chunk after chunk, and nothing would be
 * recorded meanwhile.
 */
static void give(struct window *window, struct kept_chunk *chunk, const struct givers *givers)
{
	for (size_t i = 0; i < chunk->n_parts; i++) {
		struct part *part = &chunk->parts[i];

		if (!part->bytes || !is_giver(givers, part->person))
			continue;
		quota_give(&window->shares, part->person, 0, part->bytes);
		window->figures.events_given += part->events;
		window->figures.events -= part->events;
		chunk->waste_bytes += part->bytes;
		chunk->waste_events += part->events;
		part->given += part->events;
		if (part->events)
			part->until_ns = chunk->head.last_ns;
		part->events = part->bytes = 0;
		part->is_waste = true;
	}
}

static bool is_all_of(const struct kept_chunk *chunk, const struct givers *givers)
{
	for (size_t i = 0; i < chunk->n_parts; i++)
		if (chunk->parts[i].bytes && !is_giver(givers, chunk->parts[i].person))
			return false;
	return true;
}

static struct givers wasters_of(const struct kept_chunk *chunk)
{
	struct givers wasters = { .n = 0 };

	for (size_t i = 0; i < chunk->n_parts && wasters.n < PERSONS_MOST; i++)
		if (chunk->parts[i].is_waste)
			wasters.persons[wasters.n++] = chunk->parts[i].person;
	return wasters;
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

/* The same chunk without what was given up; NULL: there is nothing else. */
static struct kept_chunk *chunk_without_waste(struct window *window, const struct kept_chunk *old)
{
	const struct givers givers = wasters_of(old);
	struct window_anew *anew = window->anew ? window->anew : anew_new();
	struct chunk_head names = { .type = CHUNK_NAMES }, head;
	struct kept_chunk *chunk;
	bool others;

	window->anew = anew;
	others = begin_reading(anew, old) && encode_others(window, &givers);
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
		part->is_waste = false;
	}
	take_parts(chunk, &anew->parts);
	return chunk;
}

/* What was given up of a chunk of which nothing is left is told with the next. */
static void tell_with_next(const struct kept_chunk *old, struct kept_chunk *next)
{
	for (size_t i = 0; i < old->n_parts; i++) {
		const struct part *from = &old->parts[i];
		struct part *part;

		if (!from->given && !from->before)
			continue;
		part = part_of(next, from->person);
		part->before += from->given + from->before;
		if (from->until_ns > part->until_ns)
			part->until_ns = from->until_ns;
	}
}

static void take_waste_out(struct window *window, struct kept_chunk **at)
{
	struct kept_chunk *old = *at, *chunk = NULL;

	if (!is_all_of(old, &(struct givers){ .n = 0 }))
		chunk = chunk_without_waste(window, old);
	if (!chunk && at == next_events(&window->first)) {
		drop_oldest(window);
		return;
	}
	if (!chunk)
		tell_with_next(old, *next_events(&old->next));
	chunk_take(window, at);
	if (chunk)
		chunk_put(window, at, chunk);
	chunk_free(old);
}

/*
 * From the oldest chunk on, until one becomes smaller, or another user has most. The last event
 * chunk is nobody's to give: what happened last is what somebody asks for.
 */
static void make_room(struct window *window)
{
	struct kept_chunk **at = next_events(&window->first);
	uint64_t most = quota_most(&window->shares);
	struct givers givers, older = { .n = 0 };

	while (*at && window->shared && window->shares.taken && *next_events(&(*at)->next)) {
		if (has_bytes_of(*at, most)) {
			givers = givers_of(window, *at, most, &older);
			if (!older.n && is_all_of(*at, &givers))
				break; /* nobody has anything older */
			give(window, *at, &givers);
			if ((*at)->waste_bytes * WASTE_PART >= (*at)->bytes) {
				take_waste_out(window, at);
				return;
			}
			if (quota_most(&window->shares) != most)
				return;
		}
		add_owners(*at, &older);
		at = next_events(&(*at)->next);
	}
	drop_oldest(window);
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

static int write_chunk(const struct kept_chunk *chunk, struct file_out *out, struct err *err)
{
	int r = 0;

	if (chunk->names_bytes)
		r = file_out_chunk(out, chunk->data, chunk->names_bytes, err);
	return r ? r
	         : file_out_chunk(out, chunk->data + chunk->names_bytes,
	                          chunk->bytes - chunk->names_bytes, err);
}

/* Of further chunks what was given up is there as well: it is no more than was told. */
int window_write(struct window *window, struct file_out *out, struct err *err)
{
	unsigned cleaned = 0;
	int r = 0;

	for (const struct kept_chunk *chunk = window->first; chunk && !r; chunk = chunk->next) {
		bool clean = chunk->waste_bytes && cleaned++ < CLEANED_MOST;
		struct kept_chunk *rest = clean ? chunk_without_waste(window, chunk) : NULL;

		r = write_chunk(rest ? rest : chunk, out, err);
		if (rest)
			chunk_free(rest);
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
