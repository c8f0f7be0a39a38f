// SPDX-License-Identifier: MIT
/*
 * Several tools at a time, as CUDA 13.3's: the functions that name their subscriber, and another
 * tool in the process, which counts kernels and nothing else. Who subscribed by these functions is
 * refused the others, and the other way round. In our own words after NVIDIA's documentation (CUPTI
 * 13.4, "CUPTI multiple subscribers"): no real CUPTI of 13.3 was there to compare with.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti.h"

static atomic_ulong others_kernels;
static __thread bool by_v2; /* this thread is in one of the functions below */

bool several_refuses(void)
{
	return !by_v2 && (settings.other != OTHER_NONE || callback_subscribed_v2());
}

void several_count(const struct sim_work *work, size_t n)
{
	for (size_t i = 0; i < n && settings.other == OTHER_SEVERAL; i++)
		atomic_fetch_add(&others_kernels, work[i].kind == SIM_KERNEL);
}

CUPTI_API unsigned long cuptiOtherKernels(void);
unsigned long cuptiOtherKernels(void)
{
	return atomic_load(&others_kernels);
}

enum other other_setting(void)
{
	const char *text = getenv("SIMCUPTI_OTHER");
	return !text || !*text                ? OTHER_NONE
	       : strcmp(text, "several") == 0 ? OTHER_SEVERAL
	                                      : OTHER_ALONE;
}

struct subscriber_params {
	size_t bytes;
	const char *name;
	char *other;
	size_t other_bytes;
	uint8_t several; /* since 13.2 */
};

#if CUPTI_RELEASE >= 13000
static enum result refuse(const struct subscriber_params *params)
{
	if (params->other)
		snprintf(params->other, params->other_bytes, "CUPTI for other tool");
	return RESULT_MULTIPLE_SUBSCRIBERS;
}

CUPTI_API enum result cuptiSubscribe_v2(struct subscriber **handle, callback call, void *user,
                                        struct subscriber_params *params);
enum result cuptiSubscribe_v2(struct subscriber **handle, callback call, void *user,
                              struct subscriber_params *params)
{
	FAIL_ON_DEMAND();
	if (!params || params->bytes < offsetof(struct subscriber_params, several))
		return RESULT_INVALID_PARAMETER;
	bool several = CUPTI_RELEASE >= 13020 && params->bytes > 32 && params->several;
	if (several && settings.old_driver)
		return RESULT_NOT_SUPPORTED;
	if (settings.busy || settings.other == OTHER_ALONE ||
	    (settings.other == OTHER_SEVERAL && !several))
		return refuse(params);
	by_v2 = true;
	enum result result = callback_subscribe(handle, call, user, CUPTI_RELEASE >= 13030);
	by_v2 = false;
	return result == RESULT_MULTIPLE_SUBSCRIBERS ? refuse(params) : result;
}
#endif

#if CUPTI_RELEASE >= 13030
static buffer_requested_v2 requested_v2;
static buffer_completed_v2 completed_v2;

static void requested(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	size_t info[2] = { sizeof(info) };
	requested_v2(buffer, bytes, max_records, info);
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	size_t info[6] = { sizeof(info) };
	(void)context;
	(void)stream;
	completed_v2(buffer, bytes, valid, info);
}

/* What the function of the other interface does, for who has subscribed by this one. */
#define AS_V1(subscriber, call)                                                                    \
	do {                                                                                       \
		FAIL_ON_DEMAND();                                                                  \
		if (!callback_is_v2(subscriber))                                                   \
			return RESULT_INVALID_PARAMETER;                                           \
		by_v2 = true;                                                                      \
		enum result result = call;                                                         \
		by_v2 = false;                                                                     \
		return result;                                                                     \
	} while (0)

CUPTI_API enum result cuptiActivityRegisterCallbacks_v2(struct subscriber *handle,
                                                        buffer_requested_v2 request,
                                                        buffer_completed_v2 complete);
enum result cuptiActivityRegisterCallbacks_v2(struct subscriber *handle,
                                              buffer_requested_v2 request,
                                              buffer_completed_v2 complete)
{
	if (!request || !complete)
		return RESULT_INVALID_PARAMETER;
	requested_v2 = request;
	completed_v2 = complete;
	AS_V1(handle, cuptiActivityRegisterCallbacks(requested, completed));
}

CUPTI_API enum result cuptiActivityEnable_v2(struct subscriber *handle, uint32_t kind,
                                             const void *config);
enum result cuptiActivityEnable_v2(struct subscriber *handle, uint32_t kind, const void *config)
{
	if (config)
		return RESULT_NOT_SUPPORTED; /* fields by choice: nobody asks for them here */
	AS_V1(handle, cuptiActivityEnable(kind));
}

CUPTI_API enum result cuptiActivityDisable_v2(struct subscriber *handle, uint32_t kind,
                                              const void *config);
enum result cuptiActivityDisable_v2(struct subscriber *handle, uint32_t kind, const void *config)
{
	(void)config;
	AS_V1(handle, cuptiActivityDisable(kind));
}

CUPTI_API enum result cuptiActivityGetNextRecord_v2(struct subscriber *handle, uint8_t *buffer,
                                                    size_t valid, struct record **record);
enum result cuptiActivityGetNextRecord_v2(struct subscriber *handle, uint8_t *buffer, size_t valid,
                                          struct record **record)
{
	AS_V1(handle, cuptiActivityGetNextRecord(buffer, valid, record));
}

CUPTI_API enum result cuptiActivityGetNumDroppedRecords_v2(struct subscriber *handle, void *context,
                                                           uint32_t stream, size_t *dropped);
enum result cuptiActivityGetNumDroppedRecords_v2(struct subscriber *handle, void *context,
                                                 uint32_t stream, size_t *dropped)
{
	AS_V1(handle, cuptiActivityGetNumDroppedRecords(context, stream, dropped));
}

CUPTI_API enum result cuptiActivitySetAttribute_v2(struct subscriber *handle, uint32_t number,
                                                   size_t *bytes, const void *value);
enum result cuptiActivitySetAttribute_v2(struct subscriber *handle, uint32_t number, size_t *bytes,
                                         const void *value)
{
	AS_V1(handle, cuptiActivitySetAttribute(number, bytes, value));
}

CUPTI_API enum result cuptiGetTimestamp_v2(struct subscriber *handle, uint64_t *ns);
enum result cuptiGetTimestamp_v2(struct subscriber *handle, uint64_t *ns)
{
	AS_V1(handle, cuptiGetTimestamp(ns));
}
#endif
