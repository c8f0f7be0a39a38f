/* SPDX-License-Identifier: MIT */
/*
 * A page with very many rows is written in UTF-16: of two bytes almost all values stand for
 * themselves, where base64 has three bytes in four. Its first two bytes say so, whatever whoever
 * serves it says of it; what else is in the page takes twice the room, so that small ones are
 * UTF-8.
 */
#ifndef CUSCOPE_PAGE_WIDE_H
#define CUSCOPE_PAGE_WIDE_H

#include "base/buf.h"

/* What a page begins with. */
void page_wide_begin(struct buf *out);

/* UTF-8, of which what is at the end and not whole is left over: returns how much was taken. What
 * is none becomes U+FFFD. */
size_t page_wide_add(struct buf *out, const char *text, size_t len);

/*
 * Bytes that stand in base64, `len` digits of it: '1' where the last word is half, else '0'; then
 * words, the lower byte first. What html would change (0, a carriage return, halves of pairs), '<'
 * and the mark itself are told by the mark and the word with PAGE_WIDE_OTHER.
 */
void page_wide_block(struct buf *out, const char *base64, size_t len);

#define PAGE_WIDE_MARK  0xe000
#define PAGE_WIDE_OTHER 0x4000 /* exclusive or */

#endif
