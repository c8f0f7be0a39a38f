// SPDX-License-Identifier: MIT
#include "block.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALLEST    512u /* what cuMemAlloc aligns to */
#define ALIGNED_MAX ((size_t)2 << 20)
#define CLASSES     40
#define ROOM        ((size_t)256 << 30) /* addresses, not memory: pages come when touched */
#define RETURNED    ((size_t)1 << 20)   /* freed pieces from this size on give their pages back */

/* Freed pieces of one size, a power of two; their addresses are kept outside of them. */
struct pieces {
	uint64_t *start;
	size_t n, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pieces pieces[CLASSES];
static uint64_t arena, arena_next, arena_end;
static size_t used_bytes;

/* Two trees, since mapped blocks lie inside reserved ones. */
static void *memory_tree, *reserved_tree;

static unsigned int class_of(size_t bytes)
{
	unsigned int class = 9; /* 512 */
	while (class < CLASSES - 1 && ((size_t)1 << class) < bytes)
		class ++;
	return class;
}

static bool arena_prepare(void)
{
	if (arena)
		return true;
	void *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return false;
	arena = ((uint64_t)room + ALIGNED_MAX - 1) & ~(ALIGNED_MAX - 1);
	arena_next = arena;
	arena_end = (uint64_t)room + ROOM;
	return true;
}

static uint64_t piece_take(unsigned int class)
{
	if (pieces[class].n)
		return pieces[class].start[--pieces[class].n];
	size_t bytes = (size_t)1 << class;
	size_t align = bytes < ALIGNED_MAX ? bytes : ALIGNED_MAX;
	if (!arena_prepare())
		return 0;
	uint64_t start = (arena_next + align - 1) & ~(uint64_t)(align - 1);
	if (bytes > arena_end - start)
		return 0;
	arena_next = start + bytes;
	return start;
}

static void piece_give(uint64_t start, unsigned int class)
{
	struct pieces *free_pieces = &pieces[class];
	if (((size_t)1 << class) >= RETURNED)
		madvise((void *)start, (size_t)1 << class, MADV_DONTNEED);
	if (free_pieces->n == free_pieces->room) {
		size_t room = free_pieces->room ? free_pieces->room * 2 : 64;
		uint64_t *list = realloc(free_pieces->start, room * sizeof(*list));
		if (!list)
			return; /* the address is never used again */
		free_pieces->start = list;
		free_pieces->room = room;
	}
	free_pieces->start[free_pieces->n++] = start;
}

static bool count_locked(size_t bytes)
{
	if (bytes > device_memory_bytes() || used_bytes > device_memory_bytes() - bytes)
		return false;
	used_bytes += bytes;
	return true;
}

bool device_memory_count(size_t bytes)
{
	pthread_mutex_lock(&lock);
	bool ok = count_locked(bytes);
	pthread_mutex_unlock(&lock);
	return ok;
}

void device_memory_uncount(size_t bytes)
{
	pthread_mutex_lock(&lock);
	used_bytes -= bytes;
	pthread_mutex_unlock(&lock);
}

size_t device_memory_used(void)
{
	pthread_mutex_lock(&lock);
	size_t used = used_bytes;
	pthread_mutex_unlock(&lock);
	return used;
}

uint64_t device_memory_take(size_t bytes)
{
	pthread_mutex_lock(&lock);
	uint64_t start = 0;
	if (count_locked(bytes)) {
		start = piece_take(class_of(bytes));
		if (!start)
			used_bytes -= bytes;
	}
	pthread_mutex_unlock(&lock);
	return start;
}

void device_memory_give(uint64_t start, size_t bytes)
{
	pthread_mutex_lock(&lock);
	used_bytes -= bytes;
	piece_give(start, class_of(bytes));
	pthread_mutex_unlock(&lock);
}

/* Blocks that overlap compare equal, so that an address inside a block finds it. */
static int block_compare(const void *left, const void *right)
{
	const struct block *a = left, *b = right;
	if (a->start + a->bytes <= b->start)
		return -1;
	return b->start + b->bytes <= a->start;
}

static void **tree_of(unsigned int kinds)
{
	return kinds & BLOCK_RESERVED ? &reserved_tree : &memory_tree;
}

static struct block *find_locked(uint64_t address, size_t bytes, unsigned int kinds)
{
	struct block key = { .start = address, .bytes = 1 };
	struct block **node = tfind(&key, tree_of(kinds), block_compare);
	if (!node || !((*node)->kind & kinds))
		return NULL;
	if (bytes > (*node)->bytes - (address - (*node)->start))
		return NULL;
	return *node;
}

bool block_add(const struct block *block)
{
	struct block *copy = malloc(sizeof(*copy));
	if (!copy)
		return false;
	*copy = *block;
	pthread_mutex_lock(&lock);
	struct block **node = tsearch(copy, tree_of(block->kind), block_compare);
	bool added = node && *node == copy;
	pthread_mutex_unlock(&lock);
	if (!added)
		free(copy);
	return added;
}

bool block_find(uint64_t address, size_t bytes, unsigned int kinds, struct block *found)
{
	pthread_mutex_lock(&lock);
	const struct block *block = find_locked(address, bytes, kinds);
	if (block)
		*found = *block;
	pthread_mutex_unlock(&lock);
	return block != NULL;
}

bool block_claim(uint64_t start, unsigned int kinds)
{
	pthread_mutex_lock(&lock);
	struct block *block = find_locked(start, 0, kinds);
	bool found = block && block->start == start && !block->claimed;
	if (found)
		block->claimed = true;
	pthread_mutex_unlock(&lock);
	return found;
}

bool block_take(uint64_t start, unsigned int kinds, struct block *taken)
{
	pthread_mutex_lock(&lock);
	struct block *block = find_locked(start, 0, kinds);
	bool found = block && block->start == start;
	if (found) {
		*taken = *block;
		tdelete(block, tree_of(kinds), block_compare);
	}
	pthread_mutex_unlock(&lock);
	if (found)
		free(block);
	return found;
}

void block_release(const struct block *block)
{
	switch (block->kind) {
	case BLOCK_HOST:
		free((void *)block->start);
		break;
	case BLOCK_REGISTERED:
	case BLOCK_MAPPED:
	case BLOCK_RESERVED:
		break;
	default:
		device_memory_give(block->start, block->bytes);
		break;
	}
}

struct search {
	CUcontext ctx;
	uint64_t start; /* one block of it; 0: none */
};

static void search_node(const void *node, VISIT visit, void *data)
{
	const struct block *block = *(struct block *const *)node;
	struct search *search = data;
	if ((visit == preorder || visit == leaf) && block->ctx == search->ctx)
		search->start = block->start;
}

/* One walk a block: contexts end rarely, and a tree cannot be changed while it is walked. */
void blocks_free_all(CUcontext ctx)
{
	for (;;) {
		struct search search = { .ctx = ctx };
		struct block block;
		pthread_mutex_lock(&lock);
		twalk_r(memory_tree, search_node, &search);
		pthread_mutex_unlock(&lock);
		if (!search.start || !block_take(search.start, ~BLOCK_RESERVED, &block))
			return;
		block_release(&block);
	}
}
