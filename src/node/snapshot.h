/* SPDX-License-Identifier: MIT */
/*
 * What the threads of the node agent share: the last snapshot. The capture's thread makes one,
 * publishes it and never touches it again. The server's thread takes it, answers from it, and lets
 * it go. So no scrape waits for the capture, and the capture waits for no client.
 */
#ifndef CUSCOPE_NODE_SNAPSHOT_H
#define CUSCOPE_NODE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/metrics.h"

struct snapshot;
struct snapshots;

struct snapshots *snapshots_new(void);
void snapshots_free(struct snapshots *snapshots);

/* Takes the metrics over. `time_ns`: CLOCK_MONOTONIC. `interval_ns`: when the next is due. */
void snapshots_publish(struct snapshots *snapshots, struct metrics *metrics, uint64_t time_ns,
                       uint64_t interval_ns);

/* The last one, until snapshot_put(); NULL: there is none yet. */
struct snapshot *snapshots_take(struct snapshots *snapshots);
void snapshot_put(struct snapshot *snapshot);

/* The capture's loop turned: when, by CLOCK_MONOTONIC; 0: it has not yet. */
void snapshots_turned(struct snapshots *snapshots, uint64_t now_ns);
uint64_t snapshots_turned_ns(const struct snapshots *snapshots);

/* How old it is, and whether that is more than three intervals, and 3 s. */
uint64_t snapshot_age_ns(const struct snapshot *snapshot, uint64_t now_ns);
bool snapshot_is_stale(const struct snapshot *snapshot, uint64_t now_ns);

/* The exposition, made when it is first asked for; as long as the snapshot is held. */
const char *snapshot_text(struct snapshot *snapshot, enum metrics_format format, size_t *bytes);

#endif
