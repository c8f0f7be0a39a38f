// SPDX-License-Identifier: MIT
/*
 * The text of RAS' answer. It is nearly JSON: NCCL 2.28.9 leaves out a comma in the description of
 * a rank that is missing, so it is read by its keys, whatever stands between them.
 */
#include "identity/ras.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
	const char *at, *end;
	struct ras_rank rank; /* the communicator's part stays from rank to rank */
	bool open, missing;
	size_t n;
	void (*each)(void *data, const struct ras_rank *rank);
	void *data;
};

static const char *const count_names[RAS_COUNTS] = { "Broadcast", "Reduce", "AllGather",
	                                             "ReduceScatter", "AllReduce" };

static void rank_end(struct reading *reading)
{
	if (!reading->open)
		return;
	reading->open = false;
	reading->n++;
	reading->each(reading->data, &reading->rank);
}

static void rank_begin(struct reading *reading, int32_t number)
{
	const struct ras_rank *before = &reading->rank;

	rank_end(reading);
	reading->rank = (struct ras_rank){ .hash = before->hash,
		                           .host_hash = before->host_hash,
		                           .pid_hash = before->pid_hash,
		                           .size = before->size,
		                           .rank = number,
		                           .missing = reading->missing };
	reading->open = true;
}

static void comm_begin(struct reading *reading, uint64_t hash)
{
	rank_end(reading);
	reading->rank = (struct ras_rank){ .hash = hash };
	reading->missing = false;
}

/* A text between quotes, of which `text` has what it has room for; those of NCCL have no
 * backslash. False: it has no end. */
static bool take_text(struct reading *reading, char *text, size_t room)
{
	const char *from = ++reading->at;
	const char *quote = memchr(from, '"', (size_t)(reading->end - from));
	size_t bytes;

	if (!quote)
		return false;
	bytes = (size_t)(quote - from) < room - 1 ? (size_t)(quote - from) : room - 1;
	memcpy(text, from, bytes);
	text[bytes] = '\0';
	reading->at = quote + 1;
	return true;
}

/* A word or a number, up to what cannot be of it. */
static void take_word(struct reading *reading, char *word, size_t room)
{
	size_t bytes = 0;

	while (reading->at < reading->end && !strchr(",]}[{\" \n\r\t", *reading->at)) {
		if (bytes < room - 1)
			word[bytes++] = *reading->at;
		reading->at++;
	}
	word[bytes] = '\0';
}

static void take_value(struct reading *reading, const char *key, const char *value)
{
	struct ras_rank *rank = &reading->rank;
	const char *colon = strchr(value, ':');
	bool is_true = !strcmp(value, "true");

	if (!strcmp(key, "hash")) {
		comm_begin(reading, strtoull(value, NULL, 16));
	} else if (!strcmp(key, "secondary_hash")) {
		rank->host_hash = strtoull(value, NULL, 16);
		rank->pid_hash = colon ? strtoull(colon + 1, NULL, 16) : 0;
	} else if (!strcmp(key, "size")) {
		rank->size = (uint32_t)strtoul(value, NULL, 10);
	} else if (!strcmp(key, "rank")) {
		rank_begin(reading, (int32_t)strtol(value, NULL, 10));
	} else if (!strcmp(key, "host")) {
		snprintf(rank->host, sizeof(rank->host), "%s", value);
	} else if (!strcmp(key, "pid")) {
		rank->pid = (int32_t)strtol(value, NULL, 10);
	} else if (!strcmp(key, "cuda_dev")) {
		rank->device = (int32_t)strtol(value, NULL, 10);
	} else if (!strcmp(key, "nvml_dev")) {
		rank->nvml_device = (int32_t)strtol(value, NULL, 10);
	} else if (!strcmp(key, "async_error")) {
		rank->failed |= strcmp(value, "0") != 0;
	} else if (!strcmp(key, "abort_flag") || !strcmp(key, "considered_dead")) {
		rank->failed |= is_true;
	} else {
		for (size_t i = 0; i < RAS_COUNTS; i++)
			if (!strcmp(key, count_names[i]))
				rank->counts[i] = strtoull(value, NULL, 10);
	}
}

static void skip_blanks(struct reading *reading)
{
	while (reading->at < reading->end && strchr(" \n\r\t", *reading->at) && *reading->at)
		reading->at++;
}

/* What stands behind a key and its colon. */
static bool take_member(struct reading *reading, const char *key)
{
	char value[sizeof(reading->rank.host)];

	skip_blanks(reading);
	if (reading->at == reading->end)
		return false;
	if (*reading->at == '[' || *reading->at == '{') {
		if (!strcmp(key, "ranks") || !strcmp(key, "missing_ranks")) {
			rank_end(reading);
			reading->missing = *key == 'm';
		}
		reading->at++;
		return true;
	}
	if (*reading->at != '"')
		take_word(reading, value, sizeof(value));
	else if (!take_text(reading, value, sizeof(value)))
		return false;
	take_value(reading, key, value);
	return true;
}

size_t ras_read(const char *text, size_t bytes,
                void (*each)(void *data, const struct ras_rank *rank), void *data)
{
	struct reading reading = { .at = text, .end = text + bytes, .each = each, .data = data };
	char key[32];

	while (reading.at < reading.end) {
		if (*reading.at != '"') {
			reading.at++;
			continue;
		}
		if (!take_text(&reading, key, sizeof(key)))
			break;
		skip_blanks(&reading);
		if (reading.at == reading.end || *reading.at != ':')
			continue;
		reading.at++;
		if (!take_member(&reading, key))
			break;
	}
	rank_end(&reading);
	return reading.n;
}
