/* SPDX-License-Identifier: MIT */
/*
 * Lets the library load with any glibc from 2.17 on, wherever it was built. (2.17 is that of
 * CentOS 7, in whose containers CUDA 11 is still found.) Functions that moved or changed since are
 * asked for by their old versions, which glibc keeps. tests/agent/glibc.sh holds it.
 */
#pragma once

/* Sanitizers put their own functions in the place of these. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#if defined(__x86_64__)
#define GLIBC_OLDEST "GLIBC_2.2.5"
#define GLIBC_DLINFO "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define GLIBC_OLDEST "GLIBC_2.17"
#define GLIBC_DLINFO GLIBC_OLDEST
#endif

#ifdef GLIBC_OLDEST
#define GLIBC_OLD(function) __asm__(".symver " #function "," #function "@" GLIBC_OLDEST)

GLIBC_OLD(dlopen); /* 2.34, when libdl and libpthread became parts of libc */
GLIBC_OLD(dlsym);
GLIBC_OLD(dlerror);
__asm__(".symver dlinfo,dlinfo@" GLIBC_DLINFO);
GLIBC_OLD(pthread_create);
GLIBC_OLD(pthread_detach);
GLIBC_OLD(pthread_key_create);
GLIBC_OLD(pthread_setspecific);
GLIBC_OLD(pthread_once);
GLIBC_OLD(pthread_sigmask); /* 2.32 */
GLIBC_OLD(glob);            /* 2.27 */
GLIBC_OLD(globfree);
#endif

#endif
