// SPDX-License-Identifier: MIT
/* How long records are in this release, and how they are written. */
#include <stdatomic.h>
#include <string.h>

#include "cupti.h"

#define BYTES(old, middle, now)                                                                    \
	(CUPTI_RELEASE >= 13000 ? (now) : CUPTI_RELEASE >= 12000 ? (middle) : (old))

size_t record_bytes(uint32_t kind)
{
	switch (kind) {
#define CASE(kind, member, old, middle, now)                                                       \
	case kind:                                                                                 \
		return BYTES(old, middle, now);
		RECORD_VERSIONS(CASE)
#undef CASE
	default:
		return 0;
	}
}

uint64_t *record_start(union any_record *record)
{
	switch (record->kind) {
#define CASE(kind, member, old, middle, now)                                                       \
	case kind:                                                                                 \
		return &record->member.start;
		RECORD_VERSIONS(CASE)
#undef CASE
	default:
		return NULL;
	}
}

uint32_t record_stream(const union any_record *record)
{
	switch (record->kind) {
	case KIND_MEMCPY:
		return record->copy.stream;
	case KIND_MEMCPY2:
		return record->peer.stream;
	case KIND_MEMSET:
		return record->set.stream;
	case KIND_KERNEL:
	case KIND_CONCURRENT_KERNEL:
		return record->kernel.stream;
	default:
		return 0;
	}
}

/* Every Nth piece of work: times that no work can have, in turn. */
static void spoil(uint64_t *start)
{
	static atomic_ulong n;
	unsigned long nth = atomic_fetch_add(&n, 1) + 1;
	if (!settings.bad_times || nth % settings.bad_times != 0)
		return;
	const uint64_t hour = 3600000000000u;
	switch (nth / settings.bad_times % 3) {
	case 0:
		start[0] += hour;
		start[1] += hour;
		break;
	case 1:
		start[0] = start[1] = 0;
		break;
	default:
		start[1] = start[0] - 1000;
		break;
	}
}

size_t record_write(const union any_record *record, uint8_t *to)
{
	union any_record copy = *record;
	uint64_t *start = record_start(&copy);
	uint64_t behind = record_stream(&copy) ? settings.behind_ns : 0;
	/* Times that are not known are 0 in every clock. */
	for (int i = 0; i < 2; i++) {
		if (start[i])
			start[i] = timestamp_of(start[i]) - behind;
	}
	if (record_stream(&copy) && start[1])
		spoil(start);
	/* Before CUDA 11.1 there was padding where the graph is now. */
	if (CUPTI_RELEASE < 11010 && copy.kind == KIND_CONCURRENT_KERNEL)
		copy.kernel.graph = 0xa5a5a5a5;
	size_t bytes = record_bytes(copy.kind);
	memcpy(to, &copy, bytes);
	return bytes;
}

enum result cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, struct record **record)
{
	FAIL_ON_DEMAND();
	NOT_BY_V2();
	if (!buffer || !record)
		return RESULT_INVALID_PARAMETER;
	uint8_t *next = buffer;
	if (*record) {
		uint8_t *last = (uint8_t *)*record;
		if (last < buffer || last >= buffer + valid)
			return RESULT_INVALID_PARAMETER;
		if (record_bytes((*record)->kind) == 0)
			return RESULT_INVALID_KIND;
		next = last + record_bytes((*record)->kind);
	}
	if (next >= buffer + valid)
		return RESULT_MAX_LIMIT_REACHED;
	if (record_bytes(((struct record *)next)->kind) == 0)
		return RESULT_INVALID_KIND;
	*record = (struct record *)next;
	return RESULT_SUCCESS;
}
