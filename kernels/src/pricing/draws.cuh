// Random numbers of paths: the twin of `draws.rs`, which assigns the words to paths.
#pragma once

#include "philox.cuh"
#include "real.cuh"
#include "sobol.cuh"

namespace warptape {

static const u64 LANES = 64, GROUPS = 8, REPLICATES = 32;
static const u32 STREAM_STEPS = 0, STREAM_EXTREMES = 1, STREAM_SHIFT = 3, STREAM_ASSETS = 16;

// A point of a bridge: `BridgePoint` of `bridge.rs`.
struct BridgePoint {
    double left, right, deviation;
    u32 dimension, step;
};

// The source of the numbers of paths: `NumberSource` of `sampling.rs`.
struct Source {
    u64 key;
    const u32 *directions;  // Direction numbers of Sobol's points, by dimension; null if numbers are random.
    u64 steps;
    const BridgePoint *bridge;  // One point for each step; null if each step has a number of its own.
};

template <typename T>
struct Width;
template <>
struct Width<double> {
    static const int WORDS = 2;
};
template <>
struct Width<float> {
    static const int WORDS = 1;
};

template <typename T>
__device__ inline Outer<T> of_points(const Source &source, u64 group, u64 lane, u32 step, u32 stream) {
    u64 dimension = stream >= STREAM_ASSETS ? stream - STREAM_ASSETS : step;
    if (stream == STREAM_EXTREMES) dimension += source.steps;
    u64 block = group / GROUPS, round = block / REPLICATES;
    u64 number = (round * GROUPS + group % GROUPS) * LANES + lane;
    PhiloxWords shift = philox(source.key, dimension | (block % REPLICATES) << 32, 0, STREAM_SHIFT);
    u32 digits = coordinate(source.directions + dimension * SOBOL_BITS, (u32)number);
    return outer_of((T)0.0, digits ^ shift.word[0], shift.word[1]);
}

// min(u, 1 − u) of evenly spread numbers u and their sides of ½, for the paths that share a call of Philox.
template <typename T>
__device__ inline void draw_call(const Source &source, u64 group, u64 call, u32 step, u32 stream, Outer<T> *outer) {
    const int WORDS = Width<T>::WORDS, PATHS = 4 / WORDS;
    const u64 CALLS = LANES / PATHS;
    if (source.directions) {
        for (int path = 0; path < PATHS; ++path) {
            outer[path] = of_points<T>(source, group, path * CALLS + call, step, stream);
        }
        return;
    }
    PhiloxWords words = philox(source.key, group * CALLS + call, step, stream);
    for (int path = 0; path < PATHS; ++path) {
        outer[path] = outer_of((T)0.0, words.word[path * WORDS], words.word[path * WORDS + WORDS - 1]);
    }
}

// The same for the path of one lane.
template <typename T>
__device__ inline Outer<T> drawn(const Source &source, u64 group, u64 lane, u32 step, u32 stream) {
    if (source.directions) return of_points<T>(source, group, lane, step, stream);
    const int WORDS = Width<T>::WORDS;
    const u64 CALLS = LANES * WORDS / 4;
    PhiloxWords words = philox(source.key, group * CALLS + lane % CALLS, step, stream);
    int high = (int)(lane / CALLS) * WORDS;
    return outer_of((T)0.0, words.word[high], words.word[high + WORDS - 1]);
}

template <typename T>
__device__ inline T even_of(const Outer<T> &outer) {
    return outer.above ? (T)1.0 - outer.value : outer.value;
}

}  // namespace warptape
