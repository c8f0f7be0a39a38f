/* SPDX-License-Identifier: MIT */
/* What live allocations are kept in: for the files that follow them, and nobody else. */
#pragma once

#include "analysis/memory.h"
#include "base/hash.h"
#include "base/quota.h"

/* Live at a time, 256 bytes each with their place in the table; those beyond are counted as
 * untracked: their frees are unknown. */
#define ALLOCATIONS_MAX 65536

/* Handles of cuMemCreate and reserved ranges are numbers of their own: 1 can be both. SPACE_MAPPED
 * is of addresses that have a handle's memory; what is there is no allocation of its own. */
enum space { SPACE_ADDRESS, SPACE_HANDLE, SPACE_RANGE, SPACE_MAPPED };

struct memory_key {
	uint64_t address;
	uint64_t space; /* as wide as the address: no padding for the hash to read */
};

struct allocation {
	struct memory_key key;
	struct memory_allocation about;
	bool with_context; /* thought to have gone with a context, see forget_context() */
	bool has_replaced;
	struct memory_allocation replaced; /* what stood here before, and was not freed yet */
	bool late;                         /* freed itself; here for the free of `replaced` */
	uint64_t held;                     /* SPACE_HANDLE: handles given out, and mappings */
	uint64_t handle, made_ns;          /* SPACE_MAPPED: of which memory */
	struct allocation *prev, *next;    /* of those */
	UT_hash_handle hh;
};

/* Made by a process's first allocation. Its end takes the allocations and leaves the totals. */
struct process_memory {
	const struct process *process;
	uint32_t pid;
	bool ended;
	struct memory_totals totals[MEMORY_COUNT];
	struct allocation *allocations[2]; /* at SPACE_ADDRESS, which go with a context; others */
	struct memory_graphs *graphs;      /* NULL: none has memory */
	UT_hash_handle hh;                 /* by pid, until it has ended */
};

struct memory {
	struct process_memory **processes; /* by id */
	size_t n_processes;
	struct process_memory *by_pid;
	struct memory_totals **functions; /* by id */
	size_t n_functions;
	struct memory_totals totals[MEMORY_COUNT];
	uint64_t unknown_frees;
	size_t n_allocations;    /* but the late ones */
	struct allocation *late; /* oldest first */
	size_t n_late;
	size_t n_graph_nodes; /* see memory_graphs.c */
	struct quota graph_work;
	uint64_t n_events; /* ever */
	void (*changed)(void *data, const struct memory_change *change);
	void *data;
};

struct process_memory *memory_find_process(const struct memory *memory, uint32_t id);
struct process_memory *memory_the_process(struct memory *memory, const struct process *process);

/* NULL: there is none, or `process` is NULL. */
struct allocation *memory_find(struct process_memory *process, const struct memory_key *key);

/* What the call asked for. */
struct memory_allocation memory_about(const struct event *event, enum api_memory kind);

/* A new one, held once, in no total yet. There must be none with this key. */
struct allocation *memory_keep(struct memory *memory, struct process_memory *process,
                               const struct memory_key *key,
                               const struct memory_allocation *wanted);
void memory_drop(struct memory *memory, struct process_memory *process, struct allocation *a);

/* Whether it is memory, that this process made: not addresses mapped to one, nor one imported. */
static inline bool memory_is_own(const struct allocation *a)
{
	return a->key.space != SPACE_MAPPED && (a->key.space != SPACE_HANDLE || a->about.bytes);
}

/* It is held once less. Its bytes where that was the last time, else 0. */
uint64_t memory_give_back(struct memory *memory, struct process_memory *process,
                          struct allocation *a, uint64_t now_ns);

/* Makes it live, or untracked. Its bytes. */
uint64_t memory_add(struct memory *memory, const struct memory_allocation *made);

/* So many, of `bytes` all together, that are in the totals alone. */
void memory_add_untracked(struct memory *memory, const struct memory_allocation *made, uint64_t n);

/* Of graphs: calls that were recorded into one, those that make them, and launches. */
void memory_follow_captured(struct memory *memory, const struct event *event);
void memory_follow_graph(struct memory *memory, const struct event *event);
void memory_free_graphs(struct memory *memory, struct process_memory *process);

/* The calls of virtual memory management that neither make a handle nor give one back; what is
 * freed by it. */
uint64_t memory_follow_vmm(struct memory *memory, const struct event *event);
