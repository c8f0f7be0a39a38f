// SPDX-License-Identifier: MIT
/* Which communicator a handle is, by the words of NCCL's struct that it is the address of. */
#include "capture/ranks_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "probe/helper.h"

#define USER_LOOKS 512 /* at communicators of all of one user's processes */

/* How far into a communicator's struct it is looked for its hash: NCCL 2.24 has it within 300 KiB,
 * 2.28 behind some 1,050 KiB of graphs, 2.30 behind 1,160. */
#define STRUCT_BYTES (2u << 20)
#define PIECE        (64u << 10)
#define PAGE         4096u

/* The part of NCCL's struct that all of these versions have. */
struct comm_words {
	uint64_t hash;
	int32_t rank, size, device, nvml_device;
};

/* The part of a communicator's struct that says which it is. */
static bool words_are(const char *at, const struct ras_rank *rank)
{
	const struct comm_words words = { rank->hash, rank->rank, (int32_t)rank->size, rank->device,
		                          rank->nvml_device };

	return !memcmp(at, &words, sizeof(words));
}

/* Hashes of ranks: a word of memory that is none of them is mostly known for that by one look. */
struct hashes {
	uint64_t bits[16];
};

static unsigned hash_bit(uint64_t hash)
{
	return (unsigned)(hash * 0x9e3779b97f4a7c15ull >> 54);
}

static struct hashes hashes_of(const struct ras_rank *ranks, size_t n)
{
	struct hashes hashes = { 0 };

	for (size_t i = 0; i < n; i++)
		hashes.bits[hash_bit(ranks[i].hash) / 64] |= 1ull << hash_bit(ranks[i].hash) % 64;
	return hashes;
}

static bool may_be(const struct hashes *hashes, const char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return hashes->bits[hash_bit(word) / 64] >> hash_bit(word) % 64 & 1;
}

/* Which of these ranks has its words within STRUCT_BYTES from there on, as far as that can be
 * read: a piece at a time, behind the last whole one a page at a time. NULL: none. */
static const struct ras_rank *struct_find(uint32_t pid, uint64_t handle,
                                          const struct ras_rank *ranks, size_t n)
{
	const size_t before = sizeof(struct comm_words); /* what the last piece ended in */
	char *piece = xcalloc(1, before + PIECE);
	const struct ras_rank *found = NULL;
	const struct hashes hashes = hashes_of(ranks, n);

	for (uint64_t at = handle & ~7ull, end = at + STRUCT_BYTES; at < end && !found;) {
		size_t bytes = PIECE;

		while (bytes && !helper_memory((pid_t)pid, at, piece + before, bytes))
			bytes = bytes == PIECE ? PAGE - at % PAGE : 0;
		if (!bytes)
			break;
		for (size_t i = 0; i <= bytes && !found; i += sizeof(uint64_t))
			for (size_t k = 0; k < n && !found && (k || may_be(&hashes, piece + i));
			     k++)
				found = words_are(piece + i, &ranks[k]) ? &ranks[k] : NULL;
		memcpy(piece, piece + bytes, before);
		at += bytes;
	}
	free(piece);
	return found;
}

/* Which of its process's ranks a handle is. With the lock, which is let go of meanwhile. */
static void find_handle(struct ranks_feed *feed, struct known_handle *handle)
{
	const struct handle_key key = handle->key;
	const struct known_rank *process = ranks_process_find(feed, key.pid);
	struct known_user *user = process ? ranks_user_of(feed, process->person) : NULL;
	struct ras_rank ranks[RANKS_EACH];
	const struct ras_rank *found;
	size_t n = process ? process->n_ranks : 0;
	uint64_t person, begin_ns;

	if (!n)
		return;
	if ((process->person && (!user || user->looks >= USER_LOOKS)) ||
	    look_time_is_over(LOOK_AT_THREADS, process->person)) {
		feed->left.looks++;
		return;
	}
	handle->tries++;
	if (user)
		user->looks++;
	memcpy(ranks, process->ranks, n * sizeof(*ranks));
	person = process->person;
	pthread_mutex_unlock(&feed->lock);
	begin_ns = helper_busy_ns();
	found = struct_find(key.pid, key.handle, ranks, n);
	look_time_charge(LOOK_AT_THREADS, person, helper_busy_ns() - begin_ns);

	uint64_t now_ns = clock_now_ns();

	pthread_mutex_lock(&feed->lock);
	if (!found)
		return;
	handle->found = true; /* entries stay until the feed's end */
	ranks_tell(feed, &(struct ranks_told){ .pid = key.pid,
	                                       .handle = key.handle,
	                                       .own = true,
	                                       .person = person,
	                                       .rank = *found,
	                                       .begin_ns = now_ns,
	                                       .end_ns = now_ns });
}

#define HANDLE_TRIES 3

void ranks_find_handles(struct ranks_feed *feed)
{
	struct known_handle *handle, *next;

	HASH_ITER (hh, feed->handles, handle, next) {
		if (handle->dead)
			MAP_DROP(feed->handles, handle);
		else if (!handle->found && handle->tries < HANDLE_TRIES && !feed->stop)
			find_handle(feed, handle);
	}
}
