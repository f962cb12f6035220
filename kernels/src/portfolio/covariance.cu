// Covariances of a matrix of returns, a row per time: the twin of `covariance.rs`, which has the formulas.
//
//   centre_returns  one thread per asset: subtracts the mean from its returns.
//   sum_products    one thread per pair of assets: sums the products of their returns.

#include "device.cuh"

namespace warptape {

struct CovarianceArgs {
    u64 assets;
    u64 times;
    double decay;
    double divisor;
    double *value;       // By time and asset.
    double *covariance;  // By asset and asset.
};

extern "C" __global__ void centre_returns(const __grid_constant__ CovarianceArgs args) {
    u64 asset = thread_number();
    if (asset >= args.assets) return;
    double mean = 0.0;
    for (u64 time = 0; time < args.times; ++time) mean += args.value[time * args.assets + asset];
    mean /= (double)args.times;
    for (u64 time = 0; time < args.times; ++time) args.value[time * args.assets + asset] -= mean;
}

extern "C" __global__ void sum_products(const __grid_constant__ CovarianceArgs args) {
    u64 thread = thread_number();
    if (thread >= args.assets * args.assets) return;
    u64 row = thread / args.assets, column = thread % args.assets;
    if (column > row) return;
    double sum = 0.0;
    for (u64 time = 0; time < args.times; ++time) {
        const double *value = args.value + time * args.assets;
        sum = args.decay * sum + value[row] * value[column];
    }
    double covariance = sum / args.divisor;
    args.covariance[row * args.assets + column] = covariance;
    args.covariance[column * args.assets + row] = covariance;
}

}  // namespace warptape
