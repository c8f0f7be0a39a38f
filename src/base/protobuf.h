/* SPDX-License-Identifier: MIT */
/*
 * Writing protocol buffers: fields in any order, appended to a buffer. A nested message is begun
 * and ended. One byte is reserved for its length; what is longer than 127 bytes is moved up once.
 * So lengths are always as short as they can be.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/* uint32, uint64, int32, int64, bool and enums: negative numbers as their 64 bits. */
void pb_varint(struct buf *out, uint32_t field, uint64_t value);

void pb_fixed64(struct buf *out, uint32_t field, uint64_t value); /* fixed64 */
void pb_double(struct buf *out, uint32_t field, double value);
void pb_bytes(struct buf *out, uint32_t field, const void *data, size_t len);
void pb_string(struct buf *out, uint32_t field, const char *text); /* has to be UTF-8 */

/* Returns what pb_end() has to be given; inner messages end before outer ones. */
size_t pb_begin(struct buf *out, uint32_t field);
void pb_end(struct buf *out, size_t begin);
