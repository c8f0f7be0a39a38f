/* SPDX-License-Identifier: MIT */
/*
 * The functions of CUPTI's PM sampling that are called, and what they are given. Prototypes and
 * layouts are those of CUPTI's public interface since CUDA 12.8, which gives a structure that grows
 * a larger size; compared with the headers of CUDA 13.0 by tests/agent/abi_pm.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PM_OK = 0, PM_OUT_OF_MEMORY = 8, PM_HARDWARE_BUSY = 26 }; /* CUptiResult */

#define PM_TYPE         1 /* CUPTI_PROFILER_TYPE_PM_SAMPLING */
#define PM_BY_TIME      1 /* CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL */
#define PM_BY_CLOCK     0 /* CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL */
#define PM_DECODED_FULL 1 /* CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL */

/* Each begins with its size, up to its last field, and a pointer that is NULL. */
#define PM_HEAD                                                                                    \
	size_t size;                                                                               \
	void *private_data

struct pm_plain { /* CUpti_Profiler_Initialize_Params */
	PM_HEAD;
};

struct pm_object { /* of Start, Stop, Disable; CUpti_Profiler_Host_Deinitialize_Params */
	PM_HEAD;
	void *object;
};

struct pm_chip { /* CUpti_Device_GetChipName_Params */
	PM_HEAD;
	size_t device;
	const char *name;
};

struct pm_availability { /* CUpti_PmSampling_GetCounterAvailability_Params */
	PM_HEAD;
	size_t device, bytes;
	uint8_t *image;
};

struct pm_host { /* CUpti_Profiler_Host_Initialize_Params */
	PM_HEAD;
	int type;
	const char *chip;
	const uint8_t *availability;
	void *host;
};

struct pm_add { /* CUpti_Profiler_Host_ConfigAddMetrics_Params */
	PM_HEAD;
	void *host;
	const char **names;
	size_t n;
};

struct pm_config_size { /* CUpti_Profiler_Host_GetConfigImageSize_Params */
	PM_HEAD;
	void *host;
	size_t bytes;
};

struct pm_config { /* CUpti_Profiler_Host_GetConfigImage_Params */
	PM_HEAD;
	void *host;
	size_t bytes;
	uint8_t *image;
};

struct pm_passes { /* CUpti_Profiler_Host_GetNumOfPasses_Params */
	PM_HEAD;
	size_t bytes;
	uint8_t *config;
	size_t n;
};

struct pm_enable { /* CUpti_PmSampling_Enable_Params */
	PM_HEAD;
	size_t device;
	void *object;
};

struct pm_set { /* CUpti_PmSampling_SetConfig_Params */
	PM_HEAD;
	void *object;
	size_t config_bytes;
	const uint8_t *config;
	size_t buffer_bytes;
	uint64_t interval;
	int trigger, append;
};

struct pm_data_size { /* CUpti_PmSampling_GetCounterDataSize_Params */
	PM_HEAD;
	void *object;
	const char **names;
	size_t n;
	uint32_t samples;
	size_t bytes;
};

struct pm_data { /* CUpti_PmSampling_CounterDataImage_Initialize_Params */
	PM_HEAD;
	void *object;
	size_t bytes;
	uint8_t *image;
};

struct pm_decode { /* CUpti_PmSampling_DecodeData_Params */
	PM_HEAD;
	void *object;
	uint8_t *image;
	size_t bytes;
	int stopped;
	uint8_t overflow;
};

struct pm_data_info { /* CUpti_PmSampling_GetCounterDataInfo_Params */
	PM_HEAD;
	const uint8_t *image;
	size_t bytes;
	size_t room, populated, completed;
};

struct pm_sample_info { /* CUpti_PmSampling_CounterData_GetSampleInfo_Params */
	PM_HEAD;
	void *object;
	const uint8_t *image;
	size_t bytes, index;
	uint64_t begin, end;
};

struct pm_values { /* CUpti_Profiler_Host_EvaluateToGpuValues_Params */
	PM_HEAD;
	void *host;
	const uint8_t *image;
	size_t bytes, index;
	const char **names;
	size_t n;
	double *values;
};

/* The functions by the structure that each is given. */
#define PM_CALLS(CALL)                                                                             \
	CALL(initialize, struct pm_plain, "cuptiProfilerInitialize")                               \
	CALL(chip, struct pm_chip, "cuptiDeviceGetChipName")                                       \
	CALL(availability, struct pm_availability, "cuptiPmSamplingGetCounterAvailability")        \
	CALL(host_begin, struct pm_host, "cuptiProfilerHostInitialize")                            \
	CALL(host_end, struct pm_object, "cuptiProfilerHostDeinitialize")                          \
	CALL(add, struct pm_add, "cuptiProfilerHostConfigAddMetrics")                              \
	CALL(config_size, struct pm_config_size, "cuptiProfilerHostGetConfigImageSize")            \
	CALL(config, struct pm_config, "cuptiProfilerHostGetConfigImage")                          \
	CALL(passes, struct pm_passes, "cuptiProfilerHostGetNumOfPasses")                          \
	CALL(enable, struct pm_enable, "cuptiPmSamplingEnable")                                    \
	CALL(disable, struct pm_object, "cuptiPmSamplingDisable")                                  \
	CALL(set, struct pm_set, "cuptiPmSamplingSetConfig")                                       \
	CALL(data_size, struct pm_data_size, "cuptiPmSamplingGetCounterDataSize")                  \
	CALL(data_init, struct pm_data, "cuptiPmSamplingCounterDataImageInitialize")               \
	CALL(start, struct pm_object, "cuptiPmSamplingStart")                                      \
	CALL(stop, struct pm_object, "cuptiPmSamplingStop")                                        \
	CALL(decode, struct pm_decode, "cuptiPmSamplingDecodeData")                                \
	CALL(data_info, struct pm_data_info, "cuptiPmSamplingGetCounterDataInfo")                  \
	CALL(sample_info, struct pm_sample_info, "cuptiPmSamplingCounterDataGetSampleInfo")        \
	CALL(values, struct pm_values, "cuptiProfilerHostEvaluateToGpuValues")
