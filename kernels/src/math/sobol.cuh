// Sobol sequences: the twin of `sobol.rs`.
#pragma once

#include "device.cuh"

namespace warptape {

static const u32 SOBOL_BITS = 32;

__device__ inline u32 coordinate(const u32 *directions, u32 number) {
    u32 found = 0;
    // The loop is not unrolled, since its length depends on the bits: unrolling would take registers from the code
    // around it.
    for (u32 gray = number ^ number >> 1; gray; gray >>= 1, ++directions) found ^= (0 - (gray & 1)) & *directions;
    return found;
}

}  // namespace warptape
