/* SPDX-License-Identifier: MIT */
/* What the flight recorder's rules judge, from what the node agent knows at each of its pages. */
#ifndef CUSCOPE_NODE_RECORDER_FACTS_H
#define CUSCOPE_NODE_RECORDER_FACTS_H

#include "node/counts.h"
#include "node/recorder.h"
#include "watch/places.h"

struct gpu_states;
struct recorder_facts;

/* `gpus`: the caller's, which stay its own; NULL: nothing is known of GPUs. They are looked at only
 * for rules that are on. */
struct recorder_facts *recorder_facts_new(const struct node_settings *settings,
                                          struct gpu_states *gpus);
void recorder_facts_free(struct recorder_facts *facts);

/* Of a page at which leaks were judged, while it is there. `counts` knows whose processes are. */
void recorder_facts_judged(struct recorder_facts *facts, const struct places *places,
                           const struct counts *counts);

/* Tells the recorder. Waits for nothing. */
void recorder_facts_tell(struct recorder_facts *facts, uint64_t now_ns, struct recorder *recorder);

#endif
