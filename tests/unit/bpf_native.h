/* SPDX-License-Identifier: MIT */
/*
 * The eBPF programs' headers compiled for this machine: what they keep in maps can be tested case
 * by case. Maps are lists; records that leave are counted by their type.
 */
#ifndef CUSCOPE_TESTS_UNIT_BPF_NATIVE_H
#define CUSCOPE_TESTS_UNIT_BPF_NATIVE_H

#include <errno.h>
#include <linux/bpf.h>

#include "unit.h"

#define FOLD                /* the programs that sum up */
#define SEC(name)           __attribute__((unused))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name
/* a map of maps has no type of values */
#define __array(name, type)                                                                        \
	__u32 *value;                                                                              \
	__typeof__(type) *name[]
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline, unused))
#endif

/* ---- maps ---------------------------------------------------------------------------------- */

struct native_entry {
	const void *map;
	size_t key_bytes;
	char *key, *value;
	struct native_entry *next;
};

static struct native_entry *native_entries;
static size_t native_most = 1000; /* entries of a map */

static struct native_entry **native_find(const void *map, const void *key, size_t bytes)
{
	struct native_entry **at = &native_entries;

	while (*at &&
	       ((*at)->map != map || (*at)->key_bytes != bytes || memcmp((*at)->key, key, bytes)))
		at = &(*at)->next;
	return at;
}

static inline size_t native_count(const void *map)
{
	size_t count = 0;

	for (struct native_entry *e = native_entries; e; e = e->next)
		count += e->map == map;
	return count;
}

static inline void *native_lookup(const void *map, const void *key, size_t bytes)
{
	struct native_entry *entry = *native_find(map, key, bytes);

	return entry ? entry->value : NULL;
}

static inline long native_update(const void *map, const void *key, size_t bytes, const void *value,
                                 size_t value_bytes, __u64 flags)
{
	struct native_entry *entry = *native_find(map, key, bytes);

	if (entry && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!entry && native_count(map) >= native_most)
		return -E2BIG;
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		*entry = (struct native_entry){ .map = map,
			                        .key_bytes = bytes,
			                        .key = malloc(bytes),
			                        .value = malloc(value_bytes),
			                        .next = native_entries };
		memcpy(entry->key, key, bytes);
		native_entries = entry;
	}
	memcpy(entry->value, value, value_bytes);
	return 0;
}

static inline long native_delete(const void *map, const void *key, size_t bytes)
{
	struct native_entry **at = native_find(map, key, bytes), *entry = *at;

	if (!entry)
		return -ENOENT;
	*at = entry->next;
	free(entry->key);
	free(entry->value);
	free(entry);
	return 0;
}

static inline void native_forget(void)
{
	while (native_entries)
		native_delete(native_entries->map, native_entries->key, native_entries->key_bytes);
	native_most = 1000;
}

#define bpf_map_lookup_elem(map, at) native_lookup(map, at, sizeof(*(map)->key))
#define bpf_map_delete_elem(map, at) native_delete(map, at, sizeof(*(map)->key))
#define bpf_map_update_elem(map, at, from, flags)                                                  \
	native_update(map, at, sizeof(*(map)->key), from, sizeof(*(map)->value), flags)

/* ---- the rest of the helpers --------------------------------------------------------------- */

static __u64 native_now_ns;
static int native_records[256]; /* that left, by type */

static inline long native_output(const __u8 *record)
{
	native_records[record[0]]++;
	return 0;
}

#define bpf_ktime_get_ns()                       native_now_ns
#define bpf_get_current_pid_tgid()               (100ull << 32 | 100)
#define bpf_get_smp_processor_id()               0u
#define bpf_get_current_comm(into, size)         memset(into, 0, size)
#define bpf_current_task_under_cgroup(map, slot) 0
#define bpf_ringbuf_query(ring, what)            native_now_ns % 2
#define bpf_ringbuf_output(ring, record, n, f)   ((void)(f), native_output((const __u8 *)(record)))

static __u32 native_user; /* whose thread it is */

#define user_current() native_user
#define user_of(task)  ((void)(task), native_user)

/* Settings that can be set. */
#define const
#include "bpf/maps.h"
#undef const

#endif
