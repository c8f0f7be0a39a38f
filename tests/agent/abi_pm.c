/* SPDX-License-Identifier: MIT */
/*
 * src/gpus/nvml/pm_calls.h against the real headers of CUDA 12.8 and newer: as abi.c. CUPTI takes
 * for the size of a structure where its last field ends.
 */
#if __has_include(<cupti_pmsampling.h>)
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include "gpus/nvml/pm_calls.h"

#define SAME(ours, theirs) _Static_assert((uint32_t)(ours) == (uint32_t)(theirs), #theirs)
#define AT(ours, field, theirs, name)                                                              \
	_Static_assert(offsetof(struct ours, field) == offsetof(CUpti_##theirs##_Params, name),    \
	               #theirs "." #name);                                                         \
	_Static_assert(sizeof(((struct ours *)0)->field) ==                                        \
	                       sizeof(((CUpti_##theirs##_Params *)0)->name),                       \
	               #theirs "." #name)
#define ALL(ours, theirs)                                                                          \
	_Static_assert(sizeof(struct ours) == CUpti_##theirs##_Params_STRUCT_SIZE, #theirs)

SAME(PM_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
SAME(PM_HARDWARE_BUSY, CUPTI_ERROR_HARDWARE_BUSY);
SAME(PM_TYPE, CUPTI_PROFILER_TYPE_PM_SAMPLING);
SAME(PM_BY_TIME, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
SAME(PM_BY_CLOCK, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
SAME(PM_DECODED_FULL, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);

ALL(pm_plain, Profiler_Initialize);
ALL(pm_object, PmSampling_Start);
ALL(pm_object, PmSampling_Stop);
ALL(pm_object, PmSampling_Disable);
ALL(pm_object, Profiler_Host_Deinitialize);
ALL(pm_chip, Device_GetChipName);
ALL(pm_availability, PmSampling_GetCounterAvailability);
ALL(pm_host, Profiler_Host_Initialize);
ALL(pm_add, Profiler_Host_ConfigAddMetrics);
ALL(pm_config_size, Profiler_Host_GetConfigImageSize);
ALL(pm_config, Profiler_Host_GetConfigImage);
ALL(pm_passes, Profiler_Host_GetNumOfPasses);
ALL(pm_enable, PmSampling_Enable);
ALL(pm_set, PmSampling_SetConfig);
ALL(pm_data_size, PmSampling_GetCounterDataSize);
ALL(pm_data, PmSampling_CounterDataImage_Initialize);
ALL(pm_data_info, PmSampling_GetCounterDataInfo);
ALL(pm_sample_info, PmSampling_CounterData_GetSampleInfo);
ALL(pm_values, Profiler_Host_EvaluateToGpuValues);

AT(pm_object, object, PmSampling_Start, pPmSamplingObject);
AT(pm_object, object, Profiler_Host_Deinitialize, pHostObject);
AT(pm_chip, device, Device_GetChipName, deviceIndex);
AT(pm_chip, name, Device_GetChipName, pChipName);
AT(pm_availability, bytes, PmSampling_GetCounterAvailability, counterAvailabilityImageSize);
AT(pm_availability, image, PmSampling_GetCounterAvailability, pCounterAvailabilityImage);
AT(pm_host, type, Profiler_Host_Initialize, profilerType);
AT(pm_host, chip, Profiler_Host_Initialize, pChipName);
AT(pm_host, availability, Profiler_Host_Initialize, pCounterAvailabilityImage);
AT(pm_host, host, Profiler_Host_Initialize, pHostObject);
AT(pm_add, names, Profiler_Host_ConfigAddMetrics, ppMetricNames);
AT(pm_add, n, Profiler_Host_ConfigAddMetrics, numMetrics);
AT(pm_config_size, bytes, Profiler_Host_GetConfigImageSize, configImageSize);
AT(pm_config, bytes, Profiler_Host_GetConfigImage, configImageSize);
AT(pm_config, image, Profiler_Host_GetConfigImage, pConfigImage);
AT(pm_passes, config, Profiler_Host_GetNumOfPasses, pConfigImage);
AT(pm_passes, n, Profiler_Host_GetNumOfPasses, numOfPasses);
AT(pm_enable, device, PmSampling_Enable, deviceIndex);
AT(pm_enable, object, PmSampling_Enable, pPmSamplingObject);
AT(pm_set, config_bytes, PmSampling_SetConfig, configSize);
AT(pm_set, config, PmSampling_SetConfig, pConfig);
AT(pm_set, buffer_bytes, PmSampling_SetConfig, hardwareBufferSize);
AT(pm_set, interval, PmSampling_SetConfig, samplingInterval);
AT(pm_set, trigger, PmSampling_SetConfig, triggerMode);
AT(pm_set, append, PmSampling_SetConfig, hwBufferAppendMode);
AT(pm_data_size, names, PmSampling_GetCounterDataSize, pMetricNames);
AT(pm_data_size, samples, PmSampling_GetCounterDataSize, maxSamples);
AT(pm_data_size, bytes, PmSampling_GetCounterDataSize, counterDataSize);
AT(pm_data, bytes, PmSampling_CounterDataImage_Initialize, counterDataSize);
AT(pm_data, image, PmSampling_CounterDataImage_Initialize, pCounterData);
AT(pm_decode, object, PmSampling_DecodeData, pPmSamplingObject);
AT(pm_decode, image, PmSampling_DecodeData, pCounterDataImage);
AT(pm_decode, bytes, PmSampling_DecodeData, counterDataImageSize);
AT(pm_decode, stopped, PmSampling_DecodeData, decodeStopReason);
AT(pm_decode, overflow, PmSampling_DecodeData, overflow);
AT(pm_data_info, image, PmSampling_GetCounterDataInfo, pCounterDataImage);
AT(pm_data_info, completed, PmSampling_GetCounterDataInfo, numCompletedSamples);
AT(pm_sample_info, image, PmSampling_CounterData_GetSampleInfo, pCounterDataImage);
AT(pm_sample_info, index, PmSampling_CounterData_GetSampleInfo, sampleIndex);
AT(pm_sample_info, begin, PmSampling_CounterData_GetSampleInfo, startTimestamp);
AT(pm_sample_info, end, PmSampling_CounterData_GetSampleInfo, endTimestamp);
AT(pm_values, image, Profiler_Host_EvaluateToGpuValues, pCounterDataImage);
AT(pm_values, bytes, Profiler_Host_EvaluateToGpuValues, counterDataImageSize);
AT(pm_values, index, Profiler_Host_EvaluateToGpuValues, rangeIndex);
AT(pm_values, names, Profiler_Host_EvaluateToGpuValues, ppMetricNames);
AT(pm_values, values, Profiler_Host_EvaluateToGpuValues, pMetricValues);
#endif
