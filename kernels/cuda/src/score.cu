// f64 multiply-adds, as many as a GPU can have under way at once: each thread has eight chains of them.
struct MeasureArgs {
    unsigned long long result;  // Address of a sum, which is never written.
    unsigned long long rounds;  // Multiply-adds of each chain.
};

extern "C" __global__ void measure(const __grid_constant__ MeasureArgs args) {
    double chains[8];
    double addend = 1.0 + threadIdx.x * 1e-9;
    for (int chain = 0; chain < 8; ++chain) chains[chain] = addend + chain;
    for (unsigned long long round = 0; round < args.rounds; ++round) {
#pragma unroll
        for (int chain = 0; chain < 8; ++chain) chains[chain] = fma(chains[chain], 0.999, addend);
    }
    double sum = 0;
    for (int chain = 0; chain < 8; ++chain) sum += chains[chain];
    // It never is, but the compiler cannot know that, and so has to compute the sum.
    if (sum < 0) *(double *)args.result = sum;
}
