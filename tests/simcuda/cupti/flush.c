// SPDX-License-Identifier: MIT
/* What the program says of its buffers, and attributes. */
#include <string.h>
#include <time.h>

#include "cupti.h"

enum result cuptiActivityRegisterCallbacks(buffer_requested requested, buffer_completed completed)
{
	FAIL_ON_DEMAND();
	NOT_BY_V2();
	if (!requested || !completed)
		return RESULT_INVALID_PARAMETER;
	buffer_callbacks(requested, completed);
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiActivityFlushAll(uint32_t flags);
enum result cuptiActivityFlushAll(uint32_t flags)
{
	FAIL_ON_DEMAND();
	session_need(__func__);
	if (flags & ~(uint32_t)FLAG_FLUSH_FORCED)
		return RESULT_INVALID_PARAMETER;
	if (!buffer_has_callbacks())
		return RESULT_INVALID_OPERATION;
	uint64_t begin = clock_ns();
	if (settings.flush_ms)
		nanosleep(&(struct timespec){ (time_t)(settings.flush_ms / 1000),
		                              (long)(settings.flush_ms % 1000) * 1000000 },
		          NULL);
	buffer_flush(flags & FLAG_FLUSH_FORCED);
	/* Comes with the next flush, as it was not over in this one. */
	overhead_add(OVERHEAD_FLUSH, begin, clock_ns());
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiActivityFlush(void *context, uint32_t stream, uint32_t flags);
enum result cuptiActivityFlush(void *context, uint32_t stream, uint32_t flags)
{
	FAIL_ON_DEMAND();
	session_need(__func__);
	if (!buffer_has_callbacks())
		return RESULT_INVALID_OPERATION;
	buffer_flush(flags & FLAG_FLUSH_FORCED);
	return RESULT_SUCCESS;
}

#if CUPTI_RELEASE >= 11010
CUPTI_API enum result cuptiActivityFlushPeriod(uint32_t ms);
enum result cuptiActivityFlushPeriod(uint32_t ms)
{
	FAIL_ON_DEMAND();
	buffer_period(ms);
	return RESULT_SUCCESS;
}
#endif

enum result cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	FAIL_ON_DEMAND();
	NOT_BY_V2();
	if (!dropped)
		return RESULT_INVALID_PARAMETER;
	*dropped = buffer_dropped();
	return RESULT_SUCCESS;
}

/* ---- attributes ------------------------------------------------------------------------------ */

enum { ATTRIBUTE_PER_THREAD_BUFFER = 9 };

static struct attribute {
	size_t bytes; /* 0: there is none of the number */
	uint64_t value;
} attributes[] = {
	[0] = { sizeof(size_t), 3200000 },
	[1] = { sizeof(size_t), 8388608 },
	[2] = { sizeof(size_t), 250 },
	[3] = { sizeof(size_t), 25000 },
	[4] = { sizeof(size_t), 250 },
	[5] = { 1, 0 },
#if CUPTI_RELEASE >= 12000
	[6] = { sizeof(size_t), 3 },
	[7] = { sizeof(size_t), 3 },
	[8] = { 1, 0 },
	[ATTRIBUTE_PER_THREAD_BUFFER] = { 1, CUPTI_RELEASE >= 13000 },
#endif
#if CUPTI_RELEASE >= 13000
	[10] = { sizeof(size_t), 16777216 },
#endif
};

static enum result find(uint32_t number, const size_t *bytes, const void *value,
                        struct attribute **attribute)
{
	if (number >= sizeof(attributes) / sizeof(attributes[0]) || !bytes || !value)
		return RESULT_INVALID_PARAMETER;
	*attribute = &attributes[number];
	if ((*attribute)->bytes == 0)
		return RESULT_INVALID_PARAMETER;
	return *bytes < (*attribute)->bytes ? RESULT_SIZE_NOT_SUFFICIENT : RESULT_SUCCESS;
}

enum result cuptiActivitySetAttribute(uint32_t number, size_t *bytes, const void *value)
{
	struct attribute *attribute;
	FAIL_ON_DEMAND();
	NOT_BY_V2();
	enum result result = find(number, bytes, value, &attribute);
	if (result != RESULT_SUCCESS)
		return result;
	memcpy(&attribute->value, value, attribute->bytes);
	if (number == ATTRIBUTE_PER_THREAD_BUFFER)
		buffer_per_thread(attribute->value & 1);
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiActivityGetAttribute(uint32_t number, size_t *bytes, void *value);
enum result cuptiActivityGetAttribute(uint32_t number, size_t *bytes, void *value)
{
	struct attribute *attribute;
	FAIL_ON_DEMAND();
	enum result result = find(number, bytes, value, &attribute);
	if (result != RESULT_SUCCESS)
		return result;
	memcpy(value, &attribute->value, attribute->bytes);
	*bytes = attribute->bytes;
	return RESULT_SUCCESS;
}
