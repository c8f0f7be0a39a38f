// SPDX-License-Identifier: MIT
/* What user space and the programs tell each other of processes, threads and files, in maps. */
#include "base/order.h"
#include "probe/programs.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "probe/bpf_call.h"
#include "probe/helper.h"
#include "probe/person.h"

#define IDS_MAX 32768 /* twice what a map holds: a key that goes away makes it begin anew */

/* ---- shares ---------------------------------------------------------------------------------- */

uint32_t programs_user(struct programs *p, pid_t tgid)
{
	uint64_t person = helper_person_of_owner((uint32_t)tgid);
	bool is_uid = !(person & (PERSON_NAMESPACE | PERSON_RANGE));
	uint32_t user = is_uid ? (uint32_t)person : ~(uint32_t)person;
	uint32_t slot = user * programs_state(p)->kernels_mix >> 20;

	return !user ? 0 : slot ? slot : 1;
}

bool programs_may_have_more(const struct wire_rows *rows, uint32_t user, int64_t most)
{
	int64_t all = __atomic_load_n(&rows->all, __ATOMIC_RELAXED);
	int64_t its = __atomic_load_n(&rows->of[user % WIRE_USERS], __ATOMIC_RELAXED);

	return !user || its < 3 * (most - all);
}

void programs_rows_change(struct wire_rows *rows, uint32_t user, int64_t more)
{
	__atomic_fetch_add(&rows->all, more, __ATOMIC_RELAXED);
	__atomic_fetch_add(&rows->of[user % WIRE_USERS], more, __ATOMIC_RELAXED);
}

/* ---- targets --------------------------------------------------------------------------------- */

static int add_new(struct programs *p, uint32_t tgid, uint32_t flags, uint32_t user)
{
	uint32_t value = (flags & TARGET_FLAGS) | user << TARGET_USER_SHIFT;

	if (bpf_map_update_elem(programs_map(p, "targets"), &tgid, &value, BPF_NOEXIST))
		return -errno;
	programs_rows_change(&programs_state(p)->targets, user, 1);
	return 0;
}

/* Whether it is one already, with other flags from now on. */
static bool change(struct programs *p, uint32_t tgid, uint32_t flags)
{
	int map = programs_map(p, "targets");
	uint32_t value;

	if (bpf_map_lookup_elem(map, &tgid, &value))
		return false;
	value = (value & ~TARGET_FLAGS) | (flags & TARGET_FLAGS);
	return !bpf_map_update_elem(map, &tgid, &value, BPF_EXIST);
}

int programs_target_add(struct programs *p, pid_t tgid, uint32_t flags)
{
	return change(p, (uint32_t)tgid, flags) ? 0 : add_new(p, (uint32_t)tgid, flags, 0);
}

bool programs_target_found(struct programs *p, pid_t tgid, uint32_t flags)
{
	uint32_t user;

	if (change(p, (uint32_t)tgid, flags))
		return true;
	user = programs_user(p, tgid);
	return programs_may_have_more(&programs_state(p)->targets, user, WIRE_TARGETS_MAX) &&
	       !add_new(p, (uint32_t)tgid, flags, user);
}

void programs_stop_holding_one(struct programs *p, pid_t tgid)
{
	uint32_t key = tgid, flags;

	if (bpf_map_lookup_elem(programs_map(p, "targets"), &key, &flags) == 0)
		programs_target_add(p, tgid, flags & ~(uint32_t)TARGET_HOLD);
}

void programs_inside_set(struct programs *p, pid_t tgid, uint64_t modules)
{
	uint32_t key = (uint32_t)tgid;

	if (modules)
		bpf_map_update_elem(programs_map(p, "inside"), &key, &modules, BPF_ANY);
	else
		bpf_map_delete_elem(programs_map(p, "inside"), &key);
}

bool programs_target_has(struct programs *p, pid_t tgid)
{
	uint32_t key = tgid, flags;

	return bpf_map_lookup_elem(programs_map(p, "targets"), &key, &flags) == 0;
}

void programs_target_remove(struct programs *p, pid_t tgid)
{
	uint32_t key = tgid, value;
	int map = programs_map(p, "targets");

	if (!bpf_map_lookup_elem(map, &key, &value) && !bpf_map_delete_elem(map, &key))
		programs_rows_change(&programs_state(p)->targets, value >> TARGET_USER_SHIFT, -1);
}

void programs_thread_forget(struct programs *p, pid_t tid)
{
	AT_END(at_end_free) struct wire_thread *thread = xmalloc(sizeof(*thread));
	struct wire_state *state = programs_state(p);
	int map = programs_map(p, "threads");
	uint32_t key = tid;

	if (bpf_map_lookup_elem(map, &key, thread) || bpf_map_delete_elem(map, &key))
		return;
	__atomic_fetch_sub(&state->threads, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&state->user_threads[thread->user % WIRE_USERS], 1, __ATOMIC_RELAXED);
}

bool programs_thread_known(const struct programs *p, pid_t tid)
{
	AT_END(at_end_free) struct wire_thread *thread = xcalloc(1, sizeof(*thread));
	uint32_t key = (uint32_t)tid;

	return !bpf_map_lookup_elem(programs_map(p, "threads"), &key, thread);
}

enum held programs_thread_held(struct programs *p, pid_t tid)
{
	int map = programs_map(p, "held_threads");
	uint32_t key = (uint32_t)tid;
	uint8_t held = HELD_NOT;

	if (bpf_map_lookup_elem(map, &key, &held))
		return HELD_NOT;
	bpf_map_delete_elem(map, &key);
	return held;
}

bool programs_thread_in_call(const struct programs *p, pid_t tid, uint64_t *begin_ns)
{
	AT_END(at_end_free) struct wire_thread *thread = xmalloc(sizeof(*thread));
	uint32_t key = (uint32_t)tid;
	bool in_call =
		bpf_map_lookup_elem(programs_map(p, "threads"), &key, thread) == 0 && thread->depth;

	if (in_call)
		*begin_ns = thread->frame[0].call.begin_ns;
	return in_call;
}

int programs_waker_add(struct programs *p, pid_t tgid, size_t n)
{
	uint32_t key = (uint32_t)tgid;
	uint8_t nothing = 0;

	if (bpf_map_update_elem(programs_map(p, "wakers"), &key, &nothing, BPF_ANY))
		return -errno;
	programs_state(p)->wakers = n;
	return 0;
}

void programs_waker_remove(struct programs *p, pid_t tgid, size_t n)
{
	uint32_t key = (uint32_t)tgid;

	bpf_map_delete_elem(programs_map(p, "wakers"), &key);
	programs_state(p)->wakers = n;
}

bool programs_waker_has(const struct programs *p, pid_t tgid)
{
	uint32_t key = (uint32_t)tgid;
	uint8_t nothing;

	return !bpf_map_lookup_elem(programs_map(p, "wakers"), &key, &nothing);
}

int programs_cgroup_set(struct programs *p, int cgroup_fd)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(programs_map(p, "cgroups"), &zero, &cgroup_fd, BPF_ANY) ? -errno
	                                                                                   : 0;
}

int programs_name_set(struct programs *p, const struct wire_glob *glob)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(programs_map(p, "name_glob"), &zero, glob, BPF_ANY) ? -errno : 0;
}

void programs_file_known(struct programs *p, const struct wire_file *file, uint64_t flags)
{
	const uint64_t key[2] = { file->inode, file->dev };
	const struct wire_known known = { .stamp = file->stamp, .flags = flags };

	bpf_map_update_elem(programs_map(p, "known_files"), key, &known, BPF_ANY);
}

void programs_file_unknown(struct programs *p, const struct wire_file *file)
{
	const uint64_t key[2] = { file->inode, file->dev };

	bpf_map_delete_elem(programs_map(p, "known_files"), key);
}

bool programs_held_for(struct programs *p, pid_t tid, struct wire_file *file)
{
	uint32_t key = (uint32_t)tid;

	return bpf_map_lookup_elem(programs_map(p, "held_for"), &key, file) == 0;
}

ORDER_BY(compare_ids, uint32_t, ORDER_OF(*a, *b));

/* The keys of a map by thread or process, each once; the caller frees them. */
static uint32_t *read_ids(int map, size_t *n)
{
	size_t read, kept = 0;
	uint32_t *ids = bpf_map_keys(map, sizeof(*ids), IDS_MAX, &read);

	qsort(ids, read, sizeof(*ids), compare_ids);
	for (size_t i = 0; i < read; i++) {
		if (!kept || ids[i] != ids[kept - 1])
			ids[kept++] = ids[i];
	}
	*n = kept;
	return ids;
}

uint32_t *programs_threads(struct programs *p, size_t *n)
{
	return read_ids(programs_map(p, "threads"), n);
}

uint32_t *programs_targets(struct programs *p, size_t *n)
{
	uint32_t *ids = read_ids(programs_map(p, "targets"), n);

	if (*n < IDS_MAX / 2)
		return ids;
	free(ids);
	return NULL;
}

void programs_open_calls(struct programs *p, programs_record_fn each, void *data)
{
	AT_END(at_end_free) struct wire_thread *thread = xmalloc(sizeof(*thread));
	size_t n;
	uint32_t *tids = programs_threads(p, &n);
	int map = programs_map(p, "threads");
	uint64_t now_ns = clock_now_ns();

	for (size_t at = 0; at < n; at++) {
		if (bpf_map_lookup_elem(map, &tids[at], thread))
			continue;
		for (uint32_t i = 0; i < thread->depth && i < WIRE_DEPTH_MAX; i++) {
			struct wire_call *call = &thread->frame[i].call;

			if (call->begin_ns > now_ns) /* began while this was read */
				break;
			call->head.flags |= WIRE_UNFINISHED;
			call->head.time_ns = now_ns;
			call->place = (uint32_t)thread->frame[i].sp;
			each(data, &call->head, WIRE_CALL_BYTES(call->head.words));
		}
	}
	free(tids);
}
