/* SPDX-License-Identifier: MIT */
/*
 * The maps of the programs, for tests of what fills them: kept in this process, under descriptors
 * that are just numbers. Linked with --wrap (module.mk), so it needs neither root nor a kernel.
 */
#ifndef CUSCOPE_TESTS_FAKE_MAPS_H
#define CUSCOPE_TESTS_FAKE_MAPS_H

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/wire_stacks.h"

enum { FAKE_CODE = 100001, FAKE_PYTHON, FAKE_FILES, FAKE_RULES };

#define FAKE_PROCESSES 1024

static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_code {
	uint32_t pid;
	struct wire_code *code;
} fake_code[FAKE_PROCESSES];
static int fake_table[UNWIND_FILES_MAX]; /* 0: none */
static struct wire_rule fake_rule[UNWIND_RULES_MAX];
static unsigned fake_rules;
static int fake_failure; /* what writing to the map of code fails with */

static inline struct fake_code *fake_find(uint32_t pid)
{
	for (size_t i = 0; i < FAKE_PROCESSES; i++)
		if (fake_code[i].pid == pid)
			return &fake_code[i];
	return NULL;
}

/* What the programs were told of a process; NULL: nothing. */
static inline const struct wire_code *fake_code_of(uint32_t pid)
{
	const struct wire_code *code;
	struct fake_code *found;

	pthread_mutex_lock(&fake_lock);
	found = fake_find(pid);
	code = found ? found->code : NULL;
	pthread_mutex_unlock(&fake_lock);
	return code;
}

static inline size_t fake_processes(void)
{
	size_t n = 0;

	for (size_t i = 0; i < FAKE_PROCESSES; i++)
		n += fake_code[i].pid != 0;
	return n;
}

/* Of the map of tables, each of which waits (for so long, where it takes one away); and whether it
 * takes several at a time. */
static unsigned fake_changes;
static unsigned fake_wait_us;
static bool fake_no_batches;

static inline size_t fake_tables(void)
{
	size_t n = 0;

	for (size_t i = 0; i < UNWIND_FILES_MAX; i++)
		n += fake_table[i] != 0;
	return n;
}

static int fake_update_code(uint32_t pid, const void *value)
{
	struct fake_code *found = fake_find(pid);

	if (fake_failure)
		return -fake_failure;
	if (!found)
		found = fake_find(0);
	if (!found)
		return -E2BIG;
	if (!found->code)
		found->code = malloc(sizeof(*found->code));
	assert_non_null(found->code);
	found->pid = pid;
	memcpy(found->code, value, sizeof(*found->code));
	return 0;
}

int __wrap_bpf_map_update_elem(int map, const void *key, const void *value, __u64 flags);
int __wrap_bpf_map_update_batch(int map, const void *keys, const void *values, __u32 *count,
                                const struct bpf_map_batch_opts *options);
int __wrap_bpf_map_delete_elem(int map, const void *key);
int __wrap_bpf_map_delete_batch(int map, const void *keys, __u32 *count,
                                const struct bpf_map_batch_opts *options);
int __wrap_bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size,
                          __u32 value_size, __u32 max_entries,
                          const struct bpf_map_create_opts *options);

int __wrap_bpf_map_update_elem(int map, const void *key, const void *value, __u64 flags)
{
	uint32_t number = *(const uint32_t *)key;
	int r = 0;

	pthread_mutex_lock(&fake_lock);
	if (map == FAKE_CODE) {
		r = fake_update_code(number, value);
	} else if (map == FAKE_FILES) {
		fake_changes++;
		fake_table[number] = dup(*(const int *)value);
	} else if (map == FAKE_RULES) {
		fake_rule[number] = *(const struct wire_rule *)value;
		fake_rules++;
	}
	pthread_mutex_unlock(&fake_lock);
	return r;
}

int __wrap_bpf_map_update_batch(int map, const void *keys, const void *values, __u32 *count,
                                const struct bpf_map_batch_opts *options)
{
	unsigned before = fake_changes;

	assert_int_equal(map, FAKE_FILES);
	if (fake_no_batches)
		return -ENOTSUP;
	for (__u32 i = 0; i < *count; i++)
		__wrap_bpf_map_update_elem(map, (const uint32_t *)keys + i, (const int *)values + i,
		                           0);
	fake_changes = before + 1;
	return 0;
}

int __wrap_bpf_map_delete_elem(int map, const void *key)
{
	uint32_t number = *(const uint32_t *)key;
	struct fake_code *found;

	if (map == FAKE_FILES)
		usleep(fake_wait_us);
	pthread_mutex_lock(&fake_lock);
	if (map == FAKE_CODE && (found = fake_find(number))) {
		free(found->code);
		*found = (struct fake_code){ 0 };
	} else if (map == FAKE_FILES) {
		fake_changes++;
		close(fake_table[number]);
		fake_table[number] = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int __wrap_bpf_map_delete_batch(int map, const void *keys, __u32 *count,
                                const struct bpf_map_batch_opts *options)
{
	unsigned before = fake_changes;

	unsigned wait_us = fake_wait_us;

	if (fake_no_batches)
		return -ENOTSUP;
	usleep(wait_us);
	fake_wait_us = 0;
	for (__u32 i = 0; i < *count; i++)
		__wrap_bpf_map_delete_elem(map, (const uint32_t *)keys + i);
	fake_wait_us = wait_us;
	fake_changes = before + 1;
	return 0;
}

int __wrap_bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size,
                          __u32 value_size, __u32 max_entries,
                          const struct bpf_map_create_opts *options)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)value_size * max_entries)) {
		close(fd);
		return -1;
	}
	return fd;
}

#endif
