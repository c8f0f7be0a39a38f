// SPDX-License-Identifier: MIT
#include "handle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHUNKS      20
#define FIRST_CHUNK 256 /* objects; every further chunk is twice as large */

struct slab {
	pthread_mutex_t lock;
	size_t bytes; /* of one object */
	unsigned char *chunk[CHUNKS];
	size_t n_chunks, n_objects; /* objects handed out of the last chunk */
	void **unused;              /* freed objects, the latest last */
	size_t n_unused, unused_room;
};

static struct slab slabs[HANDLE_KINDS] = {
	[0 ... HANDLE_KINDS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER },
};

static size_t chunk_objects(size_t chunk)
{
	return (size_t)FIRST_CHUNK << chunk;
}

static void *slab_fresh(struct slab *slab)
{
	if (slab->n_chunks == 0 || slab->n_objects == chunk_objects(slab->n_chunks - 1)) {
		if (slab->n_chunks == CHUNKS)
			return NULL;
		unsigned char *chunk = calloc(chunk_objects(slab->n_chunks), slab->bytes);
		if (!chunk)
			return NULL;
		slab->chunk[slab->n_chunks] = chunk;
		slab->n_objects = 0;
		__atomic_store_n(&slab->n_chunks, slab->n_chunks + 1, __ATOMIC_RELEASE);
	}
	return slab->chunk[slab->n_chunks - 1] + slab->n_objects++ * slab->bytes;
}

void *handle_new(enum handle_kind kind, size_t bytes)
{
	struct slab *slab = &slabs[kind];
	pthread_mutex_lock(&slab->lock);
	if (slab->bytes == 0)
		slab->bytes = (bytes + 15) & ~(size_t)15;
	void *object = slab->n_unused ? slab->unused[--slab->n_unused] : slab_fresh(slab);
	pthread_mutex_unlock(&slab->lock);
	if (!object)
		return NULL;
	memset(object, 0, bytes);
	struct handle *handle = object;
	handle->refs = 1;
	__atomic_store_n(&handle->kind, kind, __ATOMIC_RELEASE);
	return object;
}

bool handle_is(const void *pointer, enum handle_kind kind)
{
	const struct slab *slab = &slabs[kind];
	size_t n_chunks = __atomic_load_n(&slab->n_chunks, __ATOMIC_ACQUIRE);
	for (size_t i = 0; i < n_chunks; i++) {
		uintptr_t offset = (uintptr_t)pointer - (uintptr_t)slab->chunk[i];
		if (offset >= chunk_objects(i) * slab->bytes)
			continue;
		const struct handle *handle = pointer;
		return offset % slab->bytes == 0 &&
		       __atomic_load_n(&handle->kind, __ATOMIC_ACQUIRE) == (uint32_t)kind;
	}
	return false;
}

void handle_close(void *object)
{
	struct handle *handle = object;
	__atomic_store_n(&handle->kind, HANDLE_NONE, __ATOMIC_RELEASE);
}

void handle_free(void *object, enum handle_kind kind)
{
	struct slab *slab = &slabs[kind];
	handle_close(object);
	pthread_mutex_lock(&slab->lock);
	if (slab->n_unused == slab->unused_room) {
		size_t room = slab->unused_room ? slab->unused_room * 2 : 64;
		void **unused = realloc(slab->unused, room * sizeof(*unused));
		if (unused) {
			slab->unused = unused;
			slab->unused_room = room;
		}
	}
	if (slab->n_unused < slab->unused_room)
		slab->unused[slab->n_unused++] = object;
	pthread_mutex_unlock(&slab->lock);
}
