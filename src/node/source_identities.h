/* SPDX-License-Identifier: MIT */
/* Who the processes with series are, for source_processes.c: the labels of cuscope_process_info. */
#ifndef CUSCOPE_NODE_SOURCE_IDENTITIES_H
#define CUSCOPE_NODE_SOURCE_IDENTITIES_H

#include "node/node.h"

/* begin() and end() of the source. */
void *source_identities_begin(const struct node_settings *settings);
void source_identities_end(void *state);

/* Asks for those that are new in the page, so that they are known before they end. */
void source_identities_look(void *state, const struct node_view *view);

/* `base`, and behind it what is known of the process by now. */
metric_labels source_identities_labels(void *state, const struct counted_process *process,
                                       metric_labels base, struct metrics *metrics);

/* What was read, and what was not. */
void source_identities_count(void *state, struct metrics *metrics);

#endif
