# SPDX-License-Identifier: MIT
# make test-integration    cuscope itself on the programs of tests/programs (root)
# make stress-gpu          agents that come and go a thousand times, and deaths at any moment (root)

test-integration: $(B)/cuscope programs simcuda simnvml
	@tests/integration/run --build $(B)

stress-gpu: $(B)/cuscope programs simcuda
	GPU_ROUNDS=1000 tests/integration/run --build $(B) 'gpu_stress_*'

.PHONY: test-integration stress-gpu
