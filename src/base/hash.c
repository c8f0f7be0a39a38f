// SPDX-License-Identifier: MIT
#include "base/hash.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

static uint64_t secret[2];

/* Before main(), so that no look-up has to ask. Where there is no randomness yet, early at boot,
 * the clock has some. */
__attribute__((constructor)) static void make_secret(void)
{
	struct timespec now;

	if (getrandom(secret, sizeof(secret), GRND_NONBLOCK) == (ssize_t)sizeof(secret))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	secret[0] = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15ull ^ (uintptr_t)&now;
	secret[1] = (uint64_t)now.tv_sec * 0xc2b2ae3d27d4eb4full ^ (uintptr_t)&secret;
}

/* Both halves of the product, of which each bit depends on others of the two. A single one is not
 * enough: of keys at equal distances both halves are, too, and by some secrets they cancel out in
 * the lowest bits. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_long(const void *data, size_t bytes)
{
	const char *at = data;
	uint64_t hash = secret[0] ^ bytes, word = 0;

	for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = mix(hash ^ word, secret[1]);
	}
	word = 0;
	if (bytes) /* a key of no bytes may be NULL, as of a text without length */
		memcpy(&word, at, bytes);
	return mix(mix(hash ^ word, ~secret[1] | 1), secret[0] | 1);
}
