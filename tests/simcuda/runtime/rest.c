// SPDX-License-Identifier: MIT
#include "rest.h"

#include "runtime.h"

/* Arguments are not looked at, so none are declared. */
#define DONE(name)          RT_PLAIN(name, (), cudaSuccess)
#define NOT_SUPPORTED(name) RT_PLAIN(name, (), cudaErrorNotSupported)

REST_DONE(DONE)
REST_NOT_SUPPORTED(NOT_SUPPORTED)
#if CUDART_MAJOR < 13
REST_12(NOT_SUPPORTED)
#else
REST_13(NOT_SUPPORTED)
#endif

/* Neither fails nor returns an error. */
__attribute__((visibility("default"))) struct cudaChannelFormatDesc
cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind);
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind kind)
{
	return (struct cudaChannelFormatDesc){ x, y, z, w, kind };
}
