// SPDX-License-Identifier: MIT
#include "agent/lib/stalls_sums.h"

#include <string.h>
#include <sys/mman.h>

#include "agent/lib/cubins.h"

#define SLOTS       8192 /* a power of two */
#define PLACES_MOST 4096 /* sums that tell the instruction */
#define SUMS_MOST   6144
#define REASONS     512 /* CUPTI's numbers of them: 40, with gaps */
#define TEXT_MOST   64

#define PREFIX "stalled_"
/* Of the reason without it, and among its samples: no other warp was issued either. */
#define NOT_ISSUED "_not_issued"

struct sum {
	uint64_t cubin, offset;
	uint32_t function, reason;
	const char *kernel;
	uint64_t samples; /* 0: an empty slot */
};

struct sums {
	struct sum slots[SLOTS];
	char reasons[REASONS][TEXT_MOST]; /* without what all of them have; "" : none */
	uint32_t n;
	uint64_t samples, dropped, foreign, beyond;
};

struct sums *sums_new(void)
{
	void *mapped = mmap(NULL, sizeof(struct sums), PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mapped == MAP_FAILED ? NULL : mapped;
}

void sums_free(struct sums *sums)
{
	if (sums)
		munmap(sums, sizeof(*sums));
}

/* ---- reasons ------------------------------------------------------------------------------- */

/* "smsp__pcsamp_warps_issue_stalled_long_scoreboard": "long_scoreboard" */
static void shorten(const char *name, char to[TEXT_MOST])
{
	const char *from = strstr(name, PREFIX);
	size_t length;

	from = from ? from + strlen(PREFIX) : name;
	length = strlen(from);
	if (length >= TEXT_MOST)
		length = TEXT_MOST - 1;
	memcpy(to, from, length);
	to[length] = '\0';
}

void sums_reasons(struct sums *sums, size_t n, const uint32_t *index, char *const *names)
{
	memset(sums->reasons, 0, sizeof(sums->reasons));
	for (size_t i = 0; i < n; i++) {
		if (index[i] < REASONS && !strstr(names[i], NOT_ISSUED))
			shorten(names[i], sums->reasons[index[i]]);
	}
}

/* ---- adding -------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static struct sum *find(struct sums *sums, const struct sum *key)
{
	uint64_t hash = mix(mix(mix(key->cubin, key->offset), key->function), key->reason);

	for (;; hash++) {
		struct sum *sum = &sums->slots[hash % SLOTS];

		if (!sum->samples || (sum->cubin == key->cubin && sum->offset == key->offset &&
		                      sum->function == key->function && sum->reason == key->reason))
			return sum;
	}
}

void sums_add(struct sums *sums, const struct pcs_pc *pc, const struct pcs_stall *stall)
{
	struct sum key = {
		.cubin = pc->cubin,
		.offset = pc->offset,
		.function = pc->function,
		.kernel = pc->name,
		.reason = stall->reason,
	};
	struct sum *sum;

	if (!stall->samples || stall->reason >= REASONS || !*sums->reasons[stall->reason])
		return;
	sum = find(sums, &key);
	if (!sum->samples && sums->n >= PLACES_MOST) {
		key.offset = AGENT_STALL_ANYWHERE;
		sum = find(sums, &key);
	}
	if (!sum->samples && sums->n >= SUMS_MOST) {
		sums->beyond += stall->samples;
		return;
	}
	if (!sum->samples) {
		*sum = key;
		sums->n++;
	}
	sum->samples += stall->samples;
}

void sums_add_all(struct sums *sums, const struct pcs_data *data)
{
	sums->samples += data->samples;
	sums->dropped += data->dropped;
	sums->foreign += data->foreign_samples;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* False: the ring is full. */
static bool write_sum(const struct sums *sums, const struct sum *sum, struct intern *intern,
                      struct ring *ring, const struct sums_window *window)
{
	struct agent_stall record = {
		.head = { .bytes = sizeof(record), .type = AGENT_STALL },
		.begin_ns = window->begin_ns,
		.end_ns = window->end_ns,
		.cubin = sum->cubin,
		.offset = sum->offset,
		.samples = sum->samples,
		.kernel = intern_name(intern, ring, sum->kernel),
		.reason = intern_name(intern, ring, sums->reasons[sum->reason]),
	};

	char path[CUBINS_PATH];

	if (sum->offset != AGENT_STALL_ANYWHERE &&
	    cubins_line(sum->cubin, sum->kernel, sum->offset, path, &record.line))
		record.file = intern_name(intern, ring, path);
	return record.kernel && record.reason && ring_put(ring, &record.head);
}

void sums_write(struct sums *sums, struct intern *intern, struct ring *ring,
                const struct sums_window *window)
{
	struct agent_stall_window record = {
		.head = { .bytes = sizeof(record), .type = AGENT_STALL_WINDOW },
		.begin_ns = window->begin_ns,
		.end_ns = window->end_ns,
		.cost_ns = window->cost_ns,
		.samples = sums->samples,
		.foreign = sums->foreign,
	};

	cubins_turn();
	for (size_t i = 0; i < SLOTS && sums->n; i++) {
		struct sum *sum = &sums->slots[i];

		if (!sum->samples)
			continue;
		if (!write_sum(sums, sum, intern, ring, window))
			sums->beyond += sum->samples;
		sum->samples = 0;
	}
	record.dropped = sums->dropped + sums->beyond;
	if (!window->is_rest || sums->samples)
		ring_put(ring, &record.head);
	sums->n = 0;
	sums->samples = sums->dropped = sums->foreign = sums->beyond = 0;
}
