// SPDX-License-Identifier: MIT
#include "agent/lib/intern.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define SHAPES    16384 /* powers of two */
#define NAMES     8192
#define LANES     1024
#define PROBES    16
#define TEXT_MOST 4000 /* of one name; records are at most 4 KiB */
#define TEXTS     ((uint32_t)2 << 20)

struct name {
	uint64_t hash;
	uint32_t text;   /* where in `texts` */
	uint32_t number; /* 0: an empty slot */
};

/* All that tells one shape from another; no padding, so that it can be compared at once. */
struct shape_key {
	const char *name; /* where CUPTI keeps it: another name can come to lie there */
	int32_t grid[3], block[3];
	int32_t shmem_static, shmem_dynamic;
	uint32_t registers;
	uint32_t zero;
};

struct shape {
	struct shape_key key;
	uint32_t text; /* the name as it was */
	uint32_t used;
};

struct lane {
	uint32_t device, context, stream;
	uint32_t used;
};

struct intern {
	struct shape shapes[SHAPES]; /* a shape's number is its slot here, plus one */
	struct name names[NAMES];
	struct lane lanes[LANES];
	char texts[TEXTS];
	uint32_t n_names, n_text_bytes;
	uint32_t (*name_number)(void);
	union {
		struct agent_name name;
		char bytes[sizeof(struct agent_name) + TEXT_MOST + 8];
	} record;
};

/* Pages of it that nothing was put into are never there. */
struct intern *intern_new(uint32_t (*name_number)(void))
{
	struct intern *intern = mmap(NULL, sizeof(*intern), PROT_READ | PROT_WRITE,
	                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (intern == MAP_FAILED)
		return NULL;
	intern->name_number = name_number;
	return intern;
}

void intern_free(struct intern *intern)
{
	if (intern)
		munmap(intern, sizeof(*intern));
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static uint64_t hash_words(const void *from, size_t bytes)
{
	uint64_t hash = bytes, word;

	for (; bytes >= sizeof(word); bytes -= sizeof(word)) {
		memcpy(&word, from, sizeof(word));
		hash = mix(hash, word);
		from = (const char *)from + sizeof(word);
	}
	word = 0;
	memcpy(&word, from, bytes);
	return mix(hash, word);
}

/* ---- names --------------------------------------------------------------------------------- */

/* Full: all is forgotten. Names get other numbers when they come back, shapes are written anew. */
static void start_over(struct intern *intern)
{
	memset(intern->names, 0, sizeof(intern->names));
	memset(intern->shapes, 0, sizeof(intern->shapes));
	intern->n_names = 0;
	intern->n_text_bytes = 0;
}

static bool write_name(struct intern *intern, struct ring *ring, uint32_t number, const char *text,
                       size_t length)
{
	struct agent_name *record = &intern->record.name;
	uint32_t bytes = ring_rounded(offsetof(struct agent_name, text) + length + 1);

	memset(record, 0, bytes);
	record->head.bytes = bytes;
	record->head.type = AGENT_NAME;
	record->number = number;
	memcpy(record->text, text, length);
	return ring_try(ring, &record->head);
}

/* NULL: the ring is full. */
static const struct name *find_name(struct intern *intern, struct ring *ring, const char *text)
{
	size_t length = strnlen(text, TEXT_MOST);
	uint64_t hash = hash_words(text, length);
	struct name *name;
	uint32_t number;

	for (size_t i = hash;; i++) {
		name = &intern->names[i % NAMES];
		if (!name->number)
			break;
		if (name->hash == hash && strncmp(intern->texts + name->text, text, length) == 0 &&
		    !intern->texts[name->text + length])
			return name;
	}
	if (intern->n_names >= NAMES / 4 * 3 || intern->n_text_bytes + length + 1 > TEXTS) {
		start_over(intern);
		name = &intern->names[hash % NAMES];
	}
	number = intern->name_number();
	if (!write_name(intern, ring, number, text, length))
		return NULL;
	*name = (struct name){ hash, intern->n_text_bytes, number };
	memcpy(intern->texts + name->text, text, length);
	intern->texts[name->text + length] = '\0';
	intern->n_text_bytes += (uint32_t)length + 1;
	intern->n_names++;
	return name;
}

uint32_t intern_name(struct intern *intern, struct ring *ring, const char *text)
{
	const struct name *name = find_name(intern, ring, text);

	return name ? name->number : 0;
}

/* ---- shapes -------------------------------------------------------------------------------- */

static bool write_shape(struct ring *ring, uint32_t number, uint32_t name,
                        const struct shape_key *key)
{
	struct agent_shape record = {
		.head = { .bytes = sizeof(record), .type = AGENT_SHAPE },
		.number = number,
		.name = name,
		.registers = key->registers,
		.shmem_static = (uint32_t)key->shmem_static,
		.shmem_dynamic = (uint32_t)key->shmem_dynamic,
	};

	for (int i = 0; i < 3; i++) {
		record.grid[i] = (uint32_t)key->grid[i];
		record.block[i] = (uint32_t)key->block[i];
	}
	return ring_try(ring, &record.head);
}

/* The shape's slot; or an empty one, or the one that has to make room. */
static struct shape *shape_slot(struct intern *intern, const struct shape_key *key)
{
	uint64_t hash = hash_words(key, sizeof(*key));

	for (size_t i = 0; i < PROBES; i++) {
		struct shape *shape = &intern->shapes[(hash + i) % SHAPES];

		if (!shape->used || memcmp(&shape->key, key, sizeof(*key)) == 0)
			return shape;
	}
	return &intern->shapes[(hash + (hash >> 32) % PROBES) % SHAPES];
}

uint32_t intern_shape(struct intern *intern, struct ring *ring, const struct cupti_kernel *kernel)
{
	const char *text = kernel->name ? kernel->name : "";
	struct shape_key key = {
		.name = text,
		.shmem_static = kernel->static_shared_memory,
		.shmem_dynamic = kernel->dynamic_shared_memory,
		.registers = kernel->registers,
	};
	const struct name *name;
	struct shape *shape;
	uint32_t number;

	memcpy(key.grid, kernel->grid, sizeof(key.grid));
	memcpy(key.block, kernel->block, sizeof(key.block));
	shape = shape_slot(intern, &key);
	number = (uint32_t)(shape - intern->shapes) + 1;
	if (shape->used && memcmp(&shape->key, &key, sizeof(key)) == 0 &&
	    strncmp(intern->texts + shape->text, text, TEXT_MOST) == 0)
		return number;
	name = find_name(intern, ring, text);
	if (!name || !write_shape(ring, number, name->number, &key))
		return 0;
	*shape = (struct shape){ .key = key, .text = name->text, .used = 1 };
	return number;
}

/* ---- lanes -------------------------------------------------------------------------------- */

uint16_t intern_lane(struct intern *intern, struct ring *ring, uint32_t device, uint32_t context,
                     uint32_t stream)
{
	uint64_t hash = mix(mix((uint64_t)device << 32 | context, stream), 1);
	struct lane *lane = NULL;
	struct agent_lane record = {
		.head = { .bytes = sizeof(record), .type = AGENT_LANE },
		.device = device,
		.context = context,
		.stream = stream,
	};

	for (size_t i = 0; i < PROBES; i++) {
		lane = &intern->lanes[(hash + i) % LANES];
		if (!lane->used)
			break;
		if (lane->device == device && lane->context == context && lane->stream == stream)
			return (uint16_t)(lane - intern->lanes + 1);
	}
	record.head.lane = (uint16_t)(lane - intern->lanes + 1);
	if (!ring_try(ring, &record.head))
		return 0;
	*lane = (struct lane){ device, context, stream, 1 };
	return record.head.lane;
}
