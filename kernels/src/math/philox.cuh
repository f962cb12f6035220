// Philox 4x32-10: the twin of `philox.rs`.
#pragma once

#include "device.cuh"

namespace warptape {

struct PhiloxWords {
    u32 word[4];
};

__device__ inline PhiloxWords philox(u64 key, u64 number, u32 step, u32 stream) {
    u32 first = (u32)key, second = (u32)(key >> 32);
    PhiloxWords counter = {{(u32)number, (u32)(number >> 32), step, stream}};
    for (int round = 0; round < 10; ++round) {
        u64 even = (u64)0xd2511f53u * counter.word[0], odd = (u64)0xcd9e8d57u * counter.word[2];
        counter = {{(u32)(odd >> 32) ^ counter.word[1] ^ first, (u32)odd, (u32)(even >> 32) ^ counter.word[3] ^ second,
                    (u32)even}};
        first += 0x9e3779b9u;
        second += 0xbb67ae85u;
    }
    return counter;
}

}  // namespace warptape
