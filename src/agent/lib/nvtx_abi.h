/* SPDX-License-Identifier: MIT */
/* As much of NVTX 3's binary interface as an injected library needs; see cupti_abi.h. */
#ifndef CUSCOPE_AGENT_LIB_NVTX_ABI_H
#define CUSCOPE_AGENT_LIB_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>

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

#endif
