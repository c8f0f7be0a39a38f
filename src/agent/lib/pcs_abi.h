/* SPDX-License-Identifier: MIT */
/*
 * CUPTI's binary interface of PC sampling, in our own words (cupti_pcsampling.h; tests/agent/abi.c
 * compares). Each struct begins with its size, by which CUPTI tells what its caller knows of it:
 *
 *   PCSamplingPCData   11.3, without `correlation`; 12.4 (22): with it. An array of them has the
 *                      length of the version that CUPTI is of, whatever `size` says
 *   PCSamplingData     11.3 up to `pcs`; 11.5 `foreign_samples`; 11.8 `hardware_full`
 *
 * Records of kernels and samples of one process at once: since 12.8 update 1. That has the number
 * of 12.8 (26), so the first that can be told to do it is 12.9: CUPTI_VERSION_STALLS.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CUPTI_VERSION_STALLS 27

#define PCS_REASON_NAME 128 /* CUPTI_STALL_REASON_STRING_SIZE */

struct pcs_stall {
	uint32_t reason; /* its index */
	uint32_t samples;
};

/* CUpti_PCSamplingPCData */
struct pcs_pc {
	size_t size;
	uint64_t cubin; /* its CRC */
	uint64_t offset;
	uint32_t function;
	uint32_t padding;
	char *name; /* mangled; malloc'ed by CUPTI, and shared */
	size_t n_stalls;
	struct pcs_stall *stalls;
	uint32_t correlation; /* of serialised kernels only */
};

/* CUpti_PCSamplingData */
struct pcs_data {
	size_t size;
	size_t room; /* PCs */
	uint64_t samples;
	uint64_t dropped; /* among them */
	size_t n;
	size_t left; /* PCs for the next call */
	uint64_t range;
	struct pcs_pc *pcs;
	uint64_t foreign_samples; /* among them: of kernels that are not the program's */
	uint8_t hardware_full;
};

enum pcs_attribute_type {
	PCS_PERIOD = 1, /* 2^5 to 2^31 cycles */
	PCS_REASONS = 2,
	PCS_SCRATCH_BYTES = 3,
	PCS_HARDWARE_BYTES = 4,
	PCS_MODE = 5,
	PCS_START_STOP = 6,
	PCS_FORMAT = 7,
	PCS_BUFFER = 8,
};

enum { PCS_MODE_CONTINUOUS = 1, PCS_FORMAT_PARSED = 1 };

/* CUpti_PCSamplingConfigurationInfo */
struct pcs_attribute {
	uint32_t type;
	uint32_t status; /* CUptiResult */
	union {
		uint64_t words[3];
		uint32_t number;
		size_t bytes;
		void *buffer; /* struct pcs_data */
		struct {
			size_t n;
			uint32_t *index;
		} reasons;
	};
};

/* Their sizes end with the last member: CUPTI refuses what alignment adds. */
#define PCS_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))

/* Enable, Disable, Start, Stop */
struct pcs_context {
	size_t size;
	void *private_data;
	void *context; /* CUcontext */
};
#define PCS_CONTEXT_BYTES PCS_SIZE(pcs_context, context)

struct pcs_configure {
	size_t size;
	void *private_data;
	void *context;
	size_t n;
	struct pcs_attribute *attributes;
};
#define PCS_CONFIGURE_BYTES PCS_SIZE(pcs_configure, attributes)

struct pcs_get {
	size_t size;
	void *private_data;
	void *context;
	void *data; /* struct pcs_data */
};
#define PCS_GET_BYTES PCS_SIZE(pcs_get, data)

struct pcs_count {
	size_t size;
	void *private_data;
	void *context;
	size_t *n;
};
#define PCS_COUNT_BYTES PCS_SIZE(pcs_count, n)

struct pcs_reasons {
	size_t size;
	void *private_data;
	void *context;
	size_t n;
	uint32_t *index;
	char **names; /* of PCS_REASON_NAME bytes each */
};
#define PCS_REASONS_BYTES PCS_SIZE(pcs_reasons, names)

/* cuptiGetCubinCrc */
struct pcs_crc {
	size_t size;
	size_t bytes;
	const void *cubin;
	uint64_t crc;
};
#define PCS_CRC_BYTES PCS_SIZE(pcs_crc, crc)

/* cuptiGetSassToSourceCorrelation */
struct pcs_line {
	size_t size;
	const void *cubin;
	const char *function; /* mangled */
	size_t bytes;
	uint32_t line;
	uint64_t offset;
	char *file, *directory; /* malloc'ed */
};
#define PCS_LINE_BYTES PCS_SIZE(pcs_line, directory)

/* FUNCTION(name, argument): all may be missing, and return a CUptiResult. */
#define PCS_FUNCTIONS(FUNCTION)                                                                    \
	FUNCTION(cuptiPCSamplingEnable, struct pcs_context)                                        \
	FUNCTION(cuptiPCSamplingDisable, struct pcs_context)                                       \
	FUNCTION(cuptiPCSamplingStart, struct pcs_context)                                         \
	FUNCTION(cuptiPCSamplingStop, struct pcs_context)                                          \
	FUNCTION(cuptiPCSamplingGetNumStallReasons, struct pcs_count)                              \
	FUNCTION(cuptiPCSamplingGetStallReasons, struct pcs_reasons)                               \
	FUNCTION(cuptiPCSamplingSetConfigurationAttribute, struct pcs_configure)                   \
	FUNCTION(cuptiPCSamplingGetData, struct pcs_get)
