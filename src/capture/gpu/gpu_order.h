/* SPDX-License-Identifier: MIT */
/*
 * Activities and ranges in order of their ends. They come in buffers, each of a context, in no
 * order among themselves, and wait here until what ended before them must have come.
 */
#pragma once

#include <stddef.h>

#include "capture/gpu/gpu_records.h"

/* Items (48 MiB) and bytes of their texts; beyond, the oldest do not wait any longer. */
#define GPU_ORDER_MAX       (1u << 18)
#define GPU_ORDER_TEXTS_MAX (8u << 20)

/* Of both a user but root has two fifths, while others wait as well. */
#define GPU_ORDER_SHARE(most) ((most) / 5 * 2)

/* Ends of its process's programs that an item is looked at for. It can wait for seconds, in which a
 * process executes a thousand programs; an agent's own work is there for one or two. */
#define GPU_ORDER_LOOKS 16

struct gpu_order;

struct gpu_order *gpu_order_new(void);
void gpu_order_free(struct gpu_order *order);

/* Takes what the item holds. */
void gpu_order_add(struct gpu_order *order, const struct gpu_item *item);

/* The one that ended first, NULL for none; valid until the next call. */
struct gpu_item *gpu_order_first(const struct gpu_order *order);
size_t gpu_order_count(const struct gpu_order *order);

enum gpu_order_room {
	GPU_ORDER_ROOM,
	GPU_ORDER_FULL,   /* the first is to go on, though it could wait */
	GPU_ORDER_REFUSED /* he has his share, and the first is another's; or it is still to end */
};
enum gpu_order_room gpu_order_room(struct gpu_order *order, uint64_t person, uint64_t now_ns);

/* Takes the first out; true when one that ended after it was taken out before. The caller frees. */
bool gpu_order_take(struct gpu_order *order, struct gpu_item *item);

/* Those that arrived before `until_ns` and were not given to `each` yet. */
void gpu_order_each_new(struct gpu_order *order, uint64_t until_ns,
                        void (*each)(void *data, struct gpu_item *item), void *data);

/*
 * When the last item ended of those that a process had before `until_ns`; 0: there is none. To be
 * asked once for each end of a program of the process: what was there for GPU_ORDER_LOOKS of them
 * is nobody's from then on. These three look at the process's own items alone.
 */
uint64_t gpu_order_last_of(struct gpu_order *order, const struct process *process,
                           uint64_t until_ns);

/* Items that the process had before `until_ns` are nobody's from now on: their process is NULL. */
void gpu_order_orphan(struct gpu_order *order, const struct process *process, uint64_t until_ns);

/* Items of a process that began later are another one's. */
void gpu_order_move(struct gpu_order *order, const struct process *from, uint64_t since_ns,
                    const struct process *to);
