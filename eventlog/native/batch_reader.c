/* librdkafka's reader of record batches, compiled a second time with bounded decompression.
 *
 * librdkafka (2.12.1) limits the unpacked size of a batch only for zstd, and there by a guess that grows threefold: it may
 * reject a batch within the limit. A batch of gzip or lz4 can take all memory. Nor does librdkafka report the end of a batch
 * that it cannot unpack, so that no reader can continue behind it.
 *
 * This file includes librdkafka's source unchanged. It replaces the five decompressors that the source calls, and the texts
 * of their failures. The linker takes this object instead of librdkafka's own, because eventlog refers to
 * warptape_batches_are_bounded() and comes before it.
 *
 * The limit is the memory of an unpacked batch: its bytes, and librdkafka's data about each of its records.
 */

#include "rd.h"
#include "rdunittest.h"
#include "rdavl.h"
#include "rdlist.h"
#include "rdkafka_int.h"
#include "rdkafka_msg.h"
#include "rdkafka_msgset.h"
#include "rdkafka_topic.h"
#include "rdkafka_partition.h"
#include "rdkafka_header.h"
#include "rdkafka_lz4.h"
#include "rdgz.h"
#include "snappy.h"
#include "rdkafka_zstd.h"
#include "lz4frame.h"

#include <zlib.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_decompressBound */
#include <zstd.h>
#include <zstd_errors.h>

struct rd_kafka_msgset_reader_s;
typedef struct rd_kafka_msgset_reader_s wt_reader_t;

static int wt_is_full(const wt_reader_t *reader);
static void *wt_gz(wt_reader_t *reader, const void *in, size_t in_len, uint64_t *out_len);
static rd_bool_t wt_snappy_length(wt_reader_t *reader, const char *in, size_t in_len, size_t *out_len);
static int wt_snappy(wt_reader_t *reader, const char *in, size_t in_len, char *out);
static char *
wt_snappy_java(wt_reader_t *reader, const char *in, size_t in_len, size_t *out_len, char *text, size_t text_size);
static rd_kafka_resp_err_t
wt_lz4(wt_reader_t *reader, int is_standard, const char *in, size_t in_len, void **out, size_t *out_len);
static rd_kafka_resp_err_t
wt_zstd(wt_reader_t *reader, const char *in, size_t in_len, void **out, size_t *out_len);
static const char *wt_failure(wt_reader_t *reader, int codec, int64_t offset, size_t in_len);

/* Skips the call if earlier batches of the answer already fill the partition's queue: the rest is fetched again later, like
 * the part of a batch that an answer had no room for. */
#define WT_UNLESS_FULL(call)                                                                                           \
        ({                                                                                                             \
                if (wt_is_full(msetr))                                                                                 \
                        return RD_KAFKA_RESP_ERR__UNDERFLOW;                                                           \
                call;                                                                                                  \
        })

#define rd_gz_decompress(in, in_len, out_len) WT_UNLESS_FULL(wt_gz(msetr, in, in_len, out_len))
#define rd_kafka_snappy_uncompressed_length(in, in_len, out_len)                                                       \
        WT_UNLESS_FULL(wt_snappy_length(msetr, in, in_len, out_len))
#define rd_kafka_snappy_uncompress(in, in_len, out) wt_snappy(msetr, in, in_len, out)
#define rd_kafka_snappy_java_uncompress(in, in_len, out_len, text, text_size)                                          \
        WT_UNLESS_FULL(wt_snappy_java(msetr, in, in_len, out_len, text, text_size))
#define rd_kafka_lz4_decompress(rkb, is_standard, offset, in, in_len, out, out_len)                                    \
        WT_UNLESS_FULL(wt_lz4(msetr, is_standard, in, in_len, out, out_len))
#define rd_kafka_zstd_decompress(rkb, in, in_len, out, out_len) WT_UNLESS_FULL(wt_zstd(msetr, in, in_len, out, out_len))
#define rd_kafka_err2str(err) wt_failure(msetr, codec, Offset, compressed_size)

#include "rdkafka_msgset_reader.c"

#undef rd_gz_decompress
#undef rd_kafka_snappy_uncompressed_length
#undef rd_kafka_snappy_uncompress
#undef rd_kafka_snappy_java_uncompress
#undef rd_kafka_lz4_decompress
#undef rd_kafka_zstd_decompress
#undef rd_kafka_err2str

/* True if the last batch that this thread could not unpack was too large. A thread of librdkafka unpacks one batch at a time,
 * and asks for a failure's text right after it. */
static __thread rd_bool_t wt_is_beyond;

/* Called by eventlog, so that the linker needs this object. */
int warptape_batches_are_bounded(void) {
        return 1;
}

/* Returns the limit in bytes. eventlog sets it by a property that librdkafka uses only in producers. Other clients in the
 * process keep librdkafka's own limit. */
static size_t wt_limit(const wt_reader_t *reader) {
        const rd_kafka_conf_t *conf = &reader->msetr_rkb->rkb_rk->rk_conf;
        return conf->msg_copy_max_size > 0xffff ? (size_t)conf->msg_copy_max_size : (size_t)conf->recv_max_msg_size;
}

/* Returns the bytes that the current batch may unpack to; 0 if the data about its records alone exceeds the limit. */
static size_t wt_room(const wt_reader_t *reader) {
        const struct msgset_v2_hdr *header = reader->msetr_v2_hdr;
        size_t records                     = header && header->RecordCount > 0 ? (size_t)header->RecordCount : 0;
        size_t limit = wt_limit(reader), of_records = records * sizeof(rd_kafka_op_t);
        return limit > of_records ? limit - of_records : 0;
}

static int wt_is_full(const wt_reader_t *reader) {
        size_t queue_max = (size_t)reader->msetr_rkb->rkb_rk->rk_conf.queued_max_msg_kbytes * 1024;
        size_t queued    = (size_t)reader->msetr_msg_bytes + (size_t)reader->msetr_msgcnt * sizeof(rd_kafka_op_t);
        return reader->msetr_msgcnt > 0 && queued >= queue_max;
}

/* Returns true if the batch's transaction was aborted: nobody sees the batch, so it need not be unpacked. */
static rd_bool_t wt_is_aborted(const wt_reader_t *reader) {
        const struct msgset_v2_hdr *header = reader->msetr_v2_hdr;
        int64_t begin;
        if (!reader->msetr_aborted_txns || !header ||
            (header->Attributes & (RD_KAFKA_MSGSET_V2_ATTR_TRANSACTIONAL | RD_KAFKA_MSGSET_V2_ATTR_CONTROL)) !=
                RD_KAFKA_MSGSET_V2_ATTR_TRANSACTIONAL)
                return rd_false;
        begin = rd_kafka_aborted_txns_get_offset(reader->msetr_aborted_txns, header->PID);
        return begin != -1 && header->BaseOffset >= begin;
}

/* Returns one byte in place of a batch that is skipped, because librdkafka needs some content. */
static void *wt_nothing(size_t *out_len) {
        *out_len = 1;
        return rd_calloc(1, 1);
}

static void *wt_beyond(void *out) {
        wt_is_beyond = rd_true;
        rd_free(out);
        return NULL;
}

/* Grows the buffer to the bound; returns false if it has that size already. Unwritten memory is never allocated, so this costs
 * only the batch's own size, and a copy of the small first guess. */
static rd_bool_t wt_grow(char **out, size_t *size, size_t length, size_t bound) {
        char *larger;
        if (*size >= bound)
                return rd_false;
        larger = rd_malloc(bound);
        memcpy(larger, *out, length);
        rd_free(*out);
        *out  = larger;
        *size = bound;
        return rd_true;
}

/* Shrinks the buffer to its used length. */
static void *wt_fitted(char *out, size_t length) {
        return rd_realloc(out, RD_MAX(length, 1));
}

static size_t wt_first_guess(size_t in_len, size_t bound) {
        return RD_MAX(RD_MIN(in_len * 4, bound), 1);
}

static void *wt_gz(wt_reader_t *reader, const void *in, size_t in_len, uint64_t *out_len) {
        size_t bound = wt_room(reader), size = wt_first_guess(in_len, bound), length = 0;
        z_stream stream = RD_ZERO_INIT;
        rd_bool_t is_beyond = rd_false;
        char *out;
        int result;

        wt_is_beyond = rd_false;
        if (wt_is_aborted(reader)) {
                out      = wt_nothing(&length);
                *out_len = length;
                return out;
        }
        if (inflateInit2(&stream, 15 + 32) != Z_OK)
                return NULL;
        out             = rd_malloc(size);
        stream.next_in  = (void *)in;
        stream.avail_in = (uInt)in_len;
        do {
                stream.next_out  = (unsigned char *)out + length;
                stream.avail_out = (uInt)(size - length);
                result           = inflate(&stream, Z_NO_FLUSH);
                length           = size - stream.avail_out;
                /* A stream at the bound may still have to read its end, which needs no room. */
                is_beyond = result == Z_BUF_ERROR && stream.avail_out == 0 && !wt_grow(&out, &size, length, bound);
        } while (!is_beyond && (result == Z_OK || (result == Z_BUF_ERROR && stream.avail_out == 0)));
        inflateEnd(&stream);
        if (is_beyond)
                return wt_beyond(out);
        if (result != Z_STREAM_END) {
                rd_free(out);
                return NULL;
        }
        *out_len = length;
        return wt_fitted(out, length);
}

static rd_bool_t wt_snappy_length(wt_reader_t *reader, const char *in, size_t in_len, size_t *out_len) {
        wt_is_beyond = rd_false;
        if (wt_is_aborted(reader)) {
                *out_len = 1;
                return rd_true;
        }
        if (!rd_kafka_snappy_uncompressed_length(in, in_len, out_len))
                return rd_false;
        wt_is_beyond = *out_len > wt_room(reader);
        return !wt_is_beyond;
}

static int wt_snappy(wt_reader_t *reader, const char *in, size_t in_len, char *out) {
        return wt_is_aborted(reader) ? 0 : rd_kafka_snappy_uncompress(in, in_len, out);
}

static char *
wt_snappy_java(wt_reader_t *reader, const char *in, size_t in_len, size_t *out_len, char *text, size_t text_size) {
        size_t position = 0, length, sum = 0, bound = wt_room(reader);
        uint32_t chunk;

        wt_is_beyond = rd_false;
        if (wt_is_aborted(reader))
                return wt_nothing(out_len);
        while (position + 4 <= in_len) {
                memcpy(&chunk, in + position, 4);
                chunk = be32toh(chunk);
                position += 4;
                if (chunk > in_len - position || !rd_kafka_snappy_uncompressed_length(in + position, chunk, &length))
                        return NULL;
                position += chunk;
                sum += length;
                if (sum > bound)
                        return wt_beyond(NULL);
        }
        return rd_kafka_snappy_java_uncompress(in, in_len, out_len, text, text_size);
}

static rd_kafka_resp_err_t
wt_lz4(wt_reader_t *reader, int is_standard, const char *in, size_t in_len, void **out, size_t *out_len) {
        size_t bound = wt_room(reader), size = wt_first_guess(in_len, bound), length = 0, position = 0, hint = 1;
        LZ4F_decompressionContext_t context;
        char *buffer;

        wt_is_beyond = rd_false;
        if (wt_is_aborted(reader)) {
                *out = wt_nothing(out_len);
                return RD_KAFKA_RESP_ERR_NO_ERROR;
        }
        /* Frames of brokers before 0.10 have another kind of checksum. */
        if (!is_standard || LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
                return RD_KAFKA_RESP_ERR__BAD_COMPRESSION;
        buffer = rd_malloc(size);
        while (hint != 0 && position < in_len) {
                size_t written = size - length, taken = in_len - position;
                hint = LZ4F_decompress(context, buffer + length, &written, in + position, &taken, NULL);
                if (LZ4F_isError(hint))
                        break;
                length += written;
                position += taken;
                if (hint != 0 && written == 0 && taken == 0 && !wt_grow(&buffer, &size, length, bound)) {
                        wt_is_beyond = rd_true;
                        break;
                }
        }
        LZ4F_freeDecompressionContext(context);
        if (hint != 0 || position < in_len) {
                rd_free(buffer);
                return RD_KAFKA_RESP_ERR__BAD_COMPRESSION;
        }
        *out     = wt_fitted(buffer, length);
        *out_len = length;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t
wt_zstd(wt_reader_t *reader, const char *in, size_t in_len, void **out, size_t *out_len) {
        size_t bound = wt_room(reader), size, length;
        unsigned long long at_most;
        char *buffer;

        wt_is_beyond = rd_false;
        if (wt_is_aborted(reader)) {
                *out = wt_nothing(out_len);
                return RD_KAFKA_RESP_ERR_NO_ERROR;
        }
        at_most = ZSTD_decompressBound(in, in_len);
        if (at_most == ZSTD_CONTENTSIZE_ERROR)
                return RD_KAFKA_RESP_ERR__BAD_COMPRESSION;
        /* A batch whose claimed size is too large may still fit. */
        size   = (size_t)RD_MAX(RD_MIN(at_most, (unsigned long long)bound), 1);
        buffer = rd_malloc(size);
        length = ZSTD_decompress(buffer, size, in, in_len);
        if (ZSTD_isError(length)) {
                wt_is_beyond = at_most > bound && ZSTD_getErrorCode(length) == ZSTD_error_dstSize_tooSmall;
                rd_free(buffer);
                return RD_KAFKA_RESP_ERR__BAD_COMPRESSION;
        }
        *out     = wt_fitted(buffer, length);
        *out_len = length;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Returns the data that eventlog needs to continue behind the batch, as text: UnreadableBatch::parse reads it. A limit of 0
 * means that the batch is damaged, not too large. */
static const char *wt_failure(wt_reader_t *reader, int codec, int64_t offset, size_t in_len) {
        static __thread char text[256];
        const struct msgset_v2_hdr *header = reader->msetr_v2_hdr;
        int64_t first                      = header ? header->BaseOffset : offset;
        int64_t last                       = header ? first + header->LastOffsetDelta : offset;
        rd_snprintf(text, sizeof(text),
                    "first=%" PRId64 " last=%" PRId64 " records=%" PRId32 " bytes=%" PRIusz
                    " codec=%d limit=%" PRIusz " time_ms=%" PRId64,
                    first, last, header ? header->RecordCount : 0, in_len, codec,
                    wt_is_beyond ? wt_limit(reader) : (size_t)0, header ? header->MaxTimestamp : 0);
        return text;
}
