/* SPDX-License-Identifier: MIT */
/* Memory of the process that asks. */
#pragma once

#include <stdint.h>

/* Resident, of all kinds, from /proc/self/statm. 0: unknown. */
uint64_t own_resident_bytes(void);

/* Address space, resident or not. 0: unknown. */
uint64_t own_mapped_bytes(void);
