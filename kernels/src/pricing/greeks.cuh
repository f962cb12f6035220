// Greeks in the order of their columns: the twin of `greeks_of` of `greeks.rs`.
#pragma once

#include "dual.cuh"

namespace warptape {

static const u64 GREEKS = 6;

__device__ inline void greeks_of(const Term &price, double gamma, double *greeks) {
    greeks[0] = price.value;
    greeks[1] = price.by[SPOT];
    greeks[2] = gamma;
    greeks[3] = price.by[VOLATILITY];
    greeks[4] = -price.by[YEARS];
    greeks[5] = price.by[RATE];
}

}  // namespace warptape
