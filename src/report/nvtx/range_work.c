// SPDX-License-Identifier: MIT
#include "report/nvtx/range_work.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/work.h"
#include "base/array.h"
#include "base/map.h"
#include "base/xalloc.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

/*
 * Work on GPUs that one thread asked for, sorted by when it did. It comes in any order: that of
 * its end, and in a foreign file one that was thought out. So the pieces lie in blocks, and to add
 * one moves those of a block at most.
 */
#define BLOCK_PIECES 256
#define FIRST_PIECES 4 /* there may be as many threads as pieces */

/* Of one activity. */
struct piece {
	uint64_t asked_ns; /* when its call began */
	uint64_t begin_ns, end_ns;
	const struct kernel *kernel;
};

struct piece_block {
	size_t n, room;
	struct piece at[];
};

/* Zeros: there are none. */
struct pieces {
	struct piece_block **blocks; /* none is empty */
	size_t n_blocks, room;
	size_t n; /* pieces */
};

struct piece_place {
	const struct pieces *pieces;
	size_t block, at;
};

/* How many blocks begin with a piece that was asked for before then: mostly all. */
static size_t blocks_before(const struct pieces *pieces, uint64_t time_ns)
{
	size_t n = pieces->n_blocks;

	if (n && pieces->blocks[n - 1]->at[0].asked_ns < time_ns)
		return n;
	return ARRAY_BEFORE(pieces->n_blocks, i, pieces->blocks[i]->at[0].asked_ns < time_ns);
}

static size_t pieces_before(const struct piece_block *block, uint64_t time_ns)
{
	return ARRAY_BEFORE(block->n, i, block->at[i].asked_ns < time_ns);
}

/* The place of the first that was asked for then or later. */
static struct piece_place pieces_from(const struct pieces *pieces, uint64_t time_ns)
{
	size_t before = blocks_before(pieces, time_ns);
	struct piece_place place = { .pieces = pieces };

	if (before) {
		place.block = before - 1;
		place.at = pieces_before(pieces->blocks[before - 1], time_ns);
	}
	return place;
}

/* The piece there, and the place goes on to the next one; NULL: there is none. */
static const struct piece *pieces_next(struct piece_place *place)
{
	const struct pieces *pieces = place->pieces;

	if (place->block < pieces->n_blocks && place->at == pieces->blocks[place->block]->n) {
		place->block++;
		place->at = 0;
	}
	if (place->block == pieces->n_blocks)
		return NULL;
	return &pieces->blocks[place->block]->at[place->at++];
}

static size_t block_bytes(size_t room)
{
	return sizeof(struct piece_block) + room * sizeof(struct piece);
}

static struct piece_block *insert_block(struct pieces *pieces, size_t index, size_t room)
{
	struct piece_block *block = xmalloc(block_bytes(room));

	if (pieces->n_blocks == pieces->room) {
		pieces->room = 2 * pieces->room + 1;
		pieces->blocks = xrealloc(pieces->blocks, pieces->room * sizeof(*pieces->blocks));
	}
	memmove(pieces->blocks + index + 1, pieces->blocks + index,
	        (pieces->n_blocks - index) * sizeof(*pieces->blocks));
	pieces->n_blocks++;
	block->n = 0;
	block->room = room;
	return pieces->blocks[index] = block;
}

/* The later half of a full block goes into one of its own. */
static void split_block(struct pieces *pieces, size_t index)
{
	struct piece_block *full = pieces->blocks[index];
	struct piece_block *later = insert_block(pieces, index + 1, BLOCK_PIECES);

	later->n = full->n / 2;
	full->n -= later->n;
	memcpy(later->at, full->at + full->n, later->n * sizeof(*later->at));
}

static void make_room_in(struct pieces *pieces, struct piece_place *place)
{
	struct piece_block *block = pieces->blocks[place->block];

	if (block->n < block->room)
		return;
	if (block->room < BLOCK_PIECES) {
		block->room *= 4;
		pieces->blocks[place->block] = xrealloc(block, block_bytes(block->room));
	} else if (place->at == block->n && place->block + 1 == pieces->n_blocks) {
		/* those that come in order fill blocks whole */
		insert_block(pieces, ++place->block, BLOCK_PIECES);
		place->at = 0;
	} else {
		split_block(pieces, place->block);
		if (place->at > block->n) {
			place->at -= block->n;
			place->block++;
		}
	}
}

/* Behind those that were asked for at the same time. */
static void pieces_add(struct pieces *pieces, const struct piece *piece)
{
	struct piece_place place = pieces_from(pieces, piece->asked_ns + 1);
	struct piece_block *block;

	if (!pieces->n_blocks)
		insert_block(pieces, 0, FIRST_PIECES);
	make_room_in(pieces, &place);
	block = pieces->blocks[place.block];
	memmove(block->at + place.at + 1, block->at + place.at,
	        (block->n - place.at) * sizeof(*block->at));
	block->at[place.at] = *piece;
	block->n++;
	pieces->n++;
}

/* Lets the first `n` go, which there are; n > 0. Returns when the last of them was asked for. */
static uint64_t pieces_drop(struct pieces *pieces, size_t n)
{
	uint64_t asked_ns = 0;
	size_t gone = 0;

	pieces->n -= n;
	while (n) {
		struct piece_block *block = pieces->blocks[gone];
		size_t some = n < block->n ? n : block->n;

		n -= some;
		asked_ns = block->at[some - 1].asked_ns;
		block->n -= some;
		memmove(block->at, block->at + some, block->n * sizeof(*block->at));
		if (!block->n) {
			free(block);
			gone++;
		}
	}
	pieces->n_blocks -= gone;
	memmove(pieces->blocks, pieces->blocks + gone, pieces->n_blocks * sizeof(*pieces->blocks));
	return asked_ns;
}

static void pieces_free(struct pieces *pieces)
{
	for (size_t i = 0; i < pieces->n_blocks; i++)
		free(pieces->blocks[i]);
	free(pieces->blocks);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

#define LEVELS       64         /* deeper ranges have none around them */
#define DOMAIN_BYTES 64         /* of a domain's name that tell it apart */
#define NONE         UINT64_MAX /* no range's number */

/*
 * A file can have any number of ranges within each other and of domains of a thread, and each piece
 * of work is then in all of them. Each event has this many looks, which can wait for those to come.
 */
#define LOOKS_EACH (2 * LEVELS)
#define LOOKS_MOST ((uint64_t)LEVELS * RANGE_WORK_PIECES)

/* A range that ended. There are so many that each byte counts: others are told by how far they are
 * away in the line, 0 where there are none. */
struct ended {
	uint64_t begin_ns, end_ns;
	uint64_t work_begin_ns, work_end_ns; /* as struct range_work_done has them */
	void *row;
	uint32_t ops, children, depth;
	uint32_t parent; /* ahead, which ended later; */
	uint32_t next;   /* and back: another one of its level without a parent */
};

struct range_work_line_key {
	uint64_t thread;
	char domain[DOMAIN_BYTES];
};

/* A thread in a domain: its ranges in the order of their ends, by number. */
struct range_work_line {
	struct range_work_line_key key;
	struct ended *ranges; /* a ring */
	uint64_t first, next, room;
	uint64_t near;                   /* the one that was found last */
	uint64_t gone_ns;                /* ranges that ended up to here were let go for others */
	uint64_t orphans[LEVELS];        /* the last one of each level whose parent has not ended */
	struct range_work_line *sibling; /* another domain of the thread */
	UT_hash_handle hh;
};

struct asker {
	uint64_t id; /* process and tid */
	struct pieces pieces;
	uint64_t lost_until_ns; /* pieces up to here were let go */
	struct range_work_line *lines;
	UT_hash_handle hh;
};

struct range_work {
	struct range_work_ops ops;
	void *data;
	struct work *calls;
	struct asker *threads, *last;
	struct range_work_line *lines;
	size_t n_pieces, n_ranges;
	uint64_t looks; /* that are left */
	uint64_t cut, late;
};

/* ---- threads and lines --------------------------------------------------------------------- */

static struct asker *asker_of(struct range_work *work, const struct process *process, uint32_t tid)
{
	uint64_t id = (uint64_t)process->id << 32 | tid;
	struct asker *thread = work->last;

	if (thread && thread->id == id)
		return thread;
	thread = MAP_MAKE(work->threads, id, &id);
	return work->last = thread;
}

static struct ended *range_at(const struct range_work_line *line, uint64_t number)
{
	if (number == NONE || number < line->first)
		return NULL;
	return &line->ranges[number % line->room];
}

static void let_range_go(struct range_work *work, struct range_work_line *line)
{
	const struct ended *range = range_at(line, line->first);
	const struct range_work_done done = {
		.range_ns = range->end_ns > range->begin_ns ? range->end_ns - range->begin_ns : 0,
		.begin_ns = range->work_begin_ns,
		.end_ns = range->work_end_ns,
		.ops = range->ops,
		.children = range->children,
		.depth = range->depth,
	};

	work->ops.done(work->data, range->row, &done);
	line->first++;
	work->n_ranges--;
}

static void make_room_in_line(struct range_work *work, struct range_work_line *line)
{
	line->gone_ns = range_at(line, line->first)->end_ns;
	let_range_go(work, line);
}

static void free_lines(struct range_work *work)
{
	struct range_work_line *line, *next;

	HASH_ITER (hh, work->lines, line, next) {
		HASH_DELETE(hh, work->lines, line);
		free(line->ranges);
		free(line);
	}
}

/* A file can have a domain of its own for each range. */
static void make_room_for_line(struct range_work *work)
{
	struct asker *thread, *next;

	if (HASH_COUNT(work->lines) < RANGE_WORK_LINES)
		return;
	work->cut += work->n_ranges;
	range_work_finish(work);
	free_lines(work);
	HASH_ITER (hh, work->threads, thread, next)
		thread->lines = NULL;
}

static struct range_work_line *line_of(struct range_work *work, struct asker *thread,
                                       const char *domain)
{
	struct range_work_line_key key = { .thread = thread->id };
	struct range_work_line *line;

	if (domain)
		strncpy(key.domain, domain, sizeof(key.domain) - 1);
	line = MAP_FIND(work->lines, &key);
	if (line)
		return line;
	make_room_for_line(work);
	line = MAP_ADD(work->lines, key, &key);
	memset(line->orphans, 0xff, sizeof(line->orphans)); /* NONE */
	line->sibling = thread->lines;
	thread->lines = line;
	return line;
}

/* ---- pieces -------------------------------------------------------------------------------- */

/*
 * Threads that have no fewer pieces than the average of all let the first quarter of them go. One
 * fifth of all threads have, or what they let go is as much: to look at all of them costs each
 * piece the same, however many threads there are.
 */
static void make_room(struct range_work *work)
{
	size_t average = work->n_pieces / HASH_COUNT(work->threads);
	struct asker *thread, *next;

	HASH_ITER (hh, work->threads, thread, next) {
		size_t n = thread->pieces.n / 4 + 1;
		uint64_t until_ns;

		if (!thread->pieces.n || thread->pieces.n < average)
			continue;
		until_ns = pieces_drop(&thread->pieces, n);
		if (until_ns > thread->lost_until_ns)
			thread->lost_until_ns = until_ns;
		work->n_pieces -= n;
	}
}

static void keep_piece(struct range_work *work, struct asker *thread, const struct piece *piece)
{
	if (work->n_pieces == RANGE_WORK_PIECES)
		make_room(work);
	pieces_add(&thread->pieces, piece);
	work->n_pieces++;
}

/* ---- ranges -------------------------------------------------------------------------------- */

static void count(struct range_work *work, struct ended *range, const struct piece *piece)
{
	if (!range->ops || piece->begin_ns < range->work_begin_ns)
		range->work_begin_ns = piece->begin_ns;
	if (!range->ops || piece->end_ns > range->work_end_ns)
		range->work_end_ns = piece->end_ns;
	range->ops += range->ops < UINT32_MAX;
	work->ops.work(work->data, range->row, piece->kernel,
	               piece->end_ns > piece->begin_ns ? piece->end_ns - piece->begin_ns : 0);
}

static bool may_look(struct range_work *work)
{
	work->looks -= work->looks > 0;
	return work->looks > 0;
}

/* The ring twice as large, with each at the place of its number. */
static void grow_ring(struct range_work_line *line)
{
	uint64_t room = line->room ? 2 * line->room : 1;
	struct ended *ranges = xcalloc(room, sizeof(*ranges));

	for (uint64_t number = line->first; number < line->next; number++)
		ranges[number % room] = line->ranges[number % line->room];
	free(line->ranges);
	line->ranges = ranges;
	line->room = room;
}

static void make_room_for_range(struct range_work *work, struct range_work_line *line)
{
	struct range_work_line *other, *next;

	if (work->n_ranges >= RANGE_WORK_RANGES && line->next == line->first) {
		HASH_ITER (hh, work->lines, other, next) {
			while (other->first < other->next)
				make_room_in_line(work, other);
		}
	}
	if (work->n_ranges >= RANGE_WORK_RANGES)
		make_room_in_line(work, line);
	if (line->next - line->first == line->room)
		grow_ring(line);
}

/* Those one level deeper that ended since are inside of it. */
static void adopt(struct range_work_line *line, uint64_t number, uint32_t depth)
{
	struct ended *range = range_at(line, number), *child;
	uint64_t at;

	if (depth > LEVELS) /* as a damaged file may say: one more of it is none */
		depth = LEVELS;

	if (depth + 1 < LEVELS) {
		for (at = line->orphans[depth + 1]; (child = range_at(line, at));
		     at = child->next ? at - child->next : NONE) {
			child->parent = (uint32_t)(number - at);
			range->children++;
		}
	}
	for (uint32_t i = depth + 1; i < LEVELS; i++)
		line->orphans[i] = NONE;
	if (depth < LEVELS) {
		at = line->orphans[depth];
		range->next = range_at(line, at) ? (uint32_t)(number - at) : 0;
		line->orphans[depth] = number;
	}
	if (!depth) /* nothing is around it */
		line->orphans[0] = NONE;
}

static void see_range(struct range_work *work, const struct event *event)
{
	const struct range *about = event->range;
	struct asker *thread = asker_of(work, event->process, event->tid);
	struct range_work_line *line = line_of(work, thread, about->domain);
	struct piece_place place;
	const struct piece *piece;
	struct ended *range;
	uint64_t number;
	bool cut = about->begin_ns < thread->lost_until_ns;

	make_room_for_range(work, line);
	number = line->next++;
	work->n_ranges++;
	range = range_at(line, number);
	*range = (struct ended){
		.begin_ns = about->begin_ns,
		.end_ns = about->end_ns,
		.row = work->ops.row(work->data, event),
		.depth = about->depth,
	};
	adopt(line, number, about->depth);
	place = pieces_from(&thread->pieces, about->begin_ns);
	while ((piece = pieces_next(&place)) && piece->asked_ns <= about->end_ns) {
		if (!may_look(work)) {
			cut = true;
			break;
		}
		count(work, range, piece);
	}
	work->cut += cut;
}

/* ---- work ---------------------------------------------------------------------------------- */

static bool ended_before(const struct range_work_line *line, uint64_t number, uint64_t time_ns)
{
	return range_at(line, number)->end_ns < time_ns;
}

/* The first that ended then or later. It is looked for around the one that was found before, in
 * steps that double: work comes by and large in the order of its calls. */
static uint64_t range_from(struct range_work_line *line, uint64_t time_ns)
{
	uint64_t low = line->first, high = line->next, at = line->near;

	at = at < low ? low : at > high ? high : at;
	for (uint64_t step = 1; at < high && ended_before(line, at, time_ns); step *= 2) {
		low = at + 1;
		at = high - at > step ? at + step : high;
	}
	high = at;
	for (uint64_t step = 1; at > low; step *= 2) {
		at = at - low > step ? at - step : low;
		if (ended_before(line, at, time_ns)) {
			low = at + 1;
			break;
		}
		high = at;
	}
	return line->near = low + ARRAY_BEFORE(high - low, i, ended_before(line, low + i, time_ns));
}

/* Ranges that ended already; one that began later leads to those around it all the same. */
static void count_in_ended(struct range_work *work, struct range_work_line *line,
                           const struct piece *piece)
{
	uint64_t at = range_from(line, piece->asked_ns);
	struct ended *range = at < line->next ? range_at(line, at) : NULL;

	while (range) {
		if (range->begin_ns <= piece->asked_ns)
			count(work, range, piece);
		at += range->parent;
		range = range->parent ? range_at(line, at) : NULL;
	}
}

static void see_work(void *data, const struct work_done *done, const struct work_call *call)
{
	struct range_work *work = data;
	struct asker *thread;
	struct piece piece;
	bool late = false;

	if (!call)
		return;
	piece = (struct piece){ call->begin_ns, done->activity->begin_ns, done->activity->end_ns,
		                done->activity->kernel };
	thread = asker_of(work, call->process, call->tid);
	for (struct range_work_line *line = thread->lines; line; line = line->sibling) {
		if (!may_look(work)) {
			work->cut++;
			break;
		}
		count_in_ended(work, line, &piece);
		late |= piece.asked_ns <= line->gone_ns;
	}
	work->late += late;
	keep_piece(work, thread, &piece);
}

void range_work_event(struct range_work *work, const struct event *event)
{
	work->looks += work->looks < LOOKS_MOST ? LOOKS_EACH : 0;
	work_join(work->calls, event, see_work, work);
	if (event->type == EVENT_RANGE && event->range->kind == RANGE_PUSHPOP)
		see_range(work, event);
}

/* ---- the outside --------------------------------------------------------------------------- */

struct range_work *range_work_new(const struct range_work_ops *ops, void *data, struct work *calls)
{
	struct range_work *work = xcalloc(1, sizeof(*work));

	work->ops = *ops;
	work->data = data;
	work->calls = work_share(calls);
	return work;
}

void range_work_finish(struct range_work *work)
{
	struct range_work_line *line, *next;

	HASH_ITER (hh, work->lines, line, next) {
		while (line->first < line->next)
			let_range_go(work, line);
	}
}

uint64_t range_work_cut(const struct range_work *work)
{
	return work->cut;
}

uint64_t range_work_late(const struct range_work *work)
{
	return work->late;
}

void range_work_free(struct range_work *work)
{
	struct asker *thread, *next;

	if (!work)
		return;
	free_lines(work);
	HASH_ITER (hh, work->threads, thread, next) {
		HASH_DELETE(hh, work->threads, thread);
		pieces_free(&thread->pieces);
		free(thread);
	}
	work_free(work->calls);
	free(work);
}
