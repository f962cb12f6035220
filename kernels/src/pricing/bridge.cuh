// Brownian bridges: the twin of `bridge.rs`, which has the formula and the order of points.
#pragma once

#include "draws.cuh"

namespace warptape {

static const int ENDS_MAX = 9;

// The normal numbers for the steps of a lane's path, which come from a bridge if the source has one.
template <typename T>
struct Steps {
    T now, ends[1 + ENDS_MAX];
    u64 next;
    int ends_count;

    __device__ void start() {
        now = ends[0] = (T)0.0;
        next = 0;
        ends_count = 0;
    }

    __device__ T bridged(const Source &source, u64 group, u64 lane, u64 step) {
        for (; next < source.steps && source.bridge[next].step == step; ++next) {
            const BridgePoint &point = source.bridge[next];
            T z = normal_of(of_points<T>(source, group, lane, point.dimension, STREAM_STEPS));
            T nearest = ends[ends_count];
            ends[++ends_count] = ((T)point.left * now + (T)point.right * nearest) + (T)point.deviation * z;
        }
        T nearest = ends[ends_count--];
        T z = nearest - now;
        now = nearest;
        return z;
    }

    __device__ T normal(const Source &source, u64 group, u64 lane, u64 step) {
        if (source.bridge) return bridged(source, group, lane, step);
        return normal_of(drawn<T>(source, group, lane, (u32)step, STREAM_STEPS));
    }
};

}  // namespace warptape
