// Sums over lanes, by halves: the twin of `LaneSums::take` of `sums.rs`. A thread makes one sum.

#include "device.cuh"

namespace warptape {

struct SumArgs {
    u64 count;
    double *lanes;  // Numbers of each lane, by sum.
    double *sums;
};

extern "C" __global__ void sum_lanes(const __grid_constant__ SumArgs args) {
    const u64 LANES = 64;
    u64 sum = thread_number();
    if (sum >= args.count) return;
    double *lanes = args.lanes + sum * LANES;
    for (u64 half = LANES / 2; half > 0; half /= 2) {
        for (u64 lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    args.sums[sum] = lanes[0];
}

}  // namespace warptape
