// Folds trades and quotes into bars and closes them: the twin of `slab.rs`, `time.rs`, `filled.rs` and `quotes.rs`.
// Rows come sorted by slot, those of a slot in log order. Trades, quotes and watermarks are in lists of their own.
//
//   fold_runs    one thread per RUN of trades: neighbours of one slot and bar become one part. So a busy slot's
//                trades are folded in parallel. Folding is exact and associative.
//   fold_quotes  the same for quotes of time bars. It keeps the last of neighbours by event time.
//   close_bars   one thread per slot. Merges its parts into its open bars, and closes those that are over or full.
//
// Volume bars have no parts, because the end of a bar depends on the end of the one before. Their trades are added one
// by one, and so are quotes for bars by count or volume. Sizes of trades are not negative.

#include "device.cuh"

namespace warptape {

static const u64 RUN = 32;
// As in `quotes.rs`.
static const i64 RECENT_QUOTES_MAX = 256;
static const i64 ABSENT = -1, FORGOTTEN = -2;
// Unknown, buyer, seller.
static const u32 AGGRESSORS = 3;

enum Kind { TIME, TRADES, VOLUME };

// Bid and ask. A top without orders is all zeros.
struct Top {
    i64 bid_e9, ask_e9;
    i64 bid_size, ask_size;
    i64 unit;  // One more than the exponent of the sizes; 0 if there are no orders.
};

__device__ inline i128 size_of(const Top &top, i64 size) {
    i128 size_e9 = size;
    if (size > 0) for (i64 unit = top.unit; unit > 1; --unit) size_e9 *= 10;
    return size_e9;
}

struct Bar {
    i128 volumes_e9[AGGRESSORS];
    i128 notional_e18;
    i64 number;  // Time bars: number of intervals since the epoch. Bars by count: number within the batch.
    i64 open_time_ns;
    i64 close_time_ns;
    i64 open_e9;
    i64 high_e9;
    i64 low_e9;
    i64 close_e9;
    i64 trades[AGGRESSORS];
    i64 quoted;  // 1 if it has a quote, else 0; a bar may have a quote and no trades.
    i64 quote_time_ns;
    Top top;
    i64 unused;

    __device__ i64 trade_count() const { return trades[0] + trades[1] + trades[2]; }
};

// The fold of neighbouring trades of one slot and bar.
struct Part {
    Bar bar;
    u32 place;
    u32 first_row;
    u32 last_row;
    u32 unused;
};

struct Trade {
    u32 place_kind;  // The place, then four bits with the exponent of the size, and two with the aggressor.
    u32 row;
    i64 time_ns;
    i64 price_e9;
    i64 size;  // In 10^exponent of 1e-9.
    __device__ u32 place() const { return place_kind & 0x3ffffff; }
    __device__ u32 exponent() const { return place_kind >> 26 & 15; }
    __device__ u32 aggressor() const { return place_kind >> 30; }
};

struct Quote {
    u32 place;
    u32 row;
    i64 time_ns;
    Top top;
};

// The last quote by event time among neighbouring quotes of one slot and bar.
struct QuotePart {
    i64 number;
    i64 time_ns;
    Top top;
    u32 place;
    u32 first_row;
};

// A watermark.
struct Mark {
    u64 row;
    i64 time_ns;
};

struct FoldArgs {
    u64 spec;  // Number of the specification.
    u64 kind;
    i64 parameter;  // Interval in nanoseconds, number of trades, or volume in 1e-9.
    i64 allowed_lateness_ns;
    u64 places;  // Slots that may change.
    const u32 *slot;  // By place.
    const u32 *group;  // By place: the group, whose watermarks apply.
    u64 trades;
    const u32 *trade_begin;  // First index by place, and the end.
    const Trade *trade;
    u64 quotes;
    const u32 *quote_begin;  // First index by place, and the end.
    const Quote *quote;
    const u32 *mark_begin;  // First index by group, and the end.
    const Mark *mark;
    u64 open_max;
    Bar *open;        // By slot, `open_max` for each, ascending by number.
    u64 *open_count;  // By slot.
    i64 *kept_quotes;  // By slot: for time bars the last `Top` before all open bars, else `RecentQuotes`.
    Part *parts;       // By trade: the parts of a run are at its first trades.
    u32 *part_count;   // By run.
    QuotePart *quote_parts;  // By quote, likewise.
    u32 *quote_part_count;
    u64 closed_max;
    u32 *closed_count;
    u32 *failed;  // Set if there is no room for all open or closed bars: then the state is void.
    u32 *first;   // By place: its first closed bar of this specification.
    u32 *closed_by_place;  // By place: number of closed bars of all specifications.
    ClosedBar *closed;
};

__device__ inline i128 greatest_i128() { return (i128)(((unsigned __int128)1 << 127) - 1); }

// Unsigned, so that a notional may wrap: it is taken modulo 2^128, and `notional_of` checks whether it is exact.
typedef unsigned __int128 u128;

__device__ inline i128 sum(i128 a, i128 b) { return b <= greatest_i128() - a ? a + b : greatest_i128(); }

__device__ inline i128 volume_of(const Bar &bar) {
    return sum(sum(bar.volumes_e9[0], bar.volumes_e9[1]), bar.volumes_e9[2]);
}

__device__ inline Bar bar_of_trade(const Trade &trade, i64 number) {
    i64 time_ns = trade.time_ns, price = trade.price_e9;
    i128 size = trade.size;
    for (u32 exponent = trade.exponent(); exponent > 0; --exponent) size *= 10;
    Bar bar = {};
    bar.volumes_e9[trade.aggressor()] = size;
    bar.trades[trade.aggressor()] = 1;
    bar.notional_e18 = (i128)((u128)(i128)price * (u128)size);
    bar.number = number;
    bar.open_time_ns = bar.close_time_ns = time_ns;
    bar.open_e9 = bar.high_e9 = bar.low_e9 = bar.close_e9 = price;
    return bar;
}

// Adds trades that came after those it has.
__device__ inline void add(bool by_event_time, Bar &bar, const Bar &later) {
    if (by_event_time && later.open_time_ns < bar.open_time_ns) {
        bar.open_time_ns = later.open_time_ns;
        bar.open_e9 = later.open_e9;
    }
    if (!by_event_time || later.close_time_ns >= bar.close_time_ns) {
        bar.close_time_ns = later.close_time_ns;
        bar.close_e9 = later.close_e9;
    }
    if (later.high_e9 > bar.high_e9) bar.high_e9 = later.high_e9;
    if (later.low_e9 < bar.low_e9) bar.low_e9 = later.low_e9;
    bar.notional_e18 = (i128)((u128)bar.notional_e18 + (u128)later.notional_e18);
    for (u32 side = 0; side < AGGRESSORS; ++side) {
        bar.volumes_e9[side] = sum(bar.volumes_e9[side], later.volumes_e9[side]);
        bar.trades[side] += later.trades[side];
    }
}

// Sum of price times size; the least i128 if the sum may need more than 128 bits and is thus unknown.
__device__ inline i128 notional_of(const Bar &bar) {
    u64 high = bar.high_e9 < 0 ? 0 - (u64)bar.high_e9 : bar.high_e9;
    u64 low = bar.low_e9 < 0 ? 0 - (u64)bar.low_e9 : bar.low_e9;
    u64 price = high > low ? high : low;
    u128 volume = (u128)volume_of(bar);
    u128 upper = (u128)price * (u64)(volume >> 64) + ((u128)price * (u64)volume >> 64);
    return upper >> 63 ? -greatest_i128() - 1 : bar.notional_e18;
}

__device__ inline i64 floor_divide(i64 dividend, i64 divisor) {
    i64 quotient = dividend / divisor;
    return dividend % divisor < 0 ? quotient - 1 : quotient;
}

// The time at which a bar begins, clamped to the range of i64.
__device__ inline i64 time_of(i128 number, i64 interval_ns) {
    const i64 GREATEST = 0x7fffffffffffffffll;
    if (number > GREATEST) number = GREATEST;
    i128 time = number * interval_ns;
    return time > GREATEST ? GREATEST : time < -(i128)GREATEST - 1 ? -GREATEST - 1 : (i64)time;
}

__device__ inline i64 bar_number(const FoldArgs &args, u32 place, u64 trade) {
    if (args.kind == TIME) return floor_divide(args.trade[trade].time_ns, args.parameter);
    u32 slot = args.slot[place];
    i64 before = args.open_count[slot] > 0 ? args.open[slot * args.open_max].trade_count() : 0;
    return (before + (i64)(trade - args.trade_begin[place])) / args.parameter;
}

extern "C" __global__ void fold_runs(const __grid_constant__ FoldArgs args) {
    u64 run = thread_number();
    u64 begin = run * RUN;
    if (args.kind == VOLUME || begin >= args.trades) return;
    u64 end = begin + RUN < args.trades ? begin + RUN : args.trades;
    u32 count = 0;
    Part part = {};
    for (u64 trade = begin; trade < end; ++trade) {
        const Trade &at = args.trade[trade];
        u32 place = at.place(), row = at.row;
        Bar bar = bar_of_trade(at, bar_number(args, place, trade));
        if (trade > begin && part.place == place && part.bar.number == bar.number) {
            add(args.kind == TIME, part.bar, bar);
            part.last_row = row;
            continue;
        }
        if (trade > begin) args.parts[begin + count++] = part;
        part = {bar, place, row, row, 0};
    }
    args.parts[begin + count++] = part;
    args.part_count[run] = count;
}

extern "C" __global__ void fold_quotes(const __grid_constant__ FoldArgs args) {
    u64 run = thread_number();
    u64 begin = run * RUN;
    if (args.kind != TIME || begin >= args.quotes) return;
    u64 end = begin + RUN < args.quotes ? begin + RUN : args.quotes;
    u32 count = 0;
    QuotePart part = {};
    for (u64 at = begin; at < end; ++at) {
        const Quote &quote = args.quote[at];
        i64 number = floor_divide(quote.time_ns, args.parameter);
        if (at > begin && part.place == quote.place && part.number == number) {
            if (quote.time_ns < part.time_ns) continue;
            part.time_ns = quote.time_ns;
            part.top = quote.top;
            continue;
        }
        if (at > begin) args.quote_parts[begin + count++] = part;
        part = {number, quote.time_ns, quote.top, quote.place, quote.row};
    }
    args.quote_parts[begin + count++] = part;
    args.quote_part_count[run] = count;
}

// The first position of a range at which a condition holds, which then holds at all later ones too; `end` if there is
// none.
template <typename Condition>
__device__ u32 first_where(u32 begin, u32 end, Condition holds) {
    while (begin < end) {
        u32 middle = begin + (end - begin) / 2;
        if (holds(middle)) end = middle;
        else begin = middle + 1;
    }
    return begin;
}

// Goes through the parts of one place, in the order of their rows.
template <typename Part>
struct Walk {
    const Part *parts;
    const u32 *part_count;
    u32 place;
    u64 run;
    u64 end;  // Position after the place's last trade or quote.
    u32 number;

    // The part that the walk has reached; null once it is past the last one.
    __device__ const Part *at() {
        for (; run * RUN < end; ++run, number = 0) {
            for (; number < part_count[run]; ++number) {
                const Part &part = parts[run * RUN + number];
                if (part.place == place) return &part;
            }
        }
        return 0;
    }
};

// A quote of a ring.
struct RecentQuote {
    i64 time_ns;
    Top top;
};

// Bars by count or volume: a ring with a slot's newest quotes by event time, oldest first.
struct RecentQuotes {
    i64 first;  // Position of the oldest quote in the ring.
    i64 count;
    i64 has_forgotten;  // 1 if a quote was dropped that a trade might have asked for, else 0.
    RecentQuote quotes[RECENT_QUOTES_MAX];

    __device__ RecentQuote &at(i64 position) { return quotes[(first + position) % RECENT_QUOTES_MAX]; }

    __device__ void forget_oldest() {
        first = (first + 1) % RECENT_QUOTES_MAX;
        --count;
    }

    __device__ void add(const Quote &quote, i64 allowed_lateness_ns) {
        i64 position = count;
        while (position > 0 && at(position - 1).time_ns > quote.time_ns) --position;
        if (count == RECENT_QUOTES_MAX) {
            has_forgotten = 1;
            if (position == 0) return;
            forget_oldest();
            --position;
        }
        for (i64 to = count; to > position; --to) at(to) = at(to - 1);
        at(position) = {quote.time_ns, quote.top};
        ++count;
        // A later trade may ask for quotes from this time on, and for the last quote before it. Older ones are not
        // needed.
        i128 settled_ns = (i128)at(count - 1).time_ns - allowed_lateness_ns;
        while (count > 1 && at(1).time_ns <= settled_ns) forget_oldest();
    }

    // The last quote at or before an event time.
    __device__ Top before(i64 time_ns) {
        for (i64 position = count; position > 0; --position) {
            if (at(position - 1).time_ns <= time_ns) return at(position - 1).top;
        }
        return {0, 0, FORGOTTEN, FORGOTTEN, has_forgotten};
    }
};

// One slot's open bars.
struct Closing {
    const FoldArgs &args;
    u32 place, slot, marks_begin, marks_end;
    Bar *open;
    u32 count;
    u32 last;  // Its last closed bar.
    u32 next_quote;  // Bars by count or volume: the first quote that is not recent yet.

    __device__ void close(const Bar &bar, i64 start_ns, i64 end_ns, const Top &top, u32 row) {
        u32 id = atomicAdd(args.closed_count, 1u);
        if (id >= args.closed_max) {
            *args.failed = 1;
            return;
        }
        if (last == NONE) args.first[place] = id;
        else args.closed[last].next = id;
        last = id;
        ClosedBar &closed = args.closed[id];
        closed.volume_e9 = volume_of(bar);
        closed.notional_e18 = notional_of(bar);
        closed.start_ns = start_ns;
        closed.end_ns = end_ns;
        closed.open_e9 = bar.open_e9;
        closed.high_e9 = bar.high_e9;
        closed.low_e9 = bar.low_e9;
        closed.close_e9 = bar.close_e9;
        closed.trades = bar.trade_count();
        for (u32 side = 1; side < AGGRESSORS; ++side) {
            closed.volumes_e9[side - 1] = bar.volumes_e9[side];
            closed.trades_of[side - 1] = bar.trades[side];
        }
        closed.bid_e9 = top.bid_e9;
        closed.ask_e9 = top.ask_e9;
        closed.quote_sizes_e9[0] = top.unit > 0 ? size_of(top, top.bid_size) : ABSENT;
        closed.quote_sizes_e9[1] = top.unit > 0 ? size_of(top, top.ask_size) : ABSENT;
        closed.place = place;
        closed.row = row;
        closed.next = NONE;
        closed.spec = (u32)args.spec;
        closed.rank = args.closed_by_place[place]++;
    }

    // Closes the time bars that have ended by the last watermark before a row.
    __device__ void close_before(u32 row) {
        u32 behind = first_where(marks_begin, marks_end, [&](u32 mark) { return args.mark[mark].row > row; });
        if (behind == marks_begin) return;
        i64 watermark_ns = args.mark[behind - 1].time_ns;
        Top &last_top = ((Top *)args.kept_quotes)[slot];
        u32 over = 0;
        for (; over < count; ++over) {
            const Bar &bar = open[over];
            i64 end_ns = time_of((i128)bar.number + 1, args.parameter);
            if (end_ns > watermark_ns) break;
            if (bar.quoted) last_top = bar.top;
            if (bar.trade_count() == 0) continue;
            u32 mark = first_where(marks_begin, behind, [&](u32 mark) { return args.mark[mark].time_ns >= end_ns; });
            i64 start_ns = time_of(bar.number, args.parameter);
            close(bar, start_ns, end_ns, last_top, (u32)args.mark[mark].row);
        }
        for (u32 bar = over; bar < count; ++bar) open[bar - over] = open[bar];
        count -= over;
    }

    // The open bar with this number, which is opened if it does not exist. The result is null if there is no room for
    // it.
    __device__ Bar *bar_at(i64 number) {
        u32 position = first_where(0, count, [&](u32 bar) { return open[bar].number >= number; });
        if (position < count && open[position].number == number) return open + position;
        if (count >= args.open_max) {
            *args.failed = 1;
            return 0;
        }
        for (u32 bar = count; bar > position; --bar) open[bar] = open[bar - 1];
        ++count;
        open[position] = {};
        open[position].number = number;
        return open + position;
    }

    __device__ void add_by_time(const Part &part) {
        close_before(part.first_row);
        Bar *bar = bar_at(part.bar.number);
        if (!bar) return;
        if (bar->trade_count() > 0) {
            add(true, *bar, part.bar);
            return;
        }
        Bar begun = part.bar;
        begun.quoted = bar->quoted;
        begun.quote_time_ns = bar->quote_time_ns;
        begun.top = bar->top;
        *bar = begun;
    }

    __device__ void add_quotes_by_time(const QuotePart &part) {
        close_before(part.first_row);
        Bar *bar = bar_at(part.number);
        if (!bar || (bar->quoted && part.time_ns < bar->quote_time_ns)) return;
        bar->quoted = 1;
        bar->quote_time_ns = part.time_ns;
        bar->top = part.top;
    }

    __device__ RecentQuotes &recent_quotes() { return ((RecentQuotes *)args.kept_quotes)[slot]; }

    // Adds the quotes before a row.
    __device__ void add_quotes_before(u32 row) {
        RecentQuotes &recent = recent_quotes();
        for (; next_quote < args.quote_begin[place + 1]; ++next_quote) {
            const Quote &quote = args.quote[next_quote];
            if (quote.row > row) break;
            recent.add(quote, args.allowed_lateness_ns);
        }
    }

    __device__ void add_until_full(const Bar &bar, u32 row) {
        if (count == 0) open[0] = bar;
        else add(false, open[0], bar);
        count = 1;
        bool full = args.kind == TRADES ? open[0].trade_count() >= args.parameter : volume_of(open[0]) >= args.parameter;
        if (full) {
            add_quotes_before(row);
            Top top = recent_quotes().before(open[0].close_time_ns);
            close(open[0], open[0].open_time_ns, open[0].close_time_ns, top, row);
            count = 0;
        }
    }

    // Adds all parts of time bars, trades and quotes in the order of their rows.
    __device__ void add_parts_by_time(Walk<Part> trades, Walk<QuotePart> quotes) {
        for (;;) {
            const Part *of_trades = trades.at();
            const QuotePart *of_quotes = quotes.at();
            if (of_trades && (!of_quotes || of_trades->first_row < of_quotes->first_row)) {
                add_by_time(*of_trades);
                ++trades.number;
            } else if (of_quotes) {
                add_quotes_by_time(*of_quotes);
                ++quotes.number;
            } else {
                break;
            }
        }
        close_before(NONE);
    }
};

extern "C" __global__ void close_bars(const __grid_constant__ FoldArgs args) {
    u64 place = thread_number();
    if (place >= args.places) return;
    u32 slot = args.slot[place], group = args.group[place];
    Closing closing = {
        args, (u32)place, slot, args.mark_begin[group], args.mark_begin[group + 1],
        args.open + slot * args.open_max, (u32)args.open_count[slot], NONE, args.quote_begin[place],
    };
    args.first[place] = NONE;
    u64 begin = args.trade_begin[place], end = args.trade_begin[place + 1];
    Walk<Part> trades = {args.parts, args.part_count, (u32)place, begin / RUN, end, 0};
    if (args.kind == TIME) {
        u64 quotes_begin = args.quote_begin[place], quotes_end = args.quote_begin[place + 1];
        Walk<QuotePart> quotes = {
            args.quote_parts, args.quote_part_count, (u32)place, quotes_begin / RUN, quotes_end, 0,
        };
        closing.add_parts_by_time(trades, quotes);
    } else {
        if (args.kind == VOLUME) {
            for (u64 trade = begin; trade < end; ++trade) {
                closing.add_until_full(bar_of_trade(args.trade[trade], 0), args.trade[trade].row);
            }
        } else {
            for (; const Part *part = trades.at(); ++trades.number) closing.add_until_full(part->bar, part->last_row);
        }
        closing.add_quotes_before(NONE);
    }
    args.open_count[slot] = closing.count;
}

}  // namespace warptape
