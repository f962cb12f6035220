// Sums over the groups of a block: the twin of `LaneSums` of `sums.rs`.
#pragma once

#include "device.cuh"

namespace warptape {

static const u64 SUMS = 5;

// Adds a sample to the sums of a lane, which lie `distance` numbers apart.
__device__ inline void add(double *sums, u64 distance, double payoff, double control, bool has_control) {
    sums[0] += payoff;
    sums[distance] += payoff * payoff;
    if (!has_control) return;
    sums[2 * distance] += control;
    sums[3 * distance] += control * control;
    sums[4 * distance] += payoff * control;
}

}  // namespace warptape
