// SPDX-License-Identifier: MIT
#include "rest.h"

#include "gate.h"

/* Arguments are not looked at, so none are declared. */
#define DONE(name)          API(name, (), CUDA_SUCCESS)
#define NOT_SUPPORTED(name) API(name, (), CUDA_ERROR_NOT_SUPPORTED)

REST_DONE(DONE)
REST_NOT_SUPPORTED(NOT_SUPPORTED)
