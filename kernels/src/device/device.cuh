// Declarations for all kernels: names of types, and the slot of a thread.
//
// The numeric contract is that of the crate. Kernels are compiled without contraction (`--fmad=false`); divisions and
// square roots are rounded to nearest, as on processors. NaN has one form here: a result of NaN means "not available",
// and nothing is computed from it.
#pragma once

#include "indicators.cuh"

namespace warptape {

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef __int128 i128;

// The end of a list of bars.
static const u32 NONE = 0xffffffffu;

__device__ inline u64 thread_number() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline double not_available() { return __longlong_as_double(0x7ff8000000000000ll); }
__device__ inline double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }

// With an odd number of columns, one more fills the bar.
static const u32 INDICATOR_COLUMNS = (INDICATORS + 1) / 2 * 2;

// A closed bar, with the values of its indicators and the signals detected on it.
struct ClosedBar {
    i128 volume_e9;
    i128 notional_e18;
    i128 volumes_e9[2];      // Volumes of aggressive buyers and sellers.
    i128 quote_sizes_e9[2];  // Sizes of bid and ask; below 0 if absent or forgotten.
    i64 start_ns;
    i64 end_ns;
    i64 open_e9;
    i64 high_e9;
    i64 low_e9;
    i64 close_e9;
    i64 trades;
    i64 trades_of[2];  // Trades of aggressive buyers and sellers.
    i64 bid_e9;
    i64 ask_e9;
    u32 place;
    u32 row;
    u32 next;      // The slot's next bar, or NONE.
    u32 detected;  // Two bits for each relation: entering above, then entering below.
    double indicators[INDICATOR_COLUMNS];
    u32 spec;  // Number of the bar specification; one list has bars of all.
    u32 rank;  // Number of bars that its place closed before it, of all specifications.
};

// The bars that slots have closed: a list for each slot, in the order of closing.
struct ClosedBars {
    u64 places;
    const u32 *slot;   // By place.
    const u32 *first;  // By place: the slot's first bar, or NONE.
    ClosedBar *bars;
};

}  // namespace warptape
