// Sobol sequences: the twin of `sobol.rs`.
#pragma once

#include "device.cuh"

namespace warptape {

static const u32 SOBOL_BITS = 32;

__device__ inline u32 coordinate(const u32 *directions, u32 number) {
    u32 gray = number ^ number >> 1, found = 0;
    for (u32 bit = 0; bit < SOBOL_BITS; ++bit) found ^= (0 - (gray >> bit & 1)) & directions[bit];
    return found;
}

}  // namespace warptape
