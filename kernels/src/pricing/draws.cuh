// Random numbers of paths: the twin of `draws.rs`, which says which words are whose.
#pragma once

#include "philox.cuh"
#include "real.cuh"

namespace warptape {

static const u64 LANES = 64, GROUPS = 8;
static const u32 STREAM_STEPS = 0, STREAM_EXTREMES = 1, STREAM_ASSETS = 16;

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

// Of the path of a lane, `min(u, 1 − u)` and its side for an even number u.
template <typename T>
__device__ inline Outer<T> drawn(u64 key, u64 group, u64 lane, u32 step, u32 stream) {
    const int WORDS = Width<T>::WORDS;
    const u64 CALLS = LANES * WORDS / 4;
    PhiloxWords words = philox(key, group * CALLS + lane % CALLS, step, stream);
    int high = (int)(lane / CALLS) * WORDS;
    return outer_of((T)0.0, words.word[high], words.word[high + WORDS - 1]);
}

template <typename T>
__device__ inline T even_of(const Outer<T> &outer) {
    return outer.above ? (T)1.0 - outer.value : outer.value;
}

}  // namespace warptape
