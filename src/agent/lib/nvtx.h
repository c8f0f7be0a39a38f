/* SPDX-License-Identifier: MIT */
/*
 * NVTX: what the program itself says that it does. The program's NVTX loads the library that
 * NVTX_INJECTION64_PATH names at its first call, and has its functions replaced by ours for good.
 * While nobody measures, ours only look at a word.
 */
#ifndef CUSCOPE_AGENT_LIB_NVTX_H
#define CUSCOPE_AGENT_LIB_NVTX_H

#include <stddef.h>
#include <stdint.h>

struct nvtx_domain;

struct nvtx_domain *nvtx_domain(const char *name); /* the same for the same name; or NULL */
struct nvtx_text *nvtx_text(const char *text);     /* a registered string; or NULL */
const char *nvtx_text_of(const struct nvtx_text *text);

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

#endif
