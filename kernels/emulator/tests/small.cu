// Small kernels, of one feature each.

#include "device.cuh"

namespace warptape {

static const u32 ALL = 0xffffffffu;

struct Args {
    u64 count;
    u64 *values;
    u64 *out;
};

// The sum of the values before a thread in its block.
__device__ inline u64 sum_of_block_before(u64 value) {
    __shared__ u64 sums[4];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 sum = value;
    for (u32 delta = 1; delta < 32; delta *= 2) {
        u64 before = __shfl_up_sync(ALL, sum, delta);
        if (lane >= delta) sum += before;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();  // Sums of warps are there.
    u64 warps_before = 0;
    for (u32 number = 0; number < warp; ++number) warps_before += sums[number];
    __syncthreads();  // And were read.
    return warps_before + sum - value;
}

// Sums of sums; after them, the size of blocks.
extern "C" __global__ void sum_before(const __grid_constant__ Args args) {
    u64 thread = thread_number();
    u64 value = thread < args.count ? args.values[thread] : 0;
    u64 sums = sum_of_block_before(sum_of_block_before(value));
    if (thread < args.count) args.out[thread] = sums;
    if (thread == 0) args.out[args.count] = blockDim.x;
}

// The value of the next thread of the warp.
extern "C" __global__ void neighbours(const __grid_constant__ Args args) {
    __shared__ u64 values[128];
    u64 thread = thread_number();
    values[threadIdx.x] = thread < args.count ? args.values[thread] : 0;
    __syncwarp();
    u32 next = threadIdx.x % 32 == 31 ? threadIdx.x - 31 : threadIdx.x + 1;
    if (thread < args.count) args.out[thread] = values[next];
}

extern "C" __global__ void exchange(const __grid_constant__ Args args) {
    u64 value = args.values[thread_number()];
    u64 *out = args.out + 9 * thread_number();
    u32 half = threadIdx.x % 32 < 16 ? 0xffffu : 0xffff0000u;
    out[0] = __shfl_sync(ALL, value, 5);
    out[1] = __shfl_sync(ALL, value, 3, 8);
    out[2] = __shfl_up_sync(ALL, value, 3u);
    out[3] = __shfl_up_sync(ALL, value, 2u, 16);
    out[4] = __shfl_down_sync(ALL, value, 7u);
    out[5] = __shfl_down_sync(ALL, value, 1u, 4);
    out[6] = __shfl_xor_sync(ALL, value, 9);
    out[7] = __ballot_sync(ALL, value % 2 == 1);
    out[8] = __ballot_sync(half, value % 2 == 1);
}

extern "C" __global__ void atomics(const __grid_constant__ Args args) {
    u64 thread = thread_number();
    if (thread >= args.count) return;
    u64 value = args.values[thread];
    atomicAdd(&args.out[0], value);
    atomicMax(&args.out[1], value);
    atomicMin((i64 *)&args.out[2], -(i64)value);
    u64 sum = args.out[3];
    for (u64 before; (before = atomicCAS(&args.out[3], sum, sum + value)) != sum; sum = before) {}
    if (atomicExch(&args.out[5], (u64)1) == 0) atomicAdd(&args.out[4], (u64)1);
}

extern "C" __global__ void products(const __grid_constant__ Args args) {
    u64 thread = thread_number();
    if (thread >= args.count) return;
    i128 product = (i128)args.values[thread] * -(((i128)0x1234 << 64) + 0x56789abcdef01234ll) / 3;
    args.out[2 * thread] = (u64)product;
    args.out[2 * thread + 1] = (u64)(product >> 64);
}

extern "C" __global__ void copy(const __grid_constant__ Args args) {
    if (thread_number() < args.count) args.out[thread_number()] = args.values[thread_number()];
}

// The order in which threads come.
extern "C" __global__ void tickets(const __grid_constant__ Args args) {
    u64 ticket = atomicAdd(&args.out[args.count], (u64)1);
    if (thread_number() < args.count) args.out[thread_number()] = ticket;
}

}  // namespace warptape
