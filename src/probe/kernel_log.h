/* SPDX-License-Identifier: MIT */
/* New lines of the kernel's log (/dev/kmsg), as they come; those that were there before are not
 * told. */
#pragma once

#include <stdint.h>

struct kernel_log;

/* NULL, with errno: it cannot be read here. */
struct kernel_log *kernel_log_open(void);
void kernel_log_free(struct kernel_log *log);

/*
 * The next line without its head, or NULL; never waits. Lines that the kernel has thrown away
 * meanwhile are counted in kernel_log_lost().
 */
const char *kernel_log_line(struct kernel_log *log);
/* "6,1234,5678,-;text": where the text begins of a record, which is cut at its end; NULL: it is not
 * the kernel's own. */
const char *kernel_log_text(char *record);

uint64_t kernel_log_lost(const struct kernel_log *log);
