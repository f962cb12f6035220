// Advances the indicators of slots by their closed bars: the twin of `step.rs`; the formulas are in the module
// `indicators`. One thread per slot; a slot's bars are processed in order.
//
// State is one column per quantity and one per position of a ring, with the slots of a column side by side. So the
// threads of a warp access neighbours as long as their slots have had the same number of bars.

#include "device.cuh"
#include "ln.cuh"
#include "ties.cuh"

namespace warptape {

// Quantities of a slot, as in `averages.rs` and `windows.rs`.
enum Quantity {
    Q_BARS, Q_PREVIOUS_CLOSE, Q_EMA_FAST, Q_EMA_SLOW, Q_MACD_FAST, Q_MACD_SLOW, Q_MACD_SIGNAL, Q_GAIN, Q_LOSS, Q_TRUE_RANGE,
    Q_SQUARED_RETURNS,
    Q_WEIGHTS = Q_SQUARED_RETURNS + 2,
    Q_MOMENTS = Q_WEIGHTS + 4
};

static const double FRESH = 1e-4;
static const u64 WRAPS_PER_SUM = 8;
static const double ONE_E9 = 1e9;

struct Period {
    double length, inverse, alpha;
};

struct MomentsWindow {
    u64 length;
    double inverse;
    u64 sma, bollinger, zscore;  // 1 for each that uses this window, else 0.
    double width;
    double threshold;
    Line bands_line, threshold_line;
};

struct IndicatorArgs {
    ClosedBars bars;
    Period ema_fast, ema_slow, macd_fast, macd_slow, macd_signal, rsi, atr;
    MomentsWindow moments[3];
    u64 moments_count;
    u64 closes_length, squared_returns_length, weights_length, momentum, roc;
    u64 kept_first[KEPT + 1];  // First column of numbers of each `Kept`, and the end.
    u64 capacity;  // Number of slots of a column.
    double *numbers;
    double *closes;
    double *squared_returns;
    double *weights;
};

// The place of a slot's next value in its ring.
struct RingStep {
    u64 position;
    bool sums_due;
};

__device__ inline RingStep ring_step(u64 values, u64 length) {
    u64 position = values % length;
    bool sums_due = position + 1 == length && (values / length) % WRAPS_PER_SUM == WRAPS_PER_SUM - 1;
    return {position, sums_due};
}

// The last values of one quantity of one slot.
struct Ring {
    double *values;
    u64 length, stride;

    __device__ double &at(u64 position) const { return values[position * stride]; }

    // The value `back` before `position`, at most the length.
    __device__ double before(u64 position, u64 back) const {
        return at(position >= back ? position - back : position + length - back);
    }
};

// The sum over the newest `count` values, of which the newest is at `position`. Oldest first, in four accumulators;
// then (0+2) + (1+3).
template <typename Term>
__device__ double sum_newest(const Ring &ring, u64 position, u64 count, Term term) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    u64 oldest = position + ring.length + 1 - count;
    for (u64 value = 0; value < count; ++value) {
        u64 at = oldest + value;
        sums[value % 4] += term(ring.at(at >= ring.length ? at - ring.length : at));
    }
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

__device__ inline double scaled(i64 value_e9) { return (double)value_e9 / ONE_E9; }

// The number within 2 units in the last place; infinite for an unknown notional, which is the least integer.
__device__ inline double wide(i128 value) {
    unsigned __int128 magnitude = value < 0 ? 0 - (unsigned __int128)value : (unsigned __int128)value;
    if (magnitude >> 127) return -infinity();
    double number = (double)(u64)magnitude + (double)(u64)(magnitude >> 64) * 18446744073709551616.0;
    return value < 0 ? -number : number;
}

__device__ inline double seeded(const Period &period, double next, double state, double input, double sample) {
    double sum = state + input;
    if (sample < 1.0) return 0.0;
    if (sample < period.length) return sum;
    if (sample == period.length) return sum / period.length;
    return next;
}

__device__ inline double exponential(const Period &period, double state, double input, double sample) {
    return seeded(period, state + (input - state) * period.alpha, state, input, sample);
}

__device__ inline double wilder(const Period &period, double state, double input, double sample) {
    return seeded(period, (state * (period.length - 1.0) + input) * period.inverse, state, input, sample);
}

__device__ inline double when_full(const Period &period, double value, double sample) {
    return sample >= period.length ? value : not_available();
}

__device__ inline double after(u64 bars, double bars_before, double value) {
    return bars_before >= (double)bars ? value : not_available();
}

__device__ inline double greater(double a, double b) { return a > b ? a : b; }

// One slot: its state, and the place of its bar's values.
struct Slot {
    const IndicatorArgs &args;
    u64 slot;
    u64 bar;

    __device__ double &number(u64 quantity) const { return args.numbers[quantity * args.capacity + slot]; }

    // The ring of an indicator's kept values; its length is 0 if the indicator is off.
    __device__ Ring kept(Kept kept) const {
        u64 first = args.kept_first[kept];
        return {&number(first), args.kept_first[kept + 1] - first, args.capacity};
    }

    __device__ void set(Indicator indicator, double value) const {
        args.bars.bars[bar].indicators[indicator] = value;
    }

    __device__ void averages(double high, double low, double close) const {
        double bars = number(Q_BARS);
        double ema_fast = exponential(args.ema_fast, number(Q_EMA_FAST), close, bars);
        double ema_slow = exponential(args.ema_slow, number(Q_EMA_SLOW), close, bars);
        number(Q_EMA_FAST) = ema_fast;
        number(Q_EMA_SLOW) = ema_slow;
        set(Indicator::EmaFast, when_full(args.ema_fast, ema_fast, bars));
        set(Indicator::EmaSlow, when_full(args.ema_slow, ema_slow, bars));

        double skipped = bars - (args.macd_slow.length - args.macd_fast.length);
        double fast = exponential(args.macd_fast, number(Q_MACD_FAST), close, skipped);
        double slow = exponential(args.macd_slow, number(Q_MACD_SLOW), close, bars);
        double macd = fast - slow;
        double sample = bars - (args.macd_slow.length - 1.0);
        double signal = exponential(args.macd_signal, number(Q_MACD_SIGNAL), macd, sample);
        number(Q_MACD_FAST) = fast;
        number(Q_MACD_SLOW) = slow;
        number(Q_MACD_SIGNAL) = signal;
        set(Indicator::Macd, when_full(args.macd_signal, macd, sample));
        set(Indicator::MacdSignal, when_full(args.macd_signal, signal, sample));
        set(Indicator::MacdHistogram, when_full(args.macd_signal, macd - signal, sample));

        // Changes and true ranges begin with the second bar.
        sample = bars - 1.0;
        double previous_close = number(Q_PREVIOUS_CLOSE);
        double change = close - previous_close;
        double up = change > 0.0 ? change : 0.0;
        double gain = wilder(args.rsi, number(Q_GAIN), up, sample);
        double loss = wilder(args.rsi, number(Q_LOSS), up - change, sample);
        number(Q_GAIN) = gain;
        number(Q_LOSS) = loss;
        double rsi = gain + loss > 0.0 ? 100.0 * (gain / (gain + loss)) : 0.0;
        set(Indicator::Rsi, when_full(args.rsi, rsi, sample));

        double range = greater(high - low, greater(fabs(high - previous_close), fabs(low - previous_close)));
        double average = wilder(args.atr, number(Q_TRUE_RANGE), range, sample);
        number(Q_TRUE_RANGE) = average;
        set(Indicator::Atr, when_full(args.atr, average, sample));
    }

    // Puts a value into a ring and returns the sum over the ring. In the slot's numbers the sum is at `sum`, and its
    // peak at `peak`.
    __device__ double roll(const Ring &ring, RingStep step, u64 sum, u64 peak, double value) const {
        double oldest = ring.at(step.position);
        ring.at(step.position) = value;
        double total = number(sum) + (value - oldest);
        double greatest = greater(fabs(total), number(peak));
        // The comparison is false for NaN, which remains when an infinite value leaves.
        if (step.sums_due || !(fabs(total) >= FRESH * greatest)) {
            total = sum_newest(ring, step.position, ring.length, [](double value) { return value; });
            greatest = fabs(total);
        }
        number(sum) = total;
        number(peak) = greatest;
        return total;
    }

    __device__ void moments(
        const MomentsWindow &window, u64 quantity, const Ring &closes, RingStep step, double close, double oldest,
        double bars_before
    ) const {
        double anchor = number(quantity + 3);
        double entering = close - anchor;
        double leaving = oldest - anchor;
        double square = number(quantity + 1) + (entering * entering - leaving * leaving);
        double distance = number(quantity) + (entering - leaving);
        double peak = greater(square, number(quantity + 2));
        if (step.sums_due || !(square - distance * distance * window.inverse >= FRESH * peak)) {
            distance = sum_newest(closes, step.position, window.length, [=](double value) { return value - close; });
            square = sum_newest(closes, step.position, window.length, [=](double value) {
                double distance = value - close;
                return distance * distance;
            });
            peak = square;
            anchor = close;
        }
        number(quantity) = distance;
        number(quantity + 1) = square;
        number(quantity + 2) = peak;
        number(quantity + 3) = anchor;

        double mean_distance = distance * window.inverse;
        double variance = square * window.inverse - mean_distance * mean_distance;
        double mean = anchor + mean_distance;
        double from_mean = (close - anchor) - mean_distance;
        double deviation = __dsqrt_rn(variance > 0.0 ? variance : 0.0);
        u64 needed = window.length - 1;
        if (window.sma) set(Indicator::Sma, after(needed, bars_before, mean));
        bool full = bars_before >= (double)needed;
        auto of_window = [&](u64 back) { return closes.before(step.position, back); };
        if (window.bollinger) {
            double reach = window.width * deviation;
            double upper = mean + reach, lower = mean - reach;
            if (full && is_near(window.bands_line, from_mean, reach)) {
                Side side = side_of(window.bands_line, window.length, close, of_window);
                if (from_mean > 0.0) upper = settled_band(upper, close, true, side);
                else lower = settled_band(lower, close, false, side);
            }
            set(Indicator::BollingerMiddle, after(needed, bars_before, mean));
            set(Indicator::BollingerUpper, after(needed, bars_before, upper));
            set(Indicator::BollingerLower, after(needed, bars_before, lower));
        }
        if (window.zscore) {
            double score = deviation > 0.0 ? from_mean / deviation : 0.0;
            if (full && is_near(window.threshold_line, score, window.threshold)) {
                Side side = side_of(window.threshold_line, window.length, close, of_window);
                double magnitude = settled(fabs(score), window.threshold, side);
                score = score < 0.0 ? -magnitude : magnitude;
            }
            set(Indicator::Zscore, after(needed, bars_before, score));
        }
    }

    // The whole window is read at each bar, because a maximum cannot be rolled as a sum can.
    __device__ void stochastic(double high, double low, double close, double bars_before) const {
        Ring highs = kept(StochasticHighs), lows = kept(StochasticLows), percents = kept(StochasticPercents);
        if (highs.length == 0) {
            set(Indicator::StochasticK, not_available());
            set(Indicator::StochasticD, not_available());
            return;
        }
        u64 position = (u64)bars_before % highs.length;
        highs.at(position) = high;
        lows.at(position) = low;
        double highest = high, lowest = low;
        for (u64 bar = 0; bar < highs.length; ++bar) {
            highest = greater(highs.at(bar), highest);
            lowest = lows.at(bar) < lowest ? lows.at(bar) : lowest;
        }
        double reach = highest - lowest;
        double percent = reach > 0.0 ? 100.0 * ((close - lowest) / reach) : 0.0;
        set(Indicator::StochasticK, after(highs.length - 1, bars_before, percent));

        position = (u64)bars_before % percents.length;
        percents.at(position) = percent;
        double sum = sum_newest(percents, position, percents.length, [](double value) { return value; });
        double mean = sum / (double)percents.length;
        set(Indicator::StochasticD, after(highs.length + percents.length - 2, bars_before, mean));
    }

    __device__ void windows(double close, double squared_return, const double weights[2], double bars_before) const {
        u64 values = (u64)bars_before;
        Ring closes = {args.closes + slot, args.closes_length, args.capacity};
        RingStep step = ring_step(values, closes.length);
        double change = close - closes.before(step.position, args.momentum);
        set(Indicator::Momentum, after(args.momentum, bars_before, change));
        double before = closes.before(step.position, args.roc);
        double rate = before > 0.0 ? (close / before - 1.0) * 100.0 : not_available();
        set(Indicator::Roc, after(args.roc, bars_before, rate));
        // All windows need the values that leave them, before the new value overwrites the oldest one of the longest
        // window.
        double oldest[3];
        for (u64 window = 0; window < args.moments_count; ++window) {
            oldest[window] = closes.before(step.position, args.moments[window].length);
        }
        closes.at(step.position) = close;
        for (u64 window = 0; window < args.moments_count; ++window) {
            moments(args.moments[window], Q_MOMENTS + 4 * window, closes, step, close, oldest[window], bars_before);
        }

        Ring returns = {args.squared_returns + slot, args.squared_returns_length, args.capacity};
        step = ring_step(values, returns.length);
        double squares = roll(returns, step, Q_SQUARED_RETURNS, Q_SQUARED_RETURNS + 1, squared_return);
        double volatility = squares < infinity() ? __dsqrt_rn(squares) : not_available();
        set(Indicator::RealisedVolatility, after(returns.length, bars_before, volatility));

        step = ring_step(values, args.weights_length);
        double sums[2];
        for (u64 weight = 0; weight < 2; ++weight) {
            Ring ring = {args.weights + weight * args.capacity + slot, args.weights_length, 2 * args.capacity};
            sums[weight] = roll(ring, step, Q_WEIGHTS + weight, Q_WEIGHTS + 2 + weight, weights[weight]);
        }
        bool has_price = sums[1] > 0.0 && fabs(sums[0]) < infinity();
        double price = has_price ? sums[0] / (sums[1] * ONE_E9) : not_available();
        set(Indicator::Vwap, after(args.weights_length - 1, bars_before, price));
    }
};

extern "C" __global__ void update_indicators(const __grid_constant__ IndicatorArgs args) {
    u64 place = thread_number();
    if (place >= args.bars.places) return;
    for (u32 number = args.bars.first[place]; number != NONE; number = args.bars.bars[number].next) {
        Slot slot = {args, args.bars.slot[place], number};
        const ClosedBar &bar = args.bars.bars[number];
        double high = scaled(bar.high_e9), low = scaled(bar.low_e9), close = scaled(bar.close_e9);
        double weights[2] = {wide(bar.notional_e18), wide(bar.volume_e9)};
        double bars_before = slot.number(Q_BARS);
        double previous_close = slot.number(Q_PREVIOUS_CLOSE);
        Quotient quotient(units_e9(close), units_e9(previous_close));
        double change = quotient.ln(1.0 / quotient.sum);
        bool has_logarithm = close > 0.0 && previous_close > 0.0;
        double squared_return = has_logarithm ? change * change : infinity();
        slot.number(Q_BARS) = bars_before + 1.0;
        slot.averages(high, low, close);
        slot.number(Q_PREVIOUS_CLOSE) = close;
        slot.windows(close, squared_return, weights, bars_before);
        slot.stochastic(high, low, close, bars_before);
        // The padding column is set as well, so that a bar's bytes are the same in each run.
        for (u32 column = INDICATORS; column < INDICATOR_COLUMNS; ++column) slot.set((Indicator)column, 0.0);
    }
}

}  // namespace warptape
