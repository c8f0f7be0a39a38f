// SPDX-License-Identifier: MIT
#include "capture/gpu/gpu_targets.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"

/* An agent that comes with the environment is there when cuInit returns. */
#define BY_ITSELF_NS 500000000ull

struct gpu_target {
	pid_t pid;
	bool done; /* an agent is there, or was sent */
	bool due;
	bool cuda; /* works there */
	const struct module *driver;
	uint64_t due_ns;
	UT_hash_handle hh;
};

struct gpu_targets {
	bool by_itself;
	void (*enter)(void *data, pid_t pid);
	void *data;
	struct gpu_target *targets, *recent;
	size_t n_due;
};

struct gpu_targets *gpu_targets_new(bool by_itself, void (*enter)(void *data, pid_t pid),
                                    void *data)
{
	struct gpu_targets *t = xcalloc(1, sizeof(*t));

	t->by_itself = by_itself;
	t->enter = enter;
	t->data = data;
	return t;
}

static void drop(struct gpu_targets *t, struct gpu_target *target)
{
	t->recent = NULL;
	t->n_due -= target->due;
	MAP_DROP(t->targets, target);
}

void gpu_targets_free(struct gpu_targets *t)
{
	struct gpu_target *target, *next;

	if (!t)
		return;
	HASH_ITER (hh, t->targets, target, next) {
		drop(t, target);
	}
	free(t);
}

static struct gpu_target *get(struct gpu_targets *t, pid_t pid)
{
	struct gpu_target *target = t->recent;

	if (target && target->pid == pid)
		return target;
	target = MAP_MAKE(t->targets, pid, &pid);
	return t->recent = target;
}

static void set_due(struct gpu_targets *t, struct gpu_target *target, uint64_t due_ns)
{
	if (target->done || target->due)
		return;
	target->due = true;
	target->due_ns = due_ns;
	t->n_due++;
}

static void set_done(struct gpu_targets *t, struct gpu_target *target)
{
	t->n_due -= target->due;
	target->due = false;
	target->done = true;
}

void gpu_targets_running(struct gpu_targets *t, pid_t pid, uint64_t now_ns)
{
	get(t, pid)->cuda = true; /* its first call may be a launch: probes are to be there */
	set_due(t, get(t, pid), now_ns);
}

bool gpu_shows_cuda(const struct wire_call *call, const struct hook *hook)
{
	if (!hook || !hook->api || call->head.flags & WIRE_UNFINISHED || call->result)
		return false;
	if (!strcmp(hook->name, "cuInit"))
		return !(call->head.flags & WIRE_NO_RETURN);
	return api_op(hook->api) != OP_NONE && api_op(hook->api) != OP_NAME_KERNEL;
}

void gpu_targets_called(struct gpu_targets *t, const struct wire_call *call,
                        const struct hook *hook, const struct module *module, uint64_t now_ns)
{
	struct gpu_target *target = get(t, (pid_t)call->head.tgid);

	if (!target->driver && hook && hook->layer == LAYER_DRIVER)
		target->driver = module;
	if (target->cuda || !gpu_shows_cuda(call, hook))
		return;
	target->cuda = true;
	set_due(t, target, now_ns + (t->by_itself ? BY_ITSELF_NS : 0));
}

const struct module *gpu_targets_driver(const struct gpu_targets *t, pid_t pid)
{
	const struct gpu_target *target = MAP_FIND(t->targets, &pid);

	return target ? target->driver : NULL;
}

bool gpu_targets_all(const struct gpu_targets *t, bool (*each)(void *data, pid_t pid), void *data)
{
	bool any = false;

	for (const struct gpu_target *target = t->targets; target; target = target->hh.next) {
		if (target->cuda && !each(data, target->pid))
			return false;
		any |= target->cuda;
	}
	return any;
}

bool gpu_targets_has(const struct gpu_targets *t, pid_t pid)
{
	const struct gpu_target *target = MAP_FIND(t->targets, &pid);

	return target && target->cuda;
}

void gpu_targets_came(struct gpu_targets *t, pid_t pid)
{
	set_done(t, get(t, pid));
}

bool gpu_targets_forget(struct gpu_targets *t, pid_t pid)
{
	bool due;
	struct gpu_target *target = MAP_FIND(t->targets, &pid);

	if (!target)
		return false;
	due = target->due;
	drop(t, target);
	return due;
}

void gpu_targets_turn(struct gpu_targets *t, uint64_t now_ns)
{
	struct gpu_target *target, *next;

	if (!t->n_due)
		return;
	HASH_ITER (hh, t->targets, target, next) {
		if (!target->due || target->due_ns > now_ns)
			continue;
		set_done(t, target);
		t->enter(t->data, target->pid);
	}
}
