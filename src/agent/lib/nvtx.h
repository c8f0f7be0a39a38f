/* SPDX-License-Identifier: MIT */
/*
 * NVTX: what the program itself says that it does. The program's NVTX loads the library that
 * NVTX_INJECTION64_PATH names at its first call, and has its functions replaced by ours for good.
 * While nobody measures, ours only look at a word.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct nvtx_domain;

struct nvtx_domain *nvtx_domain(const char *name); /* the same for the same name */

/* What a program says of a range or mark. */
struct nvtx_event {
	const char *text;
	uint32_t category; /* 0: none */
	uint32_t color;    /* as struct agent_nvtx has it; 0: none */
};

/* NULL is the default domain. A push or pop returns the depth, or NVTX_NOT_TRACKED. */
int nvtx_push(struct nvtx_domain *domain, const struct nvtx_event *event);
int nvtx_pop(struct nvtx_domain *domain);
uint64_t nvtx_start(struct nvtx_domain *domain, const struct nvtx_event *event);
void nvtx_end(uint64_t range);
void nvtx_mark(struct nvtx_domain *domain, const struct nvtx_event *event);

void nvtx_forked(void); /* in the child */

/* ---- nvtx abi ------------------------------------------------------------------------------ */

/* As much of NVTX 3's binary interface as an injected library needs; see cupti_abi.h. */

enum nvtx_module { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

/* Places in the tables of functions: NvtxCallbackIdCore, NvtxCallbackIdCore2 */
enum nvtx_core {
	NVTX_CORE_MarkEx = 1,
	NVTX_CORE_MarkA,
	NVTX_CORE_MarkW,
	NVTX_CORE_RangeStartEx,
	NVTX_CORE_RangeStartA,
	NVTX_CORE_RangeStartW,
	NVTX_CORE_RangeEnd,
	NVTX_CORE_RangePushEx,
	NVTX_CORE_RangePushA,
	NVTX_CORE_RangePushW,
	NVTX_CORE_RangePop,
};

enum nvtx_core2 {
	NVTX_CORE2_DomainMarkEx = 1,
	NVTX_CORE2_DomainRangeStartEx,
	NVTX_CORE2_DomainRangeEnd,
	NVTX_CORE2_DomainRangePushEx,
	NVTX_CORE2_DomainRangePop,
	NVTX_CORE2_DomainRegisterStringA = 10,
	NVTX_CORE2_DomainRegisterStringW,
	NVTX_CORE2_DomainCreateA,
	NVTX_CORE2_DomainCreateW,
	NVTX_CORE2_DomainDestroy,
};

typedef void (*nvtx_function)(void);

/* NvtxExportTableCallbacks */
struct nvtx_callbacks {
	size_t bytes;
	int (*get_module_functions)(uint32_t module, nvtx_function ***table, unsigned *bytes);
};

#define NVTX_TABLE_CALLBACKS 1
typedef const void *(*nvtx_get_table)(uint32_t table);

enum nvtx_message { NVTX_ASCII = 1, NVTX_UNICODE = 2, NVTX_REGISTERED = 3 };

/* nvtxEventAttributes_v2 */
struct nvtx_attributes {
	uint16_t version, bytes;
	uint32_t category;
	int32_t color_type; /* NVTX_ARGB, or there is none */
	uint32_t color;
	int32_t payload_type;
	int32_t reserved0;
	uint64_t payload;
	int32_t message_type; /* enum nvtx_message */
	const void *message;
};

#define NVTX_ARGB 1

#define NVTX_NOT_TRACKED (-2) /* what push and pop return where nobody counts */
