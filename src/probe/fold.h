/* SPDX-License-Identifier: MIT */
/*
 * Folding: calls that the programs sum up in maps rather than send. Which sums, is fixed when the
 * programs are loaded (wire_settings.fold); each hook has a plan of what its calls add to which.
 * Here are the maps.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "probe/fold_plan.h"
#include "probe/programs.h"

struct bpf_object;

/* Rows of their maps. */
#define FOLD_LAUNCHES_ROOM 16384
#define FOLD_COPIES_ROOM   16384
#define FOLD_HOOKS_ROOM    16384

/* What one process may have of them. */
void fold_set_shares(struct wire_settings *settings);

/* Gives the maps their room: before the object is loaded. `tools` of enum fold_tool. */
int fold_size_maps(struct bpf_object *object, unsigned tools);

/* For a watch of a whole machine (wire_settings.cuda_only): by need, as far as the kernel can. */
void fold_shrink_maps(struct bpf_object *object);

/* Tells the programs whose uids are, with calls folded or not: after it. */
void fold_fill_users(struct programs *programs);

/* Fills the tables that all plans share: after it. */
int fold_fill_tables(struct programs *programs);

/* Has the calls of a hook folded: before it is attached. */
int fold_hook(struct programs *programs, uint16_t hook, const struct api *api, bool per_thread);

/* All entries of one map. Keys and values lie one after the other; fold_table_free() frees both. */
struct fold_table {
	size_t count, key_bytes, value_bytes;
	char *keys, *values;
};

/* 0 or a negative errno. Entries that come and go meanwhile may be in it or not. */
int fold_read(struct programs *programs, const char *map, size_t key_bytes, size_t value_bytes,
              struct fold_table *table);
void fold_table_free(struct fold_table *table);

bool fold_find(struct programs *programs, const char *map, const void *key, void *value);
void fold_delete(struct programs *programs, const char *map, const void *key);
void fold_delete_live(struct programs *programs, const void *key, uint32_t user);
void fold_close_capture(struct programs *programs, uint64_t number);

/* When a process was first seen: see wire_fold.h. That is now, if it was not yet. */
uint64_t fold_process_born(struct programs *programs, uint32_t tgid, uint64_t now_ns);
/* One that has ended unnoticed: its number may be another's soon. */
void fold_process_over(struct programs *programs, uint32_t tgid);

/* What the calls of a hook add to which sums; false: they are sent. */
bool fold_hook_plan(struct programs *programs, uint16_t hook, struct fold_plan *plan);

size_t fold_room(const char *map); /* how much a map holds where its tool is on */

/* So many rows of a process that goes on were deleted: it may have others in their place. */
void fold_give_back(struct programs *programs, uint64_t born_ns, uint32_t tgid,
                    enum fold_share_of of, uint64_t rows);
