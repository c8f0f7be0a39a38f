/* SPDX-License-Identifier: MIT */
/* Calls of NCCL of a few processes, and RAS' answers, for tests of what is made of them. */
#ifndef CUSCOPE_TESTS_NCCL_SCENE_H
#define CUSCOPE_TESTS_NCCL_SCENE_H

#include "support.h"

#include "hooks/hook_list.h"
#include "probe/own_plan.h"

#define RANKS 4

/* What is tested gets it. */
static inline void scene_event(const struct event *event);

static struct hook_list hooks;
static struct function functions[64];
static struct api *made[64];
static uint32_t n_functions;
static const struct process *ranks[RANKS];

static inline int set_up_all(void **state)
{
	struct buf wrong = { 0 };

	assert_int_equal(hook_list_add_file(&hooks, "nccl", &wrong), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		ranks[i] = new_process(100 + i, "train");
	return 0;
}

static inline int tear_down_all(void **state)
{
	for (uint32_t i = 0; i < n_functions; i++)
		api_free(made[i]);
	hook_list_free(&hooks);
	return 0;
}

static inline void belong(uint32_t rank, uint64_t person)
{
	((struct process *)ranks[rank])->person = person;
}

/* As the file of hooks has it. */
static inline const struct function *hooked(const char *name)
{
	for (uint32_t i = 0; i < n_functions; i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	for (size_t i = 0; i < hooks.n; i++) {
		if (strcmp(hooks.spec[i]->glob, name) != 0)
			continue;
		functions[n_functions] = (struct function){
			.id = n_functions,
			.name = name,
			.lib = "libnccl.so.2",
			.layer = LAYER_HOOK,
			.api = own_plan_row(hooks.spec[i], name, &made[n_functions]),
		};
		return &functions[n_functions++];
	}
	fail_msg("no hook of %s", name);
	return NULL;
}

/* As RAS' answers are passed on. */
static inline const struct function *told(const char *name, const char *arguments)
{
	const struct api_text text = { .name = name, .cls = CLASS_OTHER, .spec = arguments };

	for (uint32_t i = 0; i < n_functions; i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	functions[n_functions] = (struct function){
		.id = n_functions,
		.name = name,
		.layer = LAYER_HOOK,
		.api = api_from_text(&text, &made[n_functions]),
	};
	return &functions[n_functions++];
}

static inline struct call nccl(const char *name, double begin_us, double end_us)
{
	struct call call = { .function = strncmp(name, "nccl", 4) ? told(name, NULL) : hooked(name),
		             .begin_ns = US(begin_us),
		             .end_ns = US(end_us) };
	const struct api_arg *args;

	call.args.n_args = (uint8_t)api_args(call.function->api, &args);
	return call;
}

static inline void see(uint32_t rank, struct call call)
{
	struct event event = call_event(ranks[rank], 1, &call);

	event.type = EVENT_OTHER_CALL;
	scene_event(&event);
}

static inline void init(uint32_t rank, uint64_t id)
{
	struct call call = nccl("ncclCommInitRank", 0, 10);

	set_arg(&call, "comm", 0x5500 + rank);
	set_arg(&call, "rank", rank);
	set_arg(&call, "ranks", RANKS);
	set_arg(&call, "id", id);
	see(rank, call);
}

#define RAS_COMM "comm:addr id:addr id2:addr rank:int ranks:int"
#define RAS_RANK                                                                                   \
	"id:addr id2:addr rank:int ranks:int pid:int state:int AllReduce:u64 ReduceScatter:u64 "   \
	"AllGather:u64 Broadcast:u64 Reduce:u64 host:string"

/* Its handle is this communicator; and: it has launched so many at a time between. */
static inline void known(uint32_t rank, double at_us)
{
	struct call call;

	told("ras.communicator", RAS_COMM);
	call = nccl("ras.communicator", at_us, at_us);
	set_arg(&call, "comm", 0x5500 + rank);
	set_arg(&call, "id", 0xabc);
	set_arg(&call, "id2", 0xdef);
	set_arg(&call, "rank", rank);
	set_arg(&call, "ranks", RANKS);
	see(rank, call);
}

static inline void counted(uint32_t rank, double from_us, double to_us, uint64_t reduces)
{
	struct call call;

	told("ras.rank", RAS_RANK);
	call = nccl("ras.rank", from_us, to_us);
	set_arg(&call, "id", 0xabc);
	set_arg(&call, "id2", 0xdef);
	set_arg(&call, "rank", rank);
	set_arg(&call, "ranks", RANKS);
	set_arg(&call, "pid", ranks[rank]->pid);
	set_arg(&call, "AllReduce", reduces);
	see(rank, call);
}

#endif
