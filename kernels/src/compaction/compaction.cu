// Puts closed bars in order: the twin of `twin.rs`; the formula is in the module `compaction`.
//
//   scan_places  one thread per place. Counts the bars of the places before it in its tile, and those of each tile.
//   scan_tiles   one block. Counts the bars of the tiles before each tile.
//   gather_bars  sixteen threads per bar. Copies it, so that neighbouring threads copy neighbouring words.

#include "device.cuh"

namespace warptape {

// Number of places in a tile: one for each thread of a warp.
static const u32 TILE = 32;
static const u32 ALL_LANES = 0xffffffffu;
static const u32 WARPS_MAX = 32;

struct CompactionArgs {
    u64 places;
    u32 *by_place;  // Number of bars; then of the places before it in its tile.
    u32 *by_tile;   // Number of bars; then of the tiles before it.
    const u32 *closed_count;
    u64 closed_max;  // Number of bars with room; further ones are lost.
    const ClosedBar *closed;
    ClosedBar *ordered;
};

// The sum over the threads of this thread's warp up to and including this one.
__device__ inline u32 sum_through(u32 value) {
    u32 lane = threadIdx.x % TILE;
    for (u32 delta = 1; delta < TILE; delta *= 2) {
        u32 before = __shfl_up_sync(ALL_LANES, value, delta);
        if (lane >= delta) value += before;
    }
    return value;
}

extern "C" __global__ void scan_places(const __grid_constant__ CompactionArgs args) {
    u64 place = thread_number();
    u32 bars = place < args.places ? args.by_place[place] : 0;
    u32 through = sum_through(bars);
    if (place >= args.places) return;
    args.by_place[place] = through - bars;
    if (place % TILE == TILE - 1 || place + 1 == args.places) args.by_tile[place / TILE] = through;
}

extern "C" __global__ void scan_tiles(const __grid_constant__ CompactionArgs args) {
    __shared__ u32 by_warp[WARPS_MAX];
    if (blockIdx.x > 0) return;
    u64 tiles = (args.places + TILE - 1) / TILE;
    u32 warp = threadIdx.x / TILE, warps = blockDim.x / TILE;
    u32 before = 0;
    for (u64 first = 0; first < tiles; first += blockDim.x) {
        u64 tile = first + threadIdx.x;
        u32 bars = tile < tiles ? args.by_tile[tile] : 0;
        u32 through = sum_through(bars);
        if (threadIdx.x % TILE == TILE - 1) by_warp[warp] = through;
        __syncthreads();  // Sums of warps are there.
        u32 all = 0;
        for (u32 other = 0; other < warps; ++other) {
            if (other == warp && tile < tiles) args.by_tile[tile] = before + all + through - bars;
            all += by_warp[other];
        }
        before += all;
        __syncthreads();  // And were read.
    }
}

extern "C" __global__ void gather_bars(const __grid_constant__ CompactionArgs args) {
    // Pieces of sixteen bytes.
    const u64 PIECES = sizeof(ClosedBar) / sizeof(i128);
    u64 closed = *args.closed_count;
    u64 pieces = PIECES * (closed < args.closed_max ? closed : args.closed_max);
    for (u64 number = thread_number(); number < pieces; number += (u64)gridDim.x * blockDim.x) {
        const ClosedBar &bar = args.closed[number / PIECES];
        u32 at = args.by_tile[bar.place / TILE] + args.by_place[bar.place] + bar.rank;
        u64 piece = number % PIECES;
        ((i128 *)&args.ordered[at])[piece] = ((const i128 *)&bar)[piece];
    }
}

}  // namespace warptape
