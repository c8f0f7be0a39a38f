/* SPDX-License-Identifier: MIT */
/*
 * As much of NVTX, version 3, as programs here call, in our own words and with no header of
 * NVIDIA's. As there, the first call loads the library that NVTX_INJECTION64_PATH names and calls
 * its InitializeInjectionNvtx2 with a function that gives out the tables of what calls go to;
 * without one, or where a place in a table stays empty, calls do nothing.
 */
#ifndef PROGRAMS_NVTX_H
#define PROGRAMS_NVTX_H

#include <stdint.h>
#include <wchar.h>

typedef struct nvtx_domain *nvtx_domain;
typedef struct nvtx_string *nvtx_string;

/* Whether a library was loaded and said that it is ready. */
int nvtx_is_there(void);

void nvtx_push(const char *text);
void nvtx_pop(void);
uint64_t nvtx_start(const char *text);
void nvtx_end(uint64_t id);
void nvtx_mark(const char *text);
void nvtx_push_wide(const wchar_t *text);

nvtx_domain nvtx_domain_create(const char *name);
nvtx_string nvtx_register(nvtx_domain domain, const char *text);
void nvtx_domain_push(nvtx_domain domain, const char *text);
void nvtx_domain_push_registered(nvtx_domain domain, nvtx_string text);
void nvtx_domain_pop(nvtx_domain domain);
uint64_t nvtx_domain_start(nvtx_domain domain, const char *text);
void nvtx_domain_end(nvtx_domain domain, uint64_t id);
void nvtx_domain_mark(nvtx_domain domain, const char *text);

#endif
