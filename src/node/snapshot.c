// SPDX-License-Identifier: MIT
#include "node/snapshot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/xalloc.h"

#define STALE_INTERVALS 3
#define STALE_LEAST_NS  3000000000ull /* hooking a library takes its time on a busy machine */

struct snapshot {
	atomic_uint holders;
	struct metrics *metrics;
	uint64_t time_ns, interval_ns;
	pthread_mutex_t lock; /* of texts */
	struct buf texts[METRICS_FORMATS];
};

struct snapshots {
	pthread_mutex_t lock; /* of last, for as long as a pointer is copied */
	struct snapshot *last;
	atomic_uint_fast64_t turned_ns;
};

struct snapshots *snapshots_new(void)
{
	struct snapshots *snapshots = xcalloc(1, sizeof(*snapshots));

	pthread_mutex_init(&snapshots->lock, NULL);
	return snapshots;
}

void snapshot_put(struct snapshot *snapshot)
{
	if (!snapshot || atomic_fetch_sub(&snapshot->holders, 1) > 1)
		return;
	for (size_t i = 0; i < METRICS_FORMATS; i++)
		buf_free(&snapshot->texts[i]);
	pthread_mutex_destroy(&snapshot->lock);
	metrics_free(snapshot->metrics);
	free(snapshot);
}

void snapshots_free(struct snapshots *snapshots)
{
	if (!snapshots)
		return;
	snapshot_put(snapshots->last);
	pthread_mutex_destroy(&snapshots->lock);
	free(snapshots);
}

void snapshots_publish(struct snapshots *snapshots, struct metrics *metrics, uint64_t time_ns,
                       uint64_t interval_ns)
{
	struct snapshot *snapshot = xcalloc(1, sizeof(*snapshot)), *before;

	atomic_init(&snapshot->holders, 1);
	snapshot->metrics = metrics;
	snapshot->time_ns = time_ns;
	snapshot->interval_ns = interval_ns;
	pthread_mutex_init(&snapshot->lock, NULL);
	pthread_mutex_lock(&snapshots->lock);
	before = snapshots->last;
	snapshots->last = snapshot;
	pthread_mutex_unlock(&snapshots->lock);
	snapshot_put(before);
}

struct snapshot *snapshots_take(struct snapshots *snapshots)
{
	struct snapshot *snapshot;

	LOCKED(&snapshots->lock);
	snapshot = snapshots->last;
	if (snapshot)
		atomic_fetch_add(&snapshot->holders, 1);
	return snapshot;
}

void snapshots_turned(struct snapshots *snapshots, uint64_t now_ns)
{
	atomic_store(&snapshots->turned_ns, now_ns);
}

uint64_t snapshots_turned_ns(const struct snapshots *snapshots)
{
	return atomic_load(&snapshots->turned_ns);
}

uint64_t snapshot_age_ns(const struct snapshot *snapshot, uint64_t now_ns)
{
	return now_ns > snapshot->time_ns ? now_ns - snapshot->time_ns : 0;
}

bool snapshot_is_stale(const struct snapshot *snapshot, uint64_t now_ns)
{
	uint64_t age_ns = snapshot_age_ns(snapshot, now_ns);

	return age_ns > STALE_INTERVALS * snapshot->interval_ns && age_ns > STALE_LEAST_NS;
}

const char *snapshot_text(struct snapshot *snapshot, enum metrics_format format, size_t *bytes)
{
	struct buf *text = &snapshot->texts[format];

	pthread_mutex_lock(&snapshot->lock);
	if (!text->data) {
		buf_puts(text, "");
		metrics_write(snapshot->metrics, format, text);
	}
	pthread_mutex_unlock(&snapshot->lock);
	*bytes = text->len;
	return text->data;
}
